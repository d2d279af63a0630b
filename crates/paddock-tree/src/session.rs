//! Which sessions there are. When one has been silent for too long is for the leader to say.

use paddock_proto::{ErrorCode, SessionId, WriteReply};

use crate::outcome::Changes;
use crate::tree::{Circumstances, Tree};

impl Circumstances<'_> {
    /// Whether the service itself asks, and no client.
    pub(crate) fn is_service(&self) -> bool {
        self.session == SessionId::NONE
    }
}

impl Tree {
    pub fn session_timeout_ms(&self, id: SessionId) -> Option<i32> {
        self.sessions.get(&id).copied()
    }

    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Every session and its timeout in milliseconds, by id.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, i32)> {
        self.sessions.iter().map(|(&id, &timeout_ms)| (id, timeout_ms))
    }

    /// A session must be alive for what it asks; the service needs none.
    pub(crate) fn check_session(&self, session: SessionId) -> Result<(), ErrorCode> {
        match session == SessionId::NONE || self.sessions.contains_key(&session) {
            true => Ok(()),
            false => Err(ErrorCode::SessionExpired),
        }
    }

    /// Refuses an id that is in use: two clients must never share a session.
    pub(crate) fn create_session<'a>(
        &mut self,
        session: SessionId,
        timeout_ms: i32,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if session == SessionId::NONE || self.sessions.contains_key(&session) {
            return Err(ErrorCode::BadArguments);
        }
        self.sessions.insert(session, timeout_ms);
        Ok(WriteReply::Done)
    }

    /// Ends a session, with its ephemerals. One that has ended already is no error: its client and the leader may both
    /// have asked for it.
    pub(crate) fn close_session<'a>(
        &mut self,
        at: &Circumstances<'_>,
        changes: &mut Changes<'a>,
    ) -> WriteReply<'a> {
        self.remove_ephemerals(at, changes);
        self.sessions.remove(&at.session);
        WriteReply::Done
    }
}
