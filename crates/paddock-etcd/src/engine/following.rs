//! Following the watch stream: revisions are installed, and requests that wait for one are answered.

use paddock_proto::{ErrorCode, OpCode, SessionId, WriteReply, Zxid};
use paddock_state::{ConnId, Connected, Now, Outboxes, State};

use super::Engine;
use super::loading::error_chain;
use crate::calls::Purpose;
use crate::contract::{Call, Effects, WatchMessage};
use crate::flights::Part;
use crate::lanes::{Item, QueuedRequest, SessionItem};
use crate::mirror::{Installed, Mirror, OTHER_FRONT};
use crate::plan::{PlannedReply, Reply};
use crate::revisions::KeyEvent;

/// A stream that was away for longer may have missed the renewal of leases, in milliseconds.
const ABSENCE_MS: u64 = 1000;

impl Engine {
    pub(super) fn on_watch(
        &mut self,
        now: Now,
        message: WatchMessage,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        self.watch.heard_ms = now.monotonic_ms;
        match message {
            WatchMessage::Opened => self.on_opened(now, effects),
            WatchMessage::Events { revision, events } => {
                self.on_events(now, revision, &events, state, out, effects);
                self.install_own(now, state, out, effects);
            }
            WatchMessage::Compacted => {
                tracing::warn!("etcd has compacted revisions that were not read: reading the state anew");
                self.reset(now, state, out);
            }
            WatchMessage::Lost(reason) => {
                tracing::debug!(reason, "lost the watch stream of etcd");
                (self.watch.is_ordered, self.watch.is_open) = (false, false);
                self.watch.lost_ms.get_or_insert(now.monotonic_ms);
            }
        }
    }

    fn on_opened(&mut self, now: Now, effects: &mut Effects) {
        self.watch.is_open = true;
        let lost_ms = self.watch.lost_ms.take();
        if lost_ms.is_some_and(|lost_ms| now.monotonic_ms >= lost_ms + ABSENCE_MS) {
            tracing::info!("following etcd again");
            // No client could come back to a session meanwhile.
            let renewed = self.leases.renew_all(now.monotonic_ms);
            effects.keep_alive.extend(renewed.into_iter().map(|session| self.mirror.lease_of(session)));
        }
    }

    fn on_events(
        &mut self,
        now: Now,
        revision: i64,
        events: &[KeyEvent],
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        for events in events.chunk_by(|a, b| a.mod_revision == b.mod_revision) {
            let revision = events[0].mod_revision;
            if revision <= self.installed {
                continue;
            }
            let installed = match self.mirror.install(state, revision, events, out) {
                Ok(installed) => installed,
                Err(error) => {
                    tracing::error!(
                        error = error_chain(&error),
                        "etcd's keys are no state; reading them anew"
                    );
                    return self.reset(now, state, out);
                }
            };
            self.installed = revision;
            self.follow(now, revision, &installed, state, out, effects);
        }
        self.watch.first_revision = self.watch.first_revision.max(revision + 1).max(self.installed + 1);
        self.note_reached(now);
    }

    /// Tells contact how far the state is. Without space there is no mark that would show it; then the state changes no more,
    /// since every change of a znode puts a key, and an open stream has to do.
    pub(super) fn note_reached(&mut self, now: Now) {
        self.contact.reached(self.watch.first_revision - 1);
        if self.watch.is_open && self.space.is_exhausted(now.monotonic_ms) {
            self.contact.trust();
        }
    }

    /// Installs transactions of this front end that etcd has carried out, as far as they follow on the state: a revision is one
    /// transaction, so its contents are known before the watch stream brings it.
    pub(super) fn install_own(
        &mut self,
        now: Now,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        while let Some(events) = self.flights.events_of(self.installed + 1) {
            self.on_events(now, self.installed + 1, &events, state, out, effects);
        }
    }

    /// A revision was installed: its own transaction is answered, and sessions follow.
    fn follow(
        &mut self,
        now: Now,
        revision: i64,
        installed: &Installed,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        for (&session, record) in &installed.sessions {
            match record {
                Some(record) if record.tag.front == self.options.front => {
                    self.leases.add(session, record.timeout_ms, now.monotonic_ms);
                }
                _ => self.leases.remove(session),
            }
        }
        if let Some(number) = installed.own {
            self.complete(now, number, revision, state, out, effects);
        }
        self.settle_flights(now, state, out, effects);
        for session in installed.sessions.keys() {
            let owner = state.tree().session_owner(*session);
            let is_served = owner == Some(Mirror::MEMBER);
            if owner == Some(OTHER_FRONT) {
                self.end_closing(*session, state, out);
            }
            if !is_served && !self.is_closing(*session) {
                self.end_serving(*session, state, out);
            }
        }
        self.answer_closed(state, out);
        self.answer_syncs(revision, state, out);
    }

    /// Answers those whose sessions have ended in several transactions.
    fn answer_closed(&mut self, state: &State, out: &mut Outboxes) {
        let has_ended = |session: &SessionId| state.tree().session_owner(*session).is_none();
        let ended: Vec<SessionId> = self.closing.keys().copied().filter(has_ended).collect();
        for (conn, request) in
            ended.iter().filter_map(|session| self.closing.remove(session)).collect::<Vec<_>>()
        {
            out.answer(conn, request, state.tree().zxid(), &Ok(WriteReply::Done));
            self.close(conn, state, out);
            self.lanes.free(conn);
        }
    }

    /// The session goes on at another connection: it does not end, and the close that waits for that is not answered.
    fn end_closing(&mut self, session: SessionId, state: &State, out: &mut Outboxes) {
        self.expiring.remove(&session);
        if let Some((conn, _)) = self.closing.remove(&session) {
            self.close(conn, state, out);
            self.lanes.free(conn);
        }
    }

    /// True if the session's connection waits for the answer to its own close.
    fn is_closing(&self, session: SessionId) -> bool {
        if self.closing.contains_key(&session) {
            return true;
        }
        let conn = self.leases.serving.conn(session);
        let waits = |part: &Part| match part {
            Part::Client {
                conn: waiting,
                waiting: QueuedRequest { item: Item::Write { op, .. }, .. },
                ..
            } => Some(*waiting) == conn && *op == OpCode::CloseSession,
            _ => false,
        };
        conn.is_some() && self.flights.iter().any(|(_, flight)| flight.parts.iter().any(waits))
    }

    fn end_serving(&mut self, session: SessionId, state: &State, out: &mut Outboxes) {
        if let Some(conn) = self.leases.serving.end_session(session) {
            state.watches().drop_conn(conn);
            self.lanes.close(conn);
            out.close(conn);
        }
    }

    pub(super) fn free_all(&mut self, mut conns: Vec<ConnId>) {
        conns.dedup();
        conns.into_iter().for_each(|conn| self.lanes.free(conn));
    }

    /// The transaction was carried out in this revision, which is installed, or it has changed nothing.
    pub(super) fn complete(
        &mut self,
        now: Now,
        number: u32,
        revision: i64,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let Some(flight) = self.flights.remove(number) else { return };
        self.progress_ms = now.monotonic_ms;
        let lag_ms = flight.done_ms.map_or(0, |done_ms| now.monotonic_ms.saturating_sub(done_ms));
        self.counts.watch_lag_ms = lag_ms;
        state.tree_mut().note_quota_overruns(flight.overruns);
        let has_written = !flight.transaction.operations.is_empty();
        if flight.transaction.puts() && self.space.put() {
            tracing::info!("etcd has space again: accepting writes");
        }
        let zxid = if has_written { Zxid(revision) } else { state.tree().zxid() };
        let mut conns = Vec::new();
        for part in flight.parts {
            if let Part::Client { conn, waiting, planned } = part {
                self.answer(now, (conn, waiting), (*planned, zxid), state, out, effects);
                conns.push(conn);
            }
        }
        self.free_all(conns);
        self.lanes.unblock();
    }

    fn answer(
        &mut self,
        now: Now,
        (conn, waiting): (ConnId, QueuedRequest),
        (planned, zxid): (PlannedReply, Zxid),
        state: &State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let reply = planned.settle(zxid);
        match waiting.item {
            Item::Write { request, op: OpCode::CloseSession, .. } => {
                // A session that has ended meanwhile is as its client wants it.
                out.answer(conn, request, zxid, &Ok(WriteReply::Done));
                self.close(conn, state, out);
            }
            Item::Write { request, .. } => out.answer(conn, request, zxid, &reply),
            Item::Session(item) => self.answer_session(now, conn, (&item, &reply), state, out, effects),
            Item::Bind { .. } => {}
            Item::Read(_) | Item::Disconnect => unreachable!("only writes are part of a transaction"),
        }
    }

    fn answer_session(
        &mut self,
        now: Now,
        conn: ConnId,
        (item, reply): (&SessionItem, &Reply),
        state: &State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let SessionItem { session, timeout_ms, .. } = *item;
        let connected = Connected { session, timeout_ms, read_only: false };
        let password = state.tree().password(session);
        match reply {
            // The session is bound to an identity that was not known where the client was let in.
            Err(ErrorCode::NoAuth) => return self.close(conn, state, out),
            Err(_) => {
                self.lanes.release(conn);
                return out.expired(conn);
            }
            Ok(_) if item.is_asking => return out.connected(conn, connected, &password),
            Ok(_) => {}
        }
        self.end_closing(session, state, out);
        if let Some(former) = self.leases.serving.begin(session, conn) {
            state.watches().drop_conn(former);
            self.lanes.close(former);
            out.close(former);
        }
        self.lanes.release(conn);
        self.leases.liveness.touch(item.session, now.monotonic_ms);
        effects.keep_alive.push(self.mirror.lease_of(item.session));
        out.connected(conn, connected, &password);
    }

    /// Answers those who wait for a state of this revision.
    pub(super) fn answer_syncs(&mut self, revision: i64, state: &State, out: &mut Outboxes) {
        for conn in self.syncs.reached(revision) {
            if let Some(read) = self.lanes.take_read(conn) {
                state.answer_queued(&read, out);
            }
            self.lanes.free(conn);
        }
    }

    /// The lease of a session that has ended is of no use any more.
    pub(super) fn revoke(&mut self, session: SessionId, effects: &mut Effects) {
        let lease = self.mirror.lease_of(session);
        self.calls.make(Call::Revoke { lease }, Purpose::Revoke, effects);
    }
}
