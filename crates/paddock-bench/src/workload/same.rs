//! `get` and `set`: one operation on znodes that stay, any of them.

use super::builtin::Shape;
use super::tree::Znodes;
use super::{Lane, Next, Operation, Request, Workload, Znode};

/// Number of znodes unless there is a tree already or somebody wants more, and of the parents over which they are spread.
const ZNODES: usize = 10_000;
const PARENTS: usize = 100;
/// With more znodes there are more parents.
const CHILDREN_MAX: usize = 1000;
const VALUE_BYTES: usize = 100;
const NAME_BYTES: usize = 13;
const ONLY: Operation = Operation(0);

pub(super) struct Same {
    shape: Shape,
    is_set: bool,
}

impl Same {
    pub(super) fn get(shape: Shape) -> Same {
        Same { shape, is_set: false }
    }

    pub(super) fn set(shape: Shape) -> Same {
        Same { shape, is_set: true }
    }

    /// Znodes to read and set if there are none yet.
    fn own(&self) -> Znodes {
        let znodes = self.shape.among.unwrap_or(ZNODES);
        let parents = PARENTS.max(znodes.div_ceil(CHILDREN_MAX));
        Znodes { znodes, value_bytes: VALUE_BYTES, name_bytes: NAME_BYTES, parents }
    }
}

impl Workload for Same {
    fn name(&self) -> String {
        if self.is_set { "set".into() } else { "get".into() }
    }

    fn operations(&self) -> Vec<String> {
        vec![self.name()]
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        if self.shape.tree.is_some() {
            return Box::new(std::iter::empty());
        }
        let (tree, value) = (self.own(), self.shape.value(VALUE_BYTES));
        let root = std::iter::once(self.shape.znode(""));
        let parents = (0..tree.parents).map({
            let tree = tree.clone();
            move |number| self.shape.znode(&tree.parent(number))
        });
        let znodes = (0..tree.znodes)
            .map(move |number| Znode { data: value.clone(), ..self.shape.znode(&tree.path(number)) });
        Box::new(root.chain(parents).chain(znodes))
    }

    fn roots(&self) -> Vec<String> {
        if self.shape.tree.is_some() { Vec::new() } else { vec![self.shape.root.clone()] }
    }

    fn lane(&self, session: usize) -> Box<dyn Lane> {
        let (root, tree) = match &self.shape.tree {
            Some(tree) => (String::new(), tree.clone()),
            None => (self.shape.root.clone(), self.own()),
        };
        let chance = self.shape.chance(session);
        let set = self.is_set.then(|| self.shape.value(VALUE_BYTES));
        Box::new(SameLane { chance, root, tree, set })
    }
}

struct SameLane {
    chance: fastrand::Rng,
    root: String,
    tree: Znodes,
    /// The value to set; `None` if it reads.
    set: Option<Vec<u8>>,
}

impl Lane for SameLane {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        let path = self.tree.path(self.chance.usize(0..self.tree.znodes));
        let path = format!("{}{path}", self.root);
        match &self.set {
            Some(value) => request.set(&path, value),
            None => request.get(&path, false),
        }
        Next::Send(ONLY)
    }
}
