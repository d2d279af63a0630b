//! `get` and `set`: one operation on znodes that stay, any of them.

use super::shape::{Setup, Shape};
use super::tree::Znodes;
use super::{Lane, NextRequest, Operation, PreparedZnode, WorkloadRequest};

/// Number of znodes unless there is a tree already or the options want more, and of the parents over which they are spread.
const ZNODES: usize = 10_000;
const PARENTS: usize = 100;
/// With more znodes there are more parents.
const CHILDREN_MAX: usize = 1000;
const VALUE_BYTES: usize = 100;
const NAME_BYTES: usize = 13;
const ONLY: Operation = Operation(0);

pub(super) fn gets(shape: &Shape) -> Vec<Box<dyn Lane>> {
    lanes(shape, None)
}

pub(super) fn sets(shape: &Shape) -> Vec<Box<dyn Lane>> {
    lanes(shape, Some(shape.value(VALUE_BYTES)))
}

/// The znodes to read and set, unless they are there already.
pub(super) fn setup(shape: &Shape) -> Setup<'_> {
    if shape.tree.is_some() {
        return Box::new(std::iter::empty());
    }
    let (tree, value) = (own(shape), shape.value(VALUE_BYTES));
    let root = std::iter::once(shape.znode(""));
    let parents = (0..tree.parents).map({
        let tree = tree.clone();
        move |number| shape.znode(&tree.parent(number))
    });
    let znodes = (0..tree.znodes)
        .map(move |number| PreparedZnode { data: value.clone(), ..shape.znode(&tree.path(number)) });
    Box::new(root.chain(parents).chain(znodes))
}

fn lanes(shape: &Shape, set: Option<Vec<u8>>) -> Vec<Box<dyn Lane>> {
    let (root, tree) = match &shape.tree {
        Some(tree) => ("", tree.clone()),
        None => (shape.root.as_str(), own(shape)),
    };
    shape.lanes(|session| SameLane {
        chance: shape.chance(session),
        root: root.to_owned(),
        tree: tree.clone(),
        set: set.clone(),
    })
}

/// Znodes to read and set if there are none yet.
fn own(shape: &Shape) -> Znodes {
    let znodes = shape.among.unwrap_or(ZNODES);
    let parents = PARENTS.max(znodes.div_ceil(CHILDREN_MAX));
    Znodes { znodes, value_bytes: VALUE_BYTES, name_bytes: NAME_BYTES, parents, below: String::new() }
}

struct SameLane {
    chance: fastrand::Rng,
    root: String,
    tree: Znodes,
    /// The value to set; `None` if it reads.
    set: Option<Vec<u8>>,
}

impl Lane for SameLane {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        let path = self.tree.path(self.chance.usize(0..self.tree.znodes));
        let path = format!("{}{path}", self.root);
        match &self.set {
            Some(value) => request.set(&path, value),
            None => request.get(&path, false),
        }
        NextRequest::Send(ONLY)
    }
}
