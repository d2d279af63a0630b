//! `sessions`: a storm of sessions that end and begin.

use super::shape::Shape;
use super::{Lane, NextRequest, Operation, WorkloadRequest};

pub(super) const OPERATIONS: [&str; 2] = ["close", "connect"];
const CLOSE: Operation = Operation(0);
const CONNECT: Operation = Operation(1);

pub(super) fn lanes(shape: &Shape) -> Vec<Box<dyn Lane>> {
    shape.lanes(|_| Storm)
}

struct Storm;

impl Lane for Storm {
    fn next(&mut self, _: &mut WorkloadRequest<'_>) -> NextRequest {
        NextRequest::Renew { close: CLOSE, connect: CONNECT }
    }
}
