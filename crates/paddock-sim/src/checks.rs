//! Everything that must be true, whatever happens. Each checker is a file; a violation names the one that noticed.

pub(crate) mod agreement;
pub(crate) mod answers;
pub(crate) mod contact;
pub(crate) mod elections;
pub(crate) mod ephemerals;
pub(crate) mod features;
pub(crate) mod groups;
mod happened;
pub(crate) mod moves;
pub(crate) mod once;
pub(crate) mod one_order;
pub(crate) mod order;
pub(crate) mod recovery;
pub(crate) mod sessions;
pub(crate) mod streams;
pub(crate) mod truth;
mod violation;
pub(crate) mod watching;

use std::rc::Rc;

use paddock_model::Wish;
use paddock_proto::{SessionId, Xid};
use paddock_replica::LogEntry;

use crate::answer_limits::AnswerLimits;
use crate::machine::setup::Settings;
use answers::Acknowledged;
use contact::ContactCheck;
use elections::Elections;
use groups::GroupChecks;
use moves::Moves;
use once::Once;
use one_order::Spread;
use one_order::history::Happening;
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
    /// Judge of a run in which znodes are spread over groups, when it is over. What is judged at once holds of one group only.
    pub(crate) spread: Option<Spread>,
    /// The znode whose data may be wrong in what a client hears just now: no digest has shown its member yet that its state
    /// is wrong.
    pub(crate) wrong: Option<Rc<str>>,
    pub(crate) limits: AnswerLimits,
}

impl Checks {
    pub(crate) fn new(linearizable_reads: bool, limits: AnswerLimits) -> Checks {
        let real_time = RealTime::of_every_read(linearizable_reads);
        let truth = Truth::new(Settings::REMOVED_AT_ONCE);
        Checks { truth, real_time, limits, ..Checks::default() }
    }

    /// Znodes are spread over groups in this run.
    pub(crate) fn spread(&mut self) {
        self.spread = Some(Spread::default());
        self.truth.stand_aside();
    }

    /// Moments of the history so far, where znodes are spread.
    pub(crate) fn moments(&self) -> usize {
        self.spread.as_ref().map_or(0, |spread| spread.history.len())
    }

    /// A client asks for a write.
    pub(crate) fn ask(&mut self, client: usize, session: SessionId, xid: Xid, wish: Wish) {
        match &mut self.spread {
            Some(spread) => spread.history.note(client, session, Happening::Asks { xid, wish }),
            None => self.once.ask(session, xid, &wish),
        }
    }

    /// A member is about to apply an entry. Its monotonic clock shows `now_ms`.
    pub(crate) fn committed(&mut self, member: u8, entry: &LogEntry, now_ms: u64) -> Checked {
        self.contact.committed(entry);
        self.groups.home_committed(entry);
        for happened in self.truth.observe(member, entry, self.spread.as_mut())? {
            if happened.goes_on {
                continue;
            }
            if self.spread.is_none() {
                self.once.happened(&happened)?;
            }
            self.sessions.happened(&happened)?;
        }
        for session in self.truth.begun_at(entry.index) {
            self.sessions.heard(member, session, now_ms);
        }
        Ok(())
    }
}
