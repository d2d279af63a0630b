//! From rows to the requests of each session, encoded and ready to be sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use paddock_proto::{CreateMode, ErrorCode, OpCode, encode, jute::Writer, validate_path};

use super::rows::{RecordedRow, in_file};
use super::spelling::Op;
use crate::BenchError;
use crate::workload::Operation;

/// A request and the answer that it should get.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) op: OpCode,
    pub(super) body: Box<[u8]>,
    pub(super) operation: Operation,
    /// `None` if any answer will do.
    pub(super) error: Option<i32>,
    /// From the start of the run, if the log's own times are kept.
    pub(super) due: Option<Duration>,
}

/// The requests of one session, and from what they were made.
#[derive(Debug, Default)]
pub(super) struct RecordedSession {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) calls: Vec<RecordedCall>,
}

/// One request as it was recorded.
#[derive(Debug)]
pub(super) struct RecordedCall {
    pub(super) line: usize,
    pub(super) time: Option<SystemTime>,
    pub(super) error: Option<i32>,
    /// One, or the operations of a multi.
    pub(super) rows: Vec<RecordedRow>,
}

/// Sessions by their ids, each with its requests by their xids. `operations` gets the names of what occurs.
pub(super) fn sessions(
    path: &Path,
    rows: Vec<RecordedRow>,
    operations: &mut Vec<String>,
) -> Result<Vec<RecordedSession>, BenchError> {
    let mut by_session: BTreeMap<i64, Vec<RecordedRow>> = BTreeMap::new();
    for row in rows {
        by_session.entry(row.session).or_default().push(row);
    }
    by_session.into_values().map(|rows| session(path, rows, operations)).collect()
}

fn session(
    path: &Path,
    mut rows: Vec<RecordedRow>,
    operations: &mut Vec<String>,
) -> Result<RecordedSession, BenchError> {
    // Stable: rows of one request stay as they are unless they are numbered.
    rows.sort_by_key(|row| (row.xid, row.index));
    let mut session = RecordedSession::default();
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let parts: Vec<RecordedRow> =
            (0..row.requests).map_while(|_| rows.next_if(|part| part.xid == row.xid)).collect();
        let (op, body) = request(&row, &parts).map_err(|(line, message)| in_file(path, line, message))?;
        let (operation, error) = (operation(op, operations), row.error);
        session.exchanges.push(Exchange { op, body: body.into(), operation, error, due: None });
        session.calls.push(RecordedCall { line: row.line, time: row.time, error, rows: rows_of(row, parts) });
    }
    Ok(session)
}

fn rows_of(row: RecordedRow, parts: Vec<RecordedRow>) -> Vec<RecordedRow> {
    if is_multi(row.op) { parts } else { vec![row] }
}

fn is_multi(op: Op) -> bool {
    matches!(op, Op::Multi | Op::MultiRead)
}

/// The body of a request; a refusal comes with the line of the row that is wrong.
fn request(row: &RecordedRow, parts: &[RecordedRow]) -> Result<(OpCode, Vec<u8>), (usize, String)> {
    let at_row = |message| (row.line, message);
    if !is_multi(row.op) {
        return if parts.is_empty() {
            single(row).map_err(at_row)
        } else {
            Err(at_row(format!("a {:?} cannot have {} requests", row.op, row.requests)))
        };
    }
    if parts.len() < row.requests {
        return Err(at_row(format!(
            "a multi of {} requests has {} rows after it",
            row.requests,
            parts.len()
        )));
    }
    multi(row, parts)
}

fn operation(op: OpCode, operations: &mut Vec<String>) -> Operation {
    let name = match op {
        OpCode::Create => "create",
        OpCode::Delete => "delete",
        OpCode::Exists => "exists",
        OpCode::GetData => "get",
        OpCode::SetData => "set",
        OpCode::GetAcl => "get_acl",
        OpCode::GetChildren | OpCode::GetChildren2 => "list",
        OpCode::Sync => "sync",
        OpCode::Check => "check",
        OpCode::Multi => "multi",
        OpCode::MultiRead => "multi_read",
        other => unreachable!("{other:?} is never replayed"),
    };
    let known = operations.iter().position(|known| known == name);
    Operation(known.unwrap_or_else(|| {
        operations.push(name.to_string());
        operations.len() - 1
    }))
}

fn single(row: &RecordedRow) -> Result<(OpCode, Vec<u8>), String> {
    check_path(row)?;
    let (op, mut body) = (op_code(row.op), Vec::new());
    write(row, row.error, &mut body);
    Ok((op, body))
}

fn multi(multi: &RecordedRow, rows: &[RecordedRow]) -> Result<(OpCode, Vec<u8>), (usize, String)> {
    let mut body = Vec::new();
    // Without errors of its operations, a multi's own is taken to be that of each.
    let known = rows.iter().any(|row| row.error.is_some());
    for row in rows {
        check_path(row).map_err(|message| (row.line, message))?;
        let part = part_code(multi.op, row.op).map_err(|message| (row.line, message))?;
        encode::multi_operation(&mut body, part);
        write(row, if known { row.error } else { multi.error }, &mut body);
    }
    encode::multi_end(&mut body);
    Ok((op_code(multi.op), body))
}

fn part_code(multi: Op, part: Op) -> Result<OpCode, String> {
    match (multi, part) {
        (Op::Multi, Op::Create | Op::Remove | Op::Set | Op::Check) => Ok(op_code(part)),
        (Op::MultiRead, Op::Get) => Ok(OpCode::GetData),
        // The newer list is unknown there.
        (Op::MultiRead, Op::SimpleList | Op::List) => Ok(OpCode::GetChildren),
        _ => Err(format!("a {multi:?} cannot hold a {part:?}")),
    }
}

fn op_code(op: Op) -> OpCode {
    match op {
        Op::Create => OpCode::Create,
        Op::Remove => OpCode::Delete,
        Op::Exists => OpCode::Exists,
        Op::Get => OpCode::GetData,
        Op::Set => OpCode::SetData,
        Op::GetAcl => OpCode::GetAcl,
        Op::SimpleList => OpCode::GetChildren,
        Op::List => OpCode::GetChildren2,
        Op::Sync => OpCode::Sync,
        Op::Check => OpCode::Check,
        Op::Multi => OpCode::Multi,
        Op::MultiRead => OpCode::MultiRead,
        Op::LeftOut => unreachable!("such rows are not kept"),
    }
}

fn check_path(row: &RecordedRow) -> Result<(), String> {
    // The server puts digits behind it before it looks at it.
    let suffix = if row.op == Op::Create && row.sequential { "0" } else { "" };
    validate_path(&format!("{}{suffix}", row.path)).map_err(|invalid| format!("`{}`: {invalid}", row.path))
}

fn write(row: &RecordedRow, error: Option<i32>, out: &mut Vec<u8>) {
    match row.op {
        Op::Create => encode::create_open(out, &row.path, Some(&row.data), mode(row)),
        Op::Set => encode::set_data(out, &row.path, Some(&row.data), version(row, error)),
        Op::Remove | Op::Check => encode::path_and_version(out, &row.path, version(row, error)),
        Op::Exists | Op::Get | Op::SimpleList | Op::List => encode::path_and_watch(out, &row.path, row.watch),
        Op::Sync | Op::GetAcl => out.put_string(&row.path),
        Op::Multi | Op::MultiRead | Op::LeftOut => unreachable!("{:?} has no body of its own", row.op),
    }
}

fn mode(row: &RecordedRow) -> CreateMode {
    match (row.ephemeral, row.sequential) {
        (false, false) => CreateMode::Persistent,
        (true, false) => CreateMode::Ephemeral,
        (false, true) => CreateMode::PersistentSequential,
        (true, true) => CreateMode::EphemeralSequential,
    }
}

/// Recorded versions count sets from before the recording, so any will do unless it must not fit.
fn version(row: &RecordedRow, error: Option<i32>) -> i32 {
    let must_fail = error == Some(ErrorCode::BadVersion.code());
    if must_fail && row.version.is_some_and(|version| version >= 0) { i32::MAX } else { -1 }
}
