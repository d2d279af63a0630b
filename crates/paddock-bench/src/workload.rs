//! Requests that a run makes of a server. A `Workload` is the plan; each session plays its own `Lane` of it.
//!
//! Lanes know nothing of sockets or windows: the driver asks for the next request whenever there is room for one, and
//! tells what came back. Answers come in the order of the requests.

pub mod builtin;
mod clickhouse;
mod create;
pub mod keeper;
mod mix;
#[cfg(test)]
mod model;
mod multi_read;
mod names;
pub mod production;
pub mod replay;
mod same;
mod session_storm;
pub mod shape;
mod smoketest;
pub mod tree;
mod watches;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use paddock_proto::{CreateMode, ErrorCode, OpCode, RequestHeader, WatchEvent, Xid, encode, frame};

/// Place of a request's operation in `Workload::operations`, for the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(pub usize);

/// A znode that must be there before the first request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedZnode {
    pub path: String,
    pub data: Vec<u8>,
}

pub trait Workload: Debug + Send + Sync {
    fn name(&self) -> String;

    /// The operations that are reported apart.
    fn operations(&self) -> Vec<String>;

    /// Znodes to create before the run, parents first.
    fn setup(&self) -> Box<dyn Iterator<Item = PreparedZnode> + '_>;

    /// The roots of all that the workload creates; they are removed before setup and after the run.
    fn roots(&self) -> Vec<String>;

    /// Parts that follow each other: each begins when the one before has been answered everywhere.
    fn phases(&self) -> Vec<String> {
        vec![self.name()]
    }

    /// True if lanes wait for each other, so that one thread must drive them all.
    fn is_one_thread(&self) -> bool {
        false
    }

    /// The lanes of `sessions` sessions, in their order.
    fn lanes(&self, sessions: usize) -> Vec<Box<dyn Lane>>;
}

pub trait Lane: Send {
    /// A phase begins; lanes of workloads with one phase need not care.
    fn begin(&mut self, _phase: usize) {}

    /// Writes the next request, if there is one.
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest;

    /// An answer has come.
    fn answered(&mut self, answer: &ServerReply<'_>) -> ReplyVerdict {
        if answer.error == 0 { ReplyVerdict::Good } else { ReplyVerdict::Bad }
    }

    /// A watch has fired. May report how long something took that is not a request: operation and time.
    fn notified(&mut self, _event: &WatchEvent<'_>, _now: Instant) -> Option<(Operation, Duration)> {
        None
    }
}

/// The next step of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRequest {
    /// The request that it has just written.
    Send(Operation),
    /// Nothing until an answer or an event has come for this session.
    Wait,
    /// Nothing until one has come for any session of this thread.
    WaitForOthers,
    /// Nothing before this time of the run has passed; the latency of the request that then follows counts from there.
    At(Duration),
    /// End the session and open a new one; reported as the operations `close` and `connect`.
    Renew { close: Operation, connect: Operation },
    /// Nothing more in this phase.
    Done,
}

/// Room for the next request of a lane: one, or none.
#[derive(Debug)]
pub struct WorkloadRequest<'a> {
    out: &'a mut Vec<u8>,
    xid: Xid,
    /// Time at which the driver asked.
    pub now: Instant,
    pub(crate) op: Option<OpCode>,
}

impl<'a> WorkloadRequest<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, xid: Xid, now: Instant) -> WorkloadRequest<'a> {
        WorkloadRequest { out, xid, now, op: None }
    }

    /// Any operation; `body` appends its fields.
    pub fn write(&mut self, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.op.is_none(), "a lane writes one request at a time");
        self.op = Some(op);
        frame::write(self.out, |out| {
            RequestHeader { xid: self.xid, op: op.code() }.encode(out);
            body(out);
        });
    }

    pub fn create(&mut self, path: &str, data: &[u8], mode: CreateMode) {
        self.write(encode::create_op(mode), |out| encode::create_open(out, path, Some(data), mode));
    }

    pub fn set(&mut self, path: &str, data: &[u8]) {
        self.write(OpCode::SetData, |out| encode::set_data(out, path, Some(data), -1));
    }

    pub fn delete(&mut self, path: &str) {
        self.write(OpCode::Delete, |out| encode::path_and_version(out, path, -1));
    }

    pub fn get(&mut self, path: &str, watch: bool) {
        self.write(OpCode::GetData, |out| encode::path_and_watch(out, path, watch));
    }

    pub fn exists(&mut self, path: &str, watch: bool) {
        self.write(OpCode::Exists, |out| encode::path_and_watch(out, path, watch));
    }

    /// Names of the children and the Stat of the parent, as newer clients ask.
    pub fn list(&mut self, path: &str, watch: bool) {
        self.write(OpCode::GetChildren2, |out| encode::path_and_watch(out, path, watch));
    }

    /// Several writes; `each` appends them with `encode::multi_operation` and their bodies.
    pub fn multi(&mut self, each: impl FnOnce(&mut Vec<u8>)) {
        self.write(OpCode::Multi, |out| {
            each(out);
            encode::multi_end(out);
        });
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ServerReply<'a> {
    pub operation: Operation,
    /// 0, or the code of the refusal; for a multi that failed, that of the operation which failed it.
    pub error: i32,
    /// Bytes that follow the header.
    pub body: &'a [u8],
    pub now: Instant,
}

impl ServerReply<'_> {
    /// The refusal in the protocol's words.
    pub fn error_name(&self) -> String {
        error_name(self.error)
    }
}

pub fn error_name(code: i32) -> String {
    ErrorCode::from_code(code).map_or_else(|| format!("error {code}"), |code| format!("{code:?}"))
}

/// Judgement of an answer by the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyVerdict {
    Good,
    Bad,
}
