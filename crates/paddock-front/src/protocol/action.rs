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
    /// A request that is not carried out because of a limit: to be answered with an error, in its turn.
    Decline { xid: Xid, op: OpCode, why: Declined },
    /// A token of SASL, to be answered at once.
    Sasl { xid: Xid, body: &'f [u8] },
    /// The client has shown another identity: the watch table must know, then the reply goes out.
    Identify { xid: Xid },
    /// The connection ends, with this packet or without any.
    Refuse(Refusal),
}

/// The limit because of which a request is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declined {
    /// The member has no memory for what a write makes larger.
    Memory,
    /// A write is too large for the log, with this many bytes.
    CommandBytes(usize),
    /// The tenant asks for more than its rate.
    Rate,
}

impl Declined {
    pub(crate) fn error(self) -> ErrorCode {
        match self {
            Declined::Memory | Declined::Rate => ErrorCode::ThrottledOp,
            Declined::CommandBytes(_) => ErrorCode::MarshallingError,
        }
    }
}

impl Action<'_> {
    /// The action for a request of a tenant that asks for too much.
    pub(crate) fn over_rate(self) -> Self {
        let (xid, op) = match self {
            Action::Submit(ClientInput::Write { request, op, .. }) => (request.xid, op),
            Action::Read { xid, op, .. } | Action::Decline { xid, op, .. } => (xid, op),
            other => return other,
        };
        Action::Decline { xid, op, why: Declined::Rate }
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
