//! Failures of the world around a snapshot file.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{is_exhausted, is_full};

/// Errors for which a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is no room. The unfinished file is gone; the snapshot can be tried again from its beginning.
    #[error("no room on disk for snapshot {}", path.display())]
    DiskFull { path: PathBuf },

    #[error("snapshot {} is damaged at offset {offset}: {what}", path.display())]
    Damaged { path: PathBuf, offset: u64, what: SnapshotDamage },

    /// The file was written by a version that this one does not know.
    #[error("snapshot {} has format version {version}, which this build cannot read: run the release that wrote it, or a later one", path.display())]
    UnknownVersion { path: PathBuf, version: u32 },

    #[error("{action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Damage of a snapshot file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotDamage {
    #[error("the header is not valid")]
    Header,
    #[error("the header names another index than the file name")]
    WrongIndex,
    #[error("a block is not valid")]
    Block,
    #[error("the footer is not valid")]
    Footer,
    #[error("the footer does not agree with the blocks")]
    Totals,
    #[error("it does not read back as it was written")]
    ReadBack,
}

impl SnapshotError {
    /// True if the system had no descriptor for a file: the same call may succeed later.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_exhausted(source))
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if is_full(&source) {
                Self::DiskFull { path: path.to_owned() }
            } else {
                Self::Io { action, path: path.to_owned(), source }
            }
        }
    }

    pub(super) fn damaged(path: &Path, offset: u64, what: SnapshotDamage) -> Self {
        Self::Damaged { path: path.to_owned(), offset, what }
    }
}
