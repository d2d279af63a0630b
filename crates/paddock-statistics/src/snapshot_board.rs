//! Snapshots of this process, for those who ordered one and for those who ask for the newest.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A snapshot that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotTaken {
    /// Its file.
    pub path: PathBuf,
    /// Zxid of the last write in it.
    pub zxid: i64,
}

/// The snapshots of a process.
#[derive(Debug, Default)]
pub struct SnapshotBoard {
    state: Mutex<BoardState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BoardState {
    /// Numbers of the snapshot that was begun last, and of that which ended last.
    begun: u64,
    ended: u64,
    /// The last one that ended; `None` if it failed.
    last: Option<SnapshotTaken>,
    failed: u64,
}

impl SnapshotBoard {
    /// The number of the next snapshot that begins.
    pub fn next(&self) -> u64 {
        self.state.lock().begun + 1
    }

    /// A snapshot begins.
    pub fn begin(&self) {
        self.state.lock().begun += 1;
    }

    /// The snapshot that began last has ended; `None` if it failed.
    pub fn end(&self, taken: Option<SnapshotTaken>) {
        let mut state = self.state.lock();
        state.ended = state.begun;
        state.failed += u64::from(taken.is_none());
        state.last = taken;
        self.changed.notify_all();
    }

    /// Waits until the snapshot of a number, or a later one, has ended.
    pub fn wait_for(&self, number: u64, patience: Duration) -> Option<SnapshotTaken> {
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.ended < number {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return None;
            }
        }
        state.last.clone()
    }

    /// Zxid of the newest snapshot of this process, and when it was written, in seconds since 1970.
    pub fn newest(&self) -> Option<(i64, u64)> {
        let taken = self.state.lock().last.clone()?;
        let written = std::fs::metadata(taken.path).and_then(|metadata| metadata.modified()).ok()?;
        let written = written.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some((taken.zxid, written.as_secs()))
    }

    /// Number of snapshots that failed.
    pub fn failures(&self) -> u64 {
        self.state.lock().failed
    }
}
