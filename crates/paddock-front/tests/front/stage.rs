//! A front with clients whose bytes are written by hand, and an engine that answers when the test says so.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use paddock_front::{ClientBuffers, Counters, Front, Host, Limits, Reached, Settings, WordAnswer};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    ConnectRequest, CreateMode, ErrorCode, EventKind, Extensions, OpCode, Password, ReplyHeader, SessionId,
    WatchEvent, Xid, Zxid, encode, frame,
};
use paddock_state::{ClientInput, ConnId, Connected, Now, Outbox, Outboxes, RequestId, Slot, State};

pub(crate) const FIRST: SessionId = SessionId(0x101);
pub(crate) const SECOND: SessionId = SessionId(0x102);

#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) state: RefCell<State>,
    pub(crate) mail: RefCell<Outbox>,
    pub(crate) now: Cell<Now>,
}

impl Host for Surroundings {
    type StateGuard<'a> = Ref<'a, State>;
    type Stats = ();
    type Span = ();

    fn now(&self) -> Now {
        self.now.get()
    }

    fn lock_state(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    fn take_mail(&self, mail: &mut Outbox) -> bool {
        std::mem::swap(&mut *self.mail.borrow_mut(), mail);
        !mail.is_empty()
    }

    fn confirmed_ms(&self) -> u64 {
        u64::MAX
    }

    fn is_looking(&self) -> bool {
        false
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn nonce(&self) -> u128 {
        0x1234
    }

    fn answer_word(&self, word: [u8; 4], _: &[u8]) -> Option<WordAnswer> {
        match &word {
            b"ruok" => Some(WordAnswer::Text("imok".into())),
            b"dump" => Some(WordAnswer::Later),
            _ => None,
        }
    }
}

pub(crate) struct FrontStage {
    pub(crate) front: Front<Surroundings>,
    pub(crate) around: Surroundings,
    pub(crate) settings: Settings,
    /// Places of the requests that the engine was handed, by connection and number.
    pub(crate) slots: HashMap<(ConnId, Xid), Slot>,
}

/// An engine that answers what it was handed.
pub(crate) struct AnsweringEngine<'a> {
    pub(crate) outboxes: Outboxes,
    pub(crate) slots: &'a HashMap<(ConnId, Xid), Slot>,
}

impl AnsweringEngine<'_> {
    pub(crate) fn request(&self, conn: ConnId, xid: i32) -> RequestId {
        RequestId { xid: Xid(xid), slot: self.slots[&(conn, Xid(xid))] }
    }
}

impl Deref for AnsweringEngine<'_> {
    type Target = Outboxes;

    fn deref(&self) -> &Outboxes {
        &self.outboxes
    }
}

impl DerefMut for AnsweringEngine<'_> {
    fn deref_mut(&mut self) -> &mut Outboxes {
        &mut self.outboxes
    }
}

impl FrontStage {
    pub(crate) fn new(limits: Limits) -> FrontStage {
        FrontStage::with(FrontStage::settings(limits))
    }

    pub(crate) fn settings(limits: Limits) -> Settings {
        Settings { limits, ..Settings::of_zookeeper() }
    }

    pub(crate) fn with(settings: Settings) -> FrontStage {
        FrontStage {
            front: Front::new(settings.clone()),
            around: Surroundings::default(),
            settings,
            slots: HashMap::new(),
        }
    }

    /// A connection that serves a session.
    pub(crate) fn connect(&mut self, number: u64, session: SessionId, extensions: Extensions) -> ConnId {
        let conn = ConnId::new(0, number);
        self.front.accept(conn, ([127, 0, 0, 1], 1).into(), ());
        let request = ConnectRequest {
            protocol_version: extensions.version(),
            extensions,
            last_zxid_seen: Zxid(0),
            timeout_ms: 10_000,
            session,
            password: Some(&Password::of_zookeeper(session).0),
            read_only: Some(false),
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        self.receive(conn, &bytes);
        assert!(matches!(self.inputs()[..], [ClientInput::Resume { .. }]));
        let connected = Connected { session, timeout_ms: 10_000, read_only: false };
        self.engine(|out| out.connected(conn, connected, &Password::of_zookeeper(session)));
        self.front.deliver(&self.around);
        self.sent(conn);
        conn
    }

    pub(crate) fn receive(&mut self, conn: ConnId, bytes: &[u8]) {
        self.front.receive(conn, bytes, self.around.now.get().monotonic_ms, &self.around);
    }

    pub(crate) fn inputs(&mut self) -> Vec<ClientInput> {
        self.note_slots();
        std::mem::take(self.front.inputs())
    }

    pub(crate) fn note_slots(&mut self) {
        for input in self.front.inputs() {
            let (conn, request) = match input {
                ClientInput::Write { conn, request, .. } => (*conn, *request),
                ClientInput::Read(read) => (read.client.conn, read.request),
                _ => continue,
            };
            self.slots.insert((conn, request.xid), request.slot);
        }
    }

    /// The engine leaves something in the mailbox.
    pub(crate) fn engine(&mut self, leave: impl FnOnce(&mut AnsweringEngine<'_>)) {
        self.note_slots();
        let mut engine = AnsweringEngine { outboxes: Outboxes::new(1), slots: &self.slots };
        leave(&mut engine);
        engine.iter_mut().for_each(|(_, outbox)| self.around.mail.borrow_mut().append(outbox));
    }

    pub(crate) fn sent(&mut self, conn: ConnId) -> Vec<u8> {
        let mut sent = Vec::new();
        let all = self.front.send(conn, |bytes| {
            sent.extend_from_slice(bytes);
            Ok::<_, Infallible>(bytes.len())
        });
        let Ok(()) = all;
        sent
    }

    /// Xids and errors of the replies that were sent, of ZooKeeper's dialect.
    pub(crate) fn replies(&mut self, conn: ConnId) -> Vec<(i32, Option<ErrorCode>)> {
        let sent = self.sent(conn);
        let headers =
            frames(&sent).into_iter().map(|frame| ReplyHeader::decode(&mut Reader::new(frame)).unwrap());
        headers.map(|header| (header.xid.0, header.error)).collect()
    }

    pub(crate) fn is_closing(&self, conn: ConnId) -> bool {
        self.front.condition(conn, &self.around).expect("the connection is there").is_closing
    }

    pub(crate) fn takes_input(&self, conn: ConnId) -> bool {
        self.front.condition(conn, &self.around).expect("the connection is there").takes_input
    }

    pub(crate) fn reached(&mut self) -> Vec<Reached> {
        let mut reached = Vec::new();
        self.front.take_reached(&mut reached);
        reached
    }
}

pub(crate) fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((frame, len)) = frame::split(bytes, i32::MAX).expect("a good length") {
        frames.push(frame);
        bytes = &bytes[len..];
    }
    assert!(bytes.is_empty(), "a frame that is not whole");
    frames
}

pub(crate) fn request(xid: i32, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i32(xid);
        out.put_i32(op.code());
        body(out);
    });
    bytes
}

pub(crate) fn write(xid: i32) -> Vec<u8> {
    request(xid, OpCode::Delete, |out| {
        out.put_string("/a");
        out.put_i32(-1);
    })
}

pub(crate) fn read(xid: i32) -> Vec<u8> {
    request(xid, OpCode::Exists, |out| {
        out.put_string("/");
        out.put_bool(false);
    })
}

pub(crate) fn reply(out: &mut AnsweringEngine<'_>, conn: ConnId, xid: i32) {
    let request = out.request(conn, xid);
    out.write_reply(conn, request, (Zxid(7), None), |_| {});
}

pub(crate) fn event(out: &mut Outboxes, conn: ConnId) {
    out.event(WatchEvent { kind: EventKind::NodeCreated, path: "/b", zxid: Zxid(7) }).tell(conn);
}

/// Limits of a front whose connections share `bytes` bytes, and hold little below 100.
pub(crate) fn counters(buffers: &Arc<ClientBuffers>) -> Counters {
    Counters { buffers: buffers.clone(), ..Counters::default() }
}

/// A create of a znode with `bytes` bytes.
pub(crate) fn create(xid: i32, bytes: usize) -> Vec<u8> {
    request(xid, OpCode::Create, |out| {
        encode::create_open(out, "/new", Some(&vec![7; bytes]), CreateMode::Persistent);
    })
}

/// A request that shows user and password.
pub(crate) fn auth(user_and_password: &[u8]) -> Vec<u8> {
    request(Xid::AUTH.0, OpCode::Auth, |out| {
        out.put_i32(0);
        out.put_string("digest");
        out.put_buffer(Some(user_and_password));
    })
}
