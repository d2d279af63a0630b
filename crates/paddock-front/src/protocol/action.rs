//! Actions that frames of a connection call for.

use paddock_proto::{ErrorCode, OpCode, ReplyHeader, Xid, Zxid};
use paddock_state::ClientInput;

use crate::LimitHit;
use crate::identities::TooManyIdentities;

/// Something to be done because of a frame.
#[derive(Debug)]
pub(crate) enum Action<'f> {
    /// To be handed to the engine; a parcel will answer.
    Submit(ClientInput),
    /// To be answered from the state, once all that was submitted has been answered.
    Read { xid: Xid, op: OpCode, body: &'f [u8] },
    /// To be answered at once, whatever waits: a client takes silence for death.
    Ping,
    /// A write for which the member has no memory: to be answered like a read, with an error.
    Throttle { xid: Xid, op: OpCode, body: &'f [u8] },
    /// A write that is too large for the log: to be answered like a read, with an error.
    TooLarge { xid: Xid, op: OpCode, bytes: usize },
    /// A request above the rate of its tenant: to be answered with an error, in its turn.
    OverRate { xid: Xid, op: OpCode },
    /// A token of SASL, to be answered at once.
    Sasl { xid: Xid, body: &'f [u8] },
    /// The client has shown another identity: the watch table must know, then the reply goes out.
    Identify { xid: Xid },
    /// The connection ends, with this packet or without any.
    Refuse(Refusal),
}

impl Action<'_> {
    /// The action for a request of a tenant that asks for too much.
    pub(crate) fn over_rate(self) -> Self {
        match self {
            Action::Submit(ClientInput::Write { request, op, .. }) => {
                Action::OverRate { xid: request.xid, op }
            }
            Action::Read { xid, op, .. }
            | Action::Throttle { xid, op, .. }
            | Action::TooLarge { xid, op, .. } => Action::OverRate { xid, op },
            other => other,
        }
    }
}

/// The last packet of a connection that the front ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Silently {
        why: &'static str,
    },
    /// This reply, behind those to all earlier requests.
    Reply(ReplyHeader),
    /// The reply to an auth that proved nothing, at once.
    AuthFailed {
        xid: Xid,
    },
    /// Answer to an auth that proved more identities than a connection may show.
    TooManyIdentities {
        xid: Xid,
        found: TooManyIdentities,
    },
    /// The reply to a token of SASL that proved nothing, at once.
    SaslFailed {
        xid: Xid,
        error: ErrorCode,
    },
    Expired {
        read_only: Option<bool>,
    },
    NoLeader,
    /// A limit has been reached that concerns this greeting.
    Limited(LimitHit),
}

pub(super) fn silently<'f>(why: &'static str) -> Action<'f> {
    Action::Refuse(Refusal::Silently { why })
}

pub(super) fn unimplemented<'f>(xid: Xid) -> Action<'f> {
    reply_and_close(xid, Zxid::NONE, ErrorCode::Unimplemented)
}

pub(super) fn reply_and_close<'f>(xid: Xid, zxid: Zxid, error: ErrorCode) -> Action<'f> {
    Action::Refuse(Refusal::Reply(ReplyHeader { xid, zxid, error: Some(error) }))
}
