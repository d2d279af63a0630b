//! Everything that must be true, whatever happens. Each checker is a file; a violation names the one that noticed.

pub(crate) mod agreement;
pub(crate) mod answers;
pub(crate) mod contact;
pub(crate) mod elections;
pub(crate) mod ephemerals;
pub(crate) mod features;
pub(crate) mod groups;
pub(crate) mod moves;
pub(crate) mod once;
pub(crate) mod order;
pub(crate) mod recovery;
pub(crate) mod sessions;
pub(crate) mod streams;
pub(crate) mod truth;
mod violation;
pub(crate) mod watching;

use std::rc::Rc;

use paddock_replica::LogEntry;

use crate::machine::setup::Settings;
use answers::Acknowledged;
use contact::ContactCheck;
use elections::Elections;
use groups::GroupChecks;
use moves::Moves;
use once::Once;
use order::RealTime;
use sessions::Sessions;
use streams::StreamChecks;
use truth::Truth;
pub(crate) use violation::{Checked, Violation, ensure};

/// All checkers, and what they share.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) truth: Truth,
    pub(crate) once: Once,
    pub(crate) sessions: Sessions,
    pub(crate) moves: Moves,
    pub(crate) contact: ContactCheck,
    pub(crate) elections: Elections,
    pub(crate) groups: GroupChecks,
    pub(crate) streams: StreamChecks,
    pub(crate) real_time: RealTime,
    pub(crate) acknowledged: Acknowledged,
    /// The znode whose data may be wrong in what a client hears just now: no digest has shown its member yet that its state
    /// is wrong.
    pub(crate) wrong: Option<Rc<str>>,
    /// Watches of a setWatches that a member sets at once, at most.
    pub(crate) watches_per_turn: usize,
}

impl Checks {
    pub(crate) fn new(linearizable_reads: bool, watches_per_turn: usize) -> Checks {
        let real_time = RealTime::of_every_read(linearizable_reads);
        let truth = Truth::new(Settings::REMOVED_AT_ONCE);
        Checks { truth, real_time, watches_per_turn, ..Checks::default() }
    }

    /// A member is about to apply an entry. Its monotonic clock shows `now_ms`.
    pub(crate) fn committed(&mut self, member: u8, entry: &LogEntry, now_ms: u64) -> Checked {
        self.contact.committed(entry);
        self.groups.home_committed(entry);
        for happened in self.truth.observe(member, entry)? {
            if happened.goes_on {
                continue;
            }
            self.once.happened(&happened)?;
            self.sessions.happened(&happened)?;
        }
        for session in self.truth.begun_at(entry.index) {
            self.sessions.heard(member, session, now_ms);
        }
        Ok(())
    }
}
