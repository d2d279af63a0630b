//! Instructions that the tree takes: for a hundred writes, a hundred reads, a list of a thousand children.
//!
//! `cargo xtask instructions` counts them; tests/README.md says what the figures depend on.

#[path = "shared/znodes.rs"]
mod znodes;

use std::hint::black_box;

use gungraun::prelude::*;
use paddock_proto::{OpCode, Read};
use paddock_tree::{Asker, Tree};
use znodes::{apply_all, command, multi, parent};

/// Parents of a thousand znodes each.
const PARENTS: usize = 10;
/// Commands that are applied at once, and znodes that are read.
const COMMANDS: usize = 100;

fn tree() -> Tree {
    znodes::tree(PARENTS)
}

fn paths() -> impl Iterator<Item = String> {
    znodes::paths(PARENTS, COMMANDS)
}

/// Commands to each of some znodes, or to others beside them.
fn commands(op: OpCode, suffix: &str) -> Vec<Vec<u8>> {
    paths().map(|path| command(op, &(path + suffix))).collect()
}

/// Each sees that one znode is still there, makes another, and changes the first.
fn multis() -> Vec<Vec<u8>> {
    let of = |path: String| {
        let new = format!("{path}-new");
        multi(&[(OpCode::Check, &path), (OpCode::Create, &new), (OpCode::SetData, &path)])
    };
    paths().map(of).collect()
}

#[library_benchmark]
#[bench::create(tree(), commands(OpCode::Create, "-new"))]
#[bench::set_data(tree(), commands(OpCode::SetData, ""))]
#[bench::delete(tree(), commands(OpCode::Delete, ""))]
#[bench::multi(tree(), multis())]
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
