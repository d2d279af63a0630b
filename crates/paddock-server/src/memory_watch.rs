//! Thread that looks at the process now and then: compares its memory with the limit, gives back what is free, and keeps what the charts of
//! the page begin with.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_os::memory;
use paddock_os::process;
use paddock_os::threads::spawn;

use crate::clock::wall_ms;
use crate::shared::Shared;

/// Interval at which memory is compared with its limit.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which it is compared while the state stays as it is, no connection comes or goes, and little is asked for.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes that a znode takes beside its name and its data, roughly.
const ZNODE_BYTES: u64 = 100;

/// Bytes that a watch takes, roughly, and those of a connection beside its buffers.
const WATCH_BYTES: u64 = 150;
const CONNECTION_BYTES: u64 = 4096;

/// Memory is given back once clients hold this many bytes less than they did.
const LEFT_BYTES_MIN: u64 = 8 << 20;
/// Time between two times at least,
const GIVING_PAUSE_MIN: Duration = Duration::from_millis(500);
/// and as many times as long as it took, since threads that allocate memory meanwhile may have waited: a heap of ten million freed pieces takes
/// a third of a second.
const GIVING_PAUSES: u32 = 200;

/// The thread, while it runs.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    thread: JoinHandle<()>,
    shared: Arc<Shared>,
}

impl MemoryWatch {
    /// Starts the thread.
    pub(crate) fn start(shared: &Arc<Shared>) -> MemoryWatch {
        let watched = shared.clone();
        let thread = spawn("memory", move || {
            let shared = watched;
            let mut looks = shared.memory_pace.begin();
            let mut giving = Giving::new(Instant::now());
            let has_page = shared.config.admin_listen.is_some();
            while looks.wait(INTERVAL, QUIET_INTERVAL) {
                compare(&shared);
                giving.look(Instant::now(), held_by_clients(&shared), memory::give_back);
                if has_page {
                    keep_history(&shared);
                }
            }
        });
        MemoryWatch { thread, shared: shared.clone() }
    }

    /// Ends the thread. Returns false if it has panicked.
    pub(crate) fn stop(self) -> bool {
        self.shared.memory_pace.end();
        self.thread.join().is_ok()
    }
}

/// Bytes that clients hold in watches, connections and buffers, roughly. The tree is not among them: what znodes leave is for other znodes.
fn held_by_clients(shared: &Shared) -> u64 {
    let watches = {
        let state = shared.state.read();
        // Watches of a client that has gone count no more, but their memory is not free before they are removed.
        (state.state().watches().count() + state.state().watches().unswept()) as u64
    };
    let connections = shared.statistics.clients.conn_count() as u64;
    watches * WATCH_BYTES + connections * CONNECTION_BYTES + shared.limits.counters.buffers.held() as u64
}

/// Keeps a moment for the charts of the page, if it is time.
fn keep_history(shared: &Shared) {
    let now_ms = shared.clock.monotonic_ms();
    if !shared.statistics.history.is_due(now_ms) {
        return;
    }
    let (watches, sessions) = {
        let state = shared.state.read();
        (state.state().watches().count(), state.tree().session_count())
    };
    shared.statistics.history.note(
        now_ms,
        wall_ms(),
        shared.statistics.times.totals(),
        [watches, sessions, shared.statistics.clients.conn_count()],
    );
}

/// Times at which free memory is given back: when clients have left much behind.
#[derive(Debug)]
struct Giving {
    next: Instant,
    /// The most bytes that clients held since the last time.
    most_bytes: u64,
}

impl Giving {
    fn new(now: Instant) -> Giving {
        Giving { next: now, most_bytes: 0 }
    }

    /// Gives memory back if there is much to give.
    fn look(&mut self, now: Instant, held_bytes: u64, give_back: impl FnOnce()) {
        self.most_bytes = self.most_bytes.max(held_bytes);
        let left_bytes = self.most_bytes - held_bytes;
        if left_bytes < LEFT_BYTES_MIN || now < self.next {
            return;
        }
        give_back();
        let took = now.elapsed();
        (self.most_bytes, self.next) = (held_bytes, now + GIVING_PAUSE_MIN.max(GIVING_PAUSES * took));
        tracing::debug!(left_bytes, took_us = took.as_micros() as u64, "gave free memory back to the system");
    }
}

fn compare(shared: &Shared) {
    if shared.limits.counters.memory.max() == u64::MAX && !shared.limits.counters.memory.is_exceeded() {
        return;
    }
    let resident_bytes = process::resident_bytes();
    let state = shared.state.read();
    let (znodes, data_bytes) = (state.tree().node_count() as u64, state.tree().data_bytes());
    let Some(is_exceeded) =
        shared.limits.counters.memory.note(resident_bytes, data_bytes + znodes * ZNODE_BYTES)
    else {
        return;
    };
    state.state().watches().refuse_all(is_exceeded);
    drop(state);
    let memory_max = shared.limits.counters.memory.max();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_when_clients_have_left_much_behind() {
        let start = Instant::now();
        let mut giving = Giving::new(start);
        let mut gives = |ms, held_bytes| {
            let mut given = false;
            giving.look(start + Duration::from_millis(ms), held_bytes, || given = true);
            given
        };
        assert!(!gives(0, 0) && !gives(100, 100 << 20), "nobody has left anything");
        assert!(!gives(200, 93 << 20), "it is too little");
        assert!(gives(300, 50 << 20));
        assert!(!gives(400, 50 << 20) && !gives(2000, 45 << 20), "it was given back");
        assert!(gives(2100, 0));
        assert!(!gives(2200, 20 << 20) && !gives(2300, 0), "it is too early");
        assert!(gives(2600, 0));
    }

    #[test]
    fn giving_back_that_takes_long_is_rare() {
        let start = Instant::now();
        let mut giving = Giving::new(start);
        giving.look(start, 100 << 20, || unreachable!("nobody has left anything"));
        let took = Duration::from_millis(5);
        giving.look(start, 0, || while start.elapsed() < took {});
        assert!(giving.next >= start + GIVING_PAUSES * took);
    }
}
