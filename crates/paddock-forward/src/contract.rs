//! Everything that comes to the engine of a mirror, and what it wants done.

use std::fmt;

use paddock_proto::{OpCode, SessionId};
use paddock_state::ClientInput;
use paddock_tree::{AppliedTransaction, Tree};

/// Clients that a mirror serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorMode {
    /// Clients that may only read.
    ReadOnly,
    /// All: what it cannot do itself goes to the source.
    Forwarding,
}

/// Inputs of the engine. A mirror that only reads has no use for those about requests of its own.
pub enum Input {
    Client(ClientInput),
    /// A change of the source's state. Changes are shown in the order in which they are told.
    Change(Box<AppliedTransaction>),
    /// Another state. All connections are closed: it is not known which watches would have fired.
    Replace(Box<Tree>),
    /// The source is connected, and everything has been shown that it had then.
    Linked,
    /// The source is not connected any more.
    Lost,
    /// The source was heard: it has told everything that it knew until then.
    Heard,
    /// The oldest sync is answered.
    CaughtUp,
    /// The source has looked for a session whose client came here; `lives` is false if it has ended.
    Revalidated {
        session: SessionId,
        lives: bool,
    },
    /// Requests of clients are held back from now on, until nothing is under way any more and beyond.
    Hold,
    /// Requests that are held back go to the source after all.
    Release,
}

/// An input without its content.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Input::Client(_) => "Client",
            Input::Change(_) => "Change",
            Input::Replace(_) => "Replace",
            Input::Linked => "Linked",
            Input::Lost => "Lost",
            Input::Heard => "Heard",
            Input::CaughtUp => "CaughtUp",
            Input::Revalidated { .. } => "Revalidated",
            Input::Hold => "Hold",
            Input::Release => "Release",
        })
    }
}

impl From<ClientInput> for Input {
    fn from(input: ClientInput) -> Input {
        Input::Client(input)
    }
}

/// Orders for the process around the engine.
#[derive(Debug, Default)]
pub struct Effects {
    /// Requests for the source, in their order. One that cannot be sent is lost with the connection.
    pub requests: Vec<SourceRequest>,
    /// Present once all is answered that was under way when `Hold` came.
    pub held: Option<Held>,
}

/// A request for the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRequest {
    /// Comes back as the transaction that names this session and number. `ids` are the client's identities as a jute vector.
    Write { session: SessionId, xid: i32, op: OpCode, ids: Vec<u8>, body: Vec<u8> },
    /// Comes back as [`Input::CaughtUp`]; several in their order.
    Sync { session: SessionId },
    /// The session's client is here now. Comes back as [`Input::Revalidated`].
    Revalidate { session: SessionId, timeout_ms: i32 },
    /// The session was heard. Does not come back.
    Touch { session: SessionId, timeout_ms: i32 },
}

/// The source has answered all that it was sent, and has nothing that is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Sessions without a connection here.
    pub elsewhere: Vec<SessionId>,
}
