//! Sessions move only to where their clients are: no member asks for one on a connection that is long gone, and none that knows of its own
//! removal keeps a connection.

use std::collections::BTreeMap;

use paddock_proto::SessionId;

use super::{Checked, ensure};
use crate::time::{SimDuration, Time};

const CHECKER: &str = "moves";
/// Time in which a member takes notice of the end of a connection, whatever its disk is doing.
const NOTICE: SimDuration = SimDuration::seconds(4);
/// Ticks in which a member that learns of its removal closes its connections.
const FAREWELL_TICKS: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// The last time at which a member was seen to have a connection that asks for a session.
    had: BTreeMap<(u8, SessionId), Time>,
    /// Ticks of the members whose state says that they were removed.
    removed_ticks: BTreeMap<u8, u32>,
}

impl Moves {
    /// The member has a connection that asks for the session, or that ends now.
    pub(crate) fn has(&mut self, member: u8, session: SessionId, now: Time) {
        self.had.insert((member, session), now);
    }

    /// A member tells the leader that the client of a session has come to it.
    pub(crate) fn check_resume(&self, member: u8, session: SessionId, now: Time) -> Checked {
        let had = self.had.get(&(member, session));
        ensure!(
            had.is_some_and(|had| now - *had <= NOTICE),
            CHECKER,
            "member {member} asks for session {session}; its last connection for that was there at {had:?}"
        );
        Ok(())
    }

    /// The member has had a tick.
    pub(crate) fn tick(&mut self, member: u8, is_removed: bool) {
        let ticks = self.removed_ticks.entry(member).or_default();
        *ticks = if is_removed { *ticks + 1 } else { 0 };
    }

    /// The process of the member has ended.
    pub(crate) fn ends(&mut self, member: u8) {
        self.removed_ticks.remove(&member);
    }

    /// A member has these sessions on its connections.
    pub(crate) fn check_removed(&self, member: u8, sessions: impl Iterator<Item = SessionId>) -> Checked {
        let is_removed = self.removed_ticks.get(&member).is_some_and(|ticks| *ticks > FAREWELL_TICKS);
        let served = sessions.filter(|session| *session != SessionId::NONE).find(|_| is_removed);
        ensure!(
            served.is_none(),
            CHECKER,
            "member {member} was removed, and knows, and goes on serving session {}",
            served.unwrap_or(SessionId::NONE)
        );
        Ok(())
    }
}
