//! The simplest member that can take a mirror's place: it carries out what it is handed, in that order.

use paddock_forward::Retired;
use paddock_proto::{IdList, OpCode, SessionId};
use paddock_state::{ClientInput, ConnId, Connected, Outboxes, Serving, State};
use paddock_tree::{AppliedTransaction, Change, Command};

use super::source::{MIRROR, applied};

/// A transaction, and the changes in it that watchers are told of.
pub(super) type Told = (AppliedTransaction, Vec<Change<'static>>);

#[derive(Debug)]
pub(super) struct Successor {
    serving: Serving,
    next_session: i64,
}

impl Successor {
    /// Returns what the mirror has held back, too.
    pub(super) fn new(retired: Retired, next_session: i64) -> (Successor, Vec<ClientInput>) {
        let Retired { held, serving } = retired;
        (Successor { serving, next_session }, held)
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.serving.sessions()
    }

    /// Returns what a write has done.
    pub(super) fn take(
        &mut self,
        input: ClientInput,
        now_ms: u64,
        state: &mut State,
        out: &mut Outboxes,
    ) -> Option<Told> {
        match input {
            ClientInput::Write { conn, request, command, .. } => {
                let command = Command::decode(&command).expect("clients encode commands").taken_by(MIRROR);
                if self.serving.conn(command.session) != Some(conn) {
                    return None;
                }
                let told = apply(&command, (command.session, request.xid.0), state, out);
                let error = told.0.answer.as_ref().err().copied();
                let body = told.0.answer.clone().unwrap_or_default();
                out.write_reply(conn, request, (told.0.zxid, error), |out| out.extend_from_slice(&body));
                for session in &told.0.ended {
                    self.serving.end_session(*session).into_iter().for_each(|conn| {
                        state.watches().drop_conn(conn);
                        out.close(conn);
                    });
                }
                return Some(told);
            }
            ClientInput::Read(read) if self.serving.conn(read.client.session) == Some(read.client.conn) => {
                state.answer_queued(&read, out);
            }
            ClientInput::Connect { conn, timeout_ms, .. } => {
                let session = SessionId(self.next_session);
                self.next_session += 1;
                let (mut bytes, body) = (Vec::new(), timeout_ms.to_be_bytes());
                let op = OpCode::CreateSession;
                Command::encode(session, now_ms as i64, IdList::NONE, op, &body, &mut bytes);
                let command = Command::decode(&bytes).expect("it was just encoded").taken_by(MIRROR);
                let told = apply(&command, (session, 0), state, out);
                self.serve(session, conn, timeout_ms, state, out);
                return Some(told);
            }
            ClientInput::Resume { conn, resumption, .. } => {
                let (session, timeout_ms) = (resumption.session, resumption.timeout_ms);
                if state.tree().session_timeout_ms(session).is_none() {
                    out.expired(conn);
                } else if resumption.is_asking {
                    let connected = Connected { session, timeout_ms, read_only: false };
                    out.connected(conn, connected, &state.tree().password(session));
                } else {
                    self.serve(session, conn, timeout_ms, state, out);
                }
            }
            ClientInput::Disconnect { conn } => {
                self.serving.end_conn(conn);
                state.watches().drop_conn(conn);
            }
            ClientInput::Read(_)
            | ClientInput::Touch { .. }
            | ClientInput::Seen { .. }
            | ClientInput::Bind { .. } => {}
        }
        None
    }

    fn serve(
        &mut self,
        session: SessionId,
        conn: ConnId,
        timeout_ms: i32,
        state: &State,
        out: &mut Outboxes,
    ) {
        if let Some(former) = self.serving.begin(session, conn) {
            state.watches().drop_conn(former);
            out.close(former);
        }
        let connected = Connected { session, timeout_ms, read_only: false };
        out.connected(conn, connected, &state.tree().password(session));
    }
}

fn apply(command: &Command<'_>, asked: (SessionId, i32), state: &mut State, out: &mut Outboxes) -> Told {
    let outcome = state.apply(command, out);
    let transaction = applied(state.tree(), asked, command, &outcome);
    let owned = |change: Change<'_>| Change { path: change.path.into_owned().into(), ..change };
    (transaction, outcome.changes.into_iter().map(owned).collect())
}
