//! A tree, and commands to it, that the benchmarks have in common.

use std::hint::black_box;

use paddock_proto::{CreateMode, IdList, OpCode, SessionId, encode};
use paddock_tree::{Command, Tree};

pub(crate) const CHILDREN: usize = 1000;
/// Prime to the number of znodes, so that steps of this length come to one after the other in no order.
const STRIDE: usize = 7919;
const DATA: [u8; 100] = [7; 100];

pub(crate) fn parent(n: usize) -> String {
    format!("/svc-{:04}", n / CHILDREN)
}

fn path(n: usize) -> String {
    format!("{}/node-{n:08}", parent(n))
}

/// A tree of this many parents with a thousand znodes each, of a hundred bytes of data.
pub(crate) fn tree(parents: usize) -> Tree {
    let mut tree = Tree::new();
    for n in 0..parents * CHILDREN {
        if n.is_multiple_of(CHILDREN) {
            apply_all(&mut tree, &[command(OpCode::Create, &parent(n))]);
        }
        apply_all(&mut tree, &[command(OpCode::Create, &path(n))]);
    }
    tree
}

/// This many znodes of this tree, in no order.
pub(crate) fn paths(parents: usize, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |n| path(n * STRIDE % (parents * CHILDREN)))
}

/// A command as it lies in the log.
pub(crate) fn command(op: OpCode, path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put_body(&mut body, op, path);
    command_of(op, &body)
}

fn command_of(op: OpCode, body: &[u8]) -> Vec<u8> {
    let mut command = Vec::new();
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, body, &mut command);
    command
}

fn put_body(out: &mut Vec<u8>, op: OpCode, path: &str) {
    match op {
        OpCode::Create => encode::create_open(out, path, Some(&DATA), CreateMode::Persistent),
        OpCode::SetData => encode::set_data(out, path, Some(&DATA), -1),
        OpCode::Check | OpCode::Delete => encode::path_and_version(out, path, -1),
        other => unreachable!("{other:?} is not measured"),
    }
}

/// One multi of these operations.
pub(crate) fn multi(operations: &[(OpCode, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (op, path) in operations {
        encode::multi_operation(&mut body, *op);
        put_body(&mut body, *op, path);
    }
    encode::multi_end(&mut body);
    command_of(OpCode::Multi, &body)
}

pub(crate) fn apply_all(tree: &mut Tree, commands: &[Vec<u8>]) {
    for command in commands {
        let command = Command::decode(command).expect("a command comes back as encoded");
        let outcome = tree.apply(&command);
        assert!(outcome.result.is_ok(), "{command:?}: {:?}", outcome.result);
        black_box(outcome);
    }
}
