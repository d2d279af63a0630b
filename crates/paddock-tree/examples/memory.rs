//! What a million znodes cost: bytes of resident memory each, and the time on the processor to create, save and load
//! them.
//!
//! `cargo run --release -p paddock-tree --example memory [ZNODES]`

use paddock_proto::jute::Writer;
use paddock_proto::{AclList, IdList, OpCode, SessionId};
use paddock_tree::{Command, Tree, TreeLoader};

const DATA_BYTES: usize = 100;
const CHILDREN: usize = 1000;
const SLICE: usize = 1024;

fn main() {
    let znodes: usize = std::env::args().nth(1).map_or(1_000_000, |n| n.parse().expect("a number of znodes"));
    let mut tree = Tree::new();
    apply(&mut tree, "/app", b"");
    apply(&mut tree, "/app/services", b"");
    let before = resident_bytes();
    let created = Stopwatch::start();
    for n in 0..znodes {
        if n % CHILDREN == 0 {
            apply(&mut tree, &format!("/app/services/svc-{:04}", n / CHILDREN), b"");
        }
        apply(
            &mut tree,
            &format!("/app/services/svc-{:04}/node-{:08}", n / CHILDREN, n),
            &[b'x'; DATA_BYTES],
        );
    }
    println!("{:.1} bytes per znode", (resident_bytes() - before) as f64 / znodes as f64);
    println!("{} ns per create, command encoded and decoded", created.ns() / znodes as u64);

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

fn apply(tree: &mut Tree, path: &str, data: &[u8]) {
    let (mut body, mut command) = (Vec::new(), Vec::new());
    body.put_string(path);
    body.put_buffer(Some(data));
    body.extend_from_slice(AclList::OPEN.wire());
    body.put_i32(0);
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, OpCode::Create, &body, &mut command);
    let command = Command::decode(&command).expect("a command comes back as encoded");
    let outcome = tree.apply(&command);
    assert!(outcome.result.is_ok(), "create {path}: {:?}", outcome.result);
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
