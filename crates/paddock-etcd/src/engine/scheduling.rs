//! Scheduling: requests become transactions, as many at the same time as do not meet.

use std::collections::BTreeMap;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ErrorCode, Id, IdList, OpCode, SessionId};
use paddock_state::{ConnId, Now, Outboxes, RequestId, State};
use paddock_tree::{Command, Tree};

use super::Engine;
use crate::batch::Batch;
use crate::contract::Effects;
use crate::flights::Part;
use crate::lanes::{Item, QueuedRequest, SessionItem};
use crate::mirror::Mirror;
use crate::plan::{Compare, Dependencies, Operation, Plan, PlanError, Transaction};

/// Transactions that are under way at the same time, at most.
const FLIGHTS_MAX: usize = 64;
/// Lanes that are looked at for one batch although they meet it, at most.
const LATER_MAX: usize = 64;
/// Ephemerals that one transaction removes when a session has more than fit: each may have a parent of its own.
const EPHEMERALS_PER_TRANSACTION: usize = 3;

/// State of a lane whose first requests have been looked at.
enum Drained {
    /// Some of it is in the batch.
    Taken,
    /// The request waits for etcd otherwise.
    Waits,
    /// The request meets the batch.
    Later,
    /// The request meets a transaction that is under way.
    Blocked,
    /// Another connection resumes its session.
    Held,
    Empty,
}

impl Engine {
    pub(super) fn schedule(
        &mut self,
        now: Now,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        while self.flights.len() < FLIGHTS_MAX {
            let batch = self.gather(state, out, effects);
            if batch.is_empty() {
                break;
            }
            self.begin_batch(now, batch, state, out, effects);
        }
    }

    fn gather(&mut self, state: &State, out: &mut Outboxes, effects: &mut Effects) -> Batch {
        let mut batch = Batch::new(&self.options.limits);
        let mut later = Vec::new();
        while !batch.is_full() && later.len() < LATER_MAX {
            let Some(conn) = self.lanes.next() else { break };
            match self.drain(conn, &mut batch, state, out, effects) {
                Drained::Taken | Drained::Waits | Drained::Held => {}
                Drained::Later => later.push(conn),
                Drained::Blocked => self.lanes.block(conn),
                Drained::Empty => self.lanes.free(conn),
            }
        }
        self.lanes.keep_ready(&later);
        batch
    }

    /// Answers the reads at the front of a lane, and moves the writes behind them into the batch.
    fn drain(
        &mut self,
        conn: ConnId,
        batch: &mut Batch,
        state: &State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) -> Drained {
        if self.lanes.wait_if_held(conn) {
            return Drained::Held;
        }
        let mut has_taken = false;
        loop {
            let Some(first) = self.lanes.first(conn) else {
                return if has_taken { Drained::Taken } else { Drained::Empty };
            };
            let is_alone = first.is_alone;
            let command = match &first.item {
                Item::Read(_) | Item::Disconnect if has_taken => return Drained::Taken,
                Item::Read(read) if read.op == OpCode::Sync => {
                    self.syncs.add(conn);
                    return Drained::Waits;
                }
                Item::Read(_) | Item::Disconnect => {
                    self.run_first(conn, state, out);
                    continue;
                }
                Item::Session(item) if !item.has_lease => {
                    let asked = (item.next_lease.unwrap_or(item.session.0), item.timeout_ms);
                    self.ask_lease(conn, asked, effects);
                    return Drained::Waits;
                }
                Item::Session(item) if needs_other_lease(item, state.tree()) => {
                    let next = self.leases.take_id();
                    if let Some(QueuedRequest { item: Item::Session(item), .. }) = self.lanes.first(conn) {
                        item.want_lease(next);
                    }
                    continue;
                }
                Item::Session(item) => &item.command,
                Item::Write { command, .. } | Item::Bind { command } => command,
            };
            let bytes = command.len();
            let command = decode(command);
            let depends = Dependencies::of(std::slice::from_ref(&command));
            let meets_flight = meets(&self.mirror, &self.flights, &depends);
            if meets_flight || !batch.admits(&command, &depends, is_alone) {
                return match (has_taken, meets_flight) {
                    (true, _) => Drained::Taken,
                    (_, true) => Drained::Blocked,
                    _ => Drained::Later,
                };
            }
            batch.note(&command, depends, bytes, is_alone);
            let waiting = self.lanes.take(conn).expect("it was just looked at");
            batch.entries.push((conn, waiting));
            has_taken = true;
        }
    }

    fn run_first(&mut self, conn: ConnId, state: &State, out: &mut Outboxes) {
        match self.lanes.take(conn).map(|waiting| waiting.item) {
            Some(Item::Read(read)) if out.is_full(conn) => {
                tracing::warn!(session = %read.client.session, "connection closed: it asks for too much at once");
                self.close(conn, state, out);
            }
            Some(Item::Read(read)) => state.answer_queued(&read, out),
            Some(Item::Disconnect) => {
                state.watches().drop_conn(conn);
                self.leases.serving.end_conn(conn);
                self.lanes.remove(conn);
            }
            Some(Item::Write { .. } | Item::Bind { .. } | Item::Session(_)) | None => {
                unreachable!("it is a read or the end")
            }
        }
    }

    fn begin_batch(
        &mut self,
        now: Now,
        mut batch: Batch,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let mut leases = BTreeMap::new();
        for (_, waiting) in &mut batch.entries {
            stamp(waiting, now.wall_ms);
            if let Item::Session(SessionItem { session, next_lease: Some(lease), .. }) = &waiting.item {
                leases.insert(*session, *lease);
            }
        }
        let commands: Vec<Command<'_>> =
            batch.entries.iter().map(|(_, waiting)| decode(waiting.command())).collect();
        let number = self.flights.next_number();
        match self.mirror.plan_on_leases(state.tree_mut(), &commands, number, &leases) {
            Ok(Plan { transaction, .. }) if self.flights.meets(&transaction) => self.put_back(batch),
            Ok(Plan { transaction, outcomes, overruns }) => {
                let parts = batch.entries.into_iter().zip(outcomes);
                let part =
                    |((conn, waiting), planned)| Part::Client { conn, waiting, planned: Box::new(planned) };
                self.launch(number, transaction, parts.map(part).collect(), effects);
                self.flights.get_mut(number).expect("it was just launched").overruns = overruns;
            }
            Err(_) if batch.entries.len() > 1 => {
                let rest = batch.entries.split_off(batch.entries.len() / 2);
                self.put_back_rest(rest, &batch);
                self.begin_batch(now, batch, state, out, effects);
            }
            Err(error) => {
                let (conn, waiting) = batch.entries.pop().expect("a batch has a write");
                self.refuse(conn, waiting, error, state, out);
            }
        }
    }

    /// Gives the requests of a batch back to their lanes, blocked until a transaction ends.
    fn put_back(&mut self, batch: Batch) {
        let conns = self.put_back_entries(batch.entries);
        conns.into_iter().for_each(|conn| self.lanes.block(conn));
    }

    /// Gives back those requests for which a batch has no room. Lanes that are also in the batch are ready when it is done.
    fn put_back_rest(&mut self, rest: Vec<(ConnId, QueuedRequest)>, batch: &Batch) {
        let mut conns = self.put_back_entries(rest);
        conns.retain(|conn| batch.entries.iter().all(|(other, _)| other != conn));
        self.lanes.keep_ready(&conns);
    }

    fn put_back_entries(&mut self, entries: Vec<(ConnId, QueuedRequest)>) -> Vec<ConnId> {
        let mut conns = Vec::new();
        for (conn, waiting) in entries.into_iter().rev() {
            self.lanes.put_back(conn, waiting);
            conns.push(conn);
        }
        conns.dedup();
        conns.reverse();
        conns
    }

    /// A single write cannot be a transaction. A session with more ephemerals than fit ends in several, and
    /// is answered when it has ended.
    fn refuse(
        &mut self,
        conn: ConnId,
        waiting: QueuedRequest,
        error: PlanError,
        state: &State,
        out: &mut Outboxes,
    ) {
        match waiting.item {
            Item::Write { request, op: OpCode::CloseSession, ref command } => {
                return self.close_session_later(conn, request, command);
            }
            Item::Write { request, .. } => {
                tracing::warn!(%error, "refused a write");
                let code = ErrorCode::BadArguments;
                out.answer(conn, request, state.tree().zxid(), &Err(code));
            }
            _ => self.close(conn, state, out),
        }
        self.lanes.free(conn);
    }

    /// Ends the session of a command by transactions of the engine's own, and answers its client when that is done.
    pub(super) fn close_session_later(&mut self, conn: ConnId, request: RequestId, command: &[u8]) {
        let session = decode(command).session;
        self.expiring.insert(session);
        self.closing.insert(session, (conn, request));
    }

    /// Ends sessions: those of this front end that were silent for too long, and all whose keys have gone with their leases.
    pub(super) fn end_sessions(&mut self, state: &mut State, effects: &mut Effects) {
        let tree = state.tree();
        let is_own = |session: &SessionId| tree.session_owner(*session) == Some(Mirror::MEMBER);
        let ending = self.expiring.iter().copied().filter(is_own).chain(self.mirror.ended());
        let ending: Vec<SessionId> = ending.collect();
        self.expiring.retain(|session| ending.contains(session));
        for session in ending {
            if self.flights.len() < FLIGHTS_MAX && !self.flights.is_ending(session) {
                self.end_session(session, state.tree_mut(), effects);
            }
        }
    }

    fn end_session(&mut self, session: SessionId, tree: &mut Tree, effects: &mut Effects) {
        let number = self.flights.next_number();
        let transaction = match self.plan_end(session, tree, number) {
            Ok(transaction) => transaction,
            // First its key: nothing of the session is carried out any more. Then its znodes, some at a time.
            Err(_) if self.mirror.session_revision(session) != 0 => self.delete_session_key(session),
            Err(_) => match self.plan_removal(session, tree, number) {
                Ok(transaction) => transaction,
                Err(error) => return tracing::error!(%session, %error, "a session cannot be ended"),
            },
        };
        if !self.flights.meets(&transaction) {
            let deletes_key = |operation: &Operation| operation.key() == self.options.keys.session(session);
            let is_over = transaction.operations.iter().any(deletes_key);
            self.launch(number, transaction, vec![Part::End { session }], effects);
            if is_over {
                self.revoke_later(session, effects);
            }
        }
    }

    fn plan_end(&self, session: SessionId, tree: &mut Tree, number: u32) -> Result<Transaction, PlanError> {
        let mut bytes = Vec::new();
        let body = session.0.to_be_bytes();
        Command::encode(SessionId::NONE, 0, IdList::NONE, OpCode::ExpireSession, &body, &mut bytes);
        Ok(self.mirror.plan(tree, &[decode(&bytes)], number)?.transaction)
    }

    fn delete_session_key(&self, session: SessionId) -> Transaction {
        let key = self.options.keys.session(session);
        let mod_revision = self.mirror.session_revision(session);
        Transaction {
            compares: vec![Compare { key: key.clone(), mod_revision }],
            operations: vec![Operation::Delete { key }],
        }
    }

    /// A transaction that removes some ephemerals of a session that has ended.
    fn plan_removal(
        &self,
        session: SessionId,
        tree: &mut Tree,
        number: u32,
    ) -> Result<Transaction, PlanError> {
        let count = (self.options.limits.operations_max / EPHEMERALS_PER_TRANSACTION).max(1);
        let all = tree.ephemerals().find(|(owner, _)| *owner == session);
        let paths: Vec<String> = all.into_iter().flat_map(|(_, paths)| paths).take(count).collect();
        let ids = IdList::encode(&[Id::new("super", "")]);
        let ids = IdList::decode(&mut Reader::new(&ids)).expect("it was just encoded");
        let encoded: Vec<Vec<u8>> = paths.iter().map(|path| delete(path, ids)).collect();
        let commands: Vec<Command<'_>> = encoded.iter().map(|bytes| decode(bytes)).collect();
        Ok(self.mirror.plan(tree, &commands, number)?.transaction)
    }

    fn revoke_later(&mut self, session: SessionId, effects: &mut Effects) {
        // Its key goes with the lease if the transaction should come later: both end the session.
        if self.expiring.remove(&session) {
            self.revoke(session, effects);
        }
    }

    /// Removes znodes that have expired, if a search is due.
    pub(super) fn remove_garbage(&mut self, now: Now, state: &mut State, effects: &mut Effects) {
        for body in self.garbage.find(now, state.tree()) {
            if self.flights.len() >= FLIGHTS_MAX {
                break;
            }
            let mut bytes = Vec::new();
            let op = OpCode::DeleteContainer;
            Command::encode(SessionId::NONE, now.wall_ms, IdList::NONE, op, &body, &mut bytes);
            let number = self.flights.next_number();
            if let Ok(plan) = self.mirror.plan(state.tree_mut(), &[decode(&bytes)], number)
                && !plan.transaction.operations.is_empty()
                && !self.flights.meets(&plan.transaction)
            {
                self.launch(number, plan.transaction, vec![Part::Garbage], effects);
            }
        }
    }
}

impl QueuedRequest {
    fn command(&self) -> &[u8] {
        match &self.item {
            Item::Write { command, .. } | Item::Bind { command } => command,
            Item::Session(item) => &item.command,
            Item::Read(_) | Item::Disconnect => unreachable!("only writes are part of a batch"),
        }
    }
}

/// Writes the time into a command, each time it is planned.
fn stamp(waiting: &mut QueuedRequest, wall_ms: i64) {
    let command = match &mut waiting.item {
        Item::Write { command, .. } | Item::Bind { command } => command,
        Item::Session(item) => &mut item.command,
        Item::Read(_) | Item::Disconnect => unreachable!("only writes are part of a batch"),
    };
    command[Command::TIME_OFFSET..][..8].copy_from_slice(&wall_ms.to_be_bytes());
}

/// True if a session is resumed with another timeout than its lease was granted for. With a longer one it would end too early; with
/// a shorter one its ephemerals would stay for too long when its front end is gone, too.
fn needs_other_lease(item: &SessionItem, tree: &Tree) -> bool {
    let granted_ms = tree.session_timeout_ms(item.session);
    !item.is_asking
        && item.next_lease.is_none()
        && granted_ms.is_some_and(|granted_ms| item.timeout_ms != granted_ms)
}

fn decode(bytes: &[u8]) -> Command<'_> {
    Command::decode(bytes).expect("a command was encoded by this process").taken_by(Mirror::MEMBER)
}

fn delete(path: &str, ids: IdList<'_>) -> Vec<u8> {
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    body.put_string(path);
    body.put_i32(-1);
    Command::encode(SessionId::NONE, 0, ids, OpCode::Delete, &body, &mut bytes);
    bytes
}

/// True if a transaction that is under way writes a key that these writes depend on.
fn meets(mirror: &Mirror, flights: &crate::flights::Flights, depends: &Dependencies) -> bool {
    if flights.len() == 0 {
        return false;
    }
    let keys = mirror.keys();
    let is_written = |path: &String| flights.is_written(&keys.znode(path));
    depends.sessions.iter().any(|session| flights.is_written(&keys.session(*session)))
        || depends.named.iter().any(is_written)
        || depends.parents.iter().any(is_written)
}
