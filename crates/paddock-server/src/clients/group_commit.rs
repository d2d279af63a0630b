//! Group commit: what the clients of one worker write together becomes one batch, on the worker's own thread.
//!
//! Clients that were answered together ask again together, one after the other within some microseconds. If the engine syncs
//! for the first of them alone, all others wait for that sync and for theirs. So the worker of a member that is alone collects the
//! writes of these clients, if they are few and none of them reads: once all have asked that it has just answered, the engine
//! carries out the batch on this thread. The worker does not sleep meanwhile: to be woken takes as long as all of them take to ask.
//!
//! In an ensemble a write waits for other members, and not for a core of this one.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Notify;

/// With more requests under way, reading them takes longer than a sync: engine and worker had better work side by side.
const REQUESTS_MAX: usize = 128;
/// Clients that have not asked again within this time are not waited for.
pub(super) const WAIT_MAX: Duration = Duration::from_micros(60);
/// Time in milliseconds after a read in which the worker's thread is kept free for the next one.
const READS_EXPECTED_MS: u64 = 20;

/// Requests with the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    pub(super) now: usize,
    /// Before some of them were answered last.
    pub(super) before: usize,
}

impl Outstanding {
    /// True if all have asked again that were waiting together.
    pub(super) fn has_all(self, gathered: usize) -> bool {
        gathered >= self.before
    }
}

#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    last_read_ms: Cell<Option<u64>>,
    begun: Notify,
}

impl GroupCommit {
    pub(super) fn has_read(&self, now_ms: u64) {
        self.last_read_ms.set(Some(now_ms));
    }

    /// True if what is asked now had better wait for others.
    pub(super) fn is_worthwhile(&self, now_ms: u64, outstanding: Outstanding) -> bool {
        let reads = self.last_read_ms.get().is_some_and(|read_ms| now_ms - read_ms < READS_EXPECTED_MS);
        !reads && outstanding.now.max(outstanding.before) <= REQUESTS_MAX
    }

    /// Begins to gather.
    pub(super) fn begin(&self) {
        self.begun.notify_one();
    }

    /// Returns when gathering has begun.
    pub(super) async fn begun(&self) {
        self.begun.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_were_answered_are_expected_again() {
        assert!(Outstanding { now: 1, before: 0 }.has_all(1), "nobody else is known");
        let two_of_three_answered = Outstanding { now: 1, before: 3 };
        assert!(!two_of_three_answered.has_all(2));
        assert!(two_of_three_answered.has_all(3));
    }

    #[test]
    fn neither_readers_nor_a_crowd_are_kept_waiting() {
        let (nobody, crowd) = (Outstanding { now: 0, before: 0 }, REQUESTS_MAX + 1);
        let group = GroupCommit::default();
        group.has_read(1000);
        assert!(!group.is_worthwhile(1000 + READS_EXPECTED_MS - 1, nobody));
        assert!(group.is_worthwhile(1000 + READS_EXPECTED_MS, nobody));
        assert!(!group.is_worthwhile(5000, Outstanding { now: crowd, before: 0 }));
        let answered = Outstanding { now: 0, before: crowd };
        assert!(!group.is_worthwhile(5000, answered), "they are about to ask again");
    }
}
