//! Thread that compares the memory of the process with its limit, and gives back what is free.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use crate::memory;
use crate::observability::status;
use crate::shared::Shared;
use crate::threads::spawn;

/// Interval at which memory is compared with its limit.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes that a znode takes beside its name and its data, roughly.
const ZNODE_BYTES: u64 = 100;

/// Free memory is given back at least as often as this,
const GIVING_PAUSE_MAX: Duration = Duration::from_secs(8);
/// and at most as often as this: while much is freed, what is given back at a time is little, and whoever asks the allocator for memory
/// meanwhile waits for no more than that.
const GIVING_PAUSE_MIN: Duration = Duration::from_millis(500);
/// Bytes given back at a time above which there is likely to be more soon.
const GIVEN_BYTES_MUCH: u64 = 4 << 20;

/// The thread, while it runs.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    thread: JoinHandle<()>,
    stop: Sender<()>,
}

impl MemoryWatch {
    /// Starts the thread.
    pub(crate) fn start(shared: &Arc<Shared>) -> MemoryWatch {
        let (stop, stopped) = bounded::<()>(0);
        let shared = shared.clone();
        let thread = spawn("memory", move || {
            let mut giving = Giving::new();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                compare(&shared);
                giving.look(Instant::now());
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

/// Times at which free memory is given back: often while that is much, and else seldom.
#[derive(Debug)]
struct Giving {
    next: Instant,
    pause: Duration,
}

impl Giving {
    fn new() -> Giving {
        Giving { next: Instant::now() + GIVING_PAUSE_MAX, pause: GIVING_PAUSE_MAX }
    }

    /// Gives memory back if it is time.
    fn look(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        let before = status::resident_bytes();
        memory::give_back();
        let given_bytes = before.saturating_sub(status::resident_bytes());
        self.wait_after(given_bytes);
        self.next = Instant::now() + self.pause;
        tracing::debug!(given_bytes, took_us = now.elapsed().as_micros() as u64, "gave free memory back");
    }

    fn wait_after(&mut self, given_bytes: u64) {
        let is_much = given_bytes >= GIVEN_BYTES_MUCH;
        self.pause = if is_much { GIVING_PAUSE_MIN } else { (2 * self.pause).min(GIVING_PAUSE_MAX) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_often_while_that_is_much() {
        let mut giving = Giving::new();
        let mut pause_after = |given_bytes| {
            giving.wait_after(given_bytes);
            giving.pause
        };
        assert_eq!(pause_after(0), GIVING_PAUSE_MAX);
        assert_eq!(pause_after(GIVEN_BYTES_MUCH), GIVING_PAUSE_MIN);
        assert_eq!(pause_after(0), 2 * GIVING_PAUSE_MIN);
        assert_eq!((0..10).map(|_| pause_after(0)).max(), Some(GIVING_PAUSE_MAX));
    }
}
