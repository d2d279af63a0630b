//! A front end in the hands of a test.

use std::collections::BTreeMap;

use paddock_etcd::{
    Answer, Call, CallError, CallId, Effects, Engine, EngineOptions, Input, KeyEvent, Keys, Limits,
    Operation, Transaction, WatchMessage,
};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, IdList, OpCode, ReplyHeader, SessionId, SessionSecret, WatchEvent, Xid, Zxid, frame,
};
use paddock_state::{
    Client, ClientInput, ConnId, Now, Outboxes, Parcel, ProvenIds, QueuedRead, RequestId, Resumption, State,
};
use paddock_tree::Command;

pub(crate) const WRITE_TIMEOUT_MS: u64 = 10_000;
pub(crate) const SESSION_TIMEOUT_MS: i32 = 60_000;
/// Flags of a create.
pub(crate) const PERSISTENT: i32 = 0;
pub(crate) const EPHEMERAL: i32 = 1;

pub(crate) struct Front {
    pub(crate) engine: Engine,
    pub(crate) state: State,
    out: Outboxes,
    pub(crate) calls: Vec<(CallId, Call)>,
    pub(crate) generation: u64,
    pub(crate) revision: i64,
    pub(crate) now_ms: u64,
    /// The client that there is from the beginning.
    pub(crate) conn: ConnId,
    pub(crate) session: SessionId,
    pub(crate) is_closed: bool,
    /// Sessions of all connections that have one.
    pub(crate) sessions: BTreeMap<ConnId, SessionId>,
    /// Connections that were closed.
    pub(crate) closed: Vec<ConnId>,
    /// Connections whose sessions have expired.
    pub(crate) expired: Vec<ConnId>,
    next_xid: i32,
    pub(crate) replies: usize,
    /// Error codes of the replies that have one.
    pub(crate) refusals: Vec<i32>,
    /// Paths of which watchers were told.
    pub(crate) told: Vec<String>,
}

impl Front {
    /// A front end that has not read etcd's keys yet.
    pub(crate) fn start() -> Front {
        Front::start_as(1)
    }

    /// A front end with a number and a secret of its own.
    pub(crate) fn start_as(number: u8) -> Front {
        let options = EngineOptions {
            keys: Keys::new("/p"),
            front: u64::from(number) << 32,
            limits: Limits::default(),
            secret: SessionSecret([number; SessionSecret::BYTES]),
            tick_ms: 2000,
            write_timeout_ms: WRITE_TIMEOUT_MS,
            stale_reads: false,
            garbage_interval_ms: 3_600_000,
            garbage_max: 10,
        };
        Front {
            engine: Engine::new(options, Now { monotonic_ms: 0, wall_ms: 0 }),
            state: State::default(),
            out: Outboxes::new(1),
            calls: Vec::new(),
            generation: 0,
            revision: 1,
            now_ms: 0,
            conn: ConnId::new(0, 1),
            session: SessionId::NONE,
            is_closed: false,
            sessions: BTreeMap::new(),
            closed: Vec::new(),
            expired: Vec::new(),
            next_xid: 1,
            replies: 0,
            refusals: Vec::new(),
            told: Vec::new(),
        }
    }

    /// A front end that follows an empty etcd, with a client.
    pub(crate) fn new() -> Front {
        let mut front = Front::start();
        front.follow();
        let secret = front.sent().expect("the secret is written");
        front.carry_out(secret);
        front.session = front.connect(front.conn);
        front
    }

    /// Reads an empty etcd, and opens a watch stream.
    pub(crate) fn follow(&mut self) {
        self.tick();
        self.answer_others();
        self.tick();
        self.watched(WatchMessage::Opened);
    }

    /// Begins a session on a connection.
    pub(crate) fn connect(&mut self, conn: ConnId) -> SessionId {
        self.ask_to_connect(conn);
        self.answer_others();
        let opening = self.sent().expect("the session is written");
        self.carry_out(opening);
        self.sessions[&conn]
    }

    pub(crate) fn ask_to_connect(&mut self, conn: ConnId) {
        let timeout_ms = SESSION_TIMEOUT_MS;
        self.input(Input::Client(ClientInput::Connect {
            conn,
            timeout_ms,
            may_only_read: false,
            ids: ProvenIds::default(),
        }));
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.inputs([input]);
    }

    /// Inputs that come together.
    pub(crate) fn inputs(&mut self, inputs: impl IntoIterator<Item = Input>) {
        let now = Now { monotonic_ms: self.now_ms, wall_ms: self.now_ms as i64 };
        let mut effects = Effects::default();
        let Front { engine, state, out, .. } = self;
        inputs.into_iter().for_each(|input| engine.step(now, input, state, out, &mut effects));
        engine.work(now, state, out, &mut effects);
        engine.assert_sound();
        self.calls.append(&mut effects.calls);
        if let Some(order) = effects.watch {
            self.generation = order.generation;
        }
        for (_, outbox) in self.out.iter_mut() {
            for (conn, parcel) in outbox.iter() {
                match parcel {
                    Parcel::Connected(connected, _) => drop(self.sessions.insert(conn, connected.session)),
                    Parcel::Close => {
                        self.closed.push(conn);
                        self.is_closed |= conn == self.conn;
                    }
                    Parcel::Reply(_, mut frames) => {
                        // Events may stand in front of a reply.
                        while let Ok(Some((body, len))) = frame::split(frames, i32::MAX) {
                            let mut reader = Reader::new(body);
                            let header = ReplyHeader::decode(&mut reader).expect("a header");
                            if header.xid == Xid::NOTIFICATION {
                                let event = WatchEvent::decode(header.zxid, reader.rest());
                                self.told.push(event.expect("an event").path.to_owned());
                            } else {
                                let error = i32::from_be_bytes(body[12..16].try_into().expect("four bytes"));
                                self.replies += 1;
                                self.refusals.extend((error != 0).then_some(error));
                            }
                            frames = &frames[len..];
                        }
                    }
                    Parcel::Event(frame) | Parcel::SharedEvent(frame) => {
                        let event = WatchEvent::decode(Zxid(0), &frame[20..]).expect("an event");
                        self.told.push(event.path.to_owned());
                    }
                    Parcel::Expired => self.expired.push(conn),
                }
            }
            outbox.clear();
        }
    }

    pub(crate) fn tick(&mut self) {
        self.input(Input::Tick);
    }

    pub(crate) fn watched(&mut self, message: WatchMessage) {
        self.input(Input::Watch { generation: self.generation, message });
    }

    /// Lets time pass, while the engine ticks and etcd answers nothing but its questions about the newest revision.
    pub(crate) fn pass(&mut self, ms: u64) {
        for _ in 0..ms / Engine::TICK_MS {
            self.now_ms += Engine::TICK_MS;
            self.tick();
            self.answer_others();
        }
    }

    /// Answers what is no transaction.
    pub(crate) fn answer_others(&mut self) {
        let is_transaction = |(_, call): &(CallId, Call)| matches!(call, Call::Transact(_));
        let (transactions, others): (Vec<_>, Vec<_>) = self.calls.drain(..).partition(is_transaction);
        self.calls = transactions;
        for (id, call) in others {
            let revision = self.revision;
            let answer = match call {
                Call::Read { .. } => Answer::Page { revision, pairs: Vec::new(), is_last: true },
                Call::Grant { .. } => Answer::Granted,
                Call::Revoke { .. } => Answer::Revoked,
                Call::Probe { .. } => Answer::Probed { revision },
                Call::Transact(_) => unreachable!("transactions are kept"),
            };
            self.input(Input::Answer(id, Ok(answer)));
        }
    }

    /// A client with the right password wants its session on a connection.
    pub(crate) fn resume(&mut self, conn: ConnId, resumption: Resumption) {
        self.input(Input::Client(ClientInput::Resume { conn, resumption, may_only_read: false }));
    }

    pub(crate) fn disconnect(&mut self, conn: ConnId) {
        self.input(Input::Client(ClientInput::Disconnect { conn }));
    }

    /// The lease that is asked for.
    pub(crate) fn asked_lease(&mut self) -> (CallId, i64) {
        let is_grant = |(_, call): &(CallId, Call)| matches!(call, Call::Grant { .. });
        let at = self.calls.iter().position(is_grant).expect("a lease is asked for");
        match self.calls.remove(at) {
            (id, Call::Grant { lease, .. }) => (id, lease),
            (_, call) => panic!("no grant: {call:?}"),
        }
    }

    /// The transaction that is with etcd, if there is one.
    pub(crate) fn sent(&mut self) -> Option<(CallId, Transaction)> {
        assert!(self.calls.len() <= 1, "more than one is under way: {:?}", self.calls);
        self.sent_next()
    }

    /// One of the transactions that are with etcd.
    pub(crate) fn sent_next(&mut self) -> Option<(CallId, Transaction)> {
        match self.calls.pop()? {
            (id, Call::Transact(transaction)) => Some((id, (*transaction).clone())),
            (_, call) => panic!("no transaction: {call:?}"),
        }
    }

    pub(crate) fn fail(&mut self, id: CallId, error: CallError) {
        self.input(Input::Answer(id, Err(error)));
    }

    pub(crate) fn carry_out(&mut self, (id, transaction): (CallId, Transaction)) {
        self.revision += i64::from(!transaction.operations.is_empty());
        let revision = self.revision;
        self.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
        let events = events_of(transaction, revision);
        self.watched(WatchMessage::Events { revision, events });
    }

    /// A request of the client that there is from the beginning.
    pub(crate) fn write(&mut self, op: OpCode, body: &[u8]) {
        let write = self.write_of(self.conn, self.session, op, body);
        self.input(write);
    }

    pub(crate) fn write_of(&mut self, conn: ConnId, session: SessionId, op: OpCode, body: &[u8]) -> Input {
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, op, body, &mut command);
        let xid = self.next_xid();
        Input::Client(ClientInput::Write {
            conn,
            request: RequestId::first(xid),
            op,
            command: command.into(),
        })
    }

    fn next_xid(&mut self) -> Xid {
        self.next_xid += 1;
        Xid(self.next_xid)
    }

    pub(crate) fn read_of(&mut self, conn: ConnId, op: OpCode, body: Vec<u8>) {
        let client = Client::new(conn, self.sessions[&conn], &[]);
        let read = QueuedRead::new(client, RequestId::first(self.next_xid()), op, body);
        self.input(Input::Client(ClientInput::Read(read)));
    }

    pub(crate) fn create(&mut self, path: &str) {
        self.create_as(path, PERSISTENT);
    }

    pub(crate) fn create_as(&mut self, path: &str, flags: i32) {
        self.write(OpCode::Create, &create_body(path, flags));
    }

    pub(crate) fn set(&mut self, path: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_buffer(Some(b"x"));
        body.put_i32(-1);
        self.write(OpCode::SetData, &body);
    }
}

pub(crate) fn create_body(path: &str, flags: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_string(path);
    body.put_buffer(Some(b""));
    body.put_count(1);
    Acl::open().encode(&mut body);
    body.put_i32(flags);
    body
}

/// Events by which the watch stream tells of a transaction.
pub(crate) fn events_of(transaction: Transaction, revision: i64) -> Vec<KeyEvent> {
    let event = |operation| match operation {
        Operation::Put { key, value, .. } => KeyEvent { key, value: Some(value), mod_revision: revision },
        Operation::Delete { key } => KeyEvent { key, value: None, mod_revision: revision },
    };
    transaction.operations.into_iter().map(event).collect()
}
