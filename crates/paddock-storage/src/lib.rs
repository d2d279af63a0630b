//! Storage of a member: the transaction log and the snapshot files, over a [`Disk`].
//!
//! This crate owns file formats, durability, recovery and retention. It does not know what a request is: payloads
//! are bytes. It has no threads, no clock and no async: the owner of a [`Log`] decides when to sync, and calls a
//! [`Housekeeper`] from wherever slow work may happen.
//!
//! Always true:
//! - What a successful [`Log::sync`] covered is there after any crash, in order, byte for byte; or opening fails with
//!   the file and the offset that is damaged. The exact promise is in [`log`].
//! - A snapshot file is whole and verified before it has its name.
//! - After a failed write or sync nothing more is written: the process has to end and read the disk again.

pub mod disk;
#[doc(hidden)]
pub mod fuzzing;
mod lock;
pub mod log;
pub mod snapshot;

use std::fmt;

pub use disk::{Access, Disk, DiskFile, MemDisk, OsDisk};
pub use lock::{DirLock, LockError};
pub use log::{
    Housekeeper, LOG_VERSIONS, LiveEntries, LiveLogError, Log, LogError, LogOptions, PAYLOAD_BYTES_MAX,
    Progress, ReadLog, Record, Replay,
};
pub use snapshot::{SNAPSHOT_FILE_VERSION, SnapshotError, SnapshotMeta, SnapshotReader, SnapshotWriter};

/// The Raft group a record belongs to. Several groups share one log and one sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupNumber(pub u32);

/// A Raft term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Term(pub u64);

/// The position of an entry in the log of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Index(pub u64);

impl Index {
    /// The position after this one. No log reaches the last one, but a file may claim it.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for GroupNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
