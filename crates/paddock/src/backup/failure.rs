//! Reasons for which a backup is not made, or not used.

use std::io;

use paddock_member::EntryStreamError;
use paddock_server::{BackupSourceError, OwnLogError};
use paddock_storage::LiveLogError;

use crate::admin_client::AdminError;
use crate::export::download::DownloadError;
use crate::moving::MovingFailure;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupFailure {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error(transparent)]
    Own(#[from] BackupSourceError),
    #[error("{action} {place}")]
    Io {
        action: &'static str,
        place: String,
        #[source]
        source: io::Error,
    },
    #[error("{place}: {why}")]
    Manifest { place: String, why: String },
    #[error("{place} is missing: the backup is incomplete")]
    Missing { place: String },
    #[error("{place} has {bytes} bytes, and {expected} were written: the backup is cut off or was changed")]
    Length { place: String, bytes: u64, expected: u64 },
    #[error("{place} is damaged: its checksum is not that of the manifest")]
    Checksum { place: String },
    #[error("{place}: {error}")]
    Snapshot { place: String, error: String },
    #[error("{place}: {error}")]
    Log { place: String, error: EntryStreamError },
    #[error("{place} is that of another state than the manifest says")]
    OtherSnapshot { place: String },
    #[error("{place}: {why}")]
    Foreign { place: String, why: String },
    #[error("the backup is of several Raft groups, whose logs are not copied: make a new one, without a log")]
    OfGroups { made_ms: i64 },
    #[error("there is no backup in {place}")]
    NoBackup { place: String },
    #[error("{place} is incomplete: it has no manifest, which is written last")]
    NoManifest { place: String },
    #[error("{0}")]
    Wish(String),
    #[cfg(feature = "s3")]
    #[error("{action} {place}: {error}")]
    Bucket { action: &'static str, place: String, error: String },
}

impl BackupFailure {
    /// True if the log of the member does not begin early enough for the backup.
    pub(crate) fn is_log_gone(&self) -> bool {
        matches!(
            self,
            BackupFailure::Admin(AdminError::Gone { .. })
                | BackupFailure::Own(BackupSourceError::Log(OwnLogError::Log(LiveLogError::Gone { .. })))
        )
    }

    /// True if the backup is of another ensemble, or of another past of this one.
    pub(crate) fn is_foreign(&self) -> bool {
        let is_ahead = matches!(self, BackupFailure::Own(BackupSourceError::Log(OwnLogError::Ahead { .. })));
        is_ahead || matches!(self, BackupFailure::Foreign { .. })
    }

    /// True if what is wrong is the backup that is there: a new one is no worse for it.
    pub(crate) fn is_of_backup(&self) -> bool {
        let is_spread = matches!(self, BackupFailure::Own(BackupSourceError::Log(OwnLogError::Spread)));
        is_spread || matches!(self, BackupFailure::Manifest { .. } | BackupFailure::NoManifest { .. })
    }

    pub(crate) fn io(action: &'static str, place: impl ToString) -> impl FnOnce(io::Error) -> BackupFailure {
        move |source| BackupFailure::Io { action, place: place.to_string(), source }
    }
}

impl From<BackupFailure> for MovingFailure {
    fn from(failure: BackupFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}
