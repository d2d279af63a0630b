//! `suite`: keeper-bench-suite's mix of one third creates and deletes, two thirds reads.

use paddock_proto::CreateMode;

use super::builtin::Shape;
use super::names::Names;
use super::{Lane, Next, Operation, Request, Workload, Znode};

/// Number of directories that are read, of a few znodes each.
const DIRECTORIES: usize = 100;
const CHILDREN: usize = 10;
const VALUE_BYTES: usize = 100;

const CREATE: Operation = Operation(0);
const DELETE: Operation = Operation(1);
const GET: Operation = Operation(2);
const LIST: Operation = Operation(3);

pub(super) struct SuiteMix {
    shape: Shape,
}

impl SuiteMix {
    pub(super) fn new(shape: Shape) -> SuiteMix {
        SuiteMix { shape }
    }

    fn directory(&self, number: usize) -> String {
        format!("{}/d{number:04}", self.shape.root)
    }
}

impl Workload for SuiteMix {
    fn name(&self) -> String {
        "suite".into()
    }

    fn operations(&self) -> Vec<String> {
        ["create", "delete", "get", "list"].map(String::from).to_vec()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        let value = self.shape.value(VALUE_BYTES);
        let read = (0..DIRECTORIES).flat_map(move |number| {
            let directory = self.directory(number);
            let child = |child| Znode { path: format!("{directory}/node-{child:08}"), data: value.clone() };
            let children: Vec<Znode> = (0..CHILDREN).map(child).collect();
            std::iter::once(Znode { path: directory, data: Vec::new() }).chain(children)
        });
        Box::new(self.shape.session_znodes("s").chain(read))
    }

    fn roots(&self) -> Vec<String> {
        vec![self.shape.root.clone()]
    }

    fn lane(&self, session: usize) -> Box<dyn Lane> {
        let directories: Vec<String> = (0..DIRECTORIES).map(|number| self.directory(number)).collect();
        let children = directories
            .iter()
            .flat_map(|directory| (0..CHILDREN).map(move |child| format!("{directory}/node-{child:08}")))
            .collect();
        Box::new(SuiteLane {
            chance: self.shape.chance(session),
            own: Names::below(&format!("{}/s{session}", self.shape.root)),
            directories,
            children,
            value: self.shape.value(VALUE_BYTES),
        })
    }
}

struct SuiteLane {
    chance: fastrand::Rng,
    own: Names,
    directories: Vec<String>,
    children: Vec<String>,
    value: Vec<u8>,
}

impl Lane for SuiteLane {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        Next::Send(match self.chance.u32(0..3) {
            0 => match self.own.delete() {
                Some(path) => {
                    request.delete(path);
                    DELETE
                }
                None => {
                    request.create(self.own.create(), &self.value, CreateMode::Persistent);
                    CREATE
                }
            },
            1 => {
                request.get(&self.children[self.chance.usize(0..self.children.len())], false);
                GET
            }
            _ => {
                request.list(&self.directories[self.chance.usize(0..self.directories.len())], false);
                LIST
            }
        })
    }
}
