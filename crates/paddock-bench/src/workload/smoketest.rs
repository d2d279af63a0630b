//! `smoketest`: the phases of zk-smoketest's zk-latencies.py, with its znodes of 25 bytes, all requests asynchronous.

use std::time::Instant;

use paddock_proto::{CreateMode, EventKind, WatchEvent};

use super::shape::Shape;
use super::{Lane, NextRequest, Operation, WorkloadRequest};

const VALUE_BYTES: usize = 25;
/// Number of znodes of each session, unless the user says otherwise.
const ZNODES: u64 = 10_000;

/// The operation of each phase.
pub(super) const OPERATIONS: [&str; 7] =
    ["create", "set", "get", "delete", "create ephemeral", "exists, watched", "delete, notified"];

/// The sentence that is printed about each phase.
pub(super) const PHASES: [&str; 7] = [
    "created permanent znodes",
    "set permanent znodes",
    "got permanent znodes",
    "deleted permanent znodes",
    "created ephemeral znodes",
    "watched ephemeral znodes",
    "deleted ephemeral znodes, notified",
];

pub(super) fn lanes(shape: &Shape) -> Vec<Box<dyn Lane>> {
    shape.lanes(|session| Smoke {
        directory: format!("{}/session_{session}", shape.root),
        value: shape.value(VALUE_BYTES),
        znodes: shape.znodes.unwrap_or(ZNODES),
        phase: 0,
        sent: 0,
        notified: 0,
    })
}

struct Smoke {
    directory: String,
    value: Vec<u8>,
    znodes: u64,
    phase: usize,
    /// Requests of this phase.
    sent: u64,
    notified: u64,
}

impl Lane for Smoke {
    fn begin(&mut self, phase: usize) {
        self.phase = phase;
        self.sent = 0;
    }

    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        if self.sent == self.znodes {
            let is_last = self.phase == PHASES.len() - 1;
            return if is_last && self.notified < self.znodes {
                NextRequest::Wait
            } else {
                NextRequest::Done
            };
        }
        let path = format!("{}/{}", self.directory, self.sent);
        self.sent += 1;
        match self.phase {
            0 => request.create(&path, &self.value, CreateMode::Persistent),
            1 => request.set(&path, &self.value),
            2 => request.get(&path, false),
            4 => request.create(&path, &self.value, CreateMode::Ephemeral),
            5 => request.exists(&path, true),
            _ => request.delete(&path),
        }
        NextRequest::Send(Operation(self.phase))
    }

    fn notified(&mut self, event: &WatchEvent<'_>, _: Instant) -> Option<(Operation, std::time::Duration)> {
        self.notified += u64::from(event.kind == EventKind::NodeDeleted);
        None
    }
}
