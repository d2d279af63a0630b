//! Thread that compares the memory of the process with its limit.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use crate::observability::status;
use crate::shared::Shared;
use crate::threads::spawn;

/// Interval at which memory is compared with its limit.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes that a znode takes beside its name and its data, roughly.
const ZNODE_BYTES: u64 = 100;

/// The thread, while it runs.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    thread: JoinHandle<()>,
    stop: Sender<()>,
}

impl MemoryWatch {
    /// Starts the thread. While there is no limit, it looks at nothing.
    pub(crate) fn start(shared: &Arc<Shared>) -> MemoryWatch {
        let (stop, stopped) = bounded::<()>(0);
        let shared = shared.clone();
        let thread = spawn("memory", move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                compare(&shared);
            }
        });
        MemoryWatch { thread, stop }
    }

    /// Ends the thread. Returns false if it has panicked.
    pub(crate) fn stop(self) -> bool {
        drop(self.stop);
        self.thread.join().is_ok()
    }
}

fn compare(shared: &Shared) {
    if shared.memory.max() == u64::MAX && !shared.memory.is_exceeded() {
        return;
    }
    let resident_bytes = status::resident_bytes();
    let state = shared.state.read();
    let (znodes, data_bytes) = (state.tree().node_count() as u64, state.tree().data_bytes());
    let Some(is_exceeded) = shared.memory.note(resident_bytes, data_bytes + znodes * ZNODE_BYTES) else {
        return;
    };
    state.state().refuse_watches(is_exceeded);
    drop(state);
    let memory_max = shared.memory.max();
    if is_exceeded {
        tracing::error!(
            resident_bytes,
            memory_max,
            znodes,
            data_bytes,
            "memory limit exceeded: refusing writes that make the state larger; delete znodes, or give the member more memory and raise \
             memory_max"
        );
    } else {
        tracing::info!(
            resident_bytes,
            memory_max,
            znodes,
            data_bytes,
            "memory below its limit again: accepting writes"
        );
    }
}
