//! Contact with etcd: since when the state is known to be no older than etcd's.
//!
//! An answer to a probe says at which revision etcd was after the question had left. Once the state has come as far, it is as new
//! as etcd was when the question left, and not before: a watch stream may be open and lag.

use std::collections::VecDeque;

/// Answers to probes that wait for the state at the same time, at most.
const BEHIND_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct EtcdContact {
    confirmed_ms: u64,
    /// Answers that name revisions which the state has not reached, in the order of the questions.
    behind: VecDeque<Probed>,
}

#[derive(Debug)]
struct Probed {
    /// Time of the first question with this answer, and of the last one.
    since_ms: u64,
    asked_ms: u64,
    revision: i64,
}

impl EtcdContact {
    pub(crate) fn new(now_ms: u64) -> EtcdContact {
        EtcdContact { confirmed_ms: now_ms, behind: VecDeque::new() }
    }

    /// Time at which the state was that of etcd for sure, in milliseconds of the monotonic clock.
    pub(crate) fn confirmed_ms(&self) -> u64 {
        self.confirmed_ms
    }

    /// The state was read anew, by a question that left at that time.
    pub(crate) fn begin(&mut self, asked_ms: u64) {
        self.behind.clear();
        self.confirmed_ms = self.confirmed_ms.max(asked_ms);
    }

    /// etcd was at this revision after a question that left at that time.
    pub(crate) fn answered(&mut self, asked_ms: u64, revision: i64) {
        let is_full = self.behind.len() >= BEHIND_MAX;
        match self.behind.back_mut() {
            // Nothing has happened in etcd between the two questions.
            Some(last) if is_full || last.revision >= revision => {
                (last.asked_ms, last.revision) = (asked_ms, last.revision.max(revision));
            }
            _ => self.behind.push_back(Probed { since_ms: asked_ms, asked_ms, revision }),
        }
    }

    /// The state has everything up to this revision.
    pub(crate) fn reached(&mut self, revision: i64) {
        while self.behind.front().is_some_and(|probed| probed.revision <= revision) {
            self.take_first();
        }
    }

    /// Answers count from now on, however far the state is.
    pub(crate) fn trust(&mut self) {
        while !self.behind.is_empty() {
            self.take_first();
        }
    }

    fn take_first(&mut self) {
        let asked_ms = self.behind.pop_front().map_or(0, |probed| probed.asked_ms);
        self.confirmed_ms = self.confirmed_ms.max(asked_ms);
    }

    /// True if an answer has waited for the state since before that time.
    pub(crate) fn is_behind(&self, before_ms: u64) -> bool {
        self.behind.front().is_some_and(|probed| probed.since_ms <= before_ms)
    }

    /// No answer waits for the state any more, which is to be read anew.
    pub(crate) fn forget(&mut self) {
        self.behind.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_when_the_state_has_come_as_far_and_since_its_question() {
        let mut contact = EtcdContact::new(100);
        contact.answered(200, 7);
        contact.answered(400, 9);
        contact.reached(6);
        assert_eq!(contact.confirmed_ms(), 100);
        assert!(contact.is_behind(200) && !contact.is_behind(199));
        contact.reached(8);
        assert_eq!(contact.confirmed_ms(), 200);
        contact.answered(600, 9);
        assert!(contact.is_behind(400));
        contact.reached(9);
        assert_eq!(contact.confirmed_ms(), 600);
        assert!(!contact.is_behind(u64::MAX));
    }

    #[test]
    fn a_state_that_lags_for_long_costs_no_memory_and_counts_as_far_as_it_has_come() {
        let mut contact = EtcdContact::new(0);
        (1..10_000).for_each(|at| contact.answered(at, at as i64));
        assert_eq!(contact.behind.len(), BEHIND_MAX);
        contact.reached(10);
        assert_eq!(contact.confirmed_ms(), 10);
        contact.reached(10_000);
        assert_eq!(contact.confirmed_ms(), 9999);
    }
}
