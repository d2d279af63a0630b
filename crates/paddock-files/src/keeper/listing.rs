//! The single requests of a Keeper's log, in words. What came of them is not in the log.

use std::path::Path;

use paddock_proto::{OpCode, SessionId, Write, Zxid};
use paddock_tree::CommandWords;

use super::changelog::read_files;
use super::entry::{ChangelogEntry, SESSION_ID};
use super::names;
use crate::error::{FileError, Problem};
use crate::listing::ListedTransaction;
use crate::load::LogRead;

/// Lists the requests of a log directory, in the order of its files.
///
/// # Errors
/// [`FileError`] for files that cannot be read, and for a record that is damaged or no request; what stands before an unreadable request has been
/// listed.
pub fn list_requests(
    log: &Path,
    each: &mut dyn FnMut(&ListedTransaction),
) -> Result<Vec<LogRead>, FileError> {
    read_files(&names::changelogs(log)?, &mut |path, record, is_replaced| {
        let index = record.index;
        let transaction = match record.request {
            Some(request) => of_request(request, index),
            None => Ok(of_members(index)),
        };
        let unreadable = |problem| FileError::KeeperRequest { path: path.to_owned(), index, problem };
        each(&ListedTransaction { is_replaced, ..transaction.map_err(unreadable)? });
        Ok(1)
    })
}

fn of_request(request: &[u8], index: u64) -> Result<ListedTransaction, Problem> {
    let entry = ChangelogEntry::decode(request)?;
    let operations = match OpCode::from_code(entry.op) {
        _ if entry.op == SESSION_ID => vec![named("createSession")],
        None => return Err(Problem::Operation(entry.op)),
        Some(OpCode::CloseSession) => vec![named("closeSession")],
        // The credentials are not shown.
        Some(OpCode::Auth) => vec![named("auth")],
        Some(op) if op.is_write() => match Write::decode(op, entry.body)? {
            Write::Multi(writes) => writes.iter().map(CommandWords::of_write).collect(),
            write => vec![CommandWords::of_write(&write)],
        },
        Some(op) => vec![named(&format!("{op:?}"))],
    };
    let zxid = entry.zxid_at(index);
    let (session, time_ms, bytes) = (entry.session, entry.time_ms, request.len());
    Ok(ListedTransaction {
        index: Some(index),
        zxid,
        session,
        time_ms,
        bytes,
        operations,
        is_replaced: false,
    })
}

fn of_members(index: u64) -> ListedTransaction {
    ListedTransaction {
        index: Some(index),
        zxid: Zxid(0),
        session: SessionId::NONE,
        time_ms: 0,
        bytes: 0,
        operations: vec![named("members")],
        is_replaced: false,
    }
}

fn named(operation: &str) -> CommandWords {
    CommandWords { operation: operation.to_owned(), path: None, detail: String::new() }
}
