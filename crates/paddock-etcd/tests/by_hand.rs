//! One engine, whose calls are answered by the test, when it likes.

use paddock_etcd::{
    Answer, Call, CallId, Effects, Engine, EngineOptions, Input, KeyEvent, Keys, Limits, Operation,
    Transaction, WatchMessage,
};
use paddock_proto::jute::Writer;
use paddock_proto::{Acl, IdList, OpCode, SessionId, Xid};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, Parcel, State};
use paddock_tree::Command;

const WRITE_TIMEOUT_MS: u64 = 10_000;

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
}

impl Front {
    /// One that follows an empty etcd, with a client.
    fn new() -> Front {
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
        let mut front = Front {
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
        };
        front.tick();
        front.answer_others();
        front.tick();
        front.watched(WatchMessage::Opened);
        let (conn, timeout_ms) = (front.conn, 60_000);
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
                    Parcel::Reply(_) => self.replies += 1,
                    Parcel::Event(_) | Parcel::Expired => panic!("nobody waits for {parcel:?}"),
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
            (id, Call::Transact(transaction)) => Some((id, transaction)),
            (_, call) => panic!("no transaction: {call:?}"),
        }
    }

    fn carry_out(&mut self, (id, transaction): (CallId, Transaction)) {
        self.revision += 1;
        let revision = self.revision;
        self.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
        let events = transaction.operations.into_iter().map(|operation| match operation {
            Operation::Put { key, value, .. } => KeyEvent { key, value: Some(value), mod_revision: revision },
            Operation::Delete { key } => KeyEvent { key, value: None, mod_revision: revision },
        });
        let events = events.collect();
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
        let mut body = Vec::new();
        body.put_string(path);
        body.put_buffer(Some(b""));
        body.put_count(1);
        Acl::open().encode(&mut body);
        body.put_i32(0);
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
