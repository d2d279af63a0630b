//! A running member as what makes backups in its own process sees it.

use std::fs::File;
use std::io::{self, Write};

use paddock_proto::MemberNumber;
use paddock_replica::Role;
use paddock_statistics::backup_board::BackupStanding;

use crate::operator::Operator;
use crate::own_log::{OwnLog, OwnLogError};
use crate::whole_copy::WholeSnapshotError;

/// The snapshots of a member, and its log, for a backup.
#[derive(Clone, Debug)]
pub struct BackupSource {
    operator: Operator,
}

/// A snapshot that was taken for a backup.
#[derive(Debug)]
pub struct OwnSnapshot {
    /// Its file, which stays readable while it is open.
    pub file: File,
    /// Id of the ensemble, if there is one.
    pub cluster: Option<u64>,
}

/// Reasons for which a member gives nothing for a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupSourceError {
    /// No snapshot came about; the log of the process has the reason.
    #[error("the snapshot failed, or took longer than ten minutes")]
    Snapshot,
    /// No snapshot of all Raft groups came about.
    #[error("{0}")]
    WholeSnapshot(WholeSnapshotError),
    /// The log does not begin early enough, or cannot be read.
    #[error(transparent)]
    Log(#[from] OwnLogError),
    /// The log was not read to its end, or not written to the end.
    #[error("copy the log")]
    Copy(#[source] io::Error),
}

impl BackupSource {
    pub(crate) fn new(operator: Operator) -> BackupSource {
        BackupSource { operator }
    }

    /// Number of this member.
    pub fn member(&self) -> MemberNumber {
        self.operator.shared.config.member
    }

    /// True if this member leads, or is one alone.
    pub fn leads(&self) -> bool {
        matches!(self.operator.shared.engine.role(), Role::Leader | Role::Alone)
    }

    /// Id of the ensemble, if there is one.
    pub fn cluster(&self) -> Option<u64> {
        let cluster = self.operator.shared.state.read().tree().cluster();
        (cluster != 0).then_some(cluster)
    }

    /// True while znodes are spread over several Raft groups.
    pub fn are_znodes_spread(&self) -> bool {
        self.operator.are_znodes_spread()
    }

    /// Takes a snapshot beside everything else, and waits for it. While znodes are spread over Raft groups it is of all of them, and no log follows it.
    ///
    /// # Errors
    /// [`BackupSourceError::Snapshot`] and [`BackupSourceError::WholeSnapshot`].
    pub fn snapshot(&self) -> Result<OwnSnapshot, BackupSourceError> {
        let taken = self.operator.take_whole_snapshot().map_err(|error| match error {
            WholeSnapshotError::Own => BackupSourceError::Snapshot,
            error => BackupSourceError::WholeSnapshot(error),
        })?;
        Ok(OwnSnapshot { file: taken.file, cluster: self.cluster() })
    }

    /// Writes the log from the entry `first` to the last one that was applied, in the form of `GET /api/v1/log`.
    ///
    /// # Errors
    /// [`BackupSourceError::Log`] and [`BackupSourceError::Copy`].
    pub fn log(&self, first: u64, out: impl Write) -> Result<(), BackupSourceError> {
        if self.operator.are_znodes_spread() {
            return Err(OwnLogError::Spread.into());
        }
        OwnLog::find(&self.operator.shared, first)?.write(out).map_err(BackupSourceError::Copy)
    }

    /// Notes what came of a backup, for the metrics.
    pub fn note(&self, change: impl FnOnce(&mut BackupStanding)) {
        self.operator.shared.statistics.backups.note(change);
    }

    /// No backups are made any more: the metrics say nothing about them.
    pub fn end(&self) {
        self.operator.shared.statistics.backups.clear();
    }
}
