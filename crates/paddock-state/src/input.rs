//! Inputs of an engine that come from this member's clients.

use bytes::Bytes;
use paddock_proto::jute::Reader;
use paddock_proto::{ErrorCode, Id, IdList, OpCode, SessionId, Xid, Zxid, encode};
use paddock_tree::is_proof;

use crate::{Client, ConnId};

/// A request of a connection, as the engine names it in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// The number that its client has given it.
    pub xid: Xid,
    /// Its place in the session's queue.
    pub slot: Slot,
}

impl RequestId {
    /// A request that is the first one of its connection.
    pub fn first(xid: Xid) -> RequestId {
        RequestId { xid, slot: Slot::default() }
    }
}

/// Place of a request in the queue of its connection: places are counted from 0, and begin anew behind the last number. Those that wait at
/// once are far fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// The place of the next request.
    #[inline]
    pub fn next(self) -> Slot {
        Slot(self.0.wrapping_add(1))
    }

    /// Number of places from an earlier one to this one.
    #[inline]
    pub fn behind(self, earlier: Slot) -> usize {
        self.0.wrapping_sub(earlier.0) as usize
    }
}

/// Something that a front hands to its engine.
///
/// The engine takes the inputs of a connection in the order in which they were handed over. `Write`, `Read`, `Connect` and
/// `Resume` are each answered once by a [`crate::Parcel`]: `Reply`, `Connected` or `Expired`. A reply names its request, and may come before
/// that to an earlier one: the front keeps it until its turn. If the engine sends `Close` instead, nothing more is answered on that
/// connection.
#[derive(Debug)]
pub enum ClientInput {
    /// A write of a connection, encoded by `paddock_tree::Command::encode`.
    Write { conn: ConnId, request: RequestId, op: OpCode, command: Bytes },
    /// A request without a write that has to wait for the connection's writes, or for the quorum's word.
    Read(QueuedRead),
    /// A client wants a new session. `may_only_read`: it takes one that only reads while nothing can be written. The session is bound
    /// to the first of `ids`.
    Connect { conn: ConnId, timeout_ms: i32, may_only_read: bool, ids: ProvenIds },
    /// A client with the right password wants its session back.
    Resume { conn: ConnId, resumption: Resumption, may_only_read: bool },
    /// The client of a connection that is about to ask for a session says that it has seen this zxid. Only where zxids of several groups are
    /// compared.
    Seen { conn: ConnId, zxid: Zxid },
    /// The client of a session has proved these identities. No connection waits for an answer.
    Bind { conn: ConnId, session: SessionId, ids: ProvenIds },
    /// The connection is gone. Nothing follows on it.
    Disconnect { conn: ConnId },
    /// The session was heard on a connection of this member, at most [`crate::TOUCH_DELAY_MS`] ago.
    Touch { session: SessionId },
}

impl ClientInput {
    /// The connection that it is of, if it is one's.
    pub fn conn(&self) -> Option<ConnId> {
        match self {
            ClientInput::Write { conn, .. }
            | ClientInput::Connect { conn, .. }
            | ClientInput::Resume { conn, .. }
            | ClientInput::Seen { conn, .. }
            | ClientInput::Bind { conn, .. }
            | ClientInput::Disconnect { conn } => Some(*conn),
            ClientInput::Read(read) => Some(read.client.conn),
            ClientInput::Touch { .. } => None,
        }
    }

    /// Tells a write or a read its place in the session's queue. Other inputs are answered without one.
    #[inline]
    pub fn set_slot(&mut self, slot: Slot) {
        match self {
            ClientInput::Write { request, .. } | ClientInput::Read(QueuedRead { request, .. }) => {
                request.slot = slot;
            }
            _ => {}
        }
    }
}

/// The session that a client wants back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    pub session: SessionId,
    pub timeout_ms: i32,
    /// The password was made from the ensemble's secret; else it is ZooKeeper's.
    pub is_keyed: bool,
    /// The client has yet to show an identity. It is told by `Connected` that the session lives, and nothing changes for the
    /// connection that is served on it; with the identity it is resumed by another input.
    pub is_asking: bool,
    /// Moves of the session that its member knew of.
    pub moves: u32,
    pub ids: ProvenIds,
}

impl Resumption {
    /// By a client with a keyed password, which has nothing else to show.
    pub fn keyed(session: SessionId, timeout_ms: i32) -> Resumption {
        let (is_keyed, is_asking, moves, ids) = (true, false, 0, ProvenIds::default());
        Resumption { session, timeout_ms, is_keyed, is_asking, moves, ids }
    }

    /// Body of the command, with the moves that count; without any for an engine that has other means to know where the session is.
    pub fn body(&self, moves: Option<u32>) -> Vec<u8> {
        let mut body = Vec::new();
        encode::resume_session(&mut body, self.timeout_ms, self.is_keyed, self.is_asking, moves);
        body
    }
}

/// Identities that a client has proved, as a jute vector; empty bytes for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvenIds(Vec<u8>);

impl ProvenIds {
    /// A client's identities that are proofs.
    pub fn of(ids: IdList<'_>) -> ProvenIds {
        let is_proven = |&(scheme, _): &(&str, &str)| is_proof(scheme);
        let ids: Vec<Id> = ids.iter().filter(is_proven).map(|(scheme, id)| Id::new(scheme, id)).collect();
        if ids.is_empty() { ProvenIds::default() } else { ProvenIds(IdList::encode(&ids)) }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn with<T>(&self, take: impl FnOnce(IdList<'_>) -> T) -> T {
        if self.is_empty() {
            return take(IdList::NONE);
        }
        take(IdList::decode(&mut Reader::new(&self.0)).expect("ids come back as encoded"))
    }
}

/// A request that is answered from the state once all that its connection has asked before has been answered.
#[derive(Clone, Debug)]
pub struct QueuedRead {
    pub client: Client,
    pub request: RequestId,
    pub op: OpCode,
    pub body: Bytes,
    /// The error that is its answer, if the front has refused it.
    pub refusal: Option<ErrorCode>,
}

impl QueuedRead {
    pub fn new(client: Client, request: RequestId, op: OpCode, body: impl Into<Bytes>) -> QueuedRead {
        QueuedRead { client, request, op, body: body.into(), refusal: None }
    }
}
