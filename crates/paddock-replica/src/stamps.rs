//! Stamps: zxids that can be compared over groups, and the clock that they are made of.
//!
//! With several groups a leader writes a floor into each entry: the first stamp of the millisecond that its clock shows. Members tell each other their
//! clocks, and a leader takes the fastest one, so that the stamps of all groups rise together and a session seldom waits for a group that is
//! behind. A clock that is wrong must not drag all others into the future: the latest time that the clocks of a quorum have reached is
//! right, and what is ahead of it by more than a bound is ignored. Nothing else rests on clocks: zxids rise in each group, whatever they say.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::Zxid;
use paddock_state::Now;

use crate::raft_id::logged;

/// A clock that is ahead of a quorum's by more than this many milliseconds is ignored.
pub(crate) const CLOCK_BOUND_MS: i64 = 2000;
/// Time in milliseconds for which a clock counts that a member has told.
const TOLD_FOR_MS: u64 = 10_000;

/// Time in milliseconds for which stamps go on with the monotonic clock when the members' clocks are not judged again, as they are with every tick.
const UNJUDGED_MS: u64 = 1000;

/// Clock of the stamps that a leader writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampClock {
    /// The clocks of a quorum are not known: a floor says nothing, and zxids are counted until they are.
    Unknown,
    /// The leader's own clock, whatever others say.
    Own,
    /// A clock that goes on with the leader's monotonic clock, and shows `base_ms` when that one shows 0. The leader's own clock may be set at any moment, and
    /// would take this one with it until the members' clocks are judged again.
    Monotonic {
        base_ms: i64,
        /// Time of the monotonic clock when the clocks were judged: should it jump, this one stops a little later until they are judged again.
        judged_ms: u64,
    },
}

impl StampClock {
    /// Floor of an entry that is begun now.
    pub(crate) fn floor(self, now: Now) -> Zxid {
        match self {
            StampClock::Unknown => Zxid(0),
            StampClock::Own => Zxid::stamp(now.wall_ms),
            StampClock::Monotonic { base_ms, judged_ms } => {
                let monotonic_ms = now.monotonic_ms.min(judged_ms.saturating_add(UNJUDGED_MS));
                Zxid::stamp(base_ms.saturating_add(monotonic_ms as i64))
            }
        }
    }

    /// The largest stamp that may have been given by now, by this clock or by one that is ahead of it within the bound.
    pub(crate) fn latest(self, now: Now) -> Zxid {
        let time_ms = match self {
            StampClock::Unknown | StampClock::Own => now.wall_ms,
            StampClock::Monotonic { base_ms, .. } => base_ms.saturating_add(now.monotonic_ms as i64),
        };
        Zxid::stamp(time_ms.saturating_add(2 * CLOCK_BOUND_MS))
    }
}

/// Clocks of the members, as they were told last.
#[derive(Debug)]
pub(crate) struct MemberClocks {
    told: BTreeMap<u64, ToldClock>,
    clock: StampClock,
    /// Members whose clocks are ignored.
    ignored: BTreeSet<u64>,
}

/// A clock, by which its member has told the time that it shows.
#[derive(Clone, Copy, Debug)]
struct ToldClock {
    /// Time that it shows when the monotonic clock of this process shows 0, in milliseconds. What is told late makes it smaller.
    base_ms: i64,
    at_ms: u64,
}

fn base_ms(wall_ms: i64, monotonic_ms: u64) -> i64 {
    wall_ms.saturating_sub(monotonic_ms as i64)
}

impl Default for MemberClocks {
    fn default() -> MemberClocks {
        MemberClocks { told: BTreeMap::new(), clock: StampClock::Unknown, ignored: BTreeSet::new() }
    }
}

impl MemberClocks {
    /// Another member tells the time that its clock shows.
    pub(crate) fn hear(&mut self, from: u64, wall_ms: i64, now_ms: u64) {
        self.told.insert(from, ToldClock { base_ms: base_ms(wall_ms, now_ms), at_ms: now_ms });
    }

    /// Clock of the stamps, as of [`MemberClocks::judge`].
    pub(crate) fn clock(&self) -> StampClock {
        self.clock
    }

    /// Number of members whose clocks are ignored.
    pub(crate) fn ignored(&self) -> usize {
        self.ignored.len()
    }

    /// Takes the fastest of the voters' clocks that is not ahead of a quorum's by more than the bound, and names those that are.
    pub(crate) fn judge(&mut self, own: u64, voters: &[u64], now: Now) {
        self.told.retain(|_, told| now.monotonic_ms.saturating_sub(told.at_ms) < TOLD_FOR_MS);
        let own_base_ms = base_ms(now.wall_ms, now.monotonic_ms);
        let known = voters.iter().filter_map(|voter| {
            let base_ms = if *voter == own { own_base_ms } else { self.told.get(voter)?.base_ms };
            Some((base_ms, *voter))
        });
        let mut known: Vec<(i64, u64)> = known.collect();
        known.sort_unstable_by(|one, other| other.cmp(one));
        // A quorum of clocks shows this time or a later one.
        let Some((quorum_ms, _)) = known.get(voters.len() / 2) else {
            self.clock = StampClock::Unknown;
            return;
        };
        let latest_ms = quorum_ms.saturating_add(CLOCK_BOUND_MS);
        let (ahead, right): (Vec<_>, Vec<_>) = known.iter().partition(|(base_ms, _)| *base_ms > latest_ms);
        let fastest_ms = right.first().map_or(*quorum_ms, |(base_ms, _)| *base_ms);
        self.clock = StampClock::Monotonic { base_ms: fastest_ms, judged_ms: now.monotonic_ms };
        for (base_ms, member) in &ahead {
            if !self.ignored.contains(member) {
                tracing::warn!(
                    member = logged(*member),
                    ahead_ms = base_ms.saturating_sub(*quorum_ms),
                    bound_ms = CLOCK_BOUND_MS,
                    "clock of a member is ahead of those of a quorum: zxids do not follow it; set it right"
                );
            }
        }
        self.ignored = ahead.into_iter().map(|(_, member)| member).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL_MS: i64 = 1_700_000_000_000;

    /// Member 1, whose clock is right, after the others have told clocks, with the milliseconds by which each is ahead.
    #[track_caller]
    fn check(voters: &[u64], told: &[(u64, i64)], expected: Option<i64>, ignored: &[u64]) {
        let mut clocks = MemberClocks::default();
        for (member, ahead_ms) in told {
            clocks.hear(*member, WALL_MS + ahead_ms, 500);
        }
        clocks.judge(1, voters, Now { monotonic_ms: 700, wall_ms: WALL_MS + 200 });
        let base_ms = |ahead_ms| StampClock::Monotonic { base_ms: WALL_MS - 500 + ahead_ms, judged_ms: 700 };
        assert_eq!(clocks.clock(), expected.map_or(StampClock::Unknown, base_ms));
        assert_eq!(clocks.ignored.iter().copied().collect::<Vec<_>>(), ignored);
    }

    #[test]
    fn stamps_follow_the_fastest_clock_that_is_not_ahead_by_more_than_the_bound() {
        let (ahead, day_ms) = (Some, 86_400_000);
        check(&[1], &[], ahead(0), &[]);
        check(&[1, 2, 3], &[(2, 40), (3, -70)], ahead(40), &[]);
        check(&[1, 2, 3], &[(2, CLOCK_BOUND_MS), (3, 0)], ahead(CLOCK_BOUND_MS), &[]);
        check(&[1, 2, 3], &[(2, CLOCK_BOUND_MS + 1), (3, 0)], ahead(0), &[2]);
        check(&[1, 2, 3], &[(2, -day_ms), (3, 5)], ahead(5), &[]);
        // Its own clock may be the wrong one.
        check(&[1, 2, 3], &[(2, -day_ms), (3, 5 - day_ms)], ahead(5 - day_ms), &[1]);
        check(&[1, 2], &[(2, day_ms)], ahead(0), &[2]);
        check(&[1, 2], &[(2, -day_ms)], ahead(-day_ms), &[1]);
        check(&[1, 2, 3, 4, 5], &[(2, day_ms), (3, day_ms), (4, 1)], ahead(1), &[2, 3]);
    }

    #[test]
    fn without_a_quorums_clocks_there_is_none() {
        check(&[1, 2, 3], &[], None, &[]);
        check(&[1, 2, 3], &[(9, 0)], None, &[]);
        check(&[1, 2, 3], &[(3, 7)], Some(7), &[]);
        check(&[1, 2, 3, 4], &[(2, 0)], None, &[]);
        check(&[2, 3], &[(2, 7)], None, &[]);
        let mut clocks = MemberClocks::default();
        clocks.hear(2, WALL_MS, 0);
        for (at_ms, known) in [(TOLD_FOR_MS - 1, true), (TOLD_FOR_MS, false)] {
            clocks.judge(1, &[1, 2, 3], Now { monotonic_ms: at_ms, wall_ms: WALL_MS + at_ms as i64 });
            assert_eq!(clocks.clock() != StampClock::Unknown, known, "after {at_ms} ms");
        }
    }

    #[test]
    fn a_floor_is_the_first_stamp_of_a_millisecond() {
        let now = Now { monotonic_ms: 10, wall_ms: 1000 };
        let monotonic = |base_ms| StampClock::Monotonic { base_ms, judged_ms: 10 };
        assert_eq!(StampClock::Own.floor(now), Zxid(1000 << Zxid::STAMP_COUNTER_BITS));
        // Its own clock has been set since the clocks were judged.
        assert_eq!(monotonic(3).floor(now), Zxid(13 << Zxid::STAMP_COUNTER_BITS));
        assert_eq!((StampClock::Unknown.floor(now), monotonic(-11).floor(now)), (Zxid(0), Zxid(0)));
        assert_eq!(monotonic(i64::MAX).floor(now), Zxid::stamp(Zxid::STAMP_MS_MAX), "no zxid is below 0");
    }

    #[test]
    fn a_jump_of_the_monotonic_clock_takes_no_stamp_far() {
        let mut clocks = MemberClocks::default();
        clocks.judge(1, &[1], Now { monotonic_ms: 700, wall_ms: WALL_MS });
        let floor_ms = |clocks: &MemberClocks, monotonic_ms| {
            let floor = clocks.clock().floor(Now { monotonic_ms, wall_ms: WALL_MS });
            (floor.0 >> Zxid::STAMP_COUNTER_BITS) - WALL_MS
        };
        assert_eq!(floor_ms(&clocks, 900), 200);
        assert_eq!(floor_ms(&clocks, 60_700), UNJUDGED_MS as i64);
        clocks.judge(1, &[1], Now { monotonic_ms: 60_700, wall_ms: WALL_MS + 300 });
        assert_eq!(floor_ms(&clocks, 60_800), 400);
    }
}
