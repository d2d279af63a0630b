//! Contract between the engine and its shell, which speaks to etcd: calls and their answers, the watch stream, leases.

use std::sync::Arc;

use paddock_state::ClientInput;

use crate::plan::Transaction;
use crate::revisions::KeyEvent;

/// Number of a call, never used again by an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Something that etcd is asked once. The shell answers each call, by `CallError::Lost` if nothing else is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Up to `limit` keys of a range, as they were in `revision`; 0 stands for the newest one.
    Read {
        start: Vec<u8>,
        end: Vec<u8>,
        revision: i64,
        limit: i64,
    },
    /// Shared with the engine, which may have to send it again.
    Transact(Arc<Transaction>),
    /// Makes a lease with this id.
    Grant {
        lease: i64,
        ttl_s: i64,
    },
    Revoke {
        lease: i64,
    },
    /// A linearizable read of a key, for etcd's revision.
    Probe {
        key: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Page {
        /// Revision of the read, which the next page has to name.
        revision: i64,
        pairs: Vec<KeyEvent>,
        is_last: bool,
    },
    Transacted {
        /// False if a compare did not hold.
        is_done: bool,
        /// etcd's revision; that of the transaction if it is done and wrote anything.
        revision: i64,
    },
    Granted,
    Revoked,
    Probed {
        revision: i64,
    },
}

/// Reason why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call may have been carried out, or may still be.
    #[error("etcd gave no answer: {0}")]
    Lost(String),
    #[error("the revision has been compacted")]
    Compacted,
    #[error("the lease is gone")]
    LeaseNotFound,
    #[error("the lease exists already")]
    LeaseExists,
    #[error(
        "etcd's space is exhausted (alarm NOSPACE): compact and defragment it, or raise --quota-backend-bytes, and disarm the alarm"
    )]
    /// etcd has no room and takes no writes.
    NoSpace,
    /// A transaction has more operations or bytes than etcd takes.
    #[error("transaction is above a limit of etcd: {0}: raise --max-txn-ops or --max-request-bytes of etcd")]
    TooLarge(String),
    /// Any other refusal, in etcd's words.
    #[error("etcd refused: {0}")]
    Refused(String),
}

/// The watch stream to open in place of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchOrder {
    /// Messages of other streams than the newest are not heard.
    pub generation: u64,
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    pub first_revision: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchMessage {
    Opened,
    /// Whole revisions in their order, or none: everything up to `revision` has been told.
    Events {
        revision: i64,
        events: Vec<KeyEvent>,
    },
    /// etcd does not remember the revisions that are asked for.
    Compacted,
    Lost(String),
}

#[derive(Debug)]
pub enum Input {
    Client(ClientInput),
    Answer(CallId, Result<Answer, CallError>),
    Watch {
        generation: u64,
        message: WatchMessage,
    },
    /// A tick of `Engine::TICK_MS` has passed.
    Tick,
}

impl From<ClientInput> for Input {
    fn from(input: ClientInput) -> Input {
        Input::Client(input)
    }
}

/// Orders for the shell, to be carried out in any order.
#[derive(Debug, Default)]
pub struct Effects {
    pub calls: Vec<(CallId, Call)>,
    pub watch: Option<WatchOrder>,
    /// Leases to renew. Nothing is answered: a lease that is gone takes its session's key with it.
    pub keep_alive: Vec<i64>,
}
