//! `mixed`: raftkeeper-bench's create 1%, set 8%, get 45%, list 45%, delete 1%, on a znode with 100 children.

use paddock_proto::CreateMode;

use super::builtin::Shape;
use super::names::Names;
use super::{Lane, Next, Operation, Request, Workload, Znode};

const CHILDREN: usize = 100;
const NAME_BYTES: usize = 50;
const VALUE_BYTES: usize = 100;

const CREATE: Operation = Operation(0);
const SET: Operation = Operation(1);
const GET: Operation = Operation(2);
const LIST: Operation = Operation(3);
const DELETE: Operation = Operation(4);

pub(super) struct Mixed {
    shape: Shape,
}

impl Mixed {
    pub(super) fn new(shape: Shape) -> Mixed {
        Mixed { shape }
    }

    fn child(&self, number: usize) -> String {
        format!("{}/child-{number:0width$}", self.shape.root, width = NAME_BYTES - "child-".len())
    }
}

impl Workload for Mixed {
    fn name(&self) -> String {
        "mixed".into()
    }

    fn operations(&self) -> Vec<String> {
        ["create", "set", "get", "list", "delete"].map(String::from).to_vec()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        let value = self.shape.value(VALUE_BYTES);
        let children =
            (0..CHILDREN).map(move |number| Znode { path: self.child(number), data: value.clone() });
        Box::new(std::iter::once(self.shape.znode("")).chain(children))
    }

    fn roots(&self) -> Vec<String> {
        vec![self.shape.root.clone()]
    }

    fn lane(&self, session: usize) -> Box<dyn Lane> {
        let width = NAME_BYTES - "s00000-".len() - "00000000".len();
        Box::new(MixedLane {
            chance: self.shape.chance(session),
            root: self.shape.root.clone(),
            children: (0..CHILDREN).map(|number| self.child(number)).collect(),
            own: Names::with_prefix(&format!("{}/s{session:05}-{:0width$}", self.shape.root, 0)),
            value: self.shape.value(VALUE_BYTES),
        })
    }
}

struct MixedLane {
    chance: fastrand::Rng,
    root: String,
    children: Vec<String>,
    own: Names,
    value: Vec<u8>,
}

impl Lane for MixedLane {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        let percent = self.chance.u32(0..100);
        let child = &self.children[self.chance.usize(0..CHILDREN)];
        Next::Send(match percent {
            0..45 => {
                request.get(child, false);
                GET
            }
            45..90 => {
                request.list(&self.root, false);
                LIST
            }
            90..98 => {
                request.set(child, &self.value);
                SET
            }
            // Creates and deletes take turns, so that the list stays as long as it is.
            _ => match self.own.delete() {
                Some(path) => {
                    request.delete(path);
                    DELETE
                }
                None => {
                    request.create(self.own.create(), &self.value, CreateMode::Persistent);
                    CREATE
                }
            },
        })
    }
}
