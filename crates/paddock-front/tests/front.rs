//! A front with clients whose bytes are written by hand, and an engine that answers when the test says so.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use paddock_front::{
    ClientBuffers, ConnectRate, ConnectThrottle, Counters, DigestAlgorithm, Front, Host, LimitHit, Limits,
    MemoryLimit, OutstandingLimit, Reached, SaslUsers, Settings, WordAnswer,
};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, ConnectRequest, CreateMode, ErrorCode, EventKind, Extensions, Id, IdList, OpCode, Password, Perms,
    ReplyHeader, SessionId, SetWatches, WatchEvent, Xid, Zxid, encode, frame,
};
use paddock_state::{
    Client, ClientInput, ConnId, Connected, Now, Outbox, Outboxes, QueuedRead, RequestId, Slot, State,
};
use paddock_tree::{Command, Guess};

const FIRST: SessionId = SessionId(0x101);
const SECOND: SessionId = SessionId(0x102);

#[derive(Debug, Default)]
struct Surroundings {
    state: RefCell<State>,
    mail: RefCell<Outbox>,
    now: Cell<Now>,
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

struct FrontStage {
    front: Front<Surroundings>,
    around: Surroundings,
    settings: Settings,
    /// Places of the requests that the engine was handed, by connection and number.
    slots: HashMap<(ConnId, Xid), Slot>,
}

/// An engine that answers what it was handed.
struct AnsweringEngine<'a> {
    outboxes: Outboxes,
    slots: &'a HashMap<(ConnId, Xid), Slot>,
}

impl AnsweringEngine<'_> {
    fn request(&self, conn: ConnId, xid: i32) -> RequestId {
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
    fn new(limits: Limits) -> FrontStage {
        FrontStage::with(FrontStage::settings(limits))
    }

    fn settings(limits: Limits) -> Settings {
        Settings {
            frame_bytes_max: 1 << 20,
            command_bytes_max: 1 << 20,
            dialect: None,
            session_timeout_ms_min: 4000,
            session_timeout_ms_max: 40_000,
            digest_algorithm: DigestAlgorithm::Sha1,
            super_digest: None,
            sasl: None,
            kerberos: None,
            has_certificates: false,
            required_schemes: Vec::new(),
            linearizable_reads: false,
            enforces_quotas: false,
            audit: None,
            may_reconfig: false,
            limits,
        }
    }

    fn with(settings: Settings) -> FrontStage {
        FrontStage {
            front: Front::new(settings.clone()),
            around: Surroundings::default(),
            settings,
            slots: HashMap::new(),
        }
    }

    /// A connection that serves a session.
    fn connect(&mut self, number: u64, session: SessionId, extensions: Extensions) -> ConnId {
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

    fn receive(&mut self, conn: ConnId, bytes: &[u8]) {
        self.front.receive(conn, bytes, self.around.now.get().monotonic_ms, &self.around);
    }

    fn inputs(&mut self) -> Vec<ClientInput> {
        self.note_slots();
        std::mem::take(self.front.inputs())
    }

    fn note_slots(&mut self) {
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
    fn engine(&mut self, leave: impl FnOnce(&mut AnsweringEngine<'_>)) {
        self.note_slots();
        let mut engine = AnsweringEngine { outboxes: Outboxes::new(1), slots: &self.slots };
        leave(&mut engine);
        engine.iter_mut().for_each(|(_, outbox)| self.around.mail.borrow_mut().append(outbox));
    }

    fn sent(&mut self, conn: ConnId) -> Vec<u8> {
        let mut sent = Vec::new();
        let all = self.front.send(conn, |bytes| {
            sent.extend_from_slice(bytes);
            Ok::<_, Infallible>(bytes.len())
        });
        let Ok(()) = all;
        sent
    }

    /// Xids and errors of the replies that were sent, of ZooKeeper's dialect.
    fn replies(&mut self, conn: ConnId) -> Vec<(i32, Option<ErrorCode>)> {
        let sent = self.sent(conn);
        let headers =
            frames(&sent).into_iter().map(|frame| ReplyHeader::decode(&mut Reader::new(frame)).unwrap());
        headers.map(|header| (header.xid.0, header.error)).collect()
    }

    fn is_closing(&self, conn: ConnId) -> bool {
        self.front.condition(conn, &self.around).expect("the connection is there").is_closing
    }

    fn takes_input(&self, conn: ConnId) -> bool {
        self.front.condition(conn, &self.around).expect("the connection is there").takes_input
    }

    fn reached(&mut self) -> Vec<Reached> {
        let mut reached = Vec::new();
        self.front.take_reached(&mut reached);
        reached
    }
}

fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((frame, len)) = frame::split(bytes, i32::MAX).expect("a good length") {
        frames.push(frame);
        bytes = &bytes[len..];
    }
    assert!(bytes.is_empty(), "a frame that is not whole");
    frames
}

fn request(xid: i32, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i32(xid);
        out.put_i32(op.code());
        body(out);
    });
    bytes
}

fn write(xid: i32) -> Vec<u8> {
    request(xid, OpCode::Delete, |out| {
        out.put_string("/a");
        out.put_i32(-1);
    })
}

fn read(xid: i32) -> Vec<u8> {
    request(xid, OpCode::Exists, |out| {
        out.put_string("/");
        out.put_bool(false);
    })
}

fn reply(out: &mut AnsweringEngine<'_>, conn: ConnId, xid: i32) {
    let request = out.request(conn, xid);
    out.write_reply(conn, request, (Zxid(7), None), |_| {});
}

fn event(out: &mut Outboxes, conn: ConnId) {
    out.event(WatchEvent { kind: EventKind::NodeCreated, path: "/b", zxid: Zxid(7) }).tell(conn);
}

#[test]
fn replies_that_come_in_another_order_are_sent_in_that_of_the_requests() {
    let mut stage = FrontStage::new(Limits::default());
    let [conn, other] =
        [FIRST, SECOND].map(|session| stage.connect(session.0 as u64, session, Extensions::default()));
    stage.receive(conn, &[write(1), write(2), read(3), write(4)].concat());
    stage.receive(other, &write(1));
    stage.engine(|out| {
        reply(out, conn, 3);
        reply(out, conn, 2);
        event(out, conn);
        reply(out, other, 1);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None)], "an event is not kept for a reply");
    assert_eq!(stage.replies(other), [(1, None)], "a connection does not wait for another one");
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)]);
    stage.receive(conn, &read(5));
    stage.engine(|out| {
        reply(out, conn, 5);
        reply(out, conn, 4);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(4, None), (5, None)]);
    stage.receive(conn, &read(6));
    assert_eq!(stage.replies(conn), [(6, None)], "nothing waits any more");
}

#[test]
fn early_replies_of_a_connection_that_closes_are_not_sent() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), write(2)].concat());
    stage.engine(|out| {
        reply(out, conn, 2);
        out.close(conn);
    });
    stage.front.deliver(&stage.around);
    assert!(stage.replies(conn).is_empty() && stage.is_closing(conn));
}

#[test]
fn a_read_waits_behind_a_write_and_a_ping_does_not() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    let ping = request(Xid::PING.0, OpCode::Ping, |_| {});
    stage.receive(conn, &[write(1), read(2), ping].concat());
    let inputs = stage.inputs();
    assert!(matches!(inputs[..], [ClientInput::Write { .. }, ClientInput::Read(_)]), "{inputs:?}");
    assert_eq!(stage.replies(conn), [(Xid::PING.0, None)]);
    stage.engine(|out| {
        reply(out, conn, 1);
        reply(out, conn, 2);
    });
    stage.front.deliver(&stage.around);
    stage.receive(conn, &read(3));
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)]);
    assert!(stage.inputs().is_empty(), "nothing waits, so the read is answered from the state");
}

#[test]
fn frames_come_in_pieces_of_any_size() {
    for size in [1, 3, 7, 100] {
        let mut stage = FrontStage::new(Limits::default());
        let conn = stage.connect(1, FIRST, Extensions::default());
        let bytes = [read(1), read(2), read(3)].concat();
        bytes.chunks(size).for_each(|piece| stage.receive(conn, piece));
        assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)], "pieces of {size} bytes");
    }
}

#[test]
fn events_stand_before_the_answer_that_shows_their_change() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.engine(|out| event(out, conn));
    stage.receive(conn, &read(1));
    assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None), (1, None)]);
}

#[test]
fn a_connection_with_many_events_is_flushed_once() {
    let mut stage = FrontStage::new(Limits::default());
    let conns = [1, 2].map(|number| stage.connect(number, FIRST, Extensions::default()));
    stage.reached();
    stage.engine(|out| {
        for _ in 0..1000 {
            let mut mail = out.event(WatchEvent { kind: EventKind::NodeCreated, path: "/b", zxid: Zxid(7) });
            conns.iter().for_each(|conn| mail.tell(*conn));
        }
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.reached().iter().map(|reached| reached.conn).collect::<Vec<_>>(), conns);
    for conn in conns {
        assert_eq!(stage.replies(conn).len(), 1000);
    }
}

#[test]
fn nothing_is_answered_behind_the_end_of_a_connection() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    // The end lies in the mailbox when a read is taken: its watches are gone, so it must not see anything newer.
    stage.engine(|out| out.close(conn));
    stage.receive(conn, &read(1));
    assert_eq!(stage.replies(conn), []);
    assert!(stage.is_closing(conn));

    let conn = stage.connect(2, SECOND, Extensions::default());
    stage.receive(conn, &[write(1), write(2)].concat());
    stage.engine(|out| {
        reply(out, conn, 1);
        out.close(conn);
        reply(out, conn, 2);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None)]);
}

#[test]
fn a_request_that_ends_its_connection_is_refused_behind_earlier_ones() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), request(2, OpCode::Check, |_| {}), read(3)].concat());
    assert_eq!(stage.inputs().len(), 1, "nothing behind it is taken");
    assert!(!stage.is_closing(conn) && !stage.takes_input(conn));
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None), (2, Some(ErrorCode::Unimplemented))]);
    assert!(stage.is_closing(conn));
}

#[test]
fn a_connection_that_lets_too_much_wait_is_not_read_from() {
    let limits = Limits { waiting_max: 2, ..Limits::default() };
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.reached();
    stage.receive(conn, &[write(1), write(2), write(3)].concat());
    assert_eq!(stage.inputs().len(), 2);
    assert!(!stage.takes_input(conn));
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(stage.reached(), [Reached { conn, has_changed: true }], "the worker has to look again");
    assert!(stage.takes_input(conn));
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 1);
}

#[test]
fn a_connection_that_does_not_read_its_replies_is_not_read_from() {
    let limits = Limits { unsent_bytes_max: 100, ..Limits::default() };
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[read(1), read(2), read(3), read(4)].concat());
    assert!(!stage.takes_input(conn));
    assert_eq!(stage.replies(conn), [(1, None), (2, None)]);
    assert!(stage.takes_input(conn));
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.replies(conn), [(3, None), (4, None)]);
}

#[test]
fn a_turn_ends_behind_many_bytes_of_replies() {
    let mut stage = FrontStage::new(Limits { turn_bytes_max: 100, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    let has_more =
        |stage: &FrontStage| stage.front.condition(conn, &stage.around).expect("it is there").has_more;
    stage.receive(conn, &[read(1), read(2), read(3), read(4)].concat());
    assert!(stage.takes_input(conn) && has_more(&stage), "others have their turn");
    stage.front.resume(conn, 0, &stage.around);
    assert!(!has_more(&stage));
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None), (4, None)]);
}

/// A setWatches for znodes that are not there.
fn watches_again(paths: &[&str]) -> Vec<u8> {
    let watches = SetWatches { exist: paths.to_vec(), ..SetWatches::default() };
    request(Xid::SET_WATCHES.0, OpCode::SetWatches, |out| encode::set_watches(out, &watches))
}

#[test]
fn others_have_their_turn_while_many_watches_are_set() {
    let mut stage = FrontStage::new(Limits { watches_per_turn: 2, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    let has_more =
        |stage: &FrontStage| stage.front.condition(conn, &stage.around).expect("it is there").has_more;
    let watch_count = |stage: &FrontStage| stage.around.state.borrow().watch_count();
    stage.receive(conn, &[watches_again(&["/a", "/b", "/c", "/d", "/e"]), write(1)].concat());
    assert_eq!(watch_count(&stage), 2);
    assert!(stage.takes_input(conn) && has_more(&stage), "others have their turn");
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(watch_count(&stage), 4);
    assert!(
        stage.replies(conn).is_empty() && stage.inputs().is_empty(),
        "it is not answered before all are set"
    );
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!((watch_count(&stage), stage.replies(conn)), (5, vec![(Xid::SET_WATCHES.0, None)]));
    stage.front.resume(conn, 0, &stage.around);
    assert!(!has_more(&stage));
    assert_eq!(stage.inputs().len(), 1, "what is behind it has waited");
}

#[test]
fn many_watches_are_not_set_before_the_writes_in_front_of_them() {
    let mut stage = FrontStage::new(Limits { watches_per_turn: 1, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), watches_again(&["/a", "/b"])].concat());
    assert_eq!(stage.around.state.borrow().watch_count(), 0);
    assert!(!stage.takes_input(conn), "there is nothing to be done now");
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert!(stage.reached().iter().any(|reached| reached.has_changed), "its worker looks again");
    stage.front.resume(conn, 0, &stage.around);
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.around.state.borrow().watch_count(), 2);
    assert_eq!(stage.replies(conn), [(1, None), (Xid::SET_WATCHES.0, None)]);
}

/// A command of the service, applied to the state.
fn apply(stage: &FrontStage, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
    let (mut bytes, mut command) = (Vec::new(), Vec::new());
    body(&mut bytes);
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, &bytes, &mut command);
    let mut outboxes = Outboxes::new(1);
    stage.around.state.borrow_mut().apply(&Command::decode(&command).unwrap(), &mut outboxes);
    outboxes.iter_mut().for_each(|(_, outbox)| stage.around.mail.borrow_mut().append(outbox));
}

fn create_znode(stage: &FrontStage, path: &str) {
    apply(stage, OpCode::Create, |out| encode::create_open(out, path, None, CreateMode::Persistent));
}

/// A front that copies 1000 children in a turn, and a znode `/a` with 2500.
fn stage_with_long_list() -> FrontStage {
    let stage = FrontStage::new(Limits { children_per_turn: 1000, ..Limits::default() });
    create_znode(&stage, "/a");
    (0..2500).for_each(|number| create_znode(&stage, &format!("/a/child-{number}")));
    stage
}

fn list(xid: i32, op: OpCode, watch: bool) -> Vec<u8> {
    request(xid, op, |out| encode::path_and_watch(out, "/a", watch))
}

/// The frame that answers a list in one step.
fn answered_at_once(stage: &FrontStage, xid: i32, op: OpCode) -> Vec<u8> {
    let (mut body, mut out) = (Vec::new(), Vec::new());
    encode::path_and_watch(&mut body, "/a", false);
    let client = Client::new(ConnId::new(0, 99), FIRST, &[]);
    stage.around.state.borrow().answer(&client, Xid(xid), op, &body, Guess::NONE, &mut out);
    out
}

#[test]
fn others_have_their_turn_while_a_long_list_is_copied() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    for op in [OpCode::GetChildren, OpCode::GetChildren2] {
        stage.receive(conn, &[list(1, op, true), read(2)].concat());
        for _ in 0..2 {
            let condition = stage.front.condition(conn, &stage.around).expect("it is there");
            assert!(condition.takes_input && condition.has_more, "others have their turn");
            assert!(stage.replies(conn).is_empty() && stage.around.state.borrow().watch_count() == 0);
            stage.front.resume(conn, 0, &stage.around);
        }
        assert!(stage.sent(conn) == answered_at_once(&stage, 1, op));
        assert_eq!(stage.around.state.borrow().watch_count(), 1);
        stage.front.resume(conn, 0, &stage.around);
        assert_eq!(stage.replies(conn), [(2, None)]);
        // The event of the watch, which is set by the next list again.
        create_znode(&stage, &format!("/a/another-{op:?}"));
        stage.front.deliver(&stage.around);
        assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None)]);
    }
}

#[test]
fn a_long_list_is_copied_again_when_it_has_changed_and_in_one_step_when_it_always_does() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    create_znode(&stage, "/a/new");
    // What was copied is thrown away, and 4000 are copied at a time.
    stage.front.resume(conn, 0, &stage.around);
    assert!(stage.replies(conn).is_empty());
    stage.front.resume(conn, 0, &stage.around);
    assert!(stage.sent(conn) == answered_at_once(&stage, 1, OpCode::GetChildren));

    // Longer than what is copied at a time in the fourth try.
    (0..62_000).for_each(|number| create_znode(&stage, &format!("/a/more-{number}")));
    stage.receive(conn, &list(2, OpCode::GetChildren, false));
    let mut turns = 0;
    let sent = loop {
        let sent = stage.sent(conn);
        if !sent.is_empty() {
            break sent;
        }
        create_znode(&stage, &format!("/a/at-{turns}"));
        stage.front.resume(conn, 0, &stage.around);
        turns += 1;
    };
    assert!(sent == answered_at_once(&stage, 2, OpCode::GetChildren));
    assert_eq!(turns, 8, "each try has two turns: one copies, one sees that the list has changed");
}

#[test]
fn a_long_list_waits_for_the_writes_in_front_of_it_and_keeps_those_behind_it_waiting() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), list(2, OpCode::GetChildren, false), write(3)].concat());
    assert_eq!(stage.inputs().len(), 1);
    assert!(!stage.takes_input(conn), "there is nothing to be done now");
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert!(stage.reached().iter().any(|reached| reached.has_changed), "its worker looks again");
    for _ in 0..3 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert_eq!(stage.replies(conn), [(1, None), (2, None)]);
    assert!(stage.inputs().is_empty());
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 1);
}

/// A connection that ends, or holds too much for too long, takes its list with it.
#[test]
fn memory_of_a_list_that_is_being_copied_is_counted_and_let_go() {
    let buffers = Arc::new(ClientBuffers::new(1 << 20));
    let limits = Limits {
        little_bytes: 100,
        children_per_turn: 1000,
        counters: counters(&buffers),
        ..Limits::default()
    };
    let mut stage = FrontStage { front: Front::new(FrontStage::settings(limits)), ..stage_with_long_list() };
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    assert!(buffers.held() > 10_000, "{} bytes", buffers.held());
    stage.front.leave(conn, &stage.around);
    assert_eq!(buffers.held(), 0);
}

#[test]
fn a_client_that_may_not_read_a_list_any_more_when_it_is_copied_is_refused() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, true));
    apply(&stage, OpCode::SetAcl, |out| {
        out.put_string("/a");
        encode::put_acl(out, &[Acl { perms: Perms::ALL, id: Id::new("digest", "ann:x") }]);
        out.put_i32(-1);
    });
    for _ in 0..2 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert_eq!(stage.replies(conn), [(1, Some(ErrorCode::NoAuth))]);
    assert_eq!(stage.around.state.borrow().watch_count(), 0);
}

#[test]
fn a_list_whose_tree_is_replaced_while_it_is_copied_is_copied_again() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    // Everything in it has the same place, and another name.
    let other = FrontStage::new(Limits::default());
    create_znode(&other, "/a");
    (0..2500).for_each(|number| create_znode(&other, &format!("/a/other-{number}")));
    let other = other.around.state.take().into_tree();
    stage.around.state.borrow_mut().replace(other);
    for _ in 0..2 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert!(stage.sent(conn) == answered_at_once(&stage, 1, OpCode::GetChildren));
}

#[test]
fn a_list_is_not_answered_behind_the_end_of_its_connection() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, true));
    stage.engine(|out| out.close(conn));
    for _ in 0..3 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert!(stage.is_closing(conn) && stage.replies(conn).is_empty());
    assert_eq!(stage.around.state.borrow().watch_count(), 0);
}

#[test]
fn a_long_list_asks_the_quorum_where_every_read_does() {
    let limits = Limits { children_per_turn: 1000, ..Limits::default() };
    let settings = Settings { linearizable_reads: true, ..FrontStage::settings(limits) };
    let mut stage = FrontStage { front: Front::new(settings), ..stage_with_long_list() };
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    assert!(matches!(stage.inputs()[..], [ClientInput::Read(_)]));
    assert!(stage.replies(conn).is_empty());
}

/// Limits of a front whose connections share `bytes` bytes, and hold little below 100.
fn counters(buffers: &Arc<ClientBuffers>) -> Counters {
    Counters { buffers: buffers.clone(), ..Counters::default() }
}

fn limits_of(bytes: usize) -> Limits {
    let buffers = Arc::new(ClientBuffers::new(bytes));
    Limits { little_bytes: 100, first_reply_bytes: 1, counters: counters(&buffers), ..Limits::default() }
}

#[test]
fn what_a_connection_may_hold_is_a_share_of_what_others_leave() {
    let limits = limits_of(64_000);
    let buffers = limits.counters.buffers.clone();
    let mut stage = FrontStage::new(limits);
    let mut held = vec![0];
    for number in 1..=40 {
        let conn = stage.connect(number, SessionId(0x100 + number as i64), Extensions::default());
        while stage.takes_input(conn) {
            stage.receive(conn, &read(1));
        }
        held.push(buffers.held());
    }
    // When nothing is left, each may still hold little.
    assert!(held.is_sorted() && (40_000..64_000 + 40 * 200).contains(&held[40]), "{held:?}");
    let shares: Vec<usize> = held.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(shares[0] > 8 * shares[39], "{shares:?}");
    // Who asks for little does not notice.
    let other = stage.connect(50, SECOND, Extensions::default());
    stage.receive(other, &read(1));
    assert_eq!(stage.replies(other), [(1, None)]);
    for number in 1..=40 {
        stage.front.leave(ConnId::new(0, number), &stage.around);
    }
    assert_eq!(buffers.held(), 0, "connections that are gone hold nothing");
}

#[test]
fn who_holds_memory_and_does_not_read_is_closed_when_little_is_left() {
    let limits = limits_of(2000);
    let buffers = limits.counters.buffers.clone();
    let mut stage = FrontStage::new(limits);
    let reads: Vec<u8> = (1..=200).flat_map(read).collect();
    let mut conns = Vec::new();
    while !conns.len().is_multiple_of(40) || conns.is_empty() {
        let number = conns.len() as u64 + 1;
        let conn = stage.connect(number, SessionId(0x100 + number as i64), Extensions::default());
        stage.receive(conn, &reads);
        conns.push(conn);
    }
    assert!(buffers.held() > 1500, "{} bytes are held", buffers.held());
    let mut pass = |ms: i64| {
        stage
            .around
            .now
            .set(Now { monotonic_ms: stage.around.now.get().monotonic_ms + ms as u64, wall_ms: 0 });
        stage.front.look_after_memory(&stage.around);
        conns.iter().filter(|conn| stage.is_closing(**conn)).count()
    };
    assert_eq!(pass(250), 0);
    assert_eq!(pass(1900), 0, "they may take their time");
    assert_eq!(pass(250), 40);
    assert_eq!(buffers.held(), 0);
}

#[test]
fn one_connections_dialect_is_not_anothers() {
    let mut stage = FrontStage::new(Limits::default());
    let wide = Extensions { wide_xids: true, ..Extensions::default() };
    let clickhouse = stage.connect(1, FIRST, wide);
    let zookeeper = stage.connect(2, SECOND, Extensions::default());
    stage.receive(zookeeper, &read(5));
    assert_eq!(stage.replies(zookeeper), [(5, None)]);
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i64(0x1_0000_0005);
        out.extend_from_slice(&read(5)[8..]);
    });
    stage.receive(clickhouse, &bytes);
    let sent = stage.sent(clickhouse);
    assert_eq!(Reader::new(frames(&sent)[0]).i64(), Ok(0x1_0000_0005));
}

#[test]
fn an_auth_that_overtakes_a_request_does_not_take_its_wide_xid() {
    let mut stage = FrontStage::new(Limits::default());
    let wide = Extensions { wide_xids: true, ..Extensions::default() };
    let conn = stage.connect(1, FIRST, wide);
    let widen = |narrow: Vec<u8>, xid: i64| {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            out.put_i64(xid);
            out.extend_from_slice(&narrow[8..]);
        });
        bytes
    };
    let auth = request(0, OpCode::Auth, |out| encode::auth(out, "digest", b"ann:apples"));
    let bytes = [widen(write(9), 0x1_0000_0009), widen(auth, Xid::AUTH.0.into())].concat();
    stage.receive(conn, &bytes);
    stage.engine(|out| reply(out, conn, 9));
    stage.front.deliver(&stage.around);
    let sent = stage.sent(conn);
    let xids: Vec<i64> = frames(&sent).into_iter().map(|frame| Reader::new(frame).i64().unwrap()).collect();
    assert_eq!(xids, [Xid::AUTH.0.into(), 0x1_0000_0009]);
}

#[test]
fn a_reply_for_a_connection_that_is_gone_reaches_nobody() {
    let mut stage = FrontStage::new(Limits::default());
    let (gone, here) =
        (stage.connect(1, FIRST, Extensions::default()), stage.connect(2, SECOND, Extensions::default()));
    stage.receive(gone, &write(1));
    stage.receive(here, &write(2));
    assert_eq!(stage.front.outstanding(), 2);
    stage.front.leave(gone, &stage.around);
    assert_eq!(stage.front.outstanding(), 1);
    stage.engine(|out| {
        reply(out, gone, 1);
        reply(out, here, 2);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(here), [(2, None)]);
    let inputs = stage.inputs();
    let last = &inputs[inputs.len() - 2..];
    assert!(
        matches!(last, [ClientInput::Touch { session: FIRST }, ClientInput::Disconnect { .. }]),
        "{last:?}"
    );
}

#[test]
fn a_four_letter_word_is_answered_in_the_place_of_a_greeting() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = ConnId::new(0, 1);
    stage.front.accept(conn, ([127, 0, 0, 1], 1).into(), ());
    stage.receive(conn, b"ru");
    assert!(!stage.is_closing(conn));
    stage.receive(conn, b"ok");
    assert_eq!(stage.sent(conn), b"imok");
    assert!(stage.is_closing(conn));
}

fn sasl(xid: i32, token: &[u8]) -> Vec<u8> {
    request(xid, OpCode::Sasl, |out| out.put_buffer(Some(token)))
}

/// Xid, error and token of each reply to a token of SASL.
fn sasl_replies(stage: &mut FrontStage, conn: ConnId) -> Vec<(i32, Option<ErrorCode>, Option<String>)> {
    let sent = stage.sent(conn);
    let replies = frames(&sent).into_iter().map(|frame| {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::decode(&mut reader).unwrap();
        let token = reader.buffer().unwrap().map(|token| String::from_utf8(token.to_vec()).unwrap());
        (header.xid.0, header.error, token)
    });
    replies.collect()
}

fn with_sasl(keeps_failed_clients: bool, required: &[&str]) -> FrontStage {
    let passwords = [("bob".to_owned(), "secret".to_owned())].into();
    let users = SaslUsers { passwords, super_users: vec![], keeps_failed_clients };
    FrontStage::with(Settings {
        sasl: Some(Arc::new(users)),
        required_schemes: required.iter().map(|scheme| (*scheme).to_owned()).collect(),
        ..FrontStage::settings(Limits::default())
    })
}

#[test]
fn a_client_that_cannot_answer_the_challenge_is_refused_at_once() {
    for (required, error) in
        [(&[][..], ErrorCode::AuthFailed), (&["sasl"], ErrorCode::SessionClosedRequireSaslAuth)]
    {
        let mut stage = with_sasl(false, required);
        let conn = stage.connect(1, FIRST, Extensions::default());
        stage.receive(conn, &[sasl(1, b""), sasl(2, b"username=\"bob\""), read(3)].concat());
        let replies = sasl_replies(&mut stage, conn);
        let challenge = replies[0].2.as_deref().unwrap();
        assert!(challenge.contains("nonce=\"00000000000000000000000000001234\""), "{challenge}");
        assert_eq!(replies[1..], [(2, Some(error), None)], "nothing behind it is answered");
        assert!(stage.is_closing(conn));
    }
}

#[test]
fn a_client_that_cannot_show_who_it_is_is_kept_where_that_is_wanted() {
    let mut stage = with_sasl(true, &[]);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[sasl(1, b""), sasl(2, b"x"), read(3)].concat());
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)]);
    assert!(!stage.is_closing(conn));
}

#[test]
fn a_member_without_sasl_answers_with_no_token() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &sasl(1, b""));
    assert_eq!(sasl_replies(&mut stage, conn), [(1, None, None)]);
    assert!(!stage.is_closing(conn));
}

#[test]
fn who_has_to_show_who_it_is_may_ask_for_nothing_before() {
    let ping = request(Xid::PING.0, OpCode::Ping, |_| {});
    for (xid, asked) in [(Xid::PING.0, ping), (1, read(1)), (1, write(1))] {
        let mut stage = with_sasl(false, &["sasl", "digest"]);
        let conn = stage.connect(1, FIRST, Extensions::default());
        stage.receive(conn, &asked);
        assert_eq!(stage.replies(conn), [(xid, Some(ErrorCode::SessionClosedRequireSaslAuth))]);
        assert!(stage.is_closing(conn) && stage.inputs().is_empty());
    }
    let mut stage = with_sasl(false, &["sasl", "digest"]);
    let conn = stage.connect(1, FIRST, Extensions::default());
    let auth = request(Xid::AUTH.0, OpCode::Auth, |out| {
        out.put_i32(0);
        out.put_string("digest");
        out.put_buffer(Some(b"ann:pw"));
    });
    stage.receive(conn, &[auth, read(1)].concat());
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, None)]);
    // Only now is its session resumed; until then it was only asked for, and what came behind it waits.
    let inputs = stage.inputs();
    let [ClientInput::Resume { resumption, .. }] = &inputs[..] else { panic!("{inputs:?}") };
    assert!(!resumption.is_asking && stage.front.session(conn) == SessionId::NONE);
    let connected = Connected { session: FIRST, timeout_ms: 10_000, read_only: false };
    stage.engine(|out| out.connected(conn, connected, &Password::of_zookeeper(FIRST)));
    stage.front.deliver(&stage.around);
    stage.front.resume(conn, stage.around.now.get().monotonic_ms, &stage.around);
    assert_eq!(stage.replies(conn), [(1, None)], "it is greeted once");
    assert_eq!(stage.front.session(conn), FIRST);
}

/// A create of a znode with `bytes` bytes.
fn create(xid: i32, bytes: usize) -> Vec<u8> {
    request(xid, OpCode::Create, |out| {
        encode::create_open(out, "/new", Some(&vec![7; bytes]), CreateMode::Persistent);
    })
}

#[test]
fn without_memory_what_grows_is_refused_and_the_rest_goes_on() {
    let memory = Arc::new(MemoryLimit::new(1000));
    let limits =
        Limits { counters: Counters { memory: memory.clone(), ..Counters::default() }, ..Limits::default() };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    assert_eq!(memory.note(1000, 500), Some(true));
    let empty = request(2, OpCode::SetData, |out| encode::set_data(out, "/a", None, -1));
    stage.receive(conn, &[create(1, 10), empty, write(3), read(4)].concat());
    assert_eq!(stage.replies(conn), [(1, Some(ErrorCode::ThrottledOp))]);
    let inputs = stage.inputs();
    assert!(
        matches!(
            inputs[..],
            [
                ClientInput::Write { op: OpCode::SetData, .. },
                ClientInput::Write { op: OpCode::Delete, .. },
                ClientInput::Read(_)
            ]
        ),
        "{inputs:?}"
    );
    // In its turn: behind what waits.
    stage.receive(conn, &create(5, 10));
    assert!(matches!(stage.inputs()[..], [ClientInput::Read(QueuedRead { op: OpCode::Create, .. })]));
    assert_eq!(hits.count(LimitHit::Memory), 2);
    assert_eq!(memory.note(100, 500), Some(false));
    stage.receive(conn, &create(6, 10));
    assert!(matches!(stage.inputs()[..], [ClientInput::Write { op: OpCode::Create, .. }]));
}

#[test]
fn clickhouse_is_told_of_its_own_error_when_there_is_no_memory() {
    let memory = Arc::new(MemoryLimit::new(1000));
    let mut stage = FrontStage::new(Limits {
        counters: Counters { memory: memory.clone(), ..Counters::default() },
        ..Limits::default()
    });
    let extensions = Extensions { compression: false, ..Extensions::default() };
    let conn = stage.connect(1, FIRST, Extensions { wide_xids: true, ..extensions });
    memory.note(1000, 500);
    let wide = |frame: Vec<u8>| {
        let (length, body) = frame.split_at(4);
        let length = u32::from_be_bytes(length.try_into().unwrap()) + 4;
        [&length.to_be_bytes()[..], &[0; 4], body].concat()
    };
    stage.receive(conn, &wide(create(1, 10)));
    let sent = stage.sent(conn);
    assert_eq!(sent[4 + 8 + 8..][..4], (-10_i32).to_be_bytes(), "{sent:?}");
}

#[test]
fn a_new_session_is_refused_where_there_are_enough_or_too_many_came_at_once() {
    let rate = ConnectRate { tokens_max: 2, fill_interval_ms: 1000, ..ConnectRate::default() };
    let connects = Arc::new(ConnectThrottle::new(rate));
    for (limits, limit) in [
        (Limits { sessions_max: 0, ..Limits::default() }, LimitHit::Sessions),
        (
            Limits { counters: Counters { connects, ..Counters::default() }, ..Limits::default() },
            LimitHit::ConnectRate,
        ),
    ] {
        let hits = limits.counters.hits.clone();
        let mut stage = FrontStage::new(limits);
        // Who has a session comes back to it.
        stage.connect(1, FIRST, Extensions::default());
        if limit == LimitHit::ConnectRate {
            stage.connect(2, SECOND, Extensions::default());
        }
        let conn = ConnId::new(0, 3);
        stage.front.accept(conn, ([127, 0, 0, 1], 1).into(), ());
        let mut greeting = Vec::new();
        let request = ConnectRequest {
            protocol_version: 0,
            extensions: Extensions::default(),
            last_zxid_seen: Zxid(0),
            timeout_ms: 10_000,
            session: SessionId::NONE,
            password: Some(&[0; 16]),
            read_only: Some(false),
        };
        request.encode(&mut greeting);
        stage.receive(conn, &greeting);
        assert!(stage.is_closing(conn) && stage.inputs().is_empty(), "{limit:?}");
        assert!(stage.sent(conn).is_empty(), "a client takes a closed connection for a member that is gone");
        assert_eq!(hits.count(limit), 1);
    }
}

#[test]
fn with_too_many_requests_under_way_only_those_who_wait_for_none_may_ask() {
    let limits = Limits {
        counters: Counters { outstanding: Arc::new(OutstandingLimit::new(3)), ..Counters::default() },
        ..Limits::default()
    };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let (first, second) = {
        let mut connect = |number, session| stage.connect(number, session, Extensions::default());
        (connect(1, FIRST), connect(2, SECOND))
    };
    let writes: Vec<u8> = (1..=5).flat_map(write).collect();
    stage.receive(first, &writes);
    assert_eq!(stage.inputs().len(), 3);
    assert!(!stage.takes_input(first) && stage.takes_input(second));
    stage.receive(second, &writes);
    assert_eq!(stage.inputs().len(), 1, "it waits for nothing, so it may ask");
    assert!(!stage.takes_input(second));
    assert_eq!(hits.count(LimitHit::Outstanding), 2);
    for xid in 1..=3 {
        stage.engine(|out| reply(out, first, xid));
    }
    stage.engine(|out| reply(out, second, 1));
    stage.front.deliver(&stage.around);
    assert!(stage.reached().iter().all(|reached| reached.has_changed), "their worker looks again");
    stage.front.leave(second, &stage.around);
    stage.inputs();
    stage.front.resume(first, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 2, "who has gone waits for nothing");
}

#[test]
fn turns_are_heavy_until_replies_have_been_small() {
    let mut stage =
        FrontStage::new(Limits { first_reply_bytes: 400, turn_bytes_max: 200, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    let is_heavy =
        |stage: &FrontStage| stage.front.condition(conn, &stage.around).expect("it is there").is_heavy;
    assert!(is_heavy(&stage), "nothing is known of it");
    for xid in 1..=20 {
        stage.receive(conn, &read(xid));
        stage.sent(conn);
    }
    assert!(!is_heavy(&stage));
    stage.receive(conn, &write(21));
    stage.engine(|out| {
        let request = out.request(conn, 21);
        out.write_reply(conn, request, (Zxid(7), None), |out| out.resize(out.len() + 300, 7))
    });
    stage.front.deliver(&stage.around);
    assert!(is_heavy(&stage));
}

#[test]
fn long_multis_of_several_connections_wait_for_each_other() {
    let limits = Limits { long_multi_bytes: 20, long_multis_max: 100, ..Limits::default() };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let multi = |xid| {
        request(xid, OpCode::Multi, |out| {
            encode::multi_operation(out, OpCode::Delete);
            encode::path_and_version(out, &format!("/{}", "a".repeat(60)), -1);
            encode::multi_end(out);
        })
    };
    let first = stage.connect(1, FIRST, Extensions::default());
    let second = stage.connect(2, SECOND, Extensions::default());
    let third = stage.connect(3, SessionId(0x103), Extensions::default());
    stage.receive(first, &[multi(1), multi(2)].concat());
    stage.receive(second, &[multi(1), write(2)].concat());
    stage.receive(third, &[write(1), multi(2)].concat());
    assert_eq!(stage.inputs().len(), 2, "the first multi, and what is none");
    let waiting = |stage: &FrontStage| [first, second, third].map(|conn| !stage.takes_input(conn));
    assert_eq!((waiting(&stage), hits.count(LimitHit::LongMultis)), ([true; 3], 3));
    stage.reached();

    stage.engine(|out| reply(out, first, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(waiting(&stage), [false, true, true], "who has waited longest goes on");
    assert!(stage.reached().contains(&Reached { conn: first, has_changed: true }));
    stage.front.resume(first, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 1);

    // Its multi goes with it, and the next one may be taken.
    stage.front.leave(first, &stage.around);
    stage.inputs();
    assert!(stage.takes_input(second) && !stage.takes_input(third));
    stage.front.resume(second, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 2, "its multi and what stands behind it");
    stage.front.leave(third, &stage.around);
}

/// A request that shows user and password.
fn auth(user_and_password: &[u8]) -> Vec<u8> {
    request(Xid::AUTH.0, OpCode::Auth, |out| {
        out.put_i32(0);
        out.put_string("digest");
        out.put_buffer(Some(user_and_password));
    })
}

/// Size of the commands that the engine was given.
fn command_bytes(stage: &mut FrontStage) -> Vec<usize> {
    let command = |input| match input {
        ClientInput::Write { command, .. } => Some(command.len()),
        _ => None,
    };
    stage.inputs().into_iter().filter_map(command).collect()
}

#[test]
fn identities_above_the_limit_are_refused_and_end_the_connection() {
    let limits = Limits { identities_max: 4, ..Limits::default() };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    // Its address is one, and each of the others counts once.
    for user in ["a", "b", "b", "c", "a", "c"] {
        stage.receive(conn, &auth(format!("{user}:pw").as_bytes()));
    }
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, None); 6]);
    stage.receive(conn, &[write(1), auth(b"d:pw"), write(2)].concat());
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, Some(ErrorCode::AuthFailed))]);
    assert!(stage.is_closing(conn));
    assert_eq!(hits.count(LimitHit::Identities), 1);
    assert_eq!(stage.inputs().len(), 1, "what came before is carried out, and nothing behind it");
}

#[test]
fn megabytes_of_identities_are_not_kept_and_do_not_travel_with_a_write() {
    let mut stage = FrontStage::new(Limits::default());
    let conns = [1, 2, 3]
        .map(|number| stage.connect(number, SessionId(0x100 + number as i64), Extensions::default()));
    let buffers = stage.settings.limits.counters.buffers.clone();
    for conn in conns {
        // A few small ones are taken; the first of the large ones ends the connection.
        stage.receive(
            conn,
            &(0..10).flat_map(|n| auth(format!("user-{n}:pw").as_bytes())).collect::<Vec<u8>>(),
        );
        stage.receive(conn, &write(1));
        assert!(command_bytes(&mut stage)[0] < 1000);
        let large = auth(&[&[b'u'; 900_000][..], b":pw"].concat());
        stage.receive(conn, &[&large[..], &large, &large, &write(2)].concat());
        assert!(stage.is_closing(conn));
        assert!(command_bytes(&mut stage).is_empty());
        stage.front.leave(conn, &stage.around);
        assert_eq!(buffers.held(), 0);
    }
}

#[test]
fn ten_thousand_small_identities_are_as_many_as_the_limit() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    for number in 0..10_000 {
        stage.receive(conn, &auth(format!("u{number}:pw").as_bytes()));
    }
    let replies = stage.replies(conn);
    assert_eq!(replies.len(), Limits::default().identities_max, "its address is one of them");
    assert_eq!(replies.last(), Some(&(Xid::AUTH.0, Some(ErrorCode::AuthFailed))));
}

#[test]
fn identities_of_a_certificate_count_too() {
    let limits = Limits { identity_bytes_max: 1000, ..Limits::default() };
    let mut stage = FrontStage::new(limits);
    for (number, bytes, is_taken) in [(1, 900, true), (2, 1001, false)] {
        let conn = ConnId::new(0, number);
        let name = Id::new("x509", format!("CN={}", "n".repeat(bytes)));
        stage.front.accept_proven(conn, ([127, 0, 0, 1], 1).into(), (), &[name]);
        let request = ConnectRequest {
            protocol_version: 0,
            extensions: Extensions::default(),
            last_zxid_seen: Zxid(0),
            timeout_ms: 10_000,
            session: SessionId::NONE,
            password: None,
            read_only: Some(false),
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        stage.receive(conn, &bytes);
        assert_eq!((stage.inputs().len(), stage.is_closing(conn)), (usize::from(is_taken), !is_taken));
    }
}

#[test]
fn a_write_that_is_too_large_with_its_identities_is_refused_in_its_turn_and_its_connection_lives() {
    let mut settings = FrontStage::settings(Limits::default());
    let ids = 4 + 8 + "ip".len() + "127.0.0.1".len();
    let body = create(2, 100).len() - 12;
    settings.command_bytes_max = 8 + 8 + ids + 4 + body;
    let hits = settings.limits.counters.hits.clone();
    let mut stage = FrontStage::with(settings);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &create(1, 100));
    assert_eq!(command_bytes(&mut stage), [stage.settings.command_bytes_max]);
    stage.receive(conn, &create(2, 101));
    let read_of_refusal = stage.inputs();
    let [ClientInput::Read(read)] = &read_of_refusal[..] else { panic!("{read_of_refusal:?}") };
    assert!(read.body.is_empty(), "nothing of it is kept");
    let state = RefCell::new(State::default());
    stage.engine(|out| {
        reply(out, conn, 1);
        state.borrow().answer_queued(read, out);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None), (2, Some(ErrorCode::MarshallingError))]);
    // This write of a client that has shown another identity.
    stage.receive(conn, &[auth(b"a:pw"), create(3, 100)].concat());
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, None), (3, Some(ErrorCode::MarshallingError))]);
    assert!(!stage.is_closing(conn) && stage.inputs().is_empty());
    assert_eq!(hits.count(LimitHit::CommandBytes), 2);
}

/// A member without SASL and without certificates takes no ACL that no client could meet, alone or in a multi.
#[test]
fn an_acl_of_a_scheme_that_nothing_provides_is_refused_by_the_state() {
    let mut stage = FrontStage::new(Limits::default());
    let (conn, reader) =
        (stage.connect(1, FIRST, Extensions::default()), stage.connect(2, SECOND, Extensions::default()));
    let acl = |scheme: &str| [Acl { perms: Perms::ALL, id: Id::new(scheme, "carol:x") }];
    let create = |out: &mut Vec<u8>, path: &str, scheme: &str| {
        encode::create(out, path, Some(b"sasl"), &acl(scheme), CreateMode::Persistent);
    };
    let alone = |xid, path: &str, scheme: &str| request(xid, OpCode::Create, |out| create(out, path, scheme));
    let multi = |xid, scheme: &str| {
        request(xid, OpCode::Multi, |out| {
            for (path, scheme) in [("/m1", "digest"), ("/m2", scheme)] {
                encode::multi_operation(out, OpCode::Create);
                create(out, path, scheme);
            }
            encode::multi_end(out);
        })
    };
    stage.receive(conn, &[alone(1, "/s", "sasl"), alone(2, "/x", "x509"), alone(3, "/d", "digest")].concat());
    stage.receive(conn, &multi(4, "sasl"));
    for input in stage.inputs() {
        let ClientInput::Write { mut command, .. } = input else { panic!("{input:?}") };
        // As if the service asked, whose session need not live.
        command[..8].fill(0);
        let mut outboxes = Outboxes::new(1);
        stage.around.state.borrow_mut().apply(&Command::decode(&command).unwrap(), &mut outboxes);
    }
    for (path, expected) in [
        ("/s", Some(ErrorCode::NoNode)),
        ("/x", Some(ErrorCode::NoNode)),
        // The znode is there, and its ACL names another.
        ("/d", Some(ErrorCode::NoAuth)),
        ("/m1", Some(ErrorCode::NoNode)),
    ] {
        let exists = |out: &mut Vec<u8>| encode::path_and_watch(out, path, false);
        stage.receive(reader, &request(1, OpCode::Exists, exists));
        assert_eq!(stage.replies(reader), [(1, expected)], "{path}");
    }
}
