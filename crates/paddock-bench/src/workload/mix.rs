//! Reads of znodes that stay, with creates and deletes in turn beside them. `mixed`: raftkeeper-bench's create 1 %, set 8 %,
//! get 45 %, list 45 %, delete 1 %, on a znode with 100 children. `suite`: keeper-bench-suite's mix of one third creates and
//! deletes, two thirds reads.

use paddock_proto::CreateMode;

use super::names::Names;
use super::shape::{Setup, Shape};
use super::{Lane, NextRequest, Operation, PreparedZnode, WorkloadRequest};

const VALUE_BYTES: usize = 100;

pub(super) const OPERATIONS: [&str; 5] = ["create", "delete", "get", "list", "set"];
/// `suite` has the first of them: it sets nothing.
pub(super) const OPERATIONS_OF_SUITE: usize = 4;
const CREATE: Operation = Operation(0);
const DELETE: Operation = Operation(1);
const GET: Operation = Operation(2);
const LIST: Operation = Operation(3);
const SET: Operation = Operation(4);

const MIXED_CHILDREN: usize = 100;
const MIXED_NAME_BYTES: usize = 50;

/// Number of directories that `suite` reads, of a few znodes each.
const DIRECTORIES: usize = 100;
const DIRECTORY_CHILDREN: usize = 10;

pub(super) fn mixed_setup(shape: &Shape) -> Setup<'_> {
    Box::new(std::iter::once(shape.znode("")).chain(with_values(shape, mixed_children(shape))))
}

pub(super) fn mixed(shape: &Shape) -> Vec<Box<dyn Lane>> {
    // With eight digits behind it, the name of a new znode is as long as the others.
    let width = MIXED_NAME_BYTES - "s00000-".len() - "00000000".len();
    shape.lanes(|session| MixLane {
        chance: shape.chance(session),
        shares: Shares { get: 45, list: 45, set: 8, all: 100 },
        directories: vec![shape.root.clone()],
        children: mixed_children(shape),
        own: Names::with_prefix(&format!("{}/s{session:05}-{:0width$}", shape.root, 0)),
        value: shape.value(VALUE_BYTES),
    })
}

fn mixed_children(shape: &Shape) -> Vec<String> {
    let width = MIXED_NAME_BYTES - "child-".len();
    (0..MIXED_CHILDREN).map(|number| format!("{}/child-{number:0width$}", shape.root)).collect()
}

pub(super) fn suite_setup(shape: &Shape) -> Setup<'_> {
    let directories = directories(shape).into_iter().map(|path| PreparedZnode { path, data: Vec::new() });
    Box::new(shape.session_znodes("s").chain(directories).chain(with_values(shape, suite_children(shape))))
}

pub(super) fn suite(shape: &Shape) -> Vec<Box<dyn Lane>> {
    shape.lanes(|session| MixLane {
        chance: shape.chance(session),
        shares: Shares { get: 1, list: 1, set: 0, all: 3 },
        directories: directories(shape),
        children: suite_children(shape),
        own: Names::below(&format!("{}/s{session}", shape.root)),
        value: shape.value(VALUE_BYTES),
    })
}

fn directories(shape: &Shape) -> Vec<String> {
    (0..DIRECTORIES).map(|number| format!("{}/d{number:04}", shape.root)).collect()
}

fn suite_children(shape: &Shape) -> Vec<String> {
    let children = |directory: &String| {
        (0..DIRECTORY_CHILDREN).map(move |child| format!("{directory}/node-{child:08}")).collect()
    };
    directories(shape).iter().flat_map::<Vec<String>, _>(children).collect()
}

fn with_values(shape: &Shape, paths: Vec<String>) -> impl Iterator<Item = PreparedZnode> {
    let data = shape.value(VALUE_BYTES);
    paths.into_iter().map(move |path| PreparedZnode { path, data: data.clone() })
}

/// Parts of `all` requests; the rest are creates and deletes.
struct Shares {
    get: u32,
    list: u32,
    set: u32,
    all: u32,
}

struct MixLane {
    chance: fastrand::Rng,
    shares: Shares,
    /// Znodes that are listed.
    directories: Vec<String>,
    /// Znodes that are read and set.
    children: Vec<String>,
    own: Names,
    value: Vec<u8>,
}

impl Lane for MixLane {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        let Shares { get, list, set, all } = self.shares;
        let draw = self.chance.u32(0..all);
        NextRequest::Send(if draw < get {
            request.get(any(&self.children, &mut self.chance), false);
            GET
        } else if draw < get + list {
            request.list(any(&self.directories, &mut self.chance), false);
            LIST
        } else if draw < get + list + set {
            request.set(any(&self.children, &mut self.chance), &self.value);
            SET
        } else if let Some(path) = self.own.delete() {
            // Creates and deletes take turns, so that lists stay as long as they are.
            request.delete(path);
            DELETE
        } else {
            request.create(self.own.create(), &self.value, CreateMode::Persistent);
            CREATE
        })
    }
}

fn any<'a>(paths: &'a [String], chance: &mut fastrand::Rng) -> &'a str {
    &paths[chance.usize(0..paths.len())]
}
