//! `create`: what raftkeeper-bench calls create-100%: new znodes of 100 bytes, nothing else.

use paddock_proto::CreateMode;

use super::builtin::Shape;
use super::names::Names;
use super::{Lane, Next, Operation, Request, Workload, Znode};

const VALUE_BYTES: usize = 100;
const CREATE: Operation = Operation(0);

pub(super) struct CreateOnly {
    shape: Shape,
}

impl CreateOnly {
    pub(super) fn new(shape: Shape) -> CreateOnly {
        CreateOnly { shape }
    }
}

impl Workload for CreateOnly {
    fn name(&self) -> String {
        "create".into()
    }

    fn operations(&self) -> Vec<String> {
        vec!["create".into()]
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        Box::new(self.shape.session_znodes(""))
    }

    fn roots(&self) -> Vec<String> {
        vec![self.shape.root.clone()]
    }

    fn lane(&self, session: usize) -> Box<dyn Lane> {
        let names = Names::below(&format!("{}/{session}", self.shape.root));
        Box::new(Creator { names, value: self.shape.value(VALUE_BYTES) })
    }
}

struct Creator {
    names: Names,
    value: Vec<u8>,
}

impl Lane for Creator {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        request.create(self.names.create(), &self.value, CreateMode::Persistent);
        Next::Send(CREATE)
    }
}
