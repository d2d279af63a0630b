//! Inputs of clients, and etcd's answers.

use paddock_proto::{OpCode, SessionId};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, ProvenIds, Resumption, State};
use paddock_tree::Command;

use super::Engine;
use crate::calls::Purpose;
use crate::contract::{Answer, Call, CallError, CallId, Effects};
use crate::flights::Fate;
use crate::lanes::{Item, SessionItem};

impl Engine {
    pub(super) fn on_client(&mut self, now: Now, input: ClientInput, effects: &mut Effects) {
        let since_ms = now.monotonic_ms;
        match input {
            ClientInput::Write { conn, request, op, command } => {
                self.lanes.push(conn, Item::Write { request, op, command: command.into() }, since_ms);
            }
            ClientInput::Read(read) => self.lanes.push(read.client.conn, Item::Read(read), since_ms),
            ClientInput::Connect { conn, timeout_ms, ids, .. } => {
                let (session, body) = (self.leases.take_id(), timeout_ms.to_be_bytes());
                let command = session_command(session, OpCode::CreateSession, &ids, &body);
                let item = SessionItem {
                    session,
                    timeout_ms,
                    command,
                    is_new: true,
                    is_asking: false,
                    has_lease: false,
                    next_lease: None,
                };
                self.lanes.push(conn, Item::Session(item), since_ms);
            }
            // Zxids of one order need not be awaited.
            ClientInput::Seen { .. } => {}
            ClientInput::Bind { conn, session, ids } => {
                let command = session_command(session, OpCode::BindSession, &ids, &[]);
                self.lanes.push(conn, Item::Bind { command }, since_ms);
            }
            ClientInput::Resume { conn, resumption, .. } if resumption.is_asking => {
                self.push_resumption(conn, &resumption, since_ms);
            }
            ClientInput::Resume { conn, resumption, .. } => {
                let session = resumption.session;
                // What the session has asked before on another connection must not come after what it asks from now on. If the
                // resume is refused, that one goes on.
                if let Some(former) = self.leases.serving.conn(session) {
                    self.lanes.hold(former, conn);
                }
                self.leases.liveness.touch(session, since_ms);
                effects.keep_alive.push(self.mirror.lease_of(session));
                self.push_resumption(conn, &resumption, since_ms);
            }
            ClientInput::Disconnect { conn } => {
                self.lanes.push(conn, Item::Disconnect, since_ms);
                if self.lanes.is_holding(conn) && !self.flights.is_resuming(conn) {
                    self.lanes.release(conn);
                }
            }
            ClientInput::Touch { session } => {
                if self.leases.touch(session, since_ms) {
                    effects.keep_alive.push(self.mirror.lease_of(session));
                }
            }
        }
    }

    fn push_resumption(&mut self, conn: ConnId, resumption: &Resumption, since_ms: u64) {
        let &Resumption { session, timeout_ms, is_asking, ref ids, .. } = resumption;
        let command = session_command(session, OpCode::ResumeSession, ids, &resumption.body(None));
        let (is_new, has_lease, next_lease) = (false, true, None);
        let item = SessionItem { session, timeout_ms, command, is_new, is_asking, has_lease, next_lease };
        self.lanes.push(conn, Item::Session(item), since_ms);
    }

    pub(super) fn on_answer(
        &mut self,
        now: Now,
        call: CallId,
        result: Result<Answer, CallError>,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        match self.calls.answered(call) {
            Some(Purpose::Page) => self.on_page(now, result, state, out, effects),
            Some(Purpose::Flight(number)) => self.on_transacted(now, number, result, state, out, effects),
            Some(Purpose::Grant(conn)) => self.on_granted(now, conn, result, state, out),
            Some(Purpose::Probe) => self.on_probed(now, result, state, out),
            Some(Purpose::Revoke) | None => {}
        }
    }

    fn on_granted(
        &mut self,
        now: Now,
        conn: ConnId,
        result: Result<Answer, CallError>,
        state: &State,
        out: &mut Outboxes,
    ) {
        let is_lost = matches!(result, Err(CallError::Lost(_)));
        // Another lease has the id, or it is ours and the answer was lost: another one is as good. An id is asked for once, so
        // that a lease which is gone never comes back by a call that arrives late.
        let is_in_doubt = is_lost || matches!(result, Err(CallError::LeaseExists));
        let next = is_in_doubt.then(|| self.leases.take_id());
        if let Some(waiting) = self.lanes.first(conn)
            && let Item::Session(item) = &mut waiting.item
        {
            match (&result, next) {
                (_, Some(next)) => item.want_lease(next),
                (Ok(_), None) => item.has_lease = true,
                (Err(error), None) => {
                    self.note_refusal(now, error);
                    self.close(conn, state, out);
                }
            }
        }
        if is_lost {
            self.lanes.pause(conn);
        } else {
            self.lanes.free(conn);
        }
    }

    pub(super) fn ask_lease(&mut self, conn: ConnId, (lease, timeout_ms): (i64, i32), effects: &mut Effects) {
        let call = Call::Grant { lease, ttl_s: self.leases.ttl_s(timeout_ms) };
        self.calls.make(call, Purpose::Grant(conn), effects);
    }

    fn on_probed(
        &mut self,
        now: Now,
        result: Result<Answer, CallError>,
        state: &mut State,
        out: &mut Outboxes,
    ) {
        let Ok(Answer::Probed { revision }) = result else { return self.syncs.fail() };
        if let Some(asked_ms) = self.syncs.answer(revision, now.monotonic_ms) {
            self.contact.answered(asked_ms, revision);
            self.note_reached(now);
        }
        self.answer_syncs(self.installed, state, out);
    }

    fn on_transacted(
        &mut self,
        now: Now,
        number: u32,
        result: Result<Answer, CallError>,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let Some(flight) = self.flights.get_mut(number) else { return };
        match result {
            Ok(Answer::Transacted { is_done: true, revision }) => {
                flight.fate = Fate::Done(revision);
                flight.done_ms = Some(now.monotonic_ms);
                if flight.transaction.operations.is_empty() {
                    self.complete(now, number, revision, state, out, effects);
                }
                self.install_own(now, state, out, effects);
            }
            Ok(Answer::Transacted { is_done: false, revision }) => flight.fate = Fate::Refused(revision),
            Err(CallError::Lost(_)) => (flight.is_lost, flight.has_lost_calls) = (true, true),
            Err(CallError::LeaseNotFound) => return self.renew_lease(now, number, state, out),
            Err(error) => return self.give_up(now, number, &error, state, out),
            Ok(answer) => unreachable!("a transaction is answered by its end, not by {answer:?}"),
        }
        self.settle_flights(now, state, out, effects);
    }
}

/// The command of a client's session, which it has not sent in this form.
fn session_command(session: SessionId, op: OpCode, ids: &ProvenIds, body: &[u8]) -> Vec<u8> {
    let mut command = Vec::new();
    ids.with(|ids| Command::encode(session, 0, ids, op, body, &mut command));
    command
}

impl SessionItem {
    /// Needs a lease with this id. A new session takes the id, too.
    pub(super) fn want_lease(&mut self, id: SessionId) {
        self.has_lease = false;
        if self.is_new {
            self.session = id;
            self.command[..8].copy_from_slice(&id.0.to_be_bytes());
        } else {
            self.next_lease = Some(id.0);
        }
    }
}
