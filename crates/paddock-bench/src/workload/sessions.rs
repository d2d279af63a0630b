//! `sessions`: a storm of sessions that end and begin.

use super::builtin::Shape;
use super::{Lane, Next, Operation, Request, Workload, Znode};

const CLOSE: Operation = Operation(0);
const CONNECT: Operation = Operation(1);

pub(super) struct Sessions;

impl Sessions {
    pub(super) fn new(_: Shape) -> Sessions {
        Sessions
    }
}

impl Workload for Sessions {
    fn name(&self) -> String {
        "sessions".into()
    }

    fn operations(&self) -> Vec<String> {
        ["close", "connect"].map(String::from).to_vec()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        Box::new(std::iter::empty())
    }

    fn roots(&self) -> Vec<String> {
        Vec::new()
    }

    fn lane(&self, _: usize) -> Box<dyn Lane> {
        Box::new(Storm)
    }
}

struct Storm;

impl Lane for Storm {
    fn next(&mut self, _: &mut Request<'_>) -> Next {
        Next::Renew { close: CLOSE, connect: CONNECT }
    }
}
