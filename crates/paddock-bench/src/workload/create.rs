//! `create`, what raftkeeper-bench calls create-100%: new znodes of 100 bytes, nothing else. `zkboom`, zetcd's load tool:
//! creates of 128 bytes, each followed by a get, meant to be run at a fixed rate.

use paddock_proto::CreateMode;

use super::names::Names;
use super::shape::Shape;
use super::{Lane, NextRequest, Operation, WorkloadRequest};

const VALUE_BYTES: usize = 100;
const ZKBOOM_VALUE_BYTES: usize = 128;
const CREATE: Operation = Operation(0);
const GET: Operation = Operation(1);

pub(super) fn creates(shape: &Shape) -> Vec<Box<dyn Lane>> {
    creators(shape, VALUE_BYTES, false)
}

pub(super) fn creates_and_gets(shape: &Shape) -> Vec<Box<dyn Lane>> {
    creators(shape, ZKBOOM_VALUE_BYTES, true)
}

fn creators(shape: &Shape, value_bytes: usize, reads: bool) -> Vec<Box<dyn Lane>> {
    shape.lanes(|session| Creator {
        names: Names::below(&format!("{}/{session}", shape.root)),
        value: shape.value(value_bytes),
        reads,
        is_read_next: false,
    })
}

struct Creator {
    names: Names,
    value: Vec<u8>,
    /// True if each create is followed by a get of its znode.
    reads: bool,
    is_read_next: bool,
}

impl Lane for Creator {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        let is_read = self.is_read_next;
        self.is_read_next = self.reads && !is_read;
        match self.names.last_created().filter(|_| is_read) {
            Some(path) => {
                request.get(path, false);
                NextRequest::Send(GET)
            }
            None => {
                request.create(self.names.create(), &self.value, CreateMode::Persistent);
                NextRequest::Send(CREATE)
            }
        }
    }
}
