//! Ends of a leader's log at earlier moments, which tell for how long a follower has lacked something.
//!
//! A lag in entries says little of time: an entry holds one write, or those of a thousand clients.

use std::collections::VecDeque;

/// Ends of the log at the ticks at which it had grown, the oldest first. An end that every follower has is forgotten; when there are more
/// than `LogEnds::MAX`, every second one of the older half is, too.
#[derive(Debug, Default)]
pub(crate) struct LogEnds {
    ends: VecDeque<LogEnd>,
    /// Monotonic time of the last tick, in milliseconds.
    now_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct LogEnd {
    entry: u64,
    at_ms: u64,
}

impl LogEnds {
    const MAX: usize = 256;

    /// At this monotonic time in milliseconds the log ends with the entry `last`, and every follower has all up to `had_by_all`.
    pub(crate) fn note(&mut self, last: u64, had_by_all: u64, now_ms: u64) {
        self.now_ms = now_ms;
        while self.ends.front().is_some_and(|end| end.entry <= had_by_all) {
            self.ends.pop_front();
        }
        if last > had_by_all && self.ends.back().is_none_or(|end| end.entry < last) {
            self.ends.push_back(LogEnd { entry: last, at_ms: now_ms });
        }
        if self.ends.len() > LogEnds::MAX {
            self.thin();
        }
    }

    /// Time in milliseconds for which something behind the entry `matched` has been in the log, as of the last tick; 0 if there is
    /// nothing. It is never too long, and too short by less than what lies between two ends.
    pub(crate) fn lag_ms(&self, matched: u64) -> u64 {
        let first = self.ends.partition_point(|end| end.entry <= matched);
        self.ends.get(first).map_or(0, |end| self.now_ms - end.at_ms)
    }

    fn thin(&mut self) {
        let older = self.ends.len() / 2;
        // The oldest one stays: a follower that lacks everything is measured by it.
        let kept = self.ends.iter().enumerate().filter(|(place, _)| *place >= older || place % 2 == 0);
        self.ends = kept.map(|(_, end)| *end).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_MS: u64 = 100;

    #[test]
    fn a_lag_is_the_time_since_the_first_entry_that_is_lacking() {
        let mut ends = LogEnds::default();
        assert_eq!(ends.lag_ms(0), 0);
        ends.note(7, 7, 1000);
        assert_eq!(ends.lag_ms(7), 0, "nobody lacks anything");
        ends.note(8, 7, 1100);
        ends.note(9, 7, 1200);
        ends.note(9, 7, 5000);
        assert_eq!([7, 8, 9].map(|matched| ends.lag_ms(matched)), [3900, 3800, 0]);
        ends.note(9, 9, 5100);
        ends.note(10, 9, 9000);
        assert_eq!([9, 10].map(|matched| ends.lag_ms(matched)), [0, 0], "it has only come");
        ends.note(10, 9, 9100);
        assert_eq!(ends.lag_ms(9), 100);
    }

    #[test]
    fn a_member_that_is_always_late_by_some_seconds_is_seen_to_be() {
        let mut ends = LogEnds::default();
        for tick in 0..10_000 {
            let matched = u64::saturating_sub(tick, 300);
            ends.note(tick, matched, tick * TICK_MS);
            if tick > 300 {
                let lag_ms = ends.lag_ms(matched);
                assert!((28_000..=30_000).contains(&lag_ms), "{lag_ms} at {tick}");
            }
        }
    }

    #[test]
    fn a_member_that_is_gone_lags_since_then_and_memory_is_bounded() {
        let mut ends = LogEnds::default();
        for tick in 1..=100_000 {
            ends.note(tick, 0, tick * TICK_MS);
            assert!(ends.ends.len() <= LogEnds::MAX);
        }
        assert_eq!(ends.lag_ms(0), 99_999 * TICK_MS);
        assert_eq!(ends.lag_ms(99_999), 0);
    }
}
