//! Errors that a caller gets.

use std::io;
use std::sync::Arc;

use paddock_proto::{DecodeError, ErrorCode, OpCode};

use crate::LoginError;

/// The reason for which a request has no result, or a client no session.
///
/// After [`Error::Refused`], [`Error::MultiFailed`] and [`Error::UnknownCode`] the client goes on, and nothing was changed. After
/// [`Error::ConnectionLost`] it goes on too: it looks for another server by itself. [`Error::BadReply`] is about one request alone. All others end
/// the client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The server understood the request and said no.
    #[error("{op:?} refused: {code:?}")]
    Refused {
        /// The operation that was asked for.
        op: OpCode,
        /// The reason, such as [`ErrorCode::NoNode`].
        code: ErrorCode,
    },
    /// A multi did nothing, because of its operation number `index`.
    #[error("multi failed at operation {index}: {code:?}")]
    MultiFailed {
        /// Place of the operation in the [`Multi`](crate::Multi), from 0.
        index: usize,
        /// The reason for which that operation was refused.
        code: ErrorCode,
    },
    /// The server answered with an error that this client has no name for.
    #[error("{op:?} refused with the unknown error {code}")]
    UnknownCode {
        /// The operation that was asked for.
        op: OpCode,
        /// The error's number, as the server sent it.
        code: i32,
    },
    /// The connection broke before the answer. The request may or may not have been carried out, and is not sent again.
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
    /// [`Client::close`](crate::Client::close) came first, or the runtime of the client has ended.
    #[error("client is closed")]
    Closed,
    /// The list of servers names none. It is here as it was given.
    #[error("server list {0:?} is empty")]
    NoServers(String),
    /// No server granted a session in the time that [`ClientOptions::connect_timeout`](crate::ClientOptions::connect_timeout) gives.
    #[error("connect to {servers}")]
    Connect {
        /// The list of servers, as it was given.
        servers: String,
        /// The failure of the last attempt.
        #[source]
        source: Arc<io::Error>,
    },
    /// The server's answer has not the form that the protocol gives it. A write may have been carried out.
    #[error("decode the reply to {op:?}")]
    BadReply {
        /// The operation that was asked for.
        op: OpCode,
        /// The place at which reading ended.
        #[source]
        source: DecodeError,
    },
}

impl Error {
    /// The code of a refusal or of a multi that failed; `None` for every other error, also for one whose number has no name.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Refused { code, .. } | Error::MultiFailed { code, .. } => Some(*code),
            _ => None,
        }
    }
}
