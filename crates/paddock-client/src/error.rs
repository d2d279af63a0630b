//! Errors that a caller gets.

use std::io;
use std::sync::Arc;

use paddock_proto::{DecodeError, ErrorCode, OpCode};

use crate::LoginError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The server understood the request and said no.
    #[error("{op:?} refused: {code:?}")]
    Refused { op: OpCode, code: ErrorCode },
    /// A multi did nothing, because of its operation number `index`.
    #[error("multi failed at operation {index}: {code:?}")]
    MultiFailed { index: usize, code: ErrorCode },
    /// The server answered with an error that this client has no name for.
    #[error("{op:?} refused with the unknown error {code}")]
    UnknownCode { op: OpCode, code: i32 },
    /// The request may or may not have been carried out.
    #[error("connection lost before the answer came")]
    ConnectionLost,
    /// The session is over and its ephemerals are gone. A new `Client` is needed.
    #[error("session expired")]
    SessionExpired,
    /// The server refuses an identity of this session after a reconnect. A new `Client` is needed.
    #[error("authentication failed")]
    AuthFailed,
    /// The server does not let this user in, or cannot prove that it knows its password. A new `Client` is needed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// `Client::close` came first.
    #[error("client is closed")]
    Closed,
    #[error("server list {0:?} is empty")]
    NoServers(String),
    #[error("connect to {servers}")]
    Connect {
        servers: String,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("decode the reply to {op:?}")]
    BadReply {
        op: OpCode,
        #[source]
        source: DecodeError,
    },
}

impl Error {
    /// The code of a refusal, if this is one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Refused { code, .. } | Error::MultiFailed { code, .. } => Some(*code),
            _ => None,
        }
    }
}
