//! Sessions of the clients: how they come to them and back, and strangers who want them.

use paddock_etcd::Input;
use paddock_proto::{Password, SessionId};
use paddock_state::{ClientInput, ConnId, Resumption};

use super::client::greeting;
use super::world::{CLIENTS, FRONT_ENDS, World};
use crate::checks::Checked;

/// Shortest timeout of a session, in milliseconds.
const TIMEOUT_MS: i32 = 4000;
/// One of so many times a client that comes back asks first if its session lives, as one does that has yet to prove who it is.
const ASKING: u64 = 4;
/// Connections of strangers, at most.
const STRANGERS_MAX: usize = 3;

impl World {
    fn new_conn(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId::new(0, self.next_conn - 1)
    }

    pub(super) fn connect(&mut self, at: usize) -> Checked {
        let conn = self.new_conn();
        let front = self.chance.index(FRONT_ENDS);
        // A client may come back with a longer timeout, or with a shorter one.
        let timeout_ms = TIMEOUT_MS << self.chance.below(2);
        let is_asking = self.clients[at].session.is_some() && self.chance.one_in(ASKING);
        let client = &mut self.clients[at];
        (client.front, client.conn) = (front, Some(conn));
        let (input, asking) = greeting(conn, client.session, timeout_ms, is_asking);
        client.asking = asking;
        self.note(format_args!("client {at} at front end {front}: {input:?}"));
        self.input(front, Input::Client(input))
    }

    /// A client is told that it has a session, or that the one lives that it has asked for.
    pub(super) fn connected(
        &mut self,
        at: usize,
        conn: ConnId,
        session: SessionId,
        password: Password,
    ) -> Checked {
        self.checks.check_password(session, password)?;
        let client = &mut self.clients[at];
        if let Some(resumption) = client.asking.take() {
            let front = client.front;
            let resumption = Resumption { is_asking: false, ..resumption };
            self.note(format_args!("client {at} is told that session {session} lives"));
            let resume = ClientInput::Resume { conn, resumption, may_only_read: false };
            return self.input(front, Input::Client(resume));
        }
        (client.session, client.is_connected) = (Some(session), true);
        self.note(format_args!("client {at} has session {session}"));
        self.checks.connected(session, conn);
        self.set_watches_again(at)
    }

    /// Strangers come to clients' sessions, and go.
    pub(super) fn trouble_sessions(&mut self) -> Checked {
        if self.strangers.len() >= STRANGERS_MAX || !self.strangers.is_empty() && self.chance.one_in(2) {
            let at = self.chance.index(self.strangers.len());
            return self.leave_as_stranger(at);
        }
        let at = self.chance.index(CLIENTS);
        let Some(session) = self.clients[at].session else { return Ok(()) };
        // The client shows the password that ZooKeeper would have made, or has yet to prove who it is.
        let is_asking = self.chance.one_in(3);
        let timeout_ms = TIMEOUT_MS << self.chance.below(2);
        let keyed = Resumption::keyed(session, timeout_ms);
        let resumption = Resumption { is_asking, is_keyed: is_asking, ..keyed };
        let (conn, front) = (self.new_conn(), self.chance.index(FRONT_ENDS));
        self.strangers.push((front, conn));
        self.note(format_args!("a stranger at front end {front}: {conn:?}: {resumption:?}"));
        let resume = ClientInput::Resume { conn, resumption, may_only_read: false };
        self.input(front, Input::Client(resume))
    }

    pub(super) fn leave_as_stranger(&mut self, at: usize) -> Checked {
        let (front, conn) = self.strangers.swap_remove(at);
        self.note(format_args!("a stranger goes from front end {front}: {conn:?}"));
        self.input(front, Input::Client(ClientInput::Disconnect { conn }))
    }
}
