//! Failures of the world around the log.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{is_exhausted, is_full};
use crate::{GroupNumber, Index};

const REBUILD: &str =
    "restore a backup, or give this member an empty data directory and let the ensemble rebuild it";

/// Errors after which the log cannot go on. Some pass ([`LogError::is_passing`]); after any other error the process has to end.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no room for the next segment. Nothing of what is buffered was written, and nothing was forgotten: the
    /// same call succeeds when there is room again.
    #[error("no room on disk for {} of {needed_bytes} bytes", path.display())]
    DiskFull { path: PathBuf, needed_bytes: u64 },

    /// The system had no descriptor or no memory for a file. It is as with a full disk: the same call may succeed later.
    #[error("{action} {}", path.display())]
    Exhausted {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },

    /// The disk does not hold what was written. Opening changes nothing in this case.
    #[error("log segment {} is damaged at offset {offset}: {what}; {REBUILD}", path.display())]
    Damaged { path: PathBuf, offset: u64, what: Damage },

    /// A segment between two others is gone.
    #[error("log segment {} is missing while later ones exist; put it back, or {REBUILD}", path.display())]
    MissingSegment { path: PathBuf },

    /// The segment was written by a version that this one does not know.
    #[error("log segment {} has format version {version}, which this build cannot read: run the release that wrote it, or a later one", path.display())]
    UnknownVersion { path: PathBuf, version: u32 },

    /// The log begins too late to continue from the snapshot.
    #[error(
        "the log of group {group} begins at {first}, but the snapshot reaches only {snapshot}; {REBUILD}"
    )]
    SnapshotGap { group: GroupNumber, snapshot: Index, first: Index },

    /// An earlier write or sync failed, so it is not known what is on disk.
    #[error("the log failed before and writes nothing more")]
    Poisoned,

    #[error("{action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Damage of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("a record is not valid, and records that were synced after it follow")]
    BeforeSyncedRecords,
    #[error("the last record is not valid in a way that a crash does not explain")]
    NotTorn,
    #[error("its valid records do not end where they ended when the next segment was started")]
    End,
    #[error("the segment header is not valid")]
    Header,
    #[error("the segment header belongs to another file")]
    WrongNumber,
    #[error("an entry does not follow the one before it")]
    IndexGap,
    #[error("a compressed entry cannot be read though its checksum is right")]
    Packing,
}

impl LogError {
    /// True if the log is as it was, and the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Exhausted { .. })
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            if is_exhausted(&source) {
                Self::Exhausted { action, path, source }
            } else {
                Self::Io { action, path, source }
            }
        }
    }

    /// An error of a call after whose failure nothing is as it was.
    pub(super) fn for_good(self) -> Self {
        match self {
            Self::Exhausted { action, path, source } => Self::Io { action, path, source },
            other => other,
        }
    }

    /// For the writes that take new room.
    pub(super) fn allocating(path: &Path, needed_bytes: u64) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if is_full(&source) {
                Self::DiskFull { path: path.to_owned(), needed_bytes }
            } else {
                Self::io("allocate log segment", path)(source)
            }
        }
    }

    pub(super) fn damaged(path: &Path, offset: u64, what: Damage) -> Self {
        Self::Damaged { path: path.to_owned(), offset, what }
    }
}
