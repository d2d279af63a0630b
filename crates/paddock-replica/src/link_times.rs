//! Times in which other voters answer this member.
//!
//! While something is written, a member probes the other voters with each tick, and they answer at once. What a probe takes is the way there and back, and what both
//! members do meanwhile: so the least of a few counts. The least time in which this member and others are a quorum is what a write waits for the network, if this
//! member leads.

use std::collections::{BTreeMap, VecDeque};

/// Ticks without anything written after which no more probes are sent.
const PROBED_TICKS: u32 = 10;
/// An answer counts for this time, in milliseconds.
const WINDOW_MS: u64 = 400;
/// Answers of a member that are kept, at most: it may send more than it was asked for.
const ANSWERS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct LinkTimes {
    last_entry: u64,
    ticks_left: u32,
    by_member: BTreeMap<u64, Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Time of the oldest probe that may still be answered, and behind which none was.
    asked_ms: Option<u64>,
    /// Times at which answers came, and milliseconds that they took.
    answers: VecDeque<(u64, u64)>,
}

impl Answers {
    /// The least time of late, in milliseconds. A probe that waits for its answer takes at least as long as it waits.
    fn least(&self, now_ms: u64) -> Option<u64> {
        let of_late = self.answers.iter().filter(|(at_ms, _)| now_ms < at_ms + WINDOW_MS);
        let waits = || Some(now_ms.saturating_sub(self.asked_ms?)).filter(|waits| *waits >= WINDOW_MS);
        of_late.map(|(_, took_ms)| *took_ms).min().or_else(waits)
    }
}

impl LinkTimes {
    /// A tick, as of the last entry in this member's log. True if it is time to probe others.
    pub(crate) fn tick(&mut self, last_entry: u64) -> bool {
        let is_busy = std::mem::replace(&mut self.last_entry, last_entry) != last_entry;
        self.ticks_left = if is_busy { PROBED_TICKS } else { self.ticks_left.saturating_sub(1) };
        if self.ticks_left == 0 {
            self.by_member.clear();
        }
        self.ticks_left > 0
    }

    /// A probe has been sent.
    pub(crate) fn probed(&mut self, member: u64, now_ms: u64) {
        self.by_member.entry(member).or_default().asked_ms.get_or_insert(now_ms);
    }

    /// A member answers the probe of this time. One that was never sent, or whose answer is not expected any more, counts for nothing.
    pub(crate) fn answered(&mut self, member: u64, sent_ms: u64, now_ms: u64) {
        let Some(known) = self.by_member.get_mut(&member) else { return };
        if known.asked_ms.is_none_or(|asked_ms| sent_ms < asked_ms) || sent_ms > now_ms {
            return;
        }
        known.asked_ms = Some(sent_ms + 1);
        known.answers.push_back((now_ms, now_ms - sent_ms));
        if known.answers.len() > ANSWERS_MAX {
            known.answers.pop_front();
        }
    }

    /// Time in microseconds in which this member and the nearest of the other `voters` are a quorum of all; `None` if that is not known.
    pub(crate) fn quorum_us(&self, voters: &[u64], own: u64, now_ms: u64) -> Option<u32> {
        let least = |voter: &u64| self.by_member.get(voter)?.least(now_ms);
        let mut times: Vec<u64> = voters.iter().filter(|voter| **voter != own).filter_map(least).collect();
        times.sort_unstable();
        let needed = voters.len() / 2;
        let last = times.get(needed.checked_sub(1)?)?;
        Some(u32::try_from(last * 1000).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Member 1 with the other voters, which answer after these times, each in its turn again and again; `None` does not answer.
    fn quorum_ms(others: &[&[Option<u64>]], ticks: u64) -> Option<u32> {
        let mut times = LinkTimes::default();
        let mut voters: Vec<u64> = vec![1];
        voters.extend((2..).take(others.len()));
        let mut answers = Vec::new();
        for tick in 0..ticks {
            let now_ms = tick * 100;
            assert!(times.tick(tick + 1));
            for (member, takes) in voters[1..].iter().zip(others) {
                times.probed(*member, now_ms);
                let takes = takes[tick as usize % takes.len()];
                answers.extend(takes.map(|takes| (now_ms + takes, *member, now_ms)));
            }
            answers.sort_unstable();
            answers.retain(|(at_ms, member, sent_ms)| {
                let has_come = *at_ms < now_ms + 100;
                if has_come {
                    times.answered(*member, *sent_ms, *at_ms);
                }
                !has_come
            });
        }
        times.quorum_us(&voters, 1, (ticks - 1) * 100 + 99).map(|micros| micros / 1000)
    }

    #[test]
    fn the_nearest_voters_that_make_a_quorum_count() {
        assert_eq!(quorum_ms(&[&[Some(1)], &[Some(90)]], 10), Some(1));
        assert_eq!(quorum_ms(&[&[Some(70)], &[Some(90)]], 10), Some(70));
        assert_eq!(quorum_ms(&[&[Some(1)], &[Some(3)], &[Some(40)], &[None]], 10), Some(3));
        assert_eq!(quorum_ms(&[&[Some(1)], &[None], &[None], &[None]], 3), None);
        assert_eq!(quorum_ms(&[], 3), None);
    }

    #[test]
    fn one_quick_answer_of_a_few_counts() {
        assert_eq!(quorum_ms(&[&[Some(80), Some(80), Some(80), Some(2)]], 40), Some(2));
    }

    #[test]
    fn a_member_that_does_not_answer_takes_as_long_as_it_is_asked() {
        assert_eq!(quorum_ms(&[&[None]], 3), None);
        assert_eq!(quorum_ms(&[&[None]], 20), Some(1999));
        assert_eq!(quorum_ms(&[&[None], &[Some(5)]], 20), Some(5));
    }

    #[test]
    fn nothing_is_probed_while_nothing_is_written() {
        let mut times = LinkTimes::default();
        assert!(times.tick(5));
        times.probed(2, 0);
        times.answered(2, 0, 1);
        assert_eq!((1..100).filter(|_| times.tick(5)).count() as u32, PROBED_TICKS - 1);
        assert_eq!(times.quorum_us(&[1, 2, 3], 1, 2), None);
    }

    #[test]
    fn answers_to_nothing_count_for_nothing() {
        let mut times = LinkTimes::default();
        times.tick(1);
        times.answered(2, 0, 1);
        times.probed(2, 100);
        times.answered(2, 99, 150);
        times.answered(2, 160, 150);
        assert_eq!(times.quorum_us(&[1, 2, 3], 1, 150), None);
        times.answered(2, 100, 150);
        times.answered(2, 100, 150);
        assert_eq!(times.quorum_us(&[1, 2, 3], 1, 150), Some(50_000));
        assert_eq!(times.by_member[&2].answers.len(), 1);
    }
}
