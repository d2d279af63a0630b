//! Sessions of the ensemble, and the member that serves each. The leader says when one has been silent for too long.
//!
//! A session that moves to another member leaves nothing behind: what its former member still has on the way is refused,
//! so that no write of its past comes after one of its present.

use std::ops::Bound;

use paddock_proto::{ErrorCode, Id, IdList, MemberNumber, SessionId, WriteReply, Zxid};

use super::Tree;
use crate::Command;
use crate::outcome::Changes;
use crate::session::{Session, first_proven};

impl Tree {
    pub fn session_timeout_ms(&self, id: SessionId) -> Option<i32> {
        self.sessions.get(&id).map(|session| session.timeout_ms)
    }

    /// The member that serves the session.
    pub fn session_owner(&self, id: SessionId) -> Option<MemberNumber> {
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
    pub(crate) fn check_session(&self, id: SessionId, member: MemberNumber) -> Result<(), ErrorCode> {
        match self.sessions.get(&id) {
            _ if id == SessionId::NONE => Ok(()),
            None => Err(ErrorCode::SessionExpired),
            Some(session) if session.owner != member => {
                self.hosts.check_host((id, session.moves), (session.owner, member))
            }
            Some(_) => Ok(()),
        }
    }

    /// A session may be closed where it is served; one that has ended already may be closed again.
    pub(crate) fn may_close(&self, command: &Command<'_>) -> bool {
        self.check_session(command.session, command.member) != Err(ErrorCode::SessionMoved)
    }

    /// Refuses an id that is in use: two clients must never share a session.
    pub(crate) fn create_session<'a>(
        &mut self,
        session: SessionId,
        member: MemberNumber,
        ids: IdList<'_>,
        timeout_ms: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if session == SessionId::NONE || self.sessions.contains_key(&session) {
            return Err(ErrorCode::BadArguments);
        }
        let proven = first_proven(ids).map(Box::new);
        let is_keyed = self.secret.is_some();
        self.sessions.insert(session, Session { is_keyed, proven, ..Session::new(timeout_ms, member) });
        Ok(WriteReply::Done)
    }

    /// From now on the session is served by the member of the command. One that is only asked for stays where it is, and so does one that
    /// has moved since the member asked: its client has been elsewhere meanwhile.
    pub(crate) fn resume_session<'a>(
        &mut self,
        command: &Command<'_>,
        timeout_ms: i32,
        (is_keyed, is_asking): (bool, bool),
        moves: Option<u32>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let known = self.sessions.get_mut(&command.session);
        let known = known.filter(|known| known.is_keyed == is_keyed).ok_or(ErrorCode::SessionExpired)?;
        if is_asking {
            return Ok(WriteReply::Done);
        }
        if !known.admits(command.ids) {
            return Err(ErrorCode::NoAuth);
        }
        if moves.is_some_and(|moves| moves != known.moves) {
            return Err(ErrorCode::SessionMoved);
        }
        (known.timeout_ms, known.owner) = (timeout_ms, command.member);
        known.moves = known.moves.wrapping_add(moves.is_some().into());
        self.tell_owner(command.session);
        Ok(WriteReply::Done)
    }

    /// Times that the session's client has come back; 0 for a session that is not known here.
    pub fn session_moves(&self, id: SessionId) -> u32 {
        self.sessions.get(&id).map_or(0, |session| session.moves)
    }

    /// The session is bound to the first identity that its client has proved.
    pub(crate) fn bind_session<'a>(&mut self, command: &Command<'_>) -> Result<WriteReply<'a>, ErrorCode> {
        self.check_session(command.session, command.member)?;
        let known = self.sessions.get_mut(&command.session).ok_or(ErrorCode::BadArguments)?;
        if known.proven.is_none() {
            known.proven = first_proven(command.ids).map(Box::new);
        }
        Ok(WriteReply::Done)
    }

    /// The identity that the session is bound to.
    pub fn session_identity(&self, id: SessionId) -> Option<&Id> {
        self.sessions.get(&id).and_then(|session| session.proven.as_deref())
    }

    /// True if the session's password is made from the secret.
    pub fn is_session_keyed(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.is_keyed)
    }

    /// True if a client with these identities may resume the session, as far as is known here.
    pub fn admits(&self, id: SessionId, ids: IdList<'_>) -> bool {
        self.sessions.get(&id).is_none_or(|session| session.admits(ids))
    }

    /// Ends a session, with its ephemerals. One that has ended already is no error: its client and the leader may both
    /// have asked for it.
    pub(crate) fn close_session<'a>(
        &mut self,
        session: SessionId,
        zxid: Zxid,
        changes: &mut Changes<'a>,
    ) -> WriteReply<'a> {
        let zxid = self.tell_end(session, zxid);
        self.remove_ephemerals(session, zxid, changes);
        self.sessions.remove(&session);
        WriteReply::Done
    }
}
