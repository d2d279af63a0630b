//! A sequence of requests. Everything in it is plain data, so a step can be left out and the rest performed again.

use std::fmt;

use paddock_proto::OpCode;

use super::body::{Body, ROOT};
use super::identities::OracleIdentity;

/// One request.
#[derive(Clone, Debug)]
pub struct OracleCall {
    pub name: &'static str,
    /// As in the header: it may be nonsense.
    pub op: i32,
    /// `None`: the connection's next number.
    pub xid: Option<i32>,
    pub body: Body,
    /// The body begins with a zxid that counts from where the sequence began.
    pub relative_zxid: bool,
    /// ZooKeeper closes the connection after its answer. It may let other answers slip through that were ready at the
    /// same moment, so nothing is asked behind such a request.
    pub ends_connection: bool,
}

impl OracleCall {
    pub fn new(name: &'static str, op: i32, body: Body) -> OracleCall {
        OracleCall { name, op, xid: None, body, relative_zxid: false, ends_connection: false }
    }

    pub fn of(name: &'static str, op: OpCode, body: Body) -> OracleCall {
        OracleCall::new(name, op.code(), body)
    }

    /// This call, known to end the connection.
    pub fn ending(self) -> OracleCall {
        OracleCall { ends_connection: true, ..self }
    }

    /// True if other connections can notice it.
    pub fn may_change_something(&self) -> bool {
        OpCode::from_code(self.op).is_none_or(|op| op.is_write() || op == OpCode::Auth)
    }
}

/// A number of a connection within its sequence.
pub type Slot = usize;

#[derive(Clone, Debug)]
pub enum OracleStep {
    /// A new connection takes the slot; one that is there is cut.
    Connect { slot: Slot, connect: Connect },
    /// Requests in one write. With more than one, the order of the answers counts too.
    Calls { slot: Slot, calls: Vec<OracleCall> },
    /// A frame that is not even a request.
    Frame { slot: Slot, bytes: Vec<u8> },
    /// The client is gone without a word.
    Cut { slot: Slot },
}

/// The first packet of a connection and what follows it without waiting for the answer.
#[derive(Clone, Debug)]
pub struct Connect {
    pub session: WantedSession,
    pub password: Shown,
    pub last_zxid: SeenZxid,
    pub timeout_ms: i32,
    /// `None`: a client older than the flag.
    pub read_only: Option<bool>,
    pub protocol_version: i32,
    /// Proved before anything else is asked.
    pub identity: OracleIdentity,
    pub then: Vec<OracleCall>,
}

impl Connect {
    /// The connect request of an ordinary new client.
    pub fn new_session() -> Connect {
        Connect {
            session: WantedSession::New,
            password: Shown::Right,
            last_zxid: SeenZxid::Nothing,
            timeout_ms: 30_000,
            read_only: Some(false),
            protocol_version: 0,
            identity: OracleIdentity::Nobody,
            then: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedSession {
    New,
    /// The session that was opened as this one, counted from the sequence's beginning.
    Opened(usize),
    /// An id that no session ever had.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Right,
    Wrong,
    TooShort,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenZxid {
    Nothing,
    /// The newest there is.
    Newest,
    /// One from the future.
    Ahead,
}

#[derive(Clone, Debug)]
pub struct Sequence {
    /// Below `ROOT`, on servers that others use too; or the whole tree of fresh servers, whose zxids must then be the
    /// same number for number.
    pub whole_tree: bool,
    pub steps: Vec<OracleStep>,
}

impl OracleStep {
    /// True if ZooKeeper closes the connection after this.
    pub fn ends_connection(&self) -> bool {
        match self {
            OracleStep::Calls { calls, .. } => calls.iter().any(|call| call.ends_connection),
            OracleStep::Frame { .. } => true,
            OracleStep::Connect { .. } | OracleStep::Cut { .. } => false,
        }
    }
}

impl fmt::Display for OracleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OracleStep::Connect { slot, connect } => {
                write!(f, "connection {slot}: connect {:?}", connect.session)?;
                if connect.session != WantedSession::New || connect.password != Shown::Right {
                    write!(f, " password={:?}", connect.password)?;
                }
                write!(f, " last_zxid={:?} timeout_ms={}", connect.last_zxid, connect.timeout_ms)?;
                write!(f, " read_only={:?} version={}", connect.read_only, connect.protocol_version)?;
                if connect.identity != OracleIdentity::Nobody {
                    write!(f, " identity={:?}", connect.identity)?;
                }
                connect.then.iter().try_for_each(|call| write!(f, "\n      then {call}"))
            }
            OracleStep::Calls { slot, calls } => {
                write!(f, "connection {slot}:")?;
                match calls.as_slice() {
                    [call] => write!(f, " {call}"),
                    calls => calls.iter().try_for_each(|call| write!(f, "\n      {call}")),
                }
            }
            OracleStep::Frame { slot, bytes } => {
                write!(f, "connection {slot}: frame \"{}\"", bytes.escape_ascii())
            }
            OracleStep::Cut { slot } => write!(f, "connection {slot}: cut"),
        }
    }
}

impl fmt::Display for OracleCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}) {}", self.name, self.op, self.body.story.replace(ROOT, "~"))?;
        self.xid.map_or(Ok(()), |xid| write!(f, " xid={xid}"))
    }
}
