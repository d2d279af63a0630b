//! `zkboom`: zetcd's load tool: creates and gets of 128 bytes, meant to be run at a fixed rate.

use paddock_proto::CreateMode;

use super::builtin::Shape;
use super::names::Names;
use super::{Lane, Next, Operation, Request, Workload, Znode};

const VALUE_BYTES: usize = 128;
const CREATE: Operation = Operation(0);
const GET: Operation = Operation(1);

pub(super) struct ZkBoom {
    shape: Shape,
}

impl ZkBoom {
    pub(super) fn new(shape: Shape) -> ZkBoom {
        ZkBoom { shape }
    }
}

impl Workload for ZkBoom {
    fn name(&self) -> String {
        "zkboom".into()
    }

    fn operations(&self) -> Vec<String> {
        ["create", "get"].map(String::from).to_vec()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        Box::new(self.shape.session_znodes(""))
    }

    fn roots(&self) -> Vec<String> {
        vec![self.shape.root.clone()]
    }

    fn lane(&self, session: usize) -> Box<dyn Lane> {
        let names = Names::below(&format!("{}/{session}", self.shape.root));
        Box::new(Boom { names, value: self.shape.value(VALUE_BYTES), is_read_next: false })
    }
}

struct Boom {
    names: Names,
    value: Vec<u8>,
    is_read_next: bool,
}

impl Lane for Boom {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        let is_read = self.is_read_next;
        self.is_read_next = !is_read;
        match self.names.last_created().filter(|_| is_read) {
            Some(path) => {
                request.get(path, false);
                Next::Send(GET)
            }
            None => {
                request.create(self.names.create(), &self.value, CreateMode::Persistent);
                Next::Send(CREATE)
            }
        }
    }
}
