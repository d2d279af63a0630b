//! Cost of a million znodes: bytes of resident memory each, and the time on the processor to create, read, set, save,
//! load and delete them.
//!
//! `cargo run --release -p paddock-tree --example memory [ZNODES]`

use std::time::{Duration, Instant};

use paddock_proto::jute::Writer;
use paddock_proto::{AclList, IdList, OpCode, Read, SessionId};
use paddock_tree::{Asker, Command, Guess, Tree, TreeLoader};

const DATA_BYTES: usize = 100;
const CHILDREN: usize = 1000;
const SLICE: usize = 1024;
const READS: usize = 1_000_000;
const READ_TOGETHER: usize = Tree::LOOK_AHEAD_PATHS;
/// Prime, so that steps of this length come to every znode, in an order that no cache foresees.
const STRIDE: usize = 15_485_863;

fn main() {
    let znodes: usize = std::env::args().nth(1).map_or(1_000_000, |n| n.parse().expect("a number of znodes"));
    assert!(!znodes.is_multiple_of(STRIDE), "the steps must come to every znode");
    let mut tree = Tree::new();
    let before = resident_bytes();
    let told = |what: &str| {
        let bytes = resident_bytes() as f64 - before as f64;
        println!("{:.1} bytes per znode {what}", bytes / znodes as f64);
    };
    create_all(&mut tree, znodes);
    told("created");
    read_all(&tree, znodes);
    set_all(&mut tree, znodes, DATA_BYTES);
    told("set");
    set_all(&mut tree, znodes, 2 * DATA_BYTES);
    told("set to twice the data");
    set_all(&mut tree, znodes, DATA_BYTES);
    told("set as before");
    delete_all(&mut tree, znodes);
    told("deleted");
    create_all(&mut tree, znodes);
    told("created again");
    save_and_load(&mut tree, znodes);
}

fn create_all(tree: &mut Tree, znodes: usize) {
    let created = Stopwatch::start();
    let mut slowest = Duration::ZERO;
    for parent in ["/app", "/app/services"] {
        apply(tree, OpCode::Create, parent, b"");
    }
    for n in 0..znodes {
        if n.is_multiple_of(CHILDREN) {
            apply(tree, OpCode::Create, &parent(n), b"");
        }
        slowest = slowest.max(apply(tree, OpCode::Create, &path(n), &[b'x'; DATA_BYTES]));
    }
    println!("{} ns per create, command encoded and decoded", created.ns() / znodes as u64);
    println!("{slowest:?} for the slowest, other processes included");
}

fn read_all(tree: &Tree, znodes: usize) {
    let mut out = Vec::new();
    let mut read = |path: &str, guess| {
        let (read, asker) = (Read::GetData { path, watch: false }, Asker { guess, ..Asker::NOBODY });
        out.clear();
        tree.read(&read, &asker, &mut out).expect("it was created");
    };
    let paths: Vec<String> = in_no_order(znodes).cycle().take(READS).map(path).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let one_by_one = Stopwatch::start();
    paths.iter().for_each(|path| read(path, Guess::NONE));
    println!("{} ns per read of data", one_by_one.ns() / paths.len() as u64);
    let together = Stopwatch::start();
    for paths in paths.chunks(READ_TOGETHER) {
        paths.iter().zip(tree.look_ahead(paths)).for_each(|(path, guess)| read(path, guess));
    }
    println!("{} ns if {READ_TOGETHER} come together", together.ns() / paths.len() as u64);
}

fn set_all(tree: &mut Tree, znodes: usize, data_bytes: usize) {
    let (set, data) = (Stopwatch::start(), vec![b'y'; data_bytes]);
    for path in in_no_order(znodes).map(path) {
        apply(tree, OpCode::SetData, &path, &data);
    }
    println!("{} ns per set, command encoded and decoded", set.ns() / znodes as u64);
}

fn save_and_load(tree: &mut Tree, znodes: usize) {
    let mut blocks = Vec::new();
    let saved = Stopwatch::start();
    let mut scan = tree.begin_snapshot();
    loop {
        let mut block = Vec::with_capacity(SLICE * 2 * (DATA_BYTES + 100));
        let more = tree.scan_snapshot(&mut scan, SLICE, &mut block);
        blocks.push(block);
        if !more {
            break;
        }
    }
    tree.end_snapshot(scan);
    println!("{} ns per znode to save it", saved.ns() / znodes as u64);

    let loaded = Stopwatch::start();
    let mut loader = TreeLoader::new();
    blocks.iter().for_each(|block| loader.block(block).expect("the tree's own snapshot"));
    let copy = loader.finish().expect("the tree's own snapshot");
    println!("{} ns per znode to load it", loaded.ns() / znodes as u64);
    assert_eq!(copy.node_count(), tree.node_count());
}

fn delete_all(tree: &mut Tree, znodes: usize) {
    let deleted = Stopwatch::start();
    for path in in_no_order(znodes).map(path) {
        apply(tree, OpCode::Delete, &path, b"");
    }
    println!("{} ns per delete, command encoded and decoded", deleted.ns() / znodes as u64);
    for path in (0..znodes).step_by(CHILDREN).map(parent) {
        apply(tree, OpCode::Delete, &path, b"");
    }
    for parent in ["/app/services", "/app"] {
        apply(tree, OpCode::Delete, parent, b"");
    }
}

fn in_no_order(znodes: usize) -> impl Iterator<Item = usize> + Clone {
    (0..znodes).map(move |n| n * STRIDE % znodes)
}

fn parent(n: usize) -> String {
    format!("/app/services/svc-{:04}", n / CHILDREN)
}

fn path(n: usize) -> String {
    format!("{}/node-{n:08}", parent(n))
}

/// Applies a command, and returns the time that the tree took.
fn apply(tree: &mut Tree, op: OpCode, path: &str, data: &[u8]) -> Duration {
    let (mut body, mut command) = (Vec::new(), Vec::new());
    body.put_string(path);
    match op {
        OpCode::Create => {
            body.put_buffer(Some(data));
            body.extend_from_slice(AclList::OPEN.wire());
            body.put_i32(0);
        }
        OpCode::SetData => {
            body.put_buffer(Some(data));
            body.put_i32(-1);
        }
        _ => body.put_i32(-1),
    }
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, &body, &mut command);
    let command = Command::decode(&command).expect("a command comes back as encoded");
    let started = Instant::now();
    let outcome = tree.apply(&command);
    let took = started.elapsed();
    assert!(outcome.result.is_ok(), "{op:?} {path}: {:?}", outcome.result);
    took
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("read /proc/self/statm");
    let pages: usize = statm.split(' ').nth(1).expect("a second field").parse().expect("a number of pages");
    pages * 4096
}

/// Counts the time that this process had a processor, which other processes do not change much.
struct Stopwatch(u64);

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Stopwatch::on_cpu_ns())
    }

    fn ns(&self) -> u64 {
        Stopwatch::on_cpu_ns() - self.0
    }

    fn on_cpu_ns() -> u64 {
        let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("read /proc/self/schedstat");
        schedstat.split(' ').next().expect("a first field").parse().expect("a number of nanoseconds")
    }
}
