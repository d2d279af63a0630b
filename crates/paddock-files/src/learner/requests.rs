//! Requests of an observer's clients, as they go to the leader, and the sessions that it has heard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{OpCode, SessionId, Zxid};

use super::LearnerError;
use super::packet::{LearnerPacket, PacketKind};

/// Something that only the leader can do. It may be asked from [`super::Event::Synced`] on, by a task that shares the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnerRequest<'a> {
    /// Comes back as a transaction with this session and xid. `ids` are the client's identities as a jute vector.
    Write { session: SessionId, xid: i32, op: OpCode, ids: &'a [u8], body: &'a [u8] },
    /// Comes back as [`super::Event::Caught`] behind every transaction that was committed before it; several in their order.
    Sync { session: SessionId },
    /// The session's client is here now. Comes back as [`super::Event::Revalidated`].
    Revalidate { session: SessionId, timeout_ms: i32 },
}

impl LearnerRequest<'_> {
    /// Appends the packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.packet().encode(out);
    }

    fn packet(&self) -> LearnerPacket {
        let mut data = Vec::new();
        match *self {
            LearnerRequest::Write { session, xid, op, ids, body } => {
                put_header(session, xid, op, &mut data);
                data.extend_from_slice(body);
                let packet = LearnerPacket::new(PacketKind::Request, Zxid(-1), Some(data));
                LearnerPacket { identities: Some(ids.to_vec()), ..packet }
            }
            LearnerRequest::Sync { session } => {
                put_header(session, 0, OpCode::Sync, &mut data);
                data.put_string("/");
                LearnerPacket::new(PacketKind::Request, Zxid(-1), Some(data))
            }
            LearnerRequest::Revalidate { session, timeout_ms } => {
                data.put_i64(session.0);
                data.put_i32(timeout_ms);
                LearnerPacket::new(PacketKind::Revalidate, Zxid(-1), Some(data))
            }
        }
    }
}

fn put_header(session: SessionId, xid: i32, op: OpCode, out: &mut Vec<u8>) {
    out.put_i64(session.0);
    out.put_i32(xid);
    out.put_i32(op.code());
}

/// Answer to [`LearnerRequest::Revalidate`]: the session, and true if it lives.
pub(super) fn revalidated(data: Option<Vec<u8>>) -> Result<(SessionId, bool), LearnerError> {
    let data = data.unwrap_or_default();
    let mut reader = Reader::new(&data);
    let answer = reader.i64().and_then(|session| Ok((SessionId(session), reader.bool()?)));
    answer.map_err(|_| LearnerError::Malformed { what: "answer about a session" })
}

/// Sessions heard since the leader's last ping, whose answer names them: the leader ends those that no server names.
#[derive(Clone, Debug, Default)]
pub struct TouchedSessions(Arc<Mutex<HashMap<SessionId, i32>>>);

impl TouchedSessions {
    /// The session, with its timeout in milliseconds, was heard.
    pub fn touch(&self, session: SessionId, timeout_ms: i32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session, timeout_ms);
    }

    /// The table behind a ping's answer. Without sessions it is empty, and never null.
    pub(super) fn take(&self) -> Vec<u8> {
        let touched = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut table = Vec::with_capacity(touched.len() * 12);
        for (session, timeout_ms) in touched {
            table.put_i64(session.0);
            table.put_i32(timeout_ms);
        }
        table
    }
}
