//! Sessions leave members that are removed: none that knows of its own removal keeps a connection.

use std::collections::BTreeMap;

use paddock_proto::SessionId;

use super::{Checked, ensure};

const CHECKER: &str = "moves";
/// Ticks in which a member that learns of its removal closes its connections.
const FAREWELL_TICKS: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Ticks of the members whose state says that they were removed.
    removed_ticks: BTreeMap<u8, u32>,
}

impl Moves {
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
