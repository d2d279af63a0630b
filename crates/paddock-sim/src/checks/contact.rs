//! A member is in contact up to a time if it has applied every end of a session that a leader had proposed by then: who looks after its own
//! connections since cannot serve one whose session has ended.
//!
//! Ends that no member has applied are not judged: they may never be committed.

use std::collections::{BTreeMap, VecDeque};

use paddock_proto::Write;
use paddock_replica::LogEntry;

use super::{Checked, ensure};
use crate::time::Time;

const CHECKER: &str = "contact";
/// Ticks of a member that are remembered. A contact from before them is not judged.
const TICKS_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct ContactCheck {
    /// Time at which a leader sent an entry first that ends a session, by its index and term.
    proposed: BTreeMap<(u64, u64), Time>,
    /// Ends among them that a member has applied.
    ends: BTreeMap<u64, Time>,
    clocks: BTreeMap<u8, Clock>,
}

/// The monotonic clock of a process at its ticks, in milliseconds, and the time of the world.
#[derive(Debug, Default)]
struct Clock {
    /// The contact with which the process began, which no leader has confirmed.
    first_ms: Option<u64>,
    ticks: VecDeque<(u64, Time)>,
}

impl Clock {
    fn tick(&mut self, now_ms: u64, now: Time) {
        if self.ticks.len() == TICKS_MAX {
            self.ticks.pop_front();
        }
        self.ticks.push_back((now_ms, now));
    }

    /// The last tick by then.
    fn tick_by(&self, ms: u64) -> Option<Time> {
        let place = self.ticks.partition_point(|(tick_ms, _)| *tick_ms <= ms);
        place.checked_sub(1).map(|place| self.ticks[place].1)
    }
}

impl ContactCheck {
    /// A leader sends an entry of its own term to another member.
    pub(crate) fn proposed(&mut self, entry: &LogEntry, now: Time) {
        if ends_session(entry) {
            self.proposed.entry((entry.index, entry.term)).or_insert(now);
        }
    }

    /// A member is about to apply an entry.
    pub(crate) fn committed(&mut self, entry: &LogEntry) {
        if let Some(proposed) = self.proposed.remove(&(entry.index, entry.term)) {
            self.ends.insert(entry.index, proposed);
        }
    }

    /// The process of a member has ended.
    pub(crate) fn ends(&mut self, member: u8) {
        self.clocks.remove(&member);
    }

    /// A member has had a tick, at `now_ms` of its clock. It was in contact up to `confirmed_ms`; with `None` it needs no other.
    pub(crate) fn check(
        &mut self,
        member: u8,
        (now_ms, now): (u64, Time),
        confirmed_ms: Option<u64>,
        applied: u64,
    ) -> Checked {
        let clock = self.clocks.entry(member).or_default();
        clock.tick(now_ms, now);
        let Some(confirmed_ms) = confirmed_ms else {
            // Whatever it has told itself counts no more when there are others.
            *clock = Clock::default();
            return Ok(());
        };
        let first_ms = *clock.first_ms.get_or_insert(confirmed_ms);
        let Some(since) = clock.tick_by(confirmed_ms).filter(|_| confirmed_ms > first_ms) else {
            return Ok(());
        };
        let unapplied = self.ends.range(applied + 1..).find(|(_, proposed)| **proposed < since);
        ensure!(
            unapplied.is_none(),
            CHECKER,
            "member {member} has applied {applied} entries and says that it was in contact at {confirmed_ms} ms of its clock, {since}; \
             {unapplied:?} ends a session"
        );
        Ok(())
    }
}

fn ends_session(entry: &LogEntry) -> bool {
    let is_end = |write: &Result<Write<'_>, _>| matches!(write, Ok(Write::ExpireSession { .. }));
    entry.batches().any(|batch| batch.commands().any(|command| is_end(&command.write)))
}
