//! Sessions of the ensemble, and the member that serves each. The leader says when one has been silent for too long.
//!
//! A session that moves to another member leaves nothing behind: what its former member still has on the way is refused,
//! so that no write of its past comes after one of its present.

use std::ops::Bound;

use paddock_proto::{ErrorCode, SessionId, WriteReply, Zxid};

use super::Tree;
use crate::Command;
use crate::outcome::Changes;
use crate::session::Session;

impl Tree {
    pub fn session_timeout_ms(&self, id: SessionId) -> Option<i32> {
        self.sessions.get(&id).map(|session| session.timeout_ms)
    }

    /// The member that serves the session.
    pub fn session_owner(&self, id: SessionId) -> Option<u8> {
        self.sessions.get(&id).map(|session| session.owner)
    }

    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Every session and its timeout in milliseconds, by id.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, i32)> {
        self.sessions.iter().map(|(&id, session)| (id, session.timeout_ms))
    }

    /// At most `max` sessions behind `after`, or the first ones, with their timeouts in milliseconds, by id.
    pub fn sessions_behind(&self, after: Option<SessionId>, max: usize) -> Vec<(SessionId, i32)> {
        let passed = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.sessions.range((passed, Bound::Unbounded)).take(max);
        behind.map(|(&id, session)| (id, session.timeout_ms)).collect()
    }

    /// A session must be alive for what it asks, and ask it where it is served; the service needs none.
    pub(crate) fn check_session(&self, id: SessionId, member: u8) -> Result<(), ErrorCode> {
        match self.sessions.get(&id) {
            _ if id == SessionId::NONE => Ok(()),
            None => Err(ErrorCode::SessionExpired),
            Some(session) if session.owner != member => Err(ErrorCode::SessionMoved),
            Some(_) => Ok(()),
        }
    }

    /// A session may be closed where it is served; one that has ended already may be closed again.
    pub(crate) fn may_close(&self, command: &Command<'_>) -> bool {
        self.session_owner(command.session).is_none_or(|owner| owner == command.member)
    }

    /// Refuses an id that is in use: two clients must never share a session.
    pub(crate) fn create_session<'a>(
        &mut self,
        session: SessionId,
        member: u8,
        timeout_ms: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if session == SessionId::NONE || self.sessions.contains_key(&session) {
            return Err(ErrorCode::BadArguments);
        }
        self.sessions.insert(session, Session { timeout_ms, owner: member });
        Ok(WriteReply::Done)
    }

    /// From now on the session is served by `member`.
    pub(crate) fn resume_session<'a>(
        &mut self,
        session: SessionId,
        member: u8,
        timeout_ms: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let known = self.sessions.get_mut(&session).ok_or(ErrorCode::SessionExpired)?;
        *known = Session { timeout_ms, owner: member };
        Ok(WriteReply::Done)
    }

    /// Ends a session, with its ephemerals. One that has ended already is no error: its client and the leader may both
    /// have asked for it.
    pub(crate) fn close_session<'a>(
        &mut self,
        session: SessionId,
        zxid: Zxid,
        changes: &mut Changes<'a>,
    ) -> WriteReply<'a> {
        self.remove_ephemerals(session, zxid, changes);
        self.sessions.remove(&session);
        WriteReply::Done
    }
}
