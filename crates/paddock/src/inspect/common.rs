//! Parts that all looks share: failures, the lock, and how things are printed.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::moving::MovingFailure;

/// Reasons for which a look fails, beside those of reading.
#[derive(Debug, thiserror::Error)]
pub(super) enum InspectFailure {
    #[error("a process runs on {}: stop it, or inspect a copy of the directory", path.display())]
    InUse { path: PathBuf },
    #[error("{action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a data directory of Paddock, ZooKeeper or ClickHouse Keeper", path.display())]
    NothingKnown { path: PathBuf },
    #[error("{damaged} of {count} snapshots cannot be used")]
    DamagedSnapshots { damaged: usize, count: usize },
    #[error(
        "the digest is wrong: the state is not the one whose digest was written, so a file was changed or is missing"
    )]
    WrongDigest,
    #[error("write the output: {0}")]
    Output(io::Error),
}

impl From<InspectFailure> for MovingFailure {
    fn from(failure: InspectFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

/// Holds off a member that would start on the directory meanwhile. A copy without the file of the lock has none.
pub(super) fn lock(dir: &Path) -> Result<Option<File>, InspectFailure> {
    let path = dir.join("lock");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(InspectFailure::Io { action: "open", path, source }),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(InspectFailure::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(InspectFailure::Io { action: "lock", path, source }),
    }
}

/// Prints a line or several.
pub(super) fn print(text: &str) -> Result<(), InspectFailure> {
    writeln!(io::stdout(), "{text}").map_err(InspectFailure::Output)
}

/// The failure of a directory that no reader knows.
pub(super) fn unknown(path: &Path) -> MovingFailure {
    match path.metadata() {
        Err(source) => InspectFailure::Io { action: "open", path: path.to_owned(), source }.into(),
        Ok(_) => InspectFailure::NothingKnown { path: path.to_owned() }.into(),
    }
}

/// Members with commas between them.
pub(super) fn members(raft_ids: &[u64]) -> Vec<Value> {
    let numbers = raft_ids.iter().filter_map(|id| paddock_replica::member_number(*id));
    numbers.map(|member| json!(member)).collect()
}

pub(super) fn listed(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(",")
}
