//! Clients that only read: they are given sessions of this mirror, which no other server knows.

use std::collections::HashSet;

use paddock_proto::{ErrorCode, OpCode, SessionId};
use paddock_state::{ClientInput, ConnId, Connected, Outboxes, Resumption, State};

use crate::forwarding::answer_read;

#[derive(Debug)]
pub(crate) struct ReadOnly {
    /// Connections with sessions.
    conns: HashSet<ConnId>,
    next_session: i64,
}

impl ReadOnly {
    /// Sessions that begin here get ids from this one on.
    pub(crate) fn new(next_session: i64) -> ReadOnly {
        ReadOnly { conns: HashSet::new(), next_session }
    }

    pub(crate) fn take(&mut self, input: ClientInput, state: &State, out: &mut Outboxes) {
        match input {
            ClientInput::Connect { conn, timeout_ms, may_only_read, .. } => {
                let session = SessionId(self.next_session);
                self.next_session += 1;
                self.connect(conn, session, timeout_ms, may_only_read, state, out);
            }
            ClientInput::Resume { conn, resumption, may_only_read } => {
                let Resumption { session, timeout_ms, .. } = resumption;
                match state.tree().session_timeout_ms(session) {
                    Some(_) => self.connect(conn, session, timeout_ms, may_only_read, state, out),
                    None => out.expired(conn),
                }
            }
            ClientInput::Read(read) => answer_read(&read, state, out),
            ClientInput::Write { conn, request, op, .. } => {
                let zxid = state.tree().zxid();
                if op == OpCode::CloseSession {
                    out.write_reply(conn, request, (zxid, None), |_| {});
                    out.close(conn);
                } else {
                    out.write_reply(conn, request, (zxid, Some(ErrorCode::NotReadOnly)), |_| {});
                }
            }
            ClientInput::Disconnect { conn } => {
                self.conns.remove(&conn);
                state.watches().drop_conn(conn);
            }
            ClientInput::Touch { .. } | ClientInput::Bind { .. } | ClientInput::Seen { .. } => {}
        }
    }

    fn connect(
        &mut self,
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
        may_only_read: bool,
        state: &State,
        out: &mut Outboxes,
    ) {
        if may_only_read {
            self.conns.insert(conn);
            let connected = Connected { session, timeout_ms, read_only: true };
            out.connected(conn, connected, &state.tree().password(session));
        } else {
            out.close(conn);
        }
    }

    /// Closes all connections.
    pub(crate) fn close_all(&mut self, out: &mut Outboxes) {
        let mut conns: Vec<ConnId> = self.conns.drain().collect();
        conns.sort_unstable();
        conns.into_iter().for_each(|conn| out.close(conn));
    }
}
