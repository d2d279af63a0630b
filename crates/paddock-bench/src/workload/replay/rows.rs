//! The rows of a log, as they are written.

use std::path::Path;
use std::time::SystemTime;

use csv::{ByteRecord, ReaderBuilder};

use super::spelling::{self, Op};
use crate::BenchError;

/// One request, or one operation of a multi.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordedRow {
    pub(super) line: usize,
    pub(super) session: i64,
    pub(super) xid: i64,
    /// 0 for a request, 1 and so on for the operations of a multi; 0 throughout if the log does not say.
    pub(super) index: u64,
    pub(super) time: Option<SystemTime>,
    pub(super) op: Op,
    pub(super) path: String,
    pub(super) data: Vec<u8>,
    pub(super) watch: bool,
    pub(super) ephemeral: bool,
    pub(super) sequential: bool,
    pub(super) version: Option<i32>,
    pub(super) error: Option<i32>,
    /// Number of requests of a multi.
    pub(super) requests: usize,
}

/// Places of the columns. Those that say nothing about a request, such as `hostname`, are not looked at.
struct Columns {
    kind: Option<usize>,
    session: usize,
    xid: usize,
    index: Option<usize>,
    time: Option<usize>,
    op: usize,
    path: usize,
    data: Option<usize>,
    watch: Option<usize>,
    ephemeral: Option<usize>,
    sequential: Option<usize>,
    version: Option<usize>,
    error: Option<usize>,
    requests: Option<usize>,
}

/// The requests of a log that can be replayed, in the order of the file.
pub(super) fn read(path: &Path) -> Result<Vec<RecordedRow>, BenchError> {
    let file = std::fs::File::open(path).map_err(BenchError::file("read recorded requests", path))?;
    let mut reader = ReaderBuilder::new().from_reader(file);
    let columns = Columns::of(path, reader.byte_headers().map_err(|error| broken(path, error))?)?;
    let mut rows = Vec::new();
    for record in reader.byte_records() {
        let record = record.map_err(|error| broken(path, error))?;
        if columns.is_request(&record) {
            let row = columns.row(&record);
            rows.push(row.map_err(|message| in_file(path, line_of(&record), message))?);
        }
    }
    rows.retain(|row| row.op != Op::LeftOut);
    Ok(rows)
}

pub(super) fn in_file(path: &Path, line: usize, message: String) -> BenchError {
    BenchError::InFile { file: path.to_path_buf(), line, message }
}

fn broken(path: &Path, error: csv::Error) -> BenchError {
    let line = error.position().map_or(1, |position| position.line() as usize);
    match error.into_kind() {
        csv::ErrorKind::Io(source) => BenchError::file("read recorded requests", path)(source),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            in_file(path, line, format!("{len} columns, but the header has {expected_len}"))
        }
        other => in_file(path, line, format!("not CSV: {other:?}")),
    }
}

fn line_of(record: &ByteRecord) -> usize {
    record.position().map_or(1, |position| position.line() as usize)
}

impl Columns {
    fn of(path: &Path, header: &ByteRecord) -> Result<Columns, BenchError> {
        let find = |name: &str| header.iter().position(|column| column.trim_ascii() == name.as_bytes());
        let need =
            |name: &str| find(name).ok_or_else(|| in_file(path, 1, format!("there is no column `{name}`")));
        let times = ["request_event_time", "event_time_microseconds", "event_time"];
        Ok(Columns {
            kind: find("type"),
            session: need("session_id")?,
            xid: need("xid")?,
            index: find("request_idx"),
            time: times.into_iter().find_map(find),
            op: need("op_num")?,
            path: need("path")?,
            data: find("data"),
            watch: find("has_watch"),
            ephemeral: find("is_ephemeral"),
            sequential: find("is_sequential"),
            version: find("version"),
            error: find("error"),
            requests: find("requests_size"),
        })
    }

    /// `system.zookeeper_log` has a row for the request and another one for the response.
    fn is_request(&self, record: &ByteRecord) -> bool {
        self.kind.is_none_or(|kind| matches!(&record[kind], b"Request" | b"1"))
    }

    fn row(&self, record: &ByteRecord) -> Result<RecordedRow, String> {
        let word =
            |column: usize| std::str::from_utf8(&record[column]).map_err(|_| "text is not UTF-8".to_string());
        let optional = |column: Option<usize>| column.map_or(Ok(""), word);
        let path = word(self.path)?;
        Ok(RecordedRow {
            line: line_of(record),
            session: number(word(self.session)?, "session_id")?,
            xid: number(word(self.xid)?, "xid")?,
            index: number_or_null(optional(self.index)?, "request_idx")?.unwrap_or(0),
            time: spelling::time(optional(self.time)?)?,
            op: spelling::op(word(self.op)?)?,
            path: path.to_string(),
            data: self.data.map_or(Vec::new(), |data| record[data].to_vec()),
            watch: spelling::flag(optional(self.watch)?)?,
            ephemeral: spelling::flag(optional(self.ephemeral)?)?,
            sequential: spelling::flag(optional(self.sequential)?)?,
            version: number_or_null(optional(self.version)?, "version")?,
            error: spelling::error(optional(self.error)?)?,
            requests: number_or_null(optional(self.requests)?, "requests_size")?.unwrap_or(0),
        })
    }
}

fn number<T: std::str::FromStr>(word: &str, column: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{column}` must be a number, not `{word}`"))
}

fn number_or_null<T: std::str::FromStr>(word: &str, column: &str) -> Result<Option<T>, String> {
    if spelling::is_null(word) { Ok(None) } else { number(word, column).map(Some) }
}
