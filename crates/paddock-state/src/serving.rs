//! Connections of this member by the session that they serve.

use std::collections::HashMap;

use paddock_proto::SessionId;

use crate::ConnId;

/// At most one connection for a session, and one session for a connection.
#[derive(Debug, Default)]
pub struct Serving {
    conns: HashMap<SessionId, ConnId>,
    sessions: HashMap<ConnId, SessionId>,
}

impl Serving {
    /// Returns the connection that served the session until now, if it is another one.
    pub fn begin(&mut self, session: SessionId, conn: ConnId) -> Option<ConnId> {
        self.sessions.insert(conn, session);
        let former = self.conns.insert(session, conn).filter(|former| *former != conn)?;
        self.sessions.remove(&former);
        Some(former)
    }

    /// The connection that serves the session.
    pub fn conn(&self, session: SessionId) -> Option<ConnId> {
        self.conns.get(&session).copied()
    }

    /// Sessions that are served.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.conns.keys().copied()
    }

    pub fn end_session(&mut self, session: SessionId) -> Option<ConnId> {
        let conn = self.conns.remove(&session)?;
        self.sessions.remove(&conn);
        Some(conn)
    }

    /// Ends all and returns the connections.
    pub fn end_all(&mut self) -> Vec<ConnId> {
        self.conns.clear();
        let mut conns: Vec<ConnId> = self.sessions.drain().map(|(conn, _)| conn).collect();
        conns.sort_unstable();
        conns
    }

    pub fn end_conn(&mut self, conn: ConnId) {
        if let Some(session) = self.sessions.remove(&conn) {
            self.conns.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_connection() {
        let (mut serving, session) = (Serving::default(), SessionId(7));
        let (first, second) = (ConnId::new(0, 1), ConnId::new(0, 2));
        assert_eq!(serving.begin(session, first), None);
        assert_eq!(serving.begin(session, first), None, "it is the same one");
        assert_eq!(serving.begin(session, second), Some(first));
        serving.end_conn(first);
        assert_eq!(serving.end_session(session), Some(second), "the former connection has no say any more");
        assert_eq!(serving.end_session(session), None);
    }
}
