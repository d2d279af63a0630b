//! Failures of a load. Those about a line name it.

use std::io;

use paddock_client::{Error, ErrorCode};

use crate::access::AccessError;
use crate::diff::failure::DiffFailure;
use crate::moving::MovingFailure;

#[derive(Debug, thiserror::Error)]
pub(super) enum LoadFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Connect(#[from] DiffFailure),
    #[error("start the runtime: {0}")]
    Runtime(io::Error),
    #[error("read {place}: {source}")]
    Read { place: String, source: io::Error },
    #[error("line {line} of {place}: {what}")]
    BadLine { line: u64, place: String, what: String },
    #[error("there is no {parent} for {path} to be in: create it first, or say another --path")]
    NoParent { path: String, parent: String },
    #[error(
        "line {line}: {path} is there already, and {others} others: say --skip-existing to leave them, --overwrite to set them, or another --path; nothing was written"
    )]
    Exists { line: u64, path: String, others: u64 },
    #[error("line {line}: {path}: refused: {code:?}{advice}")]
    Refused { line: u64, path: String, code: ErrorCode, advice: &'static str },
    #[error("{servers}: what was written before is there; --skip-existing goes on behind it")]
    Client {
        servers: String,
        #[source]
        source: Error,
    },
}

impl From<LoadFailure> for MovingFailure {
    fn from(failure: LoadFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

/// A way out of a refusal; empty if there is none to name.
pub(super) fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NoAuth => ": show an identity with --auth that may create there",
        ErrorCode::InvalidAcl => ": the server does not know a scheme of its ACL",
        ErrorCode::NodeExists => ": another client has made it meanwhile; --skip-existing goes on behind it",
        ErrorCode::NoNode => ": its parent has gone meanwhile",
        ErrorCode::Unimplemented => {
            ": the server knows no znodes of this kind; ZooKeeper needs zookeeper.extendedTypesEnabled=true for a TTL"
        }
        ErrorCode::QuotaExceeded => ": a quota of the target does not allow it",
        _ => "",
    }
}
