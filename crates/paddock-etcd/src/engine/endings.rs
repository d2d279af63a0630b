//! Ends of transactions that etcd does not carry out. Each of its answers, and none at all, leads to one of four:
//!
//! | etcd says | its requests |
//! |---|---|
//! | a compare did not hold | are planned anew when the state shows why |
//! | the lease of a session's key is gone | are planned anew at once, each alone; that session gets another lease |
//! | it refuses: no space, too large, no permission | get an error, or their connections are closed if an earlier call may have been carried out |
//! | nothing, for as long as a request may wait | connections are closed, and nothing is sent again |
//!
//! Invariant: a key counts as being written only while its transaction is under way, and that ends.

use paddock_proto::{ErrorCode, OpCode};
use paddock_state::{ConnId, Now, Outboxes, State};

use super::Engine;
use crate::calls::Purpose;
use crate::contract::{CallError, Effects};
use crate::flights::{Fate, Flight, Part};
use crate::lanes::{Item, QueuedRequest};

/// Time for which a sync waits for the watch stream if etcd has no space for a mark, in milliseconds.
const SYNC_WITHOUT_SPACE_MS: u64 = 1000;
/// Time after which the engine tries a write of its own again that etcd has refused, in milliseconds.
const OWN_WRITES_PAUSE_MS: u64 = 1000;

impl Engine {
    /// Completes transactions that left no tag behind, and plans those anew that have lost a race.
    pub(super) fn settle_flights(
        &mut self,
        now: Now,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let mut done = Vec::new();
        let mut outdated = Vec::new();
        for (number, flight) in self.flights.iter() {
            match flight.fate {
                Fate::Done(revision) if revision <= self.installed => done.push((number, revision)),
                Fate::Refused(_) if !self.mirror.holds(state.tree(), &flight.transaction.compares) => {
                    outdated.push(number);
                }
                _ => {}
            }
        }
        for (number, revision) in done {
            self.complete(now, number, revision, state, out, effects);
        }
        for number in outdated {
            self.counts.races_lost += 1;
            if let Some(flight) = self.flights.remove(number) {
                self.try_again(flight);
            }
        }
    }

    /// True if etcd has refused a transaction whose compares all hold in a state that is as new: the state is not etcd's.
    fn is_contradicted(&self, state: &State) -> bool {
        let shown = self.watch.first_revision - 1;
        self.flights.iter().any(|(_, flight)| {
            matches!(flight.fate, Fate::Refused(revision) if revision <= shown)
                && self.mirror.holds(state.tree(), &flight.transaction.compares)
        })
    }

    /// Puts the requests of a transaction back, each to be tried alone: others need not lose the next race of one.
    pub(super) fn try_again(&mut self, flight: Flight) {
        let mut conns: Vec<ConnId> = Vec::new();
        for part in flight.parts.into_iter().rev() {
            if let Part::Client { conn, waiting, .. } = part {
                self.lanes.put_back(conn, QueuedRequest { is_alone: true, ..waiting });
                conns.push(conn);
            }
        }
        conns.reverse();
        conns.dedup();
        self.free_all(conns);
        self.lanes.unblock();
    }

    /// A lease that the transaction would have put a session's key on is gone. All compares held, or etcd would not have looked for
    /// it: nothing was carried out, and nothing will be, since the lease does not come back. A session that is tried alone
    /// and finds its lease gone gets another one.
    pub(super) fn renew_lease(&mut self, now: Now, number: u32, state: &State, out: &mut Outboxes) {
        let Some(flight) = self.flights.get_mut(number) else { return };
        match &mut flight.parts[..] {
            [Part::Client { waiting: QueuedRequest { item: Item::Session(item), .. }, .. }] => {
                item.want_lease(self.leases.take_id());
            }
            [_] => return self.give_up(now, number, &CallError::LeaseNotFound, state, out),
            _ => {}
        }
        if let Some(flight) = self.flights.remove(number) {
            self.try_again(flight);
        }
    }

    /// etcd refuses the transaction. Its requests are refused, alone or each by itself.
    pub(super) fn give_up(
        &mut self,
        now: Now,
        number: u32,
        error: &CallError,
        state: &State,
        out: &mut Outboxes,
    ) {
        let Some(flight) = self.flights.remove(number) else { return };
        // etcd refuses before it looks at compares: an earlier call without an answer may have been carried out, or may still be.
        let is_in_doubt = flight.has_lost_calls;
        let clients = flight.conns().count();
        if clients > 1 && *error != CallError::NoSpace && !is_in_doubt {
            return self.try_again(flight);
        }
        self.note_refusal(now, error);
        if clients == 0 {
            self.own_writes_from_ms = now.monotonic_ms + OWN_WRITES_PAUSE_MS;
        }
        let is_for_space = *error == CallError::NoSpace;
        let code = match error {
            _ if is_in_doubt => None,
            CallError::NoSpace => Some(ErrorCode::QuotaExceeded),
            CallError::TooLarge(_) => Some(ErrorCode::BadArguments),
            _ => None,
        };
        if is_for_space && flight.parts.iter().any(|part| matches!(part, Part::Mark)) {
            self.refuse_syncs(now, state, out);
        }
        for part in flight.parts {
            if let Part::Client { conn, waiting, .. } = part {
                match (waiting.item, code) {
                    // A close ends when there is space again: its client waits for that, or for nothing.
                    (Item::Write { request, op: OpCode::CloseSession, command }, _) if is_for_space => {
                        self.close_session_later(conn, request, &command);
                        continue;
                    }
                    // The client proves the same when it comes back.
                    (Item::Bind { .. }, _) => {}
                    (Item::Write { request, op, .. }, Some(code)) if op != OpCode::CloseSession => {
                        out.answer(conn, request, state.tree().zxid(), &Err(code));
                    }
                    _ => self.close(conn, state, out),
                }
                self.lanes.free(conn);
            }
        }
        self.lanes.unblock();
    }

    fn note_refusal_of_space(&mut self, now: Now) -> bool {
        self.counts.refused_for_space += 1;
        self.space.refuse(now.monotonic_ms)
    }

    pub(super) fn note_refusal(&mut self, now: Now, error: &CallError) {
        // Each write is refused for want of space until there is room.
        if *error != CallError::NoSpace || self.note_refusal_of_space(now) {
            tracing::warn!(%error, "etcd did not carry out a transaction");
        }
    }

    /// Refuses those who have waited for the watch stream: etcd has no space for the mark that would show how far it is.
    fn refuse_syncs(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        for conn in self.syncs.behind_since(now.monotonic_ms.saturating_sub(SYNC_WITHOUT_SPACE_MS)) {
            if let Some(read) = self.lanes.take_read(conn) {
                let refusal = Err(ErrorCode::QuotaExceeded);
                out.answer(conn, read.request, state.tree().zxid(), &refusal);
            }
            self.lanes.free(conn);
        }
    }

    /// Ends requests that have waited for etcd for too long: those whose transaction it has not answered, and, if it has answered
    /// none for so long, those that wait for their turn. Their connections are closed. It is unknown whether their writes are
    /// carried out; they are not any more once the session is resumed. Their transactions are not sent again, and others
    /// may write their keys: whichever comes first to etcd has the compare of the other one fail.
    pub(super) fn end_overdue(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        if self.is_following() && self.is_contradicted(state) {
            tracing::error!("etcd has refused a transaction that the state allows; reading it anew");
            return self.reset(now, state, out);
        }
        let before_ms = now.monotonic_ms.saturating_sub(self.options.write_timeout_ms);
        let mut conns = if self.progress_ms < before_ms { self.lanes.overdue(before_ms) } else { Vec::new() };
        let mut left = Vec::new();
        for number in self.flights.overdue(before_ms) {
            let Some(flight) = self.flights.get_mut(number) else { continue };
            conns.extend(flight.conns());
            // A transaction that is carried out ends when the watch stream brings it.
            if !matches!(flight.fate, Fate::Done(_)) {
                left.extend(flight.conns());
                self.flights.remove(number);
            }
        }
        conns.sort_unstable();
        conns.dedup();
        conns.retain(|conn| !self.lanes.is_closed(*conn));
        if !conns.is_empty() {
            let timeout_ms = self.options.write_timeout_ms;
            tracing::warn!(
                connections = conns.len(),
                timeout_ms,
                "closed connections whose requests etcd has not answered in time"
            );
        }
        conns.into_iter().for_each(|conn| self.close(conn, state, out));
        self.free_all(left);
        self.lanes.unblock();
    }

    /// Asserts what is true between two inputs: a transaction that is under way will be heard of, keys count as written and compared
    /// by these alone, and connections that wait do so for something that comes.
    pub fn assert_sound(&self) {
        self.flights.assert_counted();
        for (number, flight) in self.flights.iter() {
            let is_asked = flight.is_lost || self.calls.has(Purpose::Flight(number));
            assert!(flight.fate != Fate::Unknown || is_asked, "transaction {number} waits for nothing");
        }
        let (busy, blocked) = self.lanes.busy_and_blocked();
        assert!(
            blocked.is_empty() || self.flights.len() > 0,
            "{blocked:?} wait for a transaction, and there is none"
        );
        for conn in self.lanes.holders_without_resume() {
            assert!(self.flights.is_resuming(conn), "{conn:?} holds the connection that serves its session");
        }
        for conn in busy {
            let is_in_flight =
                self.flights.iter().any(|(_, flight)| flight.conns().any(|other| other == conn));
            let is_closing = self.closing.values().any(|(other, _)| *other == conn);
            let is_asked = self.syncs.has(conn) || self.calls.has(Purpose::Grant(conn));
            assert!(is_in_flight || is_closing || is_asked, "{conn:?} waits for nothing");
        }
    }
}
