//! Times that members' syncs take, and when a leader whose disk has become slow is to hand the lead over.
//!
//! Every write waits for the leader's disk, or at least for the thread that syncs it: one disk that takes 40 ms makes all clients wait, while
//! the other members are as quick as ever. So members tell each other what their syncs take, and a leader that is much slower than another voter,
//! for a while and with writes to sync, hands over to it. Where all are slow, as on a disk that they share, nothing is gained and nothing is done. The new
//! leader hands over only if it is that much slower in its turn; and none does so twice within a time, so that the lead does not wander between disks that
//! are slow now and then.

use std::collections::BTreeMap;

/// A leader whose syncs take less is never too slow, in microseconds.
const SLOW_US: u32 = 10_000;
/// A leader is too slow if its syncs take this many times as long as those of another voter.
const SLOWER: u32 = 4;
/// Syncs of others that are quicker count as this long, in microseconds.
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

#[derive(Debug, Default)]
pub(crate) struct SyncTimes {
    /// Mean of this member's last syncs in microseconds; `None` before the first.
    own_us: Option<u32>,
    /// Means that other members have told, and when.
    told: BTreeMap<u64, (u32, u64)>,
    /// Since when this leader has been too slow, and its syncs since then.
    slow: Option<(u64, u32)>,
    handed_over_at_ms: Option<u64>,
    /// Times that this member has asked another voter to lead because of its disk.
    handed_over: u64,
}

impl SyncTimes {
    /// A sync of this member took this time, in microseconds.
    pub(crate) fn synced(&mut self, micros: u64) {
        let took = i64::from(u32::try_from(micros).unwrap_or(u32::MAX));
        let mean = self.own_us.map_or(took, |mean| i64::from(mean) + (took - i64::from(mean)) / MEAN_OF);
        self.own_us = Some(u32::try_from(mean).unwrap_or(u32::MAX));
        if let Some((_, syncs)) = &mut self.slow {
            *syncs += 1;
        }
    }

    /// Mean of this member's last syncs in microseconds.
    pub(crate) fn own_us(&self) -> Option<u32> {
        self.own_us
    }

    /// Another member tells the mean of its last syncs.
    pub(crate) fn hear(&mut self, from: u64, micros: Option<u32>, now_ms: u64) {
        match micros {
            Some(micros) => drop(self.told.insert(from, (micros, now_ms))),
            None => drop(self.told.remove(&from)),
        }
    }

    /// Number of times that this member has asked another voter to lead because of its disk.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// This member does not lead, or may not hand over now.
    pub(crate) fn rest(&mut self) {
        self.slow = None;
    }

    /// The voter that this leader hands over to now: the quickest of those that can lead, if this member has been much slower for a while.
    pub(crate) fn successor(&mut self, voters: impl Iterator<Item = u64>, now_ms: u64) -> Option<u64> {
        let rests = self.handed_over_at_ms.is_some_and(|at_ms| now_ms < at_ms + PAUSE_MS);
        let own_us = self.own_us.filter(|own_us| *own_us >= SLOW_US && !rests);
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
        self.handed_over += 1;
        Some(successor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leader, member 1, whose syncs take `own_ms`, and two followers that tell theirs; each tick has a sync. The times at which it hands over, and to whom.
    fn handed_over(
        times: &mut SyncTimes,
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
            times.successor([2, 3].into_iter(), now_ms).map(|successor| (now_ms, successor))
        };
        ticks.filter_map(tick).collect()
    }

    #[test]
    fn a_slow_leader_hands_over_to_the_quickest_within_two_seconds_and_once() {
        let mut times = SyncTimes::default();
        assert_eq!(handed_over(&mut times, 0..100, 1, [0, 0]), []);
        let slow = handed_over(&mut times, 100..600, 40, [5, 2]);
        assert!(matches!(slow[..], [(10_000..=12_000, 3)]), "{slow:?}");
        assert_eq!(times.handed_over(), 1);
        // Led again, it does not hand over at once.
        assert_eq!(handed_over(&mut times, 600..700, 40, [5, 2]), []);
        assert!(!handed_over(&mut times, 700..800, 40, [5, 2]).is_empty());
    }

    #[test]
    fn where_all_are_slow_or_the_leader_is_only_a_little_slower_nothing_is_done() {
        for (own_ms, others_ms) in [(40, [40, 11]), (9, [0, 0]), (40, [40, 40])] {
            assert_eq!(handed_over(&mut SyncTimes::default(), 0..600, own_ms, others_ms), []);
        }
    }

    #[test]
    fn one_slow_sync_and_an_old_report_count_for_nothing() {
        let mut times = SyncTimes::default();
        handed_over(&mut times, 0..50, 1, [1, 1]);
        times.synced(60_000);
        // Nothing is written any more: the mean stays, and says nothing of the disk now.
        let successors: Vec<u64> = (51..200)
            .filter_map(|tick| {
                times.hear(2, Some(1000), tick * 100);
                times.successor([2, 3].into_iter(), tick * 100)
            })
            .collect();
        assert_eq!(successors, []);
        let mut times = SyncTimes::default();
        times.hear(2, Some(1000), 0);
        let of_silent = (40..200).filter_map(|tick| {
            times.synced(40_000);
            times.successor([2].into_iter(), tick * 100)
        });
        assert_eq!(of_silent.count(), 0);
    }
}
