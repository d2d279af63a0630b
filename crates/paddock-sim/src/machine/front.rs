//! The connections of a member: what the server's workers do, without their sockets.
//!
//! What needs no write and stands behind nothing is answered from the state, everything else goes to the member. Each
//! worker has its mailbox. It is emptied before the worker reads the state, and some time after mail has come.

use std::collections::BTreeMap;

use paddock_member::Config;
use paddock_proto::{Id, OpCode, ReplyHeader, SessionId, Write, Xid, frame};
use paddock_state::{
    Client, ClientInput, ConnId, Outbox, Outboxes, Parcel, QueuedRead, State, contact_max_ms,
};
use paddock_tree::{Command, Guess};

use crate::wire::{Frame, Packet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    Connecting,
    Serving,
    /// The session is being closed: nothing more is read.
    Ended,
}

#[derive(Debug)]
struct Conn {
    phase: Phase,
    ids: Vec<Id>,
    client: Client,
    /// Requests that the member has to answer.
    waiting: usize,
    /// Heard since that was reported.
    is_touched: bool,
    /// When it asked for its session.
    since_ms: u64,
    /// It lives so long without contact of the member to a quorum, once it serves a session that others may end.
    contact_max_ms: Option<u64>,
}

/// What the front has for others.
#[derive(Debug, Default)]
pub(crate) struct FrontYield {
    pub(crate) inputs: Vec<ClientInput>,
    pub(crate) packets: Vec<(ConnId, Packet)>,
}

#[derive(Debug)]
pub(crate) struct Front {
    conns: BTreeMap<ConnId, Conn>,
    mail: Vec<Outbox>,
    /// The bounds of what a client may ask for, in milliseconds.
    timeouts_ms: (i32, i32),
    /// When the member was in contact with a quorum last.
    confirmed_ms: u64,
    /// Whether every read has to see what was written anywhere before.
    asks_quorum: bool,
}

impl Front {
    pub(crate) fn new(workers: usize, config: &Config) -> Front {
        let tick_ms = config.tick_ms as i32;
        Front {
            conns: BTreeMap::new(),
            mail: (0..workers).map(|_| Outbox::default()).collect(),
            timeouts_ms: (2 * tick_ms, 20 * tick_ms),
            confirmed_ms: 0,
            asks_quorum: config.linearizable_reads,
        }
    }

    pub(crate) fn set_confirmed(&mut self, confirmed_ms: u64) {
        self.confirmed_ms = confirmed_ms;
    }

    pub(crate) fn accept(&mut self, conn: ConnId, id: Id) {
        let ids = vec![id];
        let client = Client::new(conn, SessionId::NONE, &ids);
        let new = Conn {
            phase: Phase::Greeting,
            ids,
            client,
            waiting: 0,
            is_touched: false,
            since_ms: 0,
            contact_max_ms: None,
        };
        self.conns.insert(conn, new);
    }

    /// The connections that have not ended, as far as the member knows.
    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.conns.keys().copied()
    }

    /// The session that a connection serves.
    pub(crate) fn session(&self, conn: ConnId) -> SessionId {
        self.conns.get(&conn).map_or(SessionId::NONE, |conn| conn.client.session)
    }

    pub(crate) fn take(
        &mut self,
        conn: ConnId,
        frame: Frame,
        state: &State,
        now_ms: u64,
        out: &mut FrontYield,
    ) {
        // What is about to be seen has events that come first.
        self.deliver(conn.worker(), now_ms, out);
        if self.is_out_of_contact(conn, now_ms) {
            return self.close(conn, out);
        }
        let Some(known) = self.conns.get_mut(&conn) else { return };
        known.is_touched = true;
        match frame {
            Frame::Greet { session, last_zxid, timeout_ms, may_only_read } => {
                if last_zxid > state.tree().zxid() {
                    // The client has seen more than this member knows: it would go back in time here.
                    return self.close(conn, out);
                }
                known.phase = Phase::Connecting;
                known.since_ms = now_ms;
                known.waiting += 1;
                let timeout_ms = timeout_ms.clamp(self.timeouts_ms.0, self.timeouts_ms.1);
                out.inputs.push(match session {
                    SessionId::NONE => ClientInput::Connect { conn, timeout_ms, may_only_read },
                    session => ClientInput::Resume { conn, session, timeout_ms, may_only_read },
                });
            }
            Frame::Request { xid, op, body } if known.phase == Phase::Serving => {
                known.request(xid, op, body, self.asks_quorum, state, out);
            }
            Frame::Identify { id } => {
                known.ids.push(id);
                known.client = Client::new(conn, known.client.session, &known.ids);
                state.identify(&known.client);
                // A server says no zxid here. This one does, so that its client knows since when events go by it.
                let header = ReplyHeader { xid: Xid::AUTH, zxid: state.tree().zxid(), error: None };
                let mut bytes = Vec::new();
                frame::write(&mut bytes, |bytes| header.encode(bytes));
                out.packets.push((conn, Packet::Frames(bytes)));
            }
            Frame::Hangup => self.leave(conn, out),
            Frame::Request { .. } => {}
        }
    }

    /// Takes what the member has for connections. Returns the workers who had no mail before.
    pub(crate) fn post(&mut self, outboxes: &mut Outboxes) -> Vec<usize> {
        let mut woken = Vec::new();
        for (worker, outbox) in outboxes.iter_mut().filter(|(_, outbox)| !outbox.is_empty()) {
            if self.mail[worker].is_empty() {
                woken.push(worker);
            }
            self.mail[worker].append(outbox);
        }
        woken
    }

    /// Empties a worker's mailbox.
    pub(crate) fn deliver(&mut self, worker: usize, now_ms: u64, out: &mut FrontYield) {
        let mail = std::mem::take(&mut self.mail[worker]);
        for (conn, parcel) in mail.iter() {
            if let (Parcel::Connected { timeout_ms, read_only: false, .. }, Some(known)) =
                (parcel, self.conns.get_mut(&conn))
            {
                known.contact_max_ms = Some(contact_max_ms(timeout_ms));
            }
            if self.is_out_of_contact(conn, now_ms) {
                self.close(conn, out);
                continue;
            }
            let Some(known) = self.conns.get_mut(&conn) else { continue };
            match parcel {
                Parcel::Reply(bytes) => {
                    known.answered();
                    out.packets.push((conn, Packet::Frames(bytes.to_vec())));
                }
                Parcel::Event(bytes) => out.packets.push((conn, Packet::Frames(bytes.to_vec()))),
                Parcel::Connected { session, timeout_ms, read_only } => {
                    known.answered();
                    known.phase = Phase::Serving;
                    known.client = Client::new(conn, session, &known.ids);
                    out.packets.push((conn, Packet::Connected { session, timeout_ms, read_only }));
                }
                Parcel::Expired => {
                    out.packets.push((conn, Packet::Expired));
                    self.close(conn, out);
                }
                Parcel::Close => self.close(conn, out),
            }
        }
    }

    /// Reports the sessions that were heard since this was asked last, and closes the connections of those that may have
    /// been ended elsewhere soon.
    pub(crate) fn touches(&mut self, now_ms: u64, out: &mut FrontYield) {
        let all: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in all.into_iter().filter(|conn| self.is_out_of_contact(*conn, now_ms)).collect::<Vec<_>>() {
            self.close(conn, out);
        }
        for conn in self.conns.values_mut() {
            if std::mem::take(&mut conn.is_touched) && conn.client.session != SessionId::NONE {
                out.inputs.push(ClientInput::Touch { session: conn.client.session });
            }
        }
    }

    /// Whether others may end the session of a connection, and this member would not know.
    fn is_out_of_contact(&self, conn: ConnId, now_ms: u64) -> bool {
        self.conns.get(&conn).is_some_and(|conn| {
            let last_ms = self.confirmed_ms.max(conn.since_ms);
            conn.contact_max_ms.is_some_and(|max_ms| now_ms.saturating_sub(last_ms) > max_ms)
        })
    }

    fn close(&mut self, conn: ConnId, out: &mut FrontYield) {
        out.packets.push((conn, Packet::Closed));
        self.leave(conn, out);
    }

    fn leave(&mut self, conn: ConnId, out: &mut FrontYield) {
        let heard = self.conns.remove(&conn).filter(|conn| conn.is_touched).map(|conn| conn.client.session);
        if let Some(session) = heard.filter(|session| *session != SessionId::NONE) {
            out.inputs.push(ClientInput::Touch { session });
        }
        out.inputs.push(ClientInput::Disconnect { conn });
    }
}

impl Conn {
    fn answered(&mut self) {
        self.waiting = self.waiting.checked_sub(1).expect("a member answers each request once");
    }

    fn request(
        &mut self,
        xid: Xid,
        op: OpCode,
        body: Vec<u8>,
        asks_quorum: bool,
        state: &State,
        out: &mut FrontYield,
    ) {
        let conn = self.client.conn;
        let is_write = op.is_write() && (op == OpCode::Multi || Write::decode(op, &body).is_ok());
        if is_write {
            if op == OpCode::CloseSession {
                self.phase = Phase::Ended;
            }
            let mut command = Vec::new();
            Command::encode(self.client.session, 0, self.client.ids(), op, &body, &mut command);
            self.waiting += 1;
            out.inputs.push(ClientInput::Write { conn, xid, op, command });
        } else if op != OpCode::Ping && (op == OpCode::Sync || asks_quorum || self.waiting > 0) {
            self.waiting += 1;
            out.inputs.push(ClientInput::Read(QueuedRead { client: self.client.clone(), xid, op, body }));
        } else {
            let mut bytes = Vec::new();
            state.answer(&self.client, xid, op, &body, Guess::NONE, &mut bytes);
            out.packets.push((conn, Packet::Frames(bytes)));
        }
    }
}
