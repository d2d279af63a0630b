//! The clients of a world: requests that they make, and mail that they read.

use paddock_forward::Input;
use paddock_proto::{AddWatchMode, ErrorCode, ReplyHeader, SessionId, WatchEvent, WatcherKind, Xid, frame};
use paddock_state::{Client as Asker, ClientInput, ConnId, Parcel, QueuedRead, RequestId};
use paddock_tree::Guess;

use super::client::ClientPlace;
use super::cutover::Cutover;
use super::source::DIRECT;
use super::world::{CLIENTS, MirrorWorld, SHARED, own_directory};
use crate::checks::{Checked, Violation, ensure};
use crate::etcd::client::{Ask, Look, OpenRequest, Owned};
use crate::etcd::watching::{self, Letter};

/// Requests of a client under way, at most.
const WAITING_MAX: usize = 6;

impl MirrorWorld {
    /// A client does something.
    pub(super) fn act(&mut self) -> Checked {
        if self.chance.one_in(16) {
            return self.end_lingering();
        }
        let at = self.chance.index(CLIENTS);
        if self.clients[at].place == ClientPlace::Nowhere {
            return if self.chance.one_in(4) { self.connect(at) } else { Ok(()) };
        }
        // Clients at the source come back soon, also with sessions of which the mirror has not heard.
        let is_at_source = self.clients[at].place == ClientPlace::Source;
        if self.chance.one_in(if is_at_source { 4 } else { self.weather.disconnect }) {
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
            16..=18 => match self.clients[at].owned.pop() {
                Some(Owned { path, .. }) => Ask::Delete { path },
                None => Ask::Sync,
            },
            19..=21 => match self.clients[at].owned.last().cloned() {
                Some(Owned { path, number }) => Ask::Read { path, number },
                None => Ask::Sync,
            },
            22..=27 => match self.clients[at].last_set {
                Some(number) => Ask::Read { path: own_directory(at), number },
                None => Ask::Set { path: own_directory(at) },
            },
            28 if self.chance.one_in(4) => Ask::Close,
            40.. => self.wish_watch(),
            _ => Ask::Create { directory, is_ephemeral: false },
        }
    }

    fn wish_watch(&mut self) -> Ask {
        let path = self.path_to_watch();
        match self.chance.below(16) {
            0..=3 => Ask::Watch { path, how: Look::Exists },
            4..=6 => Ask::Watch { path, how: Look::Data },
            7..=9 => Ask::Watch { path, how: Look::Children },
            10..=11 => Ask::AddWatch { path, mode: AddWatchMode::Persistent },
            12..=13 => Ask::AddWatch { path, mode: AddWatchMode::PersistentRecursive },
            _ => {
                let kinds = [WatcherKind::Children, WatcherKind::Data, WatcherKind::Any];
                Ask::RemoveWatches { path, kind: *self.chance.pick(&kinds) }
            }
        }
    }

    /// A directory, a znode in one, or one that is about to be created there.
    fn path_to_watch(&mut self) -> String {
        let client = self.chance.index(CLIENTS);
        let directory = if self.chance.one_in(2) { own_directory(client) } else { SHARED.to_owned() };
        match self.chance.below(3) {
            0 => directory,
            1 => self.checks.any_child(&directory, &mut self.chance).unwrap_or(directory),
            _ => {
                let number = self.checks.children_created(&directory) + self.chance.below(4) as i32;
                format!("{directory}/q-{number:010}")
            }
        }
    }

    pub(super) fn ask(&mut self, at: usize, ask: Ask) -> Checked {
        let (asked_at, asked_ms, number) = (self.checks.newest, self.now_ms(), self.next_request);
        let client = &mut self.clients[at];
        let (Some(session), true) = (client.session, client.is_connected) else { return Ok(()) };
        let is_closing = client.waiting.iter().any(|waiting| waiting.ask == Ask::Close);
        if client.waiting.len() >= WAITING_MAX || is_closing {
            return Ok(());
        }
        let is_alone = client.waiting.is_empty();
        let place = client.place;
        // At the source a client writes, and does nothing while that would be lost.
        let may_ask = place != ClientPlace::Source || ask.is_write() && self.cutover == Cutover::NotYet;
        if !may_ask {
            return Ok(());
        }
        self.next_request += 1;
        if matches!(ask, Ask::Set { .. }) {
            client.last_set = Some(number);
        }
        client.waiting.push_back(OpenRequest { number, ask: ask.clone(), asked_at, asked_ms });
        self.note(format_args!("client {at}, session {session}: request {number}: {ask:?}"));
        if ask.is_write() {
            self.checks.asked(session, number, &ask);
        }
        let (xid, op) = (Xid(number as i32), ask.op());
        match place {
            ClientPlace::Mirror(conn) if ask.is_write() => {
                let command = ask.command(session, number);
                self.input(Input::Client(ClientInput::Write {
                    conn,
                    request: RequestId::first(xid),
                    op,
                    command: command.into(),
                }))
            }
            ClientPlace::Mirror(conn) => {
                let body = ask.body(number);
                let read = QueuedRead::new(Asker::new(conn, session, &[]), RequestId::first(xid), op, body);
                if is_alone && ask != Ask::Sync {
                    return self.read_at_once(at, &read);
                }
                self.input(Input::Client(ClientInput::Read(read)))
            }
            ClientPlace::Source => self.write_directly(at, session, &ask, number),
            ClientPlace::Nowhere => unreachable!("the client is connected"),
        }
    }

    fn write_directly(&mut self, at: usize, session: SessionId, ask: &Ask, number: u64) -> Checked {
        let (op, body) = (ask.op(), ask.body(number));
        let transaction = self.write_at_source(DIRECT, (session, number as i32), op, &body)?;
        let (xid, zxid) = (Xid(number as i32), transaction.zxid);
        let mut reply = Vec::new();
        match &transaction.answer {
            Ok(body) => frame::write(&mut reply, |out| {
                ReplyHeader::ok(xid, zxid).encode(out);
                out.extend_from_slice(body);
            }),
            Err(ErrorCode::SessionMoved | ErrorCode::SessionExpired) => {
                self.clients[at].disconnected();
                return Ok(());
            }
            Err(error) => {
                frame::write(&mut reply, |out| ReplyHeader::refused(xid, zxid, *error).encode(out));
            }
        }
        self.take_reply(at, &reply)?;
        if *ask == Ask::Close {
            self.clients[at].disconnected();
        }
        Ok(())
    }

    /// Nothing of the connection waits for the engine, so that its front reads the state.
    fn read_at_once(&mut self, at: usize, read: &QueuedRead) -> Checked {
        let mut out = Vec::new();
        self.state.answer(&read.client, read.request.xid, read.op, &read.body, Guess::NONE, &mut out);
        self.take_reply(at, &out)
    }

    pub(super) fn take_mail(&mut self) -> Checked {
        let mut mail = Vec::new();
        for (_, outbox) in self.out.iter_mut() {
            mail.extend(outbox.iter().map(|(conn, parcel)| (conn, Mail::of(parcel))));
            outbox.clear();
        }
        for (conn, mail) in mail {
            let reader = self.clients.iter().position(|client| client.place == ClientPlace::Mirror(conn));
            match reader {
                Some(at) => self.open(at, conn, mail)?,
                None => self.drop_mail(conn, &mail)?,
            }
        }
        Ok(())
    }

    /// Mail without a reader is dropped. A connection that is closed is gone.
    fn drop_mail(&mut self, conn: ConnId, mail: &Mail) -> Checked {
        let lingers = self.lingering.iter().position(|gone| *gone == conn);
        let Some(place) = lingers.filter(|_| matches!(mail, Mail::Close | Mail::Expired)) else {
            return Ok(());
        };
        self.lingering.swap_remove(place);
        self.input(Input::Client(ClientInput::Disconnect { conn }))
    }

    fn open(&mut self, at: usize, conn: ConnId, mail: Mail) -> Checked {
        match mail {
            Mail::Reply(frame) => return self.take_reply(at, &frame),
            Mail::Event(frame) => return self.take_events(at, &frame).map(drop),
            Mail::Connected(session) => return self.connected(at, conn, session),
            Mail::Expired => self.expired(at)?,
            Mail::Close => {}
        }
        self.note(format_args!("client {at} is told to go: {mail:?}"));
        self.closed(at, conn)
    }

    fn take_events<'a>(&mut self, at: usize, frames: &'a [u8]) -> Checked<Letter<'a>> {
        let letter = Letter::read(at, frames)?;
        for WatchEvent { kind, path, zxid } in &letter.events {
            self.note(format_args!("client {at} is told {kind:?} of {path} at {zxid}"));
            self.clients[at].watching.tell(&self.checks.changes, *zxid, *kind, path, &[])?;
        }
        Ok(letter)
    }

    fn take_reply(&mut self, at: usize, frames: &[u8]) -> Checked {
        let Some(reply) = self.take_events(at, frames)?.reply else {
            let what = format!("client {at} gets a reply without a frame");
            return Err(Violation { checker: "protocol", what });
        };
        self.note(format_args!("client {at}: {reply:?}"));
        let client = &mut self.clients[at];
        let waiting = client.waiting.pop_front().filter(|waiting| waiting.number as i32 == reply.xid);
        let Some(waiting) = waiting else {
            let what =
                format!("client {at} gets a reply to {}, and waits for {:?}", reply.xid, client.waiting);
            return Err(Violation { checker: "session order", what });
        };
        ensure!(
            reply.zxid >= client.zxid,
            "session order",
            "client {at} gets {reply:?} after one with zxid {}",
            client.zxid
        );
        client.zxid = reply.zxid;
        let tree = match client.place {
            ClientPlace::Source => &self.source.tree,
            _ => self.state.tree(),
        };
        watching::show(&self.checks.changes, &mut client.watching, &waiting.ask, &reply)?;
        self.checks.replied(&waiting, &reply, tree)?;
        match (&waiting.ask, reply.error) {
            (Ask::Close, _) => client.ended(),
            (Ask::Create { is_ephemeral: false, .. }, 0) => {
                client.acknowledged += 1;
                let path = reply.path().unwrap_or_default().to_owned();
                client.owned.push(Owned { path, number: waiting.number });
            }
            (ask, 0) => client.acknowledged += u64::from(ask.is_write()),
            _ => {}
        }
        Ok(())
    }
}

/// A parcel for a client.
#[derive(Debug)]
enum Mail {
    Reply(Vec<u8>),
    Connected(SessionId),
    Expired,
    Close,
    Event(Vec<u8>),
}

impl Mail {
    fn of(parcel: Parcel<'_>) -> Mail {
        match parcel {
            Parcel::Reply(_, frame) => Mail::Reply(frame.to_vec()),
            Parcel::Connected(connected, _) => Mail::Connected(connected.session),
            Parcel::Expired => Mail::Expired,
            Parcel::Close => Mail::Close,
            Parcel::Event(frame) | Parcel::SharedEvent(frame) => Mail::Event(frame.to_vec()),
        }
    }
}
