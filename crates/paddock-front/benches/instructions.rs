//! Instructions of a member's way from a client's bytes to its replies: for a hundred requests that come together.
//!
//! A front takes them, and the state answers; what the engine does beside applying them, and the sockets, are left out.
//! `cargo xtask instructions` counts them; tests/README.md says what the figures depend on.

use std::cell::{Ref, RefCell};
use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;

use gungraun::prelude::*;
use paddock_front::{Counters, Front, Host, Limits, RateLimits, RateRules, Settings, WordAnswer};
use paddock_proto::jute::Writer;
use paddock_proto::{
    ConnectRequest, CreateMode, Extensions, IdList, OpCode, Password, SessionId, Zxid, encode, frame,
};
use paddock_state::{ClientInput, ConnId, Connected, Now, Outbox, Outboxes, State};
use paddock_tree::{Command, Tree};

const ZNODES: usize = 1000;
/// Requests that come at once.
const REQUESTS: usize = 100;
/// Prime to the number of znodes, so that steps of this length come to one after the other in no order.
const STRIDE: usize = 719;
const CHILDREN: usize = 100;
const DATA: [u8; 100] = [7; 100];
const SESSION: SessionId = SessionId(0x101);

/// A member as a front sees it.
#[derive(Debug)]
struct Surroundings {
    state: RefCell<State>,
    mail: RefCell<Outbox>,
}

impl Host for Surroundings {
    type StateGuard<'a> = Ref<'a, State>;
    type Stats = ();
    type Span = ();

    fn now(&self) -> Now {
        Now::default()
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
        7
    }

    fn answer_word(&self, _: [u8; 4], _: &[u8]) -> Option<WordAnswer> {
        None
    }
}

/// A front with one client that has a session, and what the engine needs to answer it.
struct Scene {
    front: Front<Surroundings>,
    around: Surroundings,
    conn: ConnId,
    outboxes: Outboxes,
    sent: Vec<u8>,
}

fn path(n: usize) -> String {
    format!("/svc/node-{n:08}")
}

fn list_path(list: usize) -> String {
    if list == 0 { "/list".to_owned() } else { format!("/list-{list}") }
}

/// A tree with a number of znodes with a hundred children each, and a thousand others.
fn tree(lists: usize) -> Tree {
    let mut tree = Tree::new();
    let lists = (0..lists).map(list_path).flat_map(|list| {
        let children: Vec<String> = (0..CHILDREN).map(|n| format!("{list}/node-{n:08}")).collect();
        std::iter::once(list).chain(children)
    });
    for path in std::iter::once("/svc".to_owned()).chain((0..ZNODES).map(path)).chain(lists) {
        let (mut body, mut command) = (Vec::new(), Vec::new());
        encode::create_open(&mut body, &path, Some(&DATA), CreateMode::Persistent);
        Command::encode(
            SessionId::NONE,
            1_700_000_000_000,
            IdList::NONE,
            OpCode::Create,
            &body,
            &mut command,
        );
        let outcome = tree.apply(&Command::decode(&command).expect("a command comes back as encoded"));
        assert!(outcome.result.is_ok(), "{path}: {:?}", outcome.result);
    }
    tree
}

fn settings(rates: &str) -> Settings {
    let rules: RateRules = rates.parse().expect("these are rules");
    let counters = Counters { rates: Arc::new(RateLimits::new(&rules, 1000)), ..Counters::default() };
    Settings { limits: Limits { counters, ..Limits::default() }, ..Settings::of_zookeeper() }
}

fn scene(rates: &str) -> Scene {
    scene_of(rates, 1)
}

/// As many lists as requests, so many that some list might be too long to be answered in one step.
fn scene_of_lists() -> Scene {
    scene_of("", REQUESTS)
}

/// A scene in which the list has been asked for.
fn scene_of_listed() -> Scene {
    let mut scene = scene("");
    scene.serve(&requests(OpCode::GetChildren2));
    scene
}

fn scene_of(rates: &str, lists: usize) -> Scene {
    let conn = ConnId::new(0, 1);
    let mut front = Front::new(settings(rates));
    front.accept(conn, ([127, 0, 0, 1], 1).into(), ());
    let around = Surroundings { state: RefCell::new(State::new(tree(lists))), mail: RefCell::default() };
    let mut scene = Scene { front, around, conn, outboxes: Outboxes::new(1), sent: Vec::new() };
    let mut greeting = Vec::new();
    let password = Password::of_zookeeper(SESSION);
    ConnectRequest {
        protocol_version: Extensions::default().version(),
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(0),
        timeout_ms: 10_000,
        session: SESSION,
        password: Some(&password.0),
        read_only: Some(false),
    }
    .encode(&mut greeting);
    scene.front.receive(conn, &greeting, 0, &scene.around);
    scene.front.inputs().clear();
    let connected = Connected { session: SESSION, timeout_ms: 10_000, read_only: false };
    scene.outboxes.connected(conn, connected, &password);
    scene.answer();
    scene.send();
    // The queue, buffers and outboxes have grown by what was asked before.
    scene.serve(&requests(OpCode::SetData));
    scene.serve(&requests(OpCode::GetData));
    scene
}

impl Scene {
    fn serve(&mut self, bytes: &[u8]) {
        self.front.receive(self.conn, bytes, 0, &self.around);
        loop {
            let inputs = std::mem::take(self.front.inputs());
            if !inputs.is_empty() {
                let mut state = self.around.state.borrow_mut();
                inputs.iter().for_each(|input| apply(input, &mut state, &mut self.outboxes));
                drop(state);
                self.answer();
            }
            self.send();
            let condition = self.front.condition(self.conn, &self.around).expect("the connection is there");
            if !condition.has_input {
                break;
            }
            self.front.resume(self.conn, 0, &self.around);
        }
    }

    /// Mail of the engine reaches the connection.
    fn answer(&mut self) {
        self.outboxes.iter_mut().for_each(|(_, outbox)| self.around.mail.borrow_mut().append(outbox));
        self.front.deliver(&self.around);
    }

    fn send(&mut self) {
        let sent = &mut self.sent;
        sent.clear();
        let all = self.front.send(self.conn, |bytes| {
            sent.extend_from_slice(bytes);
            Ok::<_, Infallible>(bytes.len())
        });
        let Ok(()) = all;
    }
}

fn apply(input: &ClientInput, state: &mut State, out: &mut Outboxes) {
    let ClientInput::Write { conn, request, command, .. } = input else {
        unreachable!("reads of a connection that waits for nothing are answered at once")
    };
    let command = Command::decode(command).expect("a front encodes commands");
    let outcome = state.apply(&command, out);
    out.answer(*conn, *request, outcome.zxid, &outcome.result);
}

fn put_body(out: &mut Vec<u8>, op: OpCode, path: &str) {
    match op {
        OpCode::GetData | OpCode::GetChildren2 => {
            out.put_string(path);
            out.put_bool(false);
        }
        OpCode::Create => {
            encode::create_open(out, &format!("{path}-new"), Some(&DATA), CreateMode::Persistent)
        }
        OpCode::SetData => encode::set_data(out, path, Some(&DATA), -1),
        OpCode::Check => encode::path_and_version(out, path, -1),
        OpCode::Multi => {
            for op in [OpCode::Check, OpCode::Create, OpCode::SetData] {
                encode::multi_operation(out, op);
                put_body(out, op, path);
            }
            encode::multi_end(out);
        }
        other => unreachable!("{other:?} is not measured"),
    }
}

/// Frames of as many requests as come at once.
fn requests(op: OpCode) -> Vec<u8> {
    let path = |n| if op == OpCode::GetChildren2 { list_path(0) } else { path(n * STRIDE % ZNODES) };
    framed((0..REQUESTS).map(|n| (op, path(n))))
}

fn framed(requests: impl Iterator<Item = (OpCode, String)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((op, path), xid) in requests.zip(1..) {
        frame::write(&mut bytes, |out| {
            out.put_i32(xid);
            out.put_i32(op.code());
            put_body(out, op, &path);
        });
    }
    bytes
}

/// A request for each list.
fn requests_of_lists() -> Vec<u8> {
    framed((0..REQUESTS).map(|n| (OpCode::GetChildren2, list_path(n))))
}

/// Creates below a znode whose list has been asked for.
fn creates_in_list() -> Vec<u8> {
    framed((0..REQUESTS).map(|n| (OpCode::Create, format!("/list/node-{n:08}"))))
}

#[library_benchmark]
#[bench::get_data(scene(""), requests(OpCode::GetData))]
#[bench::get_children(scene(""), requests(OpCode::GetChildren2))]
#[bench::get_children_among_many(scene_of_lists(), requests(OpCode::GetChildren2))]
#[bench::get_children_of_each(scene_of_lists(), requests_of_lists())]
#[bench::create_in_listed(scene_of_listed(), creates_in_list())]
#[bench::create(scene(""), requests(OpCode::Create))]
#[bench::set_data(scene(""), requests(OpCode::SetData))]
#[bench::multi(scene(""), requests(OpCode::Multi))]
#[bench::get_data_by_rates(
    scene("path:requests=1000000000; address:requests=1000000000"),
    requests(OpCode::GetData)
)]
fn serve(mut scene: Scene, requests: Vec<u8>) -> (Scene, Vec<u8>) {
    scene.serve(black_box(&requests));
    (scene, requests)
}

// Each request comes by itself: what a turn costs.
#[library_benchmark]
#[bench::get_data(scene(""), requests(OpCode::GetData))]
#[bench::create(scene(""), requests(OpCode::Create))]
fn serve_one_by_one(mut scene: Scene, requests: Vec<u8>) -> (Scene, Vec<u8>) {
    let mut rest = &requests[..];
    while let Some((_, len)) = frame::split(rest, i32::MAX).expect("these are frames") {
        scene.serve(black_box(&rest[..len]));
        rest = &rest[len..];
    }
    (scene, requests)
}

library_benchmark_group!(name = front, benchmarks = [serve, serve_one_by_one]);

main!(library_benchmark_groups = front);
