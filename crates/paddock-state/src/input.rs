//! Inputs of an engine that come from this member's clients.

use paddock_proto::{OpCode, SessionId, Xid};

use crate::{Client, ConnId};

/// Something that a front hands to its engine.
///
/// The engine takes the inputs of a connection in the order in which they were handed over. `Write`, `Read`, `Connect` and
/// `Resume` are each answered once, in that order too, by a [`crate::Parcel`]: `Reply`, `Connected` or `Expired`. If the
/// engine sends `Close` instead, nothing more is answered on that connection.
#[derive(Debug)]
pub enum ClientInput {
    /// A write of a connection, encoded by `paddock_tree::Command::encode`.
    Write { conn: ConnId, xid: Xid, op: OpCode, command: Vec<u8> },
    /// A request without a write that has to wait for the connection's writes, or for the quorum's word.
    Read(QueuedRead),
    /// A client wants a new session. `may_only_read`: it takes one that only reads while nothing can be written.
    Connect { conn: ConnId, timeout_ms: i32, may_only_read: bool },
    /// A client with the right password wants its session back.
    Resume { conn: ConnId, session: SessionId, timeout_ms: i32, may_only_read: bool },
    /// The connection is gone. Nothing follows on it.
    Disconnect { conn: ConnId },
    /// The session was heard on a connection of this member, at most [`crate::TOUCH_DELAY_MS`] ago.
    Touch { session: SessionId },
}

/// A request that is answered from the state once all that its connection has asked before has been answered.
#[derive(Debug)]
pub struct QueuedRead {
    pub client: Client,
    pub xid: Xid,
    pub op: OpCode,
    pub body: Vec<u8>,
}
