//! The condition of a connection.

/// Condition of a connection, for the worker to decide what to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Requests are taken: what comes may be read from the socket.
    pub takes_input: bool,
    /// Bytes have come that were not taken yet: call [`Front::resume`](crate::Front::resume) when `takes_input` is true.
    pub has_input: bool,
    /// The last turn has left requests for the next one, so that others get theirs: call [`Front::resume`](crate::Front::resume) when they had it, and
    /// `takes_input` is true.
    pub has_more: bool,
    /// Replies have been large, or nothing is known of them: a turn of the connection may take long. Such turns are to be taken one by one,
    /// with those of other connections between them.
    pub is_heavy: bool,
    /// The client has sent no connect request yet.
    pub is_greeting: bool,
    /// Milliseconds after which input is taken again, if a limit of rate keeps it waiting: look again then. 0 if none does.
    pub rate_wait_ms: u32,
    /// A four-letter word that the process is to answer.
    pub word: Option<[u8; 4]>,
    pub unsent_bytes: usize,
    /// The connection is to be closed once nothing is unsent.
    pub is_closing: bool,
}
