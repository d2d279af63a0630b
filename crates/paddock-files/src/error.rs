//! Errors of files: each names the file, and where in it.

use std::io;
use std::path::{Path, PathBuf};

use paddock_proto::{DecodeError, Zxid};
use paddock_tree::DraftError;

/// Reason for which files cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{action} {}: {error}", path.display())]
    Io { action: &'static str, path: PathBuf, error: io::Error },
    #[error("{} at offset {offset}: {problem}", path.display())]
    Damaged { path: PathBuf, offset: u64, problem: Problem },
    #[error(
        "no ZooKeeper data in {}: it has neither a directory version-2 nor snapshot.* files; name the dataDir of zoo.cfg",
        path.display()
    )]
    NotADataDir { path: PathBuf },
    #[error("no snapshot in {}: and its transaction log does not begin with the first transaction, so it says only a part", path.display())]
    NoSnapshot { path: PathBuf },
    #[error("none of the {count} snapshots in {} is whole; the newest: {newest}", path.display())]
    NoValidSnapshot { path: PathBuf, count: usize, newest: Box<FileError> },
    #[error(
        "transactions {} to {} are missing before {} (offset {offset}); restore the transaction logs that follow the snapshot, \
         or name their directory with --log-dir",
        first, last, path.display()
    )]
    Gap { path: PathBuf, offset: u64, first: Zxid, last: Zxid },
    #[error(
        "the data do not have the digest that ZooKeeper wrote down at zxid {zxid}: {found:#x}, not {expected:#x}; take the \
         directory of another member, or pass --ignore-digest"
    )]
    Digest { zxid: Zxid, found: u64, expected: u64 },
    #[error(
        "the data end at zxid {zxid}, which no ensemble comes to: behind it there would be no number for a write"
    )]
    LastZxid { zxid: Zxid },
    #[error("{} is there already; nothing is written over", path.display())]
    Exists { path: PathBuf },
    #[error("{} is not the working copy of an import; name another directory", path.display())]
    NotACopy { path: PathBuf },
    #[error("another process works with {}", path.display())]
    InUse { path: PathBuf },
    #[error("transaction {zxid}: {problem}")]
    Received { zxid: Zxid, problem: Problem },
    #[error(
        "no data of a ClickHouse Keeper: there is no snapshot_*.bin in {}, and no changelog in {} that begins at index 1",
        snapshots.display(), log.display()
    )]
    NotAKeeper { snapshots: PathBuf, log: PathBuf },
    #[error("{} was written to meanwhile: end the server first", path.display())]
    Changed { path: PathBuf },
    #[error("{}, log index {index}: {problem}", path.display())]
    KeeperRequest { path: PathBuf, index: u64, problem: Problem },
    #[error(
        "log entries {first} to {last} are missing before {} (offset {offset}); restore the changelogs that follow the snapshot",
        path.display()
    )]
    KeeperGap { path: PathBuf, offset: u64, first: u64, last: u64 },
    #[error(
        "the changelogs in {} end at index {last}, before the snapshot {index} that cannot be read: {problem}",
        log.display()
    )]
    KeeperLogEnds { log: PathBuf, last: u64, index: u64, problem: Box<FileError> },
    #[error(
        "the data do not have the digest that ClickHouse Keeper wrote down at log index {index}: {found:#x}, not {expected:#x}; take \
         the directories of another member, or pass --ignore-digest"
    )]
    KeeperDigest { index: u64, found: u64, expected: u64 },
}

/// The last zxid that data may end at, so that a member can go on behind them: half of all that there are.
const LAST_ZXID_MAX: Zxid = Zxid(1 << 62);

/// Refuses data behind which a member could not number its writes.
pub(crate) fn check_last_zxid(zxid: Zxid) -> Result<(), FileError> {
    if (Zxid(0)..=LAST_ZXID_MAX).contains(&zxid) { Ok(()) } else { Err(FileError::LastZxid { zxid }) }
}

/// Problem at one place of a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Io(io::Error),
    #[error("the file ends before its last field")]
    Truncated,
    #[error("this is not a ZooKeeper {expected}: it begins with {found:#010x}")]
    Magic { expected: &'static str, found: u32 },
    #[error("format version {0} is unknown (known: 2)")]
    Version(i32),
    #[error("unreasonable length {0}")]
    Length(i32),
    #[error("a string is not UTF-8")]
    NotUtf8,
    #[error("checksum is wrong: {found:#x}, not {expected:#x}")]
    Checksum { found: i64, expected: i64 },
    #[error("ACL {0} of a znode is not in the snapshot")]
    UnknownAcl(i64),
    #[error("znode {path}: {error}")]
    Znode { path: String, error: DraftError },
    #[error("end of the snapshot cannot be read")]
    Trailer,
    #[error("the snapshot does not end as a leader ends it")]
    Signature,
    #[error("data behind the end of the snapshot")]
    Trailing,
    #[error("compressed data cannot be read: {0}")]
    Compression(String),
    #[error("transaction cannot be read: {0}")]
    Transaction(DecodeError),
    #[error("transaction has the unknown type {0}")]
    TransactionType(i32),
    #[error("transaction is followed by {0} bytes of something else")]
    TransactionRest(usize),
    #[error("transaction deletes the root")]
    DeletesRoot,
    #[error("packet type {0} is none of the learner protocol's")]
    PacketType(i32),
    #[error("a record without its end, and more data behind it")]
    Unfinished,
    #[error(
        "snapshot format version {0} is unknown (known: 0 to 7); copy from the running Keeper with `paddock import live`"
    )]
    KeeperSnapshotVersion(u8),
    #[error("changelog format version {0} is unknown (known: 0 to 2)")]
    ChangelogVersion(u8),
    #[error("the snapshot is of log index {found}, and its name says {named}")]
    SnapshotIndex { found: u64, named: u64 },
    #[error("Keeper had not finished this file")]
    Marked,
    #[error("log entry has the unknown kind {0}")]
    EntryKind(i32),
    #[error("request has the unknown operation {0}")]
    Operation(i32),
    #[error("request is none that Keeper logs")]
    NotOfKeeper,
    #[error("request of Keeper's collector of TTLs and containers, whose rules are not known here")]
    Collector,
    #[error(
        "request without its time, as Keepers of 2021 logged it: end Keeper in order, so that it writes a snapshot"
    )]
    NoTime,
    #[error("zxid {zxid} comes after {last}")]
    ZxidBack { zxid: Zxid, last: Zxid },
    #[error("znode {path}: {value} children were ever created; numbers above 2147483647 cannot be kept")]
    Counter { path: String, value: i64 },
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Problem::Truncated,
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                Problem::Compression(error.to_string())
            }
            _ => Problem::Io(error),
        }
    }
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Problem {
        Problem::Transaction(error)
    }
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |error| FileError::Io { action, path: path.to_owned(), error }
}
