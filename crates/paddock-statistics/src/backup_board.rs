//! Backups that a process makes by a schedule, for those who ask how old the newest one is.

use parking_lot::Mutex;

/// The backups of a process so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupStanding {
    /// Backups that were begun with a snapshot.
    pub made: u64,
    /// Parts of the log that were added to a backup.
    pub added: u64,
    /// Attempts that came to nothing.
    pub failed: u64,
    /// End of the newest backup when this process last looked at it with success; `None` before that.
    pub end: Option<BackupReached>,
}

/// Up to where a backup goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReached {
    /// Zxid of the last write in it.
    pub zxid: i64,
    /// Time in seconds since 1970 up to which it has everything.
    pub time_s: u64,
}

/// The backups of a process. It has a standing once there is a schedule.
#[derive(Debug, Default)]
pub struct BackupBoard(Mutex<Option<BackupStanding>>);

impl BackupBoard {
    /// Changes the standing.
    pub fn note(&self, change: impl FnOnce(&mut BackupStanding)) {
        change(self.0.lock().get_or_insert_default());
    }

    /// There is no schedule any more.
    pub fn clear(&self) {
        *self.0.lock() = None;
    }

    /// The standing, if there is a schedule.
    pub fn standing(&self) -> Option<BackupStanding> {
        self.0.lock().clone()
    }
}
