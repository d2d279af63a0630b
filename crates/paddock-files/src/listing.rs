//! The single transactions of a log, in words, for a person who looks into it. Nothing is applied.

use std::path::Path;

use paddock_proto::{SessionId, Zxid};
use paddock_tree::{CommandWords, ZnodeKind};

use crate::data_dir;
use crate::error::FileError;
use crate::load::{LogRead, ZooKeeperDirs};
use crate::transaction::{Body, Transaction};
use crate::transaction_log::{LogReader, NextTransaction};

/// A transaction as a log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTransaction {
    /// Its entry of the log, where entries have numbers.
    pub index: Option<u64>,
    pub zxid: Zxid,
    /// Session that asked for it; 0 for the server itself.
    pub session: SessionId,
    /// Time of the server that ordered it, in milliseconds since 1970.
    pub time_ms: i64,
    /// Bytes that it takes in the log, without what stands around it.
    pub bytes: usize,
    /// Operations of a multi, or the one that it is.
    pub operations: Vec<CommandWords>,
    /// True if a later leader replaced it, so that it never counted.
    pub is_replaced: bool,
}

/// Lists the transactions of a ZooKeeper's log, in the order of its files.
///
/// # Errors
/// [`FileError`] for files that cannot be read, and for the first record that is damaged; what stands before it has been listed.
pub fn list_transactions(
    source: &ZooKeeperDirs,
    each: &mut dyn FnMut(&ListedTransaction),
) -> Result<Vec<LogRead>, FileError> {
    let dir = data_dir::files_dir(source.log_dir.as_deref().unwrap_or(&source.data_dir))?;
    data_dir::logs(&dir)?.iter().map(|log| list_file(&log.path, each)).collect()
}

fn list_file(path: &Path, each: &mut dyn FnMut(&ListedTransaction)) -> Result<LogRead, FileError> {
    let mut reader = LogReader::open(path)?;
    let mut read = LogRead { path: path.to_owned(), transactions: 0, torn: None };
    loop {
        match reader.next()? {
            NextTransaction::Entry { offset, entry } => match Transaction::decode(entry) {
                Ok(transaction) => {
                    read.transactions += 1;
                    each(&listed(&transaction, entry.len()));
                }
                Err(problem) => return Err(reader.damaged(offset, problem)),
            },
            NextTransaction::End => return Ok(read),
            NextTransaction::Torn { offset } => {
                read.torn = Some(offset);
                return Ok(read);
            }
        }
    }
}

fn listed(transaction: &Transaction<'_>, bytes: usize) -> ListedTransaction {
    let Transaction { session, zxid, time_ms, body, .. } = transaction;
    let operations = match body {
        Body::Multi(bodies) => bodies.iter().map(in_words).collect(),
        body => vec![in_words(body)],
    };
    let (session, zxid, time_ms) = (*session, *zxid, *time_ms);
    ListedTransaction { index: None, zxid, session, time_ms, bytes, operations, is_replaced: false }
}

fn in_words(body: &Body<'_>) -> CommandWords {
    let bytes = |data: &Option<&[u8]>| format!("{} bytes", data.map_or(0, <[u8]>::len));
    let (operation, path, detail) = match body {
        Body::CreateSession { timeout_ms } => ("createSession", None, format!("timeout {timeout_ms} ms")),
        Body::CloseSession { paths } if paths.is_empty() => ("closeSession", None, String::new()),
        Body::CloseSession { paths } => ("closeSession", None, format!("removes {}", paths.join(" "))),
        Body::Create { path, data, kind, .. } => {
            ("create", Some(*path), format!("{}, {}", kind_in_words(*kind), bytes(data)))
        }
        Body::Delete { path } => ("delete", Some(*path), String::new()),
        Body::SetData { path, data, version } => {
            ("setData", Some(*path), format!("{}, then version {version}", bytes(data)))
        }
        Body::SetAcl { path, version, .. } => ("setACL", Some(*path), format!("then version {version}")),
        Body::Multi(_) => ("multi", None, String::new()),
        Body::Nothing => ("error", None, "changes nothing".to_owned()),
    };
    CommandWords { operation: operation.to_owned(), path: path.map(str::to_owned), detail }
}

fn kind_in_words(kind: ZnodeKind) -> String {
    match kind {
        ZnodeKind::Persistent => "Persistent".to_owned(),
        ZnodeKind::Ephemeral(_) => "Ephemeral".to_owned(),
        ZnodeKind::Container => "Container".to_owned(),
        ZnodeKind::Ttl { ms } => format!("with a TTL of {ms} ms"),
    }
}
