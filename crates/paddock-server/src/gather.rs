//! Gathering: what the clients of one worker write together becomes one batch, on the worker's own thread.
//!
//! Clients that were answered together ask again together, one after the other within some microseconds. If the engine syncs
//! for the first of them alone, all others wait for that sync and for theirs. So the worker of a member that is alone keeps what
//! few clients ask, of which none reads, until all have asked whom it has just answered, and lets the engine do all of it at
//! once on this thread. It does not sleep meanwhile: to be woken takes as long as all of them take to ask.
//!
//! In an ensemble a write waits for other members, and not for a core of this one.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::worker::Worker;

/// With more requests under way, reading them takes longer than a sync: engine and worker had better work side by side.
const REQUESTS_MAX: usize = 128;
/// Who has not asked again in this time is not waited for.
const WAIT_MAX: Duration = Duration::from_micros(60);
/// For so long after a read the worker's thread is kept free for the next one.
const READS_EXPECTED_MS: u64 = 20;

#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Requests that the engine has or is to get.
    unanswered: Cell<usize>,
    /// How many there were when some of them were answered last.
    were_unanswered: Cell<usize>,
    last_read_ms: Cell<Option<u64>>,
    begun: Notify,
}

impl Gathering {
    pub(crate) fn asked(&self) {
        self.unanswered.set(self.unanswered.get() + 1);
    }

    pub(crate) fn answered(&self) {
        self.unanswered.set(self.unanswered.get() - 1);
    }

    /// To be called before answers of the engine are delivered.
    pub(crate) fn before_answers(&self) {
        self.were_unanswered.set(self.unanswered.get());
    }

    pub(crate) fn has_read(&self, now_ms: u64) {
        self.last_read_ms.set(Some(now_ms));
    }

    /// Whether what is asked now had better wait for others.
    pub(crate) fn is_worthwhile(&self, now_ms: u64) -> bool {
        let reads = self.last_read_ms.get().is_some_and(|read_ms| now_ms - read_ms < READS_EXPECTED_MS);
        !reads && self.unanswered.get().max(self.were_unanswered.get()) <= REQUESTS_MAX
    }

    pub(crate) fn begin(&self) {
        self.begun.notify_one();
    }

    /// Whether all have asked that were waiting together.
    fn has_all(&self, gathered: usize) -> bool {
        gathered >= self.were_unanswered.get()
    }
}

/// Gathers whenever a turn says so, until the worker ends.
pub(crate) async fn gather(worker: Rc<Worker>) {
    let gathering = &worker.gathering;
    loop {
        gathering.begun.notified().await;
        let start = Instant::now();
        loop {
            let before = worker.inputs.borrow().len();
            // All connections that have something to read have their turn now.
            tokio::task::yield_now().await;
            let gathered = worker.inputs.borrow().len();
            let has_grown = gathered > before;
            let may_grow = has_grown || !gathering.has_all(gathered) && start.elapsed() < WAIT_MAX;
            if gathered == 0 || !may_grow {
                break;
            }
        }
        worker.work_off();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_were_answered_are_expected_again() {
        let gathering = Gathering::default();
        assert!(gathering.has_all(1), "nobody else is known");
        (0..3).for_each(|_| gathering.asked());
        gathering.before_answers();
        (0..2).for_each(|_| gathering.answered());
        assert!(!gathering.has_all(2));
        assert!(gathering.has_all(3));

        gathering.before_answers();
        gathering.answered();
        assert!(gathering.has_all(1), "the two have not come again in time");
    }

    #[test]
    fn neither_readers_nor_a_crowd_are_kept_waiting() {
        let gathering = Gathering::default();
        gathering.has_read(1000);
        assert!(!gathering.is_worthwhile(1000 + READS_EXPECTED_MS - 1));
        assert!(gathering.is_worthwhile(1000 + READS_EXPECTED_MS));

        (0..=REQUESTS_MAX).for_each(|_| gathering.asked());
        assert!(!gathering.is_worthwhile(5000));
        gathering.before_answers();
        (0..=REQUESTS_MAX).for_each(|_| gathering.answered());
        assert!(!gathering.is_worthwhile(5000), "they are about to ask again");
        gathering.before_answers();
        assert!(gathering.is_worthwhile(5000));
    }
}
