//! Clients that have come back to their sessions over another connection, and whose greetings have still to go to the reference: it may
//! not have the session yet, and what was asked over the connection before has to be answered there first.

use paddock_proto::SessionId;
use paddock_state::ConnId;

#[derive(Debug)]
struct Greeting {
    conn: ConnId,
    session: SessionId,
    bytes: Vec<u8>,
    since_ms: u64,
}

#[derive(Debug, Default)]
pub(super) struct Returns {
    /// In the order in which they came.
    waiting: Vec<Greeting>,
}

impl Returns {
    /// Keeps a greeting. One that waits already does so since the time before.
    pub(super) fn hold(&mut self, conn: ConnId, session: SessionId, greeting: &[u8], now_ms: u64) {
        if !self.is_waiting(conn) {
            self.waiting.push(Greeting { conn, session, bytes: greeting.to_vec(), since_ms: now_ms });
        }
    }

    pub(super) fn release(&mut self, conn: ConnId) {
        self.waiting.retain(|greeting| greeting.conn != conn);
    }

    pub(super) fn is_waiting(&self, conn: ConnId) -> bool {
        self.waiting.iter().any(|greeting| greeting.conn == conn)
    }

    /// True if none waits for the session that came before this connection.
    pub(super) fn is_first(&self, conn: ConnId, session: SessionId) -> bool {
        let first = self.waiting.iter().find(|greeting| greeting.session == session);
        first.is_none_or(|first| first.conn == conn)
    }

    /// True if a client waits that has come back to this session.
    pub(super) fn wait_for(&self, session: SessionId) -> bool {
        self.waiting.iter().any(|greeting| greeting.session == session)
    }

    /// Connections and their greetings, in the order in which they came.
    pub(super) fn greetings(&self) -> Vec<(ConnId, Vec<u8>)> {
        self.waiting.iter().map(|greeting| (greeting.conn, greeting.bytes.clone())).collect()
    }

    /// Connections whose greetings wait since before that time, in milliseconds.
    pub(super) fn since_before(&self, before_ms: u64) -> Vec<ConnId> {
        let late = self.waiting.iter().filter(|greeting| greeting.since_ms < before_ms);
        late.map(|greeting| greeting.conn).collect()
    }
}
