//! One engine, whose calls are answered by the test, when it likes.

use paddock_etcd::{
    Answer, Call, CallError, CallId, Effects, Engine, EngineOptions, Input, KeyEvent, Keys, Limits,
    Operation, Pending, Tag, Transaction, WatchMessage, encode_znode,
};
use paddock_proto::jute::Writer;
use paddock_proto::{Acl, ErrorCode, IdList, OpCode, SessionId, Xid};
use paddock_state::{Client, ClientInput, ConnId, Now, Outboxes, Parcel, QueuedRead, State};
use paddock_tree::{Command, Znode, ZnodeKind};

const WRITE_TIMEOUT_MS: u64 = 10_000;
const SESSION_TIMEOUT_MS: i32 = 60_000;
/// Flags of a create.
const PERSISTENT: i32 = 0;
const EPHEMERAL: i32 = 1;

struct Front {
    engine: Engine,
    state: State,
    out: Outboxes,
    calls: Vec<(CallId, Call)>,
    generation: u64,
    revision: i64,
    now_ms: u64,
    conn: ConnId,
    session: SessionId,
    next_xid: i32,
    is_closed: bool,
    replies: usize,
    /// Error codes of the replies that have one.
    refusals: Vec<i32>,
}

impl Front {
    /// One that has not read etcd's keys yet.
    fn start() -> Front {
        let options = EngineOptions {
            keys: Keys::new("/p"),
            front: 1 << 32,
            limits: Limits::default(),
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
            next_xid: 1,
            is_closed: false,
            replies: 0,
            refusals: Vec::new(),
        }
    }

    /// One that follows an empty etcd, with a client.
    fn new() -> Front {
        let mut front = Front::start();
        front.tick();
        front.answer_others();
        front.tick();
        front.watched(WatchMessage::Opened);
        let (conn, timeout_ms) = (front.conn, SESSION_TIMEOUT_MS);
        front.input(Input::Client(ClientInput::Connect { conn, timeout_ms, may_only_read: false }));
        front.answer_others();
        let opening = front.sent().expect("the session is written");
        front.carry_out(opening);
        assert!(front.session != SessionId::NONE, "the client has its session");
        front
    }

    fn input(&mut self, input: Input) {
        let now = Now { monotonic_ms: self.now_ms, wall_ms: self.now_ms as i64 };
        let mut effects = Effects::default();
        let Front { engine, state, out, .. } = self;
        engine.step(now, input, state, out, &mut effects);
        engine.work(now, state, out, &mut effects);
        self.calls.append(&mut effects.calls);
        if let Some(order) = effects.watch {
            self.generation = order.generation;
        }
        for (_, outbox) in self.out.iter_mut() {
            for (_, parcel) in outbox.iter() {
                match parcel {
                    Parcel::Connected { session, .. } => self.session = session,
                    Parcel::Close => self.is_closed = true,
                    Parcel::Reply(frame) => {
                        self.replies += 1;
                        let error = i32::from_be_bytes(frame[16..20].try_into().expect("four bytes"));
                        self.refusals.extend((error != 0).then_some(error));
                    }
                    Parcel::Event(_) | Parcel::SharedEvent(_) | Parcel::Expired => {
                        panic!("nobody waits for {parcel:?}")
                    }
                }
            }
            outbox.clear();
        }
    }

    fn tick(&mut self) {
        self.input(Input::Tick);
    }

    fn watched(&mut self, message: WatchMessage) {
        self.input(Input::Watch { generation: self.generation, message });
    }

    /// Lets time pass, while the engine ticks and etcd answers nothing but its questions about the newest revision.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / Engine::TICK_MS {
            self.now_ms += Engine::TICK_MS;
            self.tick();
            self.answer_others();
        }
    }

    /// Answers what is no transaction.
    fn answer_others(&mut self) {
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

    /// The transaction that is with etcd, if there is one.
    fn sent(&mut self) -> Option<(CallId, Transaction)> {
        assert!(self.calls.len() <= 1, "more than one is under way: {:?}", self.calls);
        match self.calls.pop()? {
            (id, Call::Transact(transaction)) => Some((id, (*transaction).clone())),
            (_, call) => panic!("no transaction: {call:?}"),
        }
    }

    fn carry_out(&mut self, (id, transaction): (CallId, Transaction)) {
        self.revision += 1;
        let revision = self.revision;
        self.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
        let events = events_of(transaction, revision);
        self.watched(WatchMessage::Events { revision, events });
    }

    fn write(&mut self, op: OpCode, body: &[u8]) {
        let mut command = Vec::new();
        Command::encode(self.session, 0, IdList::NONE, op, body, &mut command);
        let (conn, xid) = (self.conn, Xid(self.next_xid));
        self.next_xid += 1;
        self.input(Input::Client(ClientInput::Write { conn, xid, op, command }));
    }

    fn create(&mut self, path: &str) {
        self.create_as(path, PERSISTENT);
    }

    fn create_as(&mut self, path: &str, flags: i32) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_buffer(Some(b""));
        body.put_count(1);
        Acl::open().encode(&mut body);
        body.put_i32(flags);
        self.write(OpCode::Create, &body);
    }

    fn set(&mut self, path: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_buffer(Some(b"x"));
        body.put_i32(-1);
        self.write(OpCode::SetData, &body);
    }
}

/// The page that is asked for: its call, the first key and the number of keys.
fn asked_page(front: &mut Front) -> (CallId, Vec<u8>, i64) {
    front.now_ms += 100;
    front.tick();
    match front.calls.pop() {
        Some((id, Call::Read { start, limit, .. })) => (id, start, limit),
        other => panic!("no page is asked for, but {other:?}"),
    }
}

/// etcd's answer has to come in time, and large values may need more than that.
#[test]
fn a_page_that_does_not_come_is_asked_for_with_fewer_keys() {
    let mut front = Front::start();
    let (id, first, limit) = asked_page(&mut front);
    front.input(Input::Answer(id, Err(CallError::Lost("too late".to_owned()))));
    let (id, again, fewer) = asked_page(&mut front);
    assert_eq!((again, fewer), (first.clone(), limit / 2));
    // It comes, and is large: the next one has as many bytes as a page should have.
    let key = Keys::new("/p").znode("/a");
    let znode = Znode {
        data: Some(vec![0; 1 << 20]),
        acl: [Acl::open()].into(),
        kind: ZnodeKind::Persistent,
        czxid: 1,
        mzxid: 1,
        pzxid: 1,
        ctime_ms: 0,
        mtime_ms: 0,
        version: 0,
        children_created: 0,
        aversion: 0,
    };
    let value = encode_znode(&znode, Pending(i64::MAX), Tag::default());
    let pairs = vec![KeyEvent { key, value: Some(value), mod_revision: 2 }];
    front.input(Input::Answer(id, Ok(Answer::Page { revision: 2, pairs, is_last: false })));
    let (_, next, limit) = asked_page(&mut front);
    assert!(next > first);
    assert_eq!(limit, 3, "four of them are above 4 MiB");
}

/// Events by which the watch stream tells of a transaction.
fn events_of(transaction: Transaction, revision: i64) -> Vec<KeyEvent> {
    let event = |operation| match operation {
        Operation::Put { key, value, .. } => KeyEvent { key, value: Some(value), mod_revision: revision },
        Operation::Delete { key } => KeyEvent { key, value: None, mod_revision: revision },
    };
    transaction.operations.into_iter().map(event).collect()
}

/// Writes about one znode are carried out one after the other. The last of many waits for longer than etcd may take for one.
#[test]
fn a_queue_that_moves_is_not_too_late() {
    let mut front = Front::new();
    front.create("/a");
    let create = front.sent().expect("the create is sent");
    front.carry_out(create);
    (0..6).for_each(|_| front.set("/a"));
    for done in 1..=6 {
        front.pass(WRITE_TIMEOUT_MS / 2);
        let next = front.sent().expect("a set is under way");
        front.carry_out(next);
        assert_eq!((front.replies, front.is_closed), (1 + done, false));
    }
}

#[test]
fn a_transaction_that_etcd_does_not_answer_ends_the_connection() {
    let mut front = Front::new();
    front.create("/a");
    front.pass(WRITE_TIMEOUT_MS / 2);
    assert!(!front.is_closed);
    front.pass(WRITE_TIMEOUT_MS);
    assert!(front.is_closed, "the client still waits");
}

/// etcd's answer says in which revision the transaction was carried out. If that is the next one, its contents are known.
#[test]
fn a_transaction_that_follows_on_the_state_does_not_wait_for_the_watch_stream() {
    let mut front = Front::new();
    front.create("/a");
    let (id, transaction) = front.sent().expect("the create is sent");
    front.revision += 1;
    let revision = front.revision;
    front.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
    assert_eq!((front.replies, front.state.tree().zxid().0), (1, revision));
    // The stream brings it again.
    let events = events_of(transaction, revision);
    front.watched(WatchMessage::Events { revision, events });
    assert_eq!((front.replies, front.state.tree().zxid().0), (1, revision));
}

#[test]
fn a_transaction_behind_one_of_somebody_else_waits_for_the_watch_stream() {
    let mut front = Front::new();
    front.create("/a");
    let (id, transaction) = front.sent().expect("the create is sent");
    front.revision += 2;
    let revision = front.revision;
    front.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
    assert_eq!(front.replies, 0);
    // The other one was about a key outside the prefix: the stream does not tell of it.
    let events = events_of(transaction, revision);
    front.watched(WatchMessage::Events { revision, events });
    assert_eq!(front.replies, 1);
}

#[test]
fn without_space_writes_are_refused_and_ends_of_sessions_wait() {
    let mut front = Front::new();
    front.create_as("/mine", EPHEMERAL);
    let create = front.sent().expect("the create is sent");
    front.carry_out(create);
    front.set("/mine");
    let (id, _) = front.sent().expect("the set is sent");
    front.input(Input::Answer(id, Err(CallError::NoSpace)));
    assert_eq!((front.replies, front.is_closed), (2, false));
    assert_eq!(front.refusals, [ErrorCode::QuotaExceeded.code()]);

    // The session's lease is over. To remove its znode, the parent has to be written, too.
    front.pass(2000);
    front.revision += 1;
    let (revision, key) = (front.revision, Keys::new("/p").session(front.session));
    let events = vec![KeyEvent { key, value: None, mod_revision: revision }];
    front.watched(WatchMessage::Events { revision, events });
    let (id, _) = front.sent().expect("the end of the session is sent");
    front.input(Input::Answer(id, Err(CallError::NoSpace)));
    assert!(front.sent().is_none(), "what was refused is tried again at once");
    front.pass(500);
    assert!(front.sent().is_none());
    front.pass(600);
    let end = front.sent().expect("it is tried again");
    front.carry_out(end);
    assert!(front.state.tree().znode("/mine").is_none());
}

/// etcd looks at its space first and at compares never, so it refuses again what it has carried out.
#[test]
fn a_write_whose_first_call_got_no_answer_is_not_refused_for_space() {
    let mut front = Front::new();
    front.create("/a");
    let (id, _) = front.sent().expect("the create is sent");
    front.input(Input::Answer(id, Err(CallError::Lost("by the test".to_owned()))));
    front.pass(Engine::TICK_MS);
    let (id, _) = front.sent().expect("it is sent again");
    front.input(Input::Answer(id, Err(CallError::NoSpace)));
    assert_eq!((front.replies, front.is_closed), (0, true));
}

/// The newest revision is that of a key outside the prefix, of which the watch stream does not tell.
#[test]
fn a_sync_that_takes_a_mark_is_refused_without_space() {
    let mut front = Front::new();
    front.pass(5000);
    front.revision += 1;
    let (client, xid) = (Client::new(front.conn, front.session, &[]), Xid(7));
    let read = QueuedRead { client, xid, op: OpCode::Sync, body: b"\0\0\0\x01/".to_vec() };
    front.input(Input::Client(ClientInput::Read(read)));
    front.answer_others();
    let mut marks = 0;
    for _ in 0..3000 / Engine::TICK_MS {
        front.pass(Engine::TICK_MS);
        if let Some((id, _)) = front.sent() {
            marks += 1;
            front.input(Input::Answer(id, Err(CallError::NoSpace)));
        }
    }
    assert_eq!((front.refusals.clone(), front.is_closed), (vec![ErrorCode::QuotaExceeded.code()], false));
    assert_eq!(marks, 2, "a mark is tried once a second");
}
