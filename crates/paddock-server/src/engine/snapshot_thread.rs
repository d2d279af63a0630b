//! The thread that takes snapshots beside the engine.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_member::{SnapshotOrder, StateLock, Taken};
use paddock_os::threads::try_spawn;
use paddock_replica::Replicated;
use paddock_statistics::snapshot_board::SnapshotTaken;
use paddock_storage::SnapshotError;

use crate::shared::Shared;

/// Priority of the thread, as `nice` counts it.
const LOW_PRIORITY: i32 = 10;

/// Pause before a snapshot tries again to begin that found the engine in the middle of an entry.
const WITHIN_ENTRY_PAUSE: Duration = Duration::from_micros(100);

/// The thread that takes a snapshot, if there is one.
#[derive(Debug, Default)]
pub(crate) struct SnapshotThread {
    under_way: Option<JoinHandle<Result<Taken, SnapshotError>>>,
    /// A snapshot that has failed before it began.
    failed: Option<SnapshotError>,
}

impl SnapshotThread {
    pub(crate) fn begin(&mut self, shared: &Arc<Shared>, order: SnapshotOrder) {
        assert!(self.under_way.is_none(), "two snapshots at the same time");
        // What an operator asks for and looks at are the home group's.
        let is_of_home = order.is_of_home();
        if is_of_home {
            shared.statistics.snapshots.begin();
        }
        let of_thread = shared.clone();
        let thread = try_spawn("snapshot", move || {
            let shared = of_thread;
            step_back();
            let started = Instant::now();
            let result =
                order.carry_out(shared.as_ref(), &shared.clock, || std::thread::sleep(WITHIN_ENTRY_PAUSE));
            let taken = result
                .as_ref()
                .ok()
                .map(|taken| SnapshotTaken { path: taken.path.clone(), zxid: taken.zxid });
            if taken.is_some() {
                shared.statistics.server_metrics.snapshots.record_since(started);
            }
            if is_of_home {
                shared.statistics.snapshots.end(taken);
            }
            result
        });
        match thread {
            Ok(thread) => self.under_way = Some(thread),
            Err(source) => {
                if is_of_home {
                    shared.statistics.snapshots.end(None);
                }
                let path = shared.config.data_dir.clone();
                self.failed =
                    Some(SnapshotError::Io { action: "start a thread for a snapshot of", path, source });
            }
        }
    }

    /// The snapshot, once it is taken or has failed.
    pub(crate) fn finished(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.failed
            .take()
            .map(Err)
            .or_else(|| self.under_way.take_if(|thread| thread.is_finished()).map(join))
    }

    /// Waits until the snapshot is taken or has failed.
    pub(crate) fn wait(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.failed.take().map(Err).or_else(|| self.under_way.take().map(join))
    }
}

/// Lets the threads that serve clients go before this one, where the cores do not suffice for all.
pub(crate) fn step_back() {
    if let Err(error) = rustix::process::setpriority_process(None, LOW_PRIORITY) {
        tracing::debug!(%error, "snapshots are taken with the priority of the server");
    }
}

fn join(thread: JoinHandle<Result<Taken, SnapshotError>>) -> Result<Taken, SnapshotError> {
    thread.join().expect("the snapshot's thread does not panic")
}

impl StateLock for Shared {
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.state.write())
    }
}
