//! Connections of clients: they come to the mirror or to the source, with their sessions, and go.

use paddock_forward::Input;
use paddock_proto::{OpCode, SessionId, Zxid};
use paddock_state::{ClientInput, ConnId, Resumption};

use super::client::ClientPlace;
use super::cutover::Cutover;
use super::source::DIRECT;
use super::world::{MirrorServer, MirrorWorld};
use crate::checks::watching::Watching;
use crate::checks::{Checked, ensure};
use crate::etcd::client::{Ask, greeting};

/// Shortest timeout of a session, in milliseconds.
const TIMEOUT_MS: i32 = 4000;
/// Among this number of clients that come back, one asks first if its session lives.
const ASKING: u64 = 2;

impl MirrorWorld {
    pub(super) fn connect(&mut self, at: usize) -> Checked {
        let is_source_there =
            self.cutover == Cutover::NotYet && matches!(self.server, MirrorServer::Mirror(_));
        if self.has_faults && is_source_there && self.chance.one_in(self.weather.to_source) {
            return self.connect_to_source(at);
        }
        // A front refuses clients that have seen more than it shows.
        if self.clients[at].zxid > self.state.tree().zxid().0 {
            return Ok(());
        }
        let conn = self.new_conn();
        let timeout_ms = TIMEOUT_MS << self.chance.below(2);
        let is_asking = self.clients[at].session.is_some() && self.chance.one_in(ASKING);
        let client = &mut self.clients[at];
        client.place = ClientPlace::Mirror(conn);
        let (input, asking) = greeting(conn, client.session, timeout_ms, is_asking);
        client.asking = asking;
        self.note(format_args!("client {at} at the mirror: {input:?}"));
        self.input(Input::Client(input))
    }

    fn connect_to_source(&mut self, at: usize) -> Checked {
        let now_ms = self.now_ms();
        let session = match self.clients[at].session {
            Some(session) if self.source.resume(DIRECT, session, TIMEOUT_MS, now_ms) => session,
            Some(_) => {
                self.clients[at].ended();
                return Ok(());
            }
            None => {
                let session = SessionId(self.next_session);
                self.next_session += 1;
                let body = TIMEOUT_MS.to_be_bytes();
                self.write_at_source(DIRECT, (session, 0), OpCode::CreateSession, &body)?;
                session
            }
        };
        self.note(format_args!("client {at} has session {session} at the source"));
        let client = &mut self.clients[at];
        (client.place, client.session, client.is_connected) = (ClientPlace::Source, Some(session), true);
        client.watching = Watching::default();
        self.checks.connected(session);
        Ok(())
    }

    /// A client is told that it has a session, or that the one lives that it has asked for.
    pub(super) fn connected(&mut self, at: usize, conn: ConnId, session: SessionId) -> Checked {
        let client = &mut self.clients[at];
        if let Some(resumption) = client.asking.take() {
            let resumption = Resumption { is_asking: false, ..resumption };
            self.note(format_args!("client {at} is told that session {session} lives"));
            let resume = ClientInput::Resume { conn, resumption, may_only_read: false };
            return self.input(Input::Client(resume));
        }
        let is_right = !client.is_connected && client.session.is_none_or(|wanted| wanted == session);
        ensure!(is_right, "sessions", "client {at} gets session {session} and wants {:?}", client.session);
        (client.session, client.is_connected) = (Some(session), true);
        self.note(format_args!("client {at} has session {session}"));
        self.checks.connected(session);
        self.set_watches_again(at)
    }

    /// The watches that a client knows of are set before all else.
    fn set_watches_again(&mut self, at: usize) -> Checked {
        let client = &self.clients[at];
        Ask::to_set_again(&client.watching, Zxid(client.zxid)).map_or(Ok(()), |ask| self.ask(at, ask))
    }

    /// A client goes. The mirror may hear of it much later.
    pub(super) fn disconnect(&mut self, at: usize) -> Checked {
        self.note(format_args!("client {at} goes"));
        match self.clients[at].disconnected() {
            ClientPlace::Mirror(conn) if self.chance.one_in(2) => {
                self.lingering.push(conn);
                Ok(())
            }
            ClientPlace::Mirror(conn) => self.input(Input::Client(ClientInput::Disconnect { conn })),
            ClientPlace::Source | ClientPlace::Nowhere => Ok(()),
        }
    }

    /// The mirror hears of a connection that it is gone.
    pub(super) fn end_lingering(&mut self) -> Checked {
        if self.lingering.is_empty() {
            return Ok(());
        }
        let conn = self.lingering.swap_remove(self.chance.index(self.lingering.len()));
        self.note(format_args!("{conn:?} is gone"));
        self.input(Input::Client(ClientInput::Disconnect { conn }))
    }

    /// The server has closed a connection.
    pub(super) fn closed(&mut self, at: usize, conn: ConnId) -> Checked {
        self.clients[at].disconnected();
        self.clients[at].closed += 1;
        self.input(Input::Client(ClientInput::Disconnect { conn }))
    }

    /// A client is told that its session has ended.
    pub(super) fn expired(&mut self, at: usize) -> Checked {
        let session = self.clients[at].session.filter(|session| self.checks.sessions.contains(session));
        ensure!(session.is_none(), "sessions", "client {at} is told that session {session:?} has ended");
        self.clients[at].ended();
        Ok(())
    }
}
