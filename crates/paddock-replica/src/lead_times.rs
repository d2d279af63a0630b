//! Times that a write takes with each voter as the leader, and when a leader that has become slow is to hand the lead over.
//!
//! Every write waits for the leader's disk, or at least for the thread that syncs it, and for the answers of a quorum to the leader: one disk that takes 40 ms, or one
//! link that is slow, makes all clients wait, while the other members are as quick as ever. So members tell each other what their syncs take, or the way to a quorum
//! if that takes longer (`link_times.rs`), and a leader that is much slower than another voter, for a while and with writes to sync, hands over to it. Where all are
//! slow, as on a disk that they share, nothing is gained and nothing is done. The new leader hands over only if it is that much slower in its turn; and none does so
//! twice within a time, so that the lead does not wander between members that are slow now and then.

use std::collections::BTreeMap;

/// A leader whose syncs and whose way to a quorum take less is never too slow, in microseconds.
const SLOW_US: u32 = 10_000;
/// A leader is too slow if one of them takes this many times as long as with another voter.
const SLOWER: u32 = 4;
/// Times of others that are quicker count as this long, in microseconds.
const QUICK_US: u32 = 1000;
/// A leader hands over after it has been too slow for this time, in milliseconds.
const SLOW_FOR_MS: u64 = 800;
/// Syncs of that time without which it is not known how slow the disk is.
const SYNCS_MIN: u32 = 3;
/// A member that has handed over because of its disk does so again after this time at the earliest, in milliseconds.
const PAUSE_MS: u64 = 60_000;
/// A report of another member counts for this time, in milliseconds.
const TOLD_FOR_MS: u64 = 3000;
/// A sync moves the mean by this part of its distance from it.
const MEAN_OF: i64 = 4;

/// Reason for which a leader hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowPart {
    Disk,
    Links,
}

#[derive(Debug, Default)]
pub(crate) struct LeadTimes {
    /// Mean of this member's last syncs in microseconds; `None` before the first.
    sync_us: Option<u32>,
    /// Time of the way to a quorum and back in microseconds; `None` while that is not known.
    quorum_us: Option<u32>,
    /// Times that other members have told, and when.
    told: BTreeMap<u64, (u32, u64)>,
    /// Since when this leader has been too slow, and its syncs since then.
    slow: Option<(u64, u32)>,
    handed_over_at_ms: Option<u64>,
    handed_over: Handovers,
}

/// Number of times that a member has asked another voter to lead because of its disk, and because of its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handovers {
    pub(crate) slow_disk: u64,
    pub(crate) slow_links: u64,
}

impl LeadTimes {
    /// A sync of this member took this time, in microseconds.
    pub(crate) fn synced(&mut self, micros: u64) {
        let took = i64::from(u32::try_from(micros).unwrap_or(u32::MAX));
        let mean = self.sync_us.map_or(took, |mean| i64::from(mean) + (took - i64::from(mean)) / MEAN_OF);
        self.sync_us = Some(u32::try_from(mean).unwrap_or(u32::MAX));
        if let Some((_, syncs)) = &mut self.slow {
            *syncs += 1;
        }
    }

    /// The way to a quorum and back takes this time now, in microseconds.
    pub(crate) fn set_quorum_us(&mut self, quorum_us: Option<u32>) {
        self.quorum_us = quorum_us;
    }

    /// Mean of this member's last syncs in microseconds, or the time of its way to a quorum if that is longer.
    pub(crate) fn own_us(&self) -> Option<u32> {
        self.sync_us.max(self.quorum_us)
    }

    /// Another member tells its own time.
    pub(crate) fn hear(&mut self, from: u64, micros: Option<u32>, now_ms: u64) {
        match micros {
            Some(micros) => drop(self.told.insert(from, (micros, now_ms))),
            None => drop(self.told.remove(&from)),
        }
    }

    /// Number of times that this member has asked another voter to lead because it was slow.
    pub(crate) fn handed_over(&self) -> Handovers {
        self.handed_over
    }

    /// This member does not lead, or may not hand over now.
    pub(crate) fn rest(&mut self) {
        self.slow = None;
    }

    /// The voter that this leader hands over to now, and why: the quickest of those that can lead, if this member has been much slower for a while.
    pub(crate) fn successor(
        &mut self,
        voters: impl Iterator<Item = u64>,
        now_ms: u64,
    ) -> Option<(u64, SlowPart)> {
        let rests = self.handed_over_at_ms.is_some_and(|at_ms| now_ms < at_ms + PAUSE_MS);
        let own_us = self.own_us().filter(|own_us| *own_us >= SLOW_US && !rests);
        let told = |voter| {
            let (micros, at_ms) = self.told.get(&voter)?;
            (now_ms < at_ms + TOLD_FOR_MS).then_some((*micros, voter))
        };
        let quickest = voters.filter_map(told).min();
        let is_slower = |own_us: u32, (other_us, _): (u32, u64)| own_us / SLOWER >= other_us.max(QUICK_US);
        let Some((_, successor)) =
            quickest.filter(|quickest| own_us.is_some_and(|own| is_slower(own, *quickest)))
        else {
            self.slow = None;
            return None;
        };
        let (since_ms, syncs) = *self.slow.get_or_insert((now_ms, 0));
        if now_ms < since_ms + SLOW_FOR_MS || syncs < SYNCS_MIN {
            return None;
        }
        (self.slow, self.handed_over_at_ms) = (None, Some(now_ms));
        let part = if self.sync_us >= self.quorum_us { SlowPart::Disk } else { SlowPart::Links };
        match part {
            SlowPart::Disk => self.handed_over.slow_disk += 1,
            SlowPart::Links => self.handed_over.slow_links += 1,
        }
        Some((successor, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leader, member 1, whose syncs take `own_ms`, and two followers that tell theirs; each tick has a sync. The times at which it hands over, and to whom.
    fn handed_over(
        times: &mut LeadTimes,
        ticks: std::ops::Range<u64>,
        own_ms: u64,
        others_ms: [u32; 2],
    ) -> Vec<(u64, u64)> {
        let tick = |at: u64| {
            let now_ms = at * 100;
            times.synced(own_ms * 1000);
            for (voter, millis) in (2..).zip(others_ms) {
                times.hear(voter, Some(millis * 1000), now_ms);
            }
            times.successor([2, 3].into_iter(), now_ms).map(|(successor, _)| (now_ms, successor))
        };
        ticks.filter_map(tick).collect()
    }

    #[test]
    fn a_slow_leader_hands_over_to_the_quickest_within_two_seconds_and_once() {
        let mut times = LeadTimes::default();
        assert_eq!(handed_over(&mut times, 0..100, 1, [0, 0]), []);
        let slow = handed_over(&mut times, 100..600, 40, [5, 2]);
        assert!(matches!(slow[..], [(10_000..=12_000, 3)]), "{slow:?}");
        assert_eq!(times.handed_over(), Handovers { slow_disk: 1, slow_links: 0 });
        // Led again, it does not hand over at once.
        assert_eq!(handed_over(&mut times, 600..700, 40, [5, 2]), []);
        assert!(!handed_over(&mut times, 700..800, 40, [5, 2]).is_empty());
    }

    #[test]
    fn a_leader_whose_way_to_a_quorum_is_long_hands_over_too() {
        let mut times = LeadTimes::default();
        assert_eq!(handed_over(&mut times, 0..20, 1, [1, 1]), []);
        times.set_quorum_us(Some(100_000));
        assert_eq!(times.own_us(), Some(100_000));
        assert_eq!(handed_over(&mut times, 20..100, 1, [100, 90]), [], "all are as far apart");
        let slow = handed_over(&mut times, 100..200, 1, [100, 2]);
        assert!(matches!(slow[..], [(10_000..=12_000, 3)]), "{slow:?}");
        assert_eq!(times.handed_over(), Handovers { slow_disk: 0, slow_links: 1 });
    }

    #[test]
    fn where_all_are_slow_or_the_leader_is_only_a_little_slower_nothing_is_done() {
        for (own_ms, others_ms) in [(40, [40, 11]), (9, [0, 0]), (40, [40, 40])] {
            assert_eq!(handed_over(&mut LeadTimes::default(), 0..600, own_ms, others_ms), []);
        }
    }

    #[test]
    fn one_slow_sync_and_an_old_report_count_for_nothing() {
        let mut times = LeadTimes::default();
        handed_over(&mut times, 0..50, 1, [1, 1]);
        times.synced(60_000);
        // Nothing is written any more: the mean stays, and says nothing of the disk now.
        let successors: Vec<u64> = (51..200)
            .filter_map(|tick| {
                times.hear(2, Some(1000), tick * 100);
                Some(times.successor([2, 3].into_iter(), tick * 100)?.0)
            })
            .collect();
        assert_eq!(successors, []);
        let mut times = LeadTimes::default();
        times.hear(2, Some(1000), 0);
        let of_silent = (40..200).filter_map(|tick| {
            times.synced(40_000);
            times.successor([2].into_iter(), tick * 100)
        });
        assert_eq!(of_silent.count(), 0);
    }
}
