//! The process around a front, as far as a front needs it.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::ops::Deref;

use paddock_proto::{OpCode, SessionId, Xid, Zxid};
use paddock_state::{Now, Outbox, State};

/// A process gives its fronts the state and the engine's mail, and is told of the traffic.
pub trait Host {
    /// The state, locked for reading.
    type StateGuard<'a>: Deref<Target = State>
    where
        Self: 'a;
    /// Statistics of one connection.
    type Stats: Debug;
    /// A traced request that is under way.
    type Span: Debug;

    /// The time now, by the member's two clocks.
    fn now(&self) -> Now;

    /// Monotonic time in milliseconds: to ask one clock costs less than to ask two.
    fn monotonic_ms(&self) -> u64 {
        self.now().monotonic_ms
    }

    /// Locks the state for reading.
    fn lock_state(&self) -> Self::StateGuard<'_>;

    /// Moves what the engine has left for this front's connections into `mail`, which is empty. The engine leaves the events
    /// of a write before it lets go of the state: while the state is locked, everything that it shows is in the mail.
    /// Returns false if there was nothing.
    fn take_mail(&self, mail: &mut Outbox) -> bool;

    /// Monotonic time in milliseconds of the member's last contact to a quorum; the end of time for a member alone.
    fn confirmed_ms(&self) -> u64;

    /// True while the member knows of no leader.
    fn is_looking(&self) -> bool;

    /// True once the member stops: requests are not taken any more.
    fn is_stopping(&self) -> bool;

    /// A number that has never been used before, and that cannot be foreseen.
    fn nonce(&self) -> u128;

    /// The answer to a four-letter word, which stands in the place of a greeting with what came behind it; `None` if these bytes are
    /// none.
    fn answer_word(&self, word: [u8; 4], behind: &[u8]) -> Option<WordAnswer>;

    /// Begins to trace a request, if its tracing context asks for that.
    fn begin_span(&self, _request: &TracedRequest<'_>) -> Option<Self::Span> {
        None
    }

    /// Ends a traced request with its reply in ZooKeeper's dialect, events in front of it included, or without one.
    fn end_span(&self, _span: Self::Span, _reply: Option<&[u8]>) {}

    /// Time at which the turn of a connection began, in microseconds of the monotonic clock, if the host knows more of it than these
    /// milliseconds. For statistics.
    fn turn_began_us(&self, since_ms: u64) -> u64 {
        since_ms * 1000
    }

    /// Receives what the front's connections do, for statistics.
    fn note(&self, _event: FrontEvent<'_, Self::Stats>) {}
}

/// Something that a front or one of its connections has done. `S` is a connection's statistics.
#[derive(Debug)]
pub enum FrontEvent<'a, S> {
    /// A frame has come: a request, or a greeting.
    Received { conn: &'a S, request: Option<Received<'a>> },
    /// A connection serves a session now.
    Session { conn: &'a S, session: SessionId, timeout_ms: i32 },
    /// The number of requests of a connection that wait for the engine has changed.
    Waiting { conn: &'a S, requests: usize },
    /// The engine has answered a request about a path, if there is one, that was handed to it at `since_us` of the monotonic clock.
    Answered { conn: &'a S, reply: Answered, path: &'a [u8], since_us: u64, now: Now },
    /// A request was answered from the state.
    Read { op: OpCode, reply_bytes: usize },
    /// The turn of a connection, which began at `since_ms` of the monotonic clock, has answered requests.
    Served { conn: &'a S, served: Served, since_ms: u64 },
    /// A client greets to go on with its session.
    Resumption,
    /// A watch event was sent.
    WatchFired { conn: &'a S, bytes: usize },
    /// A client could not prove the identity that it showed.
    AuthFailed,
    /// A connection is closed because the member has had no contact to a quorum for too long.
    LostContact { silence_ms: u64, session_timeout_ms: i32 },
}

/// The answer to a four-letter word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordAnswer {
    Text(String),
    /// The word takes long: the process asks [`Condition::word`](crate::Condition) for it, and answers by
    /// [`Front::answer_word`](crate::Front::answer_word).
    Later,
}

/// Requests that were answered without the engine in one turn of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub replies: u64,
    /// The newest zxid that they have shown; 0 if the state was not asked.
    pub zxid: Zxid,
}

/// A request that has come, for statistics.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    pub xid: Xid,
    /// Code of the operation, as the client sent it.
    pub op: i32,
    pub body: &'a [u8],
}

/// The engine's answer to a request, for statistics.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Code of the operation.
    pub op: i32,
    /// 0 for the answer to a greeting.
    pub zxid: Zxid,
    pub bytes: usize,
}

/// A request that carries a tracing context.
#[derive(Debug)]
pub struct TracedRequest<'a> {
    /// The tracing context as the client sent it.
    pub context: &'a [u8],
    pub frame: &'a [u8],
    /// The xid in the frame has 8 bytes, not 4.
    pub has_wide_xid: bool,
    pub session: SessionId,
    pub client: SocketAddr,
}
