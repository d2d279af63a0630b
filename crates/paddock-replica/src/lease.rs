//! Lease of a leader: the time until which no other member can have become leader, so that it answers without asking its quorum.

use crate::options::TICK_MS;

/// Time in milliseconds for which no member of a quorum votes for another leader after it has heard of this one.
const VOTES_WITHHELD_MS: u64 = 9 * TICK_MS;

#[derive(Debug)]
pub(crate) struct Lease {
    /// See `ReplicaOptions::lease_clock_bound_ms`.
    clock_bound_ms: Option<u64>,
    until_ms: u64,
    /// True once this leader has asked another member to lead. That one may stand for election whenever it hears of this, so
    /// there is no lease any more in this term.
    is_handed_over: bool,
}

impl Lease {
    /// A lease that has not begun. Without a bound on the clocks it never does.
    pub(crate) fn new(clock_bound_ms: Option<u64>) -> Lease {
        Lease { clock_bound_ms, until_ms: 0, is_handed_over: false }
    }

    pub(crate) fn is_valid(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// A quorum has confirmed that this member leads, after it was asked at `asked_ms`.
    pub(crate) fn extend(&mut self, asked_ms: u64) {
        if let Some(bound_ms) = self.clock_bound_ms.filter(|_| !self.is_handed_over) {
            self.until_ms = asked_ms + VOTES_WITHHELD_MS.saturating_sub(bound_ms);
        }
    }

    /// This leader asks another member to lead.
    pub(crate) fn hand_over(&mut self) {
        (self.until_ms, self.is_handed_over) = (0, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_the_question_and_is_shorter_by_what_clocks_may_differ() {
        let mut lease = Lease::new(Some(100));
        assert!(!lease.is_valid(0));
        lease.extend(1000);
        assert!(lease.is_valid(1799));
        assert!(!lease.is_valid(1800));
    }

    #[test]
    fn without_a_bound_on_the_clocks_there_is_none() {
        let mut lease = Lease::new(None);
        lease.extend(1000);
        assert!(!lease.is_valid(1000));
    }

    #[test]
    fn a_leader_that_hands_the_lead_over_has_no_lease_any_more() {
        let mut lease = Lease::new(Some(100));
        lease.extend(1000);
        lease.hand_over();
        assert!(!lease.is_valid(1000));
        lease.extend(1001);
        assert!(!lease.is_valid(1001));
    }
}
