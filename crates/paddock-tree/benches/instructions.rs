//! Instructions that the tree takes: for a hundred writes, a hundred reads, a list of a thousand children.
//!
//! `cargo xtask instructions` counts them; tests/README.md says what the figures depend on.

use std::hint::black_box;

use gungraun::prelude::*;
use paddock_proto::{CreateMode, IdList, OpCode, Read, SessionId, encode};
use paddock_tree::{Asker, Command, Tree};

const PARENTS: usize = 10;
const CHILDREN: usize = 1000;
/// Commands that are applied at once, and znodes that are read.
const COMMANDS: usize = 100;
/// Prime to the number of znodes, so that steps of this length come to one after the other in no order.
const STRIDE: usize = 7919;
const DATA: [u8; 100] = [7; 100];

fn parent(n: usize) -> String {
    format!("/svc-{:04}", n / CHILDREN)
}

fn path(n: usize) -> String {
    format!("{}/node-{n:08}", parent(n))
}

/// A tree of ten thousand znodes, with a hundred bytes of data each.
fn tree() -> Tree {
    let mut tree = Tree::new();
    for n in 0..PARENTS * CHILDREN {
        if n.is_multiple_of(CHILDREN) {
            apply_all(&mut tree, &[command(OpCode::Create, &parent(n))]);
        }
        apply_all(&mut tree, &[command(OpCode::Create, &path(n))]);
    }
    tree
}

/// Some znodes of this tree, in no order.
fn paths() -> impl Iterator<Item = String> {
    (0..COMMANDS).map(|n| path(n * STRIDE % (PARENTS * CHILDREN)))
}

/// A command as it lies in the log.
fn command(op: OpCode, path: &str) -> Vec<u8> {
    let (mut body, mut command) = (Vec::new(), Vec::new());
    put_body(&mut body, op, path);
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, &body, &mut command);
    command
}

fn put_body(out: &mut Vec<u8>, op: OpCode, path: &str) {
    match op {
        OpCode::Create => encode::create_open(out, path, Some(&DATA), CreateMode::Persistent),
        OpCode::SetData => encode::set_data(out, path, Some(&DATA), -1),
        OpCode::Check | OpCode::Delete => encode::path_and_version(out, path, -1),
        // Sees that one znode is still there, makes another, and changes the first.
        OpCode::Multi => {
            let new = format!("{path}-new");
            for (op, path) in [(OpCode::Check, path), (OpCode::Create, &new), (OpCode::SetData, path)] {
                encode::multi_operation(out, op);
                put_body(out, op, path);
            }
            encode::multi_end(out);
        }
        other => unreachable!("{other:?} is not measured"),
    }
}

/// Commands to each of some znodes, or to others beside them.
fn commands(op: OpCode, suffix: &str) -> Vec<Vec<u8>> {
    paths().map(|path| command(op, &(path + suffix))).collect()
}

fn apply_all(tree: &mut Tree, commands: &[Vec<u8>]) {
    for command in commands {
        let command = Command::decode(command).expect("a command comes back as encoded");
        let outcome = tree.apply(&command);
        assert!(outcome.result.is_ok(), "{command:?}: {:?}", outcome.result);
        black_box(outcome);
    }
}

#[library_benchmark]
#[bench::create(tree(), commands(OpCode::Create, "-new"))]
#[bench::set_data(tree(), commands(OpCode::SetData, ""))]
#[bench::delete(tree(), commands(OpCode::Delete, ""))]
#[bench::multi(tree(), commands(OpCode::Multi, ""))]
fn apply(mut tree: Tree, commands: Vec<Vec<u8>>) -> (Tree, Vec<Vec<u8>>) {
    apply_all(&mut tree, &commands);
    (tree, commands)
}

/// A connection's buffer, which has grown by what was sent before.
fn buffer() -> Vec<u8> {
    Vec::with_capacity(64 << 10)
}

#[library_benchmark]
#[bench::of_100_znodes(tree(), paths().collect(), buffer())]
fn get_data(tree: Tree, paths: Vec<String>, mut out: Vec<u8>) -> (Tree, Vec<String>, Vec<u8>) {
    for path in &paths {
        let read = Read::GetData { path: black_box(path), watch: false };
        tree.read(&read, &Asker::NOBODY, &mut out).expect("the znode is there");
    }
    (tree, paths, out)
}

#[library_benchmark]
#[bench::of_1000(tree(), parent(0), buffer())]
fn get_children(tree: Tree, path: String, mut out: Vec<u8>) -> (Tree, String, Vec<u8>) {
    let read = Read::GetChildren { path: black_box(&path), watch: false };
    tree.read(&read, &Asker::NOBODY, &mut out).expect("the znode is there");
    (tree, path, out)
}

library_benchmark_group!(name = tree, benchmarks = [apply, get_data, get_children]);

main!(library_benchmark_groups = tree);
