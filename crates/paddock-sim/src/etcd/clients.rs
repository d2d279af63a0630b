//! The clients of a world: requests that they make, and mail that they read.

use paddock_etcd::Input;
use paddock_proto::{Password, SessionId, Xid};
use paddock_state::{Client as Asker, ClientInput, ConnId, Parcel, QueuedRead, RequestId};
use paddock_tree::Guess;

use super::client::QUOTA_EXCEEDED;
use super::client::{Ask, OpenRequest, Owned};
use super::scarcity::check_refusal;
use super::world::{CLIENTS, SHARED, World, own_directory};
use crate::checks::{Checked, Violation, ensure};

/// Requests of a client under way, at most.
const WAITING_MAX: usize = 6;

impl World {
    /// A client does something.
    pub(super) fn act(&mut self) -> Checked {
        if self.chance.one_in(self.weather.stranger) {
            return self.trouble_sessions();
        }
        let at = self.chance.index(CLIENTS);
        if self.clients[at].conn.is_none() {
            let connects = self.chance.one_in(self.weather.connect);
            return if connects { self.connect(at) } else { Ok(()) };
        }
        if self.chance.one_in(self.weather.disconnect) {
            return self.disconnect(at);
        }
        let ask = self.wish(at);
        self.ask(at, ask)
    }

    fn wish(&mut self, at: usize) -> Ask {
        let directory = if self.chance.one_in(3) { own_directory(at) } else { SHARED.to_owned() };
        match self.chance.below(52) {
            0..=5 => Ask::Sync,
            6..=9 => Ask::Create { directory, is_ephemeral: true },
            10..=15 => Ask::Set { path: own_directory(at) },
            16..=19 => match self.clients[at].owned.pop() {
                Some(Owned { path, .. }) => Ask::Delete { path },
                None => Ask::Sync,
            },
            20..=24 => match self.clients[at].owned.last().cloned() {
                Some(Owned { path, number }) => Ask::Read { path, number },
                None => Ask::Sync,
            },
            25 if self.chance.one_in(4) => Ask::Close,
            40.. => self.wish_watch(),
            _ => Ask::Create { directory, is_ephemeral: self.chance.one_in(self.weather.hoarding) },
        }
    }

    pub(super) fn create(&mut self, at: usize) -> Checked {
        self.ask(at, Ask::Create { directory: SHARED.to_owned(), is_ephemeral: false })
    }

    fn disconnect(&mut self, at: usize) -> Checked {
        self.note(format_args!("client {at} goes"));
        let front = self.clients[at].front;
        match self.clients[at].disconnected() {
            Some(conn) => self.input(front, Input::Client(ClientInput::Disconnect { conn })),
            None => Ok(()),
        }
    }

    pub(super) fn ask(&mut self, at: usize, ask: Ask) -> Checked {
        let now_ms = self.now_ms();
        let client = &mut self.clients[at];
        let (Some(conn), Some(session), true) = (client.conn, client.session, client.is_connected) else {
            return Ok(());
        };
        if client.waiting.len() >= WAITING_MAX
            || client.waiting.iter().any(|waiting| waiting.ask == Ask::Close)
        {
            return Ok(());
        }
        let (number, front) = (self.next_request, client.front);
        self.next_request += 1;
        let is_alone = client.waiting.is_empty();
        let (asked_at, asked_ms) = (self.checks.newest(), now_ms);
        client.waiting.push_back(OpenRequest { number, ask: ask.clone(), asked_at, asked_ms });
        self.note(format_args!("client {at}, session {session}: request {number}: {ask:?}"));
        let (xid, op) = (Xid(number as i32), ask.op());
        if ask.is_write() {
            self.checks.asked(session, conn, number, &ask);
            let command = ask.command(session, number);
            return self.input(
                front,
                Input::Client(ClientInput::Write {
                    conn,
                    request: RequestId::first(xid),
                    op,
                    command: command.into(),
                }),
            );
        }
        let read =
            QueuedRead::new(Asker::new(conn, session, &[]), RequestId::first(xid), op, ask.body(number));
        if is_alone && ask != Ask::Sync {
            return self.read_at_once(at, &read);
        }
        self.input(front, Input::Client(ClientInput::Read(read)))
    }

    /// Nothing of the connection waits for the engine, so that its front reads the state.
    fn read_at_once(&mut self, at: usize, read: &QueuedRead) -> Checked {
        let mut out = Vec::new();
        let state = &self.fronts[self.clients[at].front].state;
        state.answer(&read.client, read.request.xid, read.op, &read.body, Guess::NONE, &mut out);
        self.take_reply(at, &out)
    }

    pub(super) fn take_mail(&mut self, front: usize) -> Checked {
        let mut mail = Vec::new();
        for (_, outbox) in self.fronts[front].out.iter_mut() {
            mail.extend(outbox.iter().map(|(conn, parcel)| (conn, Mail::of(parcel))));
            outbox.clear();
        }
        for (conn, mail) in mail {
            if let Some(at) = self.clients.iter().position(|client| client.conn == Some(conn)) {
                self.open(at, conn, mail)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, at: usize, conn: ConnId, mail: Mail) -> Checked {
        match mail {
            Mail::Reply(frame) => return self.take_reply(at, &frame),
            Mail::Connected(session, password) => return self.connected(at, conn, session, password),
            Mail::Expired => self.clients[at].ended(),
            Mail::Close => {}
            Mail::Event(frame) => return self.take_events(at, &frame).map(drop),
        }
        self.note(format_args!("client {at} is told to go: {mail:?}"));
        self.closed(at, conn)
    }

    /// A front end has closed a connection.
    fn closed(&mut self, at: usize, conn: ConnId) -> Checked {
        let client = &mut self.clients[at];
        let front = client.front;
        client.disconnected();
        self.input(front, Input::Client(ClientInput::Disconnect { conn }))
    }

    fn take_reply(&mut self, at: usize, frames: &[u8]) -> Checked {
        let Some(reply) = self.take_events(at, frames)? else {
            let what = format!("client {at} gets a reply without a frame");
            return Err(Violation { checker: "protocol", what });
        };
        self.note(format_args!("client {at}: {reply:?}"));
        let client = &mut self.clients[at];
        let xid = reply.xid;
        let waiting = client.waiting.pop_front().filter(|waiting| waiting.number as i32 == xid);
        let Some(waiting) = waiting else {
            let what = format!("client {at} gets a reply to {xid}, and waits for {:?}", client.waiting);
            return Err(Violation { checker: "session order", what });
        };
        ensure!(
            reply.zxid >= client.zxid,
            "session order",
            "client {at} gets {reply:?} after one with zxid {}",
            client.zxid
        );
        client.zxid = reply.zxid;
        self.show(at, &waiting.ask, &reply)?;
        let client = &mut self.clients[at];
        check_refusal(&waiting, &reply, &self.store)?;
        self.checks.replied(&waiting, &reply, &self.fronts[client.front].state)?;
        match (&waiting.ask, reply.error) {
            (Ask::Close, _) => client.ended(),
            (Ask::Create { is_ephemeral: false, .. }, 0) => {
                client.acknowledged += 1;
                let path = reply.path().unwrap_or_default().to_owned();
                client.owned.push(Owned { path, number: waiting.number });
            }
            (ask, 0) => client.acknowledged += u64::from(ask.is_write()),
            (_, QUOTA_EXCEEDED) => client.refused_for_space += 1,
            _ => {}
        }
        Ok(())
    }
}

/// A parcel for a client.
#[derive(Debug)]
enum Mail {
    Reply(Vec<u8>),
    Connected(SessionId, Password),
    Expired,
    Close,
    Event(Vec<u8>),
}

impl Mail {
    fn of(parcel: Parcel<'_>) -> Mail {
        match parcel {
            Parcel::Reply(_, frame) => Mail::Reply(frame.to_vec()),
            Parcel::Connected(connected, password) => Mail::Connected(connected.session, password),
            Parcel::Expired => Mail::Expired,
            Parcel::Close => Mail::Close,
            Parcel::Event(frame) | Parcel::SharedEvent(frame) => Mail::Event(frame.to_vec()),
        }
    }
}
