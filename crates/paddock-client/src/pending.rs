//! An answer that is still to come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use paddock_proto::{DecodeError, ErrorCode, OpCode, Zxid};
use tokio::sync::oneshot;

use crate::Error;

/// A reply as it came, without its header: the answer to [`Client::send`](crate::Client::send).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The newest transaction that the answering server had applied; for a write, its own.
    pub zxid: Zxid,
    /// 0, or why there is no body.
    pub(crate) code: i32,
    /// The fields of the operation's result, in jute; empty if it has none.
    pub body: Vec<u8>,
}

/// The message from the connection to a waiting request.
pub(crate) type RequestResult = Result<Reply, Error>;

/// The function that makes a result of a reply.
pub(crate) type Decode<T> = fn(Reply) -> Result<T, Undecoded>;

/// Reasons for which a reply did not become a result.
pub(crate) enum Undecoded {
    Malformed(DecodeError),
    MultiFailed { index: usize, code: ErrorCode },
}

impl From<DecodeError> for Undecoded {
    fn from(error: DecodeError) -> Undecoded {
        Undecoded::Malformed(error)
    }
}

/// The answer to a request that is already on its way: a future of `Result<T, Error>`. Dropping it does not take the request back.
///
/// Several may be awaited in any order; the server carries their requests out in the order in which they were made. There is no time after which it gives up:
/// a request waits for a connection as long as its client looks for one.
#[derive(Debug)]
#[must_use = "the answer may be an error"]
pub struct Pending<T> {
    op: OpCode,
    decode: Decode<T>,
    source: ReplySource,
}

#[derive(Debug)]
enum ReplySource {
    Connection(oneshot::Receiver<RequestResult>),
    /// The client was already over when the request was made.
    Known(Option<Error>),
}

impl<T> Pending<T> {
    pub(crate) fn waiting(
        op: OpCode,
        answer: oneshot::Receiver<RequestResult>,
        decode: Decode<T>,
    ) -> Pending<T> {
        Pending { op, decode, source: ReplySource::Connection(answer) }
    }

    pub(crate) fn failed(op: OpCode, error: Error, decode: Decode<T>) -> Pending<T> {
        Pending { op, decode, source: ReplySource::Known(Some(error)) }
    }

    fn finish(&self, answer: RequestResult) -> Result<T, Error> {
        let op = self.op;
        let reply = answer?;
        match reply.code {
            0 => (self.decode)(reply).map_err(|error| match error {
                Undecoded::Malformed(source) => Error::BadReply { op, source },
                Undecoded::MultiFailed { index, code } => Error::MultiFailed { index, code },
            }),
            code => Err(refusal(op, code)),
        }
    }
}

/// The error that a reply header's `code` stands for.
fn refusal(op: OpCode, code: i32) -> Error {
    match ErrorCode::from_code(code) {
        Some(ErrorCode::SessionExpired) => Error::SessionExpired,
        Some(code) => Error::Refused { op, code },
        None => Error::UnknownCode { op, code },
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match &mut self.source {
            // The task that owns the connection drops a request only when it is itself dropped with its runtime.
            ReplySource::Connection(answer) => {
                ready!(Pin::new(answer).poll(context)).unwrap_or(Err(Error::Closed))
            }
            ReplySource::Known(error) => Err(error.take().expect("a future is not polled after its end")),
        };
        Poll::Ready(self.finish(answer))
    }
}
