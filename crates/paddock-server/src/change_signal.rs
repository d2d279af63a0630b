//! A signal that the state has changed, for threads that follow it. It costs an engine nothing while there is none.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

#[derive(Debug, Default)]
pub(crate) struct ChangeSignal {
    followers: AtomicUsize,
    changes: Mutex<u64>,
    changed: Condvar,
}

/// A thread that follows, until this is dropped.
#[derive(Debug)]
pub(crate) struct Following<'a>(&'a ChangeSignal);

impl ChangeSignal {
    /// From now on changes are counted.
    pub(crate) fn follow(&self) -> Following<'_> {
        self.followers.fetch_add(1, SeqCst);
        Following(self)
    }

    /// The state has changed, or the process is about to end.
    pub(crate) fn notify(&self) {
        if self.followers.load(SeqCst) > 0 {
            *self.changes.lock() += 1;
            self.changed.notify_all();
        }
    }
}

impl Following<'_> {
    /// Number of changes that were counted. To be asked for before the state is looked at.
    pub(crate) fn changes(&self) -> u64 {
        *self.0.changes.lock()
    }

    /// Waits until there are more changes than these, or the time is over.
    pub(crate) fn wait(&self, seen: u64, patience: Duration) {
        let mut changes = self.0.changes.lock();
        let _timed_out = self.0.changed.wait_while_for(&mut changes, |changes| *changes == seen, patience);
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, SeqCst);
    }
}
