//! The place where callers leave their requests and the connection's task takes them: bytes ready to be written, and for each
//! request who waits for its answer. One lock, held for as long as it takes to encode one request.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use paddock_proto::{OpCode, RequestHeader, Xid, frame};
use tokio::sync::{Notify, oneshot};

use crate::pending::{Decode, RequestResult};
use crate::watches::WatchIntent;
use crate::{Error, Pending};

/// A request whose answer has not come.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub xid: Xid,
    pub answer: oneshot::Sender<RequestResult>,
    pub intent: Intent,
}

/// A fact that the connection has to remember if the request succeeds.
#[derive(Debug)]
pub(crate) enum Intent {
    Nothing,
    Watch(WatchIntent),
    /// To be shown again after a reconnect.
    Auth {
        scheme: String,
        auth: Vec<u8>,
    },
    /// The session is over with the answer.
    Close,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    /// Wakes the task when there is something to write or the last handle is gone.
    pub wake: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct OutboxState {
    pub bytes: Vec<u8>,
    pub waiting: VecDeque<PendingRequest>,
    last_xid: i32,
    /// Set once: no request is taken any more.
    pub end: Option<Error>,
    /// No request can be made any more.
    pub abandoned: bool,
}

impl Outbox {
    pub(crate) fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().expect("no caller panics while it holds the outbox")
    }

    /// Puts a request in line; `body` appends its body.
    pub(crate) fn push<T>(
        &self,
        op: OpCode,
        intent: Intent,
        body: impl FnOnce(&mut Vec<u8>),
        decode: Decode<T>,
    ) -> Pending<T> {
        let mut state = self.lock();
        if let Some(error) = &state.end {
            return Pending::failed(op, error.clone(), decode);
        }
        let xid = match &intent {
            Intent::Auth { .. } => Xid::AUTH,
            _ => state.next_xid(),
        };
        let was_idle = state.bytes.is_empty();
        frame::write(&mut state.bytes, |out| {
            RequestHeader { xid, op: op.code() }.encode(out);
            body(out);
        });
        let (answer, receiver) = oneshot::channel();
        state.waiting.push_back(PendingRequest { xid, answer, intent });
        drop(state);
        if was_idle {
            self.wake.notify_one();
        }
        Pending::waiting(op, receiver, decode)
    }

    /// Refuses this and every later request with `error`.
    pub(crate) fn end(&self, error: Error) {
        let waiting = {
            let mut state = self.lock();
            state.end.get_or_insert(error.clone());
            state.bytes.clear();
            std::mem::take(&mut state.waiting)
        };
        for request in waiting {
            // A caller who dropped its `Pending` does not want to know.
            let _ = request.answer.send(Err(error.clone()));
        }
    }
}

impl OutboxState {
    /// Counts from 1 and starts again there: zero and below have meanings of their own.
    fn next_xid(&mut self) -> Xid {
        self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
        Xid(self.last_xid)
    }
}
