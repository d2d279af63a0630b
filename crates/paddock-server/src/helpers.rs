//! The threads that do slow work beside the engine: taking snapshots, preparing files for the log.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use paddock_member::{SnapshotOrder, Taken};
use paddock_storage::{Housekeeper, LogError, SnapshotError};

use crate::server::spawn;
use crate::shared::Shared;

/// How long the housekeeper rests when there was nothing to do, and when there was no room.
const HOUSEKEEPER_PAUSE: Duration = Duration::from_millis(100);
const HOUSEKEEPER_PAUSE_FULL: Duration = Duration::from_secs(5);

/// As `nice` counts it.
const LOW_PRIORITY: i32 = 10;

/// The thread that takes a snapshot, if there is one.
#[derive(Debug, Default)]
pub(crate) struct SnapshotThread {
    under_way: Option<JoinHandle<Result<Taken, SnapshotError>>>,
}

impl SnapshotThread {
    pub(crate) fn begin(&mut self, shared: &Arc<Shared>, order: SnapshotOrder) {
        assert!(self.under_way.is_none(), "two snapshots at the same time");
        let shared = shared.clone();
        self.under_way = Some(spawn("snapshot", move || {
            step_back();
            order.carry_out(shared.as_ref(), &shared.clock)
        }));
    }

    /// What it came to, once it has.
    pub(crate) fn finished(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.under_way.take_if(|thread| thread.is_finished()).map(join)
    }

    /// Waits for it.
    pub(crate) fn wait(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.under_way.take().map(join)
    }
}

/// Lets the threads that serve clients go before this one, where the cores do not suffice for all.
fn step_back() {
    if let Err(error) = rustix::process::setpriority_process(None, LOW_PRIORITY) {
        tracing::debug!(%error, "snapshots are taken with the priority of the server");
    }
}

fn join(thread: JoinHandle<Result<Taken, SnapshotError>>) -> Result<Taken, SnapshotError> {
    thread.join().expect("the snapshot's thread does not panic")
}

/// Prepares segments ahead of the log and takes back those it has released, until the `stop` channel closes.
pub(crate) fn keep_house(
    housekeeper: &Housekeeper,
    stop: &crossbeam_channel::Receiver<()>,
) -> Result<(), LogError> {
    let mut full = false;
    loop {
        match housekeeper.run() {
            Ok(true) => {
                full = false;
                continue;
            }
            Ok(false) => {}
            Err(LogError::DiskFull { .. }) if full => {}
            Err(error @ LogError::DiskFull { .. }) => {
                tracing::warn!(%error, "no room for a segment ahead of time");
                full = true;
            }
            Err(error) => return Err(error),
        }
        // Each try on a full disk fills it up, as far as there is room.
        let pause = if full { HOUSEKEEPER_PAUSE_FULL } else { HOUSEKEEPER_PAUSE };
        match stop.recv_timeout(pause) {
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
            _ => return Ok(()),
        }
    }
}
