//! The engine of a front end on etcd: `step` takes an input, `work` begins what can be begun now.
//!
//! A write is planned on the mirrored state and sent as one transaction with compares on all that its outcome depends on. It
//! is answered when the state shows it: when the watch stream has brought it back, which its tag tells, or, if etcd's answer
//! says that it follows on the state, at once. So nothing depends on etcd's answer: a transaction whose answer was lost is sent again as it is, and its own compares see to it that it is carried out once.
//! Only a transaction that will not be carried out any more is planned anew: one that etcd has refused, and that a compare on the
//! mirrored state shows to be outdated, or one whose lease is gone. Every transaction ends, whatever etcd says (`endings`).
//!
//! The engine has no socket and no clock; the state comes with each call, locked for writing.

mod endings;
mod following;
mod inputs;
mod loading;
mod scheduling;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paddock_proto::{SessionId, SessionSecret};
use paddock_state::{ConnId, Garbage, Now, Outboxes, RequestId, State, contact_max_ms};

use crate::calls::{Calls, Purpose};
use crate::contact::EtcdContact;
use crate::contract::{Call, Effects, Input, WatchOrder};
use crate::flights::{Flights, Part};
use crate::keys::Keys;
use crate::lanes::Lanes;
use crate::leases::Leases;
use crate::mirror::Mirror;
use crate::plan::{Compare, Limits, Operation, Transaction};
use crate::record::{Tag, encode_mark, encode_secret};
use crate::space::Space;
use crate::syncs::Syncs;
use loading::Loading;

#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub keys: Keys,
    /// A number that no other front end has, drawn when this one starts.
    pub front: u64,
    pub limits: Limits,
    /// Secret for passwords of sessions, which becomes that of all front ends if there is none yet; drawn when this one starts.
    pub secret: SessionSecret,
    /// The unit of session expiry, in milliseconds.
    pub tick_ms: u64,
    /// A request that has waited for etcd for this time ends its connection, in milliseconds.
    pub write_timeout_ms: u64,
    /// True if reads are answered however long etcd has not been heard of.
    pub stale_reads: bool,
    pub garbage_interval_ms: u64,
    pub garbage_max: usize,
}

/// Counts since the start, for an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    pub transactions: u64,
    /// Transactions that lost a race and were planned anew.
    pub races_lost: u64,
    /// Writes that etcd has refused because its space is exhausted.
    pub refused_for_space: u64,
    /// Transactions that were sent again because etcd gave no answer.
    pub resent: u64,
    pub loads: u64,
    pub watch_streams: u64,
    /// Time between etcd's answer to the last transaction and its being installed, in milliseconds.
    pub watch_lag_ms: u64,
}

#[derive(Debug)]
pub struct Engine {
    options: EngineOptions,
    phase: LoadingPhase,
    mirror: Mirror,
    /// Newest revision that the state shows.
    installed: i64,
    watch: Watching,
    lanes: Lanes,
    flights: Flights,
    calls: Calls,
    leases: Leases,
    syncs: Syncs,
    space: Space,
    /// Sessions that were silent for too long.
    expiring: BTreeSet<SessionId>,
    /// Connections whose close is answered when the last ephemeral of their session is gone, by session: it has more of them than one
    /// transaction removes.
    closing: BTreeMap<SessionId, (ConnId, RequestId)>,
    garbage: Garbage,
    /// Time at which a secret was written last, in milliseconds of the monotonic clock.
    secret_ms: Option<u64>,
    probed_ms: u64,
    contact: EtcdContact,
    /// Time from which on the engine's own writes are tried again, after etcd has refused one, in milliseconds of the monotonic clock.
    own_writes_from_ms: u64,
    /// Time at which a transaction was completed last, in milliseconds of the monotonic clock.
    progress_ms: u64,
    ticks: u64,
    counts: EngineCounts,
}

#[derive(Debug)]
enum LoadingPhase {
    Loading(Box<Loading>),
    Following,
}

#[derive(Debug, Default)]
struct Watching {
    generation: u64,
    /// A stream was ordered and has not ended.
    is_ordered: bool,
    is_open: bool,
    /// Time since which there is none.
    lost_ms: Option<u64>,
    /// Time at which it was ordered, or said something last.
    heard_ms: u64,
    /// The first revision that it has not told.
    first_revision: i64,
}

impl Engine {
    /// Time between two `Input::Tick`s, in milliseconds.
    pub const TICK_MS: u64 = 50;
    /// Time between two questions to etcd whether the state is that of now, in milliseconds.
    const PROBE_MS: u64 = 200;
    /// A sync that has waited this long for the watch stream has it write a key of its own, in milliseconds.
    const MARK_MS: u64 = 10;
    /// An answer of etcd that has waited this long for the watch stream has it write a key of its own, too, in milliseconds.
    const CONTACT_MARK_MS: u64 = 200;
    /// A watch stream that has said nothing for so long, though there is something to say, is opened anew, in milliseconds.
    const STALL_MS: u64 = 5000;
    /// Time before a secret that was not written is written again, in milliseconds.
    const SECRET_MS: u64 = 500;
    /// Ticks between two looks for requests that have waited too long.
    const OVERDUE_TICKS: u64 = 10;

    pub fn new(options: EngineOptions, now: Now) -> Engine {
        let EngineOptions { keys, front, limits, tick_ms, garbage_interval_ms, garbage_max, .. } =
            options.clone();
        Engine {
            phase: LoadingPhase::Loading(Box::new(Loading::new(now.monotonic_ms))),
            mirror: Mirror::new(keys, front, limits),
            installed: 0,
            watch: Watching::default(),
            lanes: Lanes::default(),
            flights: Flights::default(),
            calls: Calls::default(),
            leases: Leases::new(tick_ms, front),
            syncs: Syncs::default(),
            space: Space::default(),
            expiring: BTreeSet::new(),
            closing: BTreeMap::new(),
            // Front ends do not all look at the same time: what one has removed the next one does not find.
            garbage: Garbage::new(garbage_interval_ms + front % garbage_interval_ms.max(1), garbage_max, now),
            secret_ms: None,
            probed_ms: 0,
            contact: EtcdContact::new(now.monotonic_ms),
            own_writes_from_ms: 0,
            progress_ms: now.monotonic_ms,
            ticks: 0,
            counts: EngineCounts::default(),
            options,
        }
    }

    /// True once the state is that of etcd.
    pub fn is_following(&self) -> bool {
        matches!(self.phase, LoadingPhase::Following)
    }

    /// True if clients that connect now can be served.
    pub fn is_serving(&self, now: Now) -> bool {
        let silence_ms = now.monotonic_ms.saturating_sub(self.confirmed_ms());
        self.is_following() && silence_ms <= contact_max_ms(i32::MAX)
    }

    /// Time at which the state was that of etcd for sure, in milliseconds of the monotonic clock.
    pub fn confirmed_ms(&self) -> u64 {
        if self.options.stale_reads && self.is_following() { u64::MAX } else { self.contact.confirmed_ms() }
    }

    /// Counts until now. The lag of the watch stream is that of what it has not brought back yet, if there is any.
    pub fn counts(&self, now: Now) -> EngineCounts {
        let unseen_ms =
            self.flights.unseen_since_ms().map(|since_ms| now.monotonic_ms.saturating_sub(since_ms));
        EngineCounts { watch_lag_ms: unseen_ms.unwrap_or(self.counts.watch_lag_ms), ..self.counts }
    }

    /// Time in milliseconds since it was last confirmed that the state is that of etcd.
    pub fn state_age_ms(&self, now: Now) -> u64 {
        now.monotonic_ms.saturating_sub(self.contact.confirmed_ms())
    }

    /// Number of transactions that are under way.
    pub fn transactions_under_way(&self) -> usize {
        self.flights.len()
    }

    pub fn step(
        &mut self,
        now: Now,
        input: Input,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        match input {
            Input::Client(input) => self.on_client(now, input, effects),
            Input::Answer(call, result) => self.on_answer(now, call, result, state, out, effects),
            Input::Watch { generation, message } if generation == self.watch.generation => {
                self.on_watch(now, message, state, out, effects);
            }
            Input::Watch { .. } => {}
            Input::Tick => self.on_tick(now, state, out, effects),
        }
    }

    fn on_tick(&mut self, now: Now, state: &mut State, out: &mut Outboxes, effects: &mut Effects) {
        self.ticks += 1;
        self.read_if_due(now, effects);
        if self.is_following() {
            self.leave_stalled_watch(now);
            self.watch_if_due(now, effects);
            self.resend(now, effects);
            self.lanes.resume_paused();
            let is_due = self.syncs.are_waiting() || now.monotonic_ms >= self.probed_ms + Engine::PROBE_MS;
            if is_due && !self.syncs.is_asking() {
                self.probe(now, effects);
            }
            self.mark_if_due(now, effects);
            self.expire_sessions(now, state);
            self.garbage.tick(now);
        } else {
            self.garbage.rest(now);
        }
        if self.ticks.is_multiple_of(Engine::OVERDUE_TICKS) {
            self.end_overdue(now, state, out);
        }
    }

    /// Begins what can be begun now. To be called when all that waits was stepped.
    pub fn work(&mut self, now: Now, state: &mut State, out: &mut Outboxes, effects: &mut Effects) {
        if !self.is_following() {
            return;
        }
        if !state.tree().has_secret() {
            // No session begins without it.
            return self.make_secret(now, effects);
        }
        if self.may_write_own(now) {
            self.end_sessions(state, effects);
            self.remove_garbage(now, state, effects);
        }
        self.schedule(now, state, out, effects);
        if self.syncs.may_ask() {
            self.probe(now, effects);
        }
    }

    /// True if the engine's own writes can be tried: ends of sessions and of znodes that have expired, marks in the watch stream.
    fn may_write_own(&self, now: Now) -> bool {
        !self.space.is_exhausted(now.monotonic_ms) && now.monotonic_ms >= self.own_writes_from_ms
    }

    /// Gives up a watch stream that says nothing though etcd has told of revisions that it has not brought.
    fn leave_stalled_watch(&mut self, now: Now) {
        let before_ms = now.monotonic_ms.saturating_sub(Engine::STALL_MS);
        if self.watch.is_ordered && self.watch.heard_ms <= before_ms && self.contact.is_behind(before_ms) {
            tracing::warn!("the watch stream of etcd says nothing: opening another one");
            (self.watch.is_ordered, self.watch.is_open) = (false, false);
            self.watch.lost_ms.get_or_insert(now.monotonic_ms);
        }
    }

    fn watch_if_due(&mut self, now: Now, effects: &mut Effects) {
        if self.watch.is_ordered {
            return;
        }
        self.watch.generation += 1;
        self.watch.is_ordered = true;
        self.watch.heard_ms = now.monotonic_ms;
        self.counts.watch_streams += 1;
        let (start, end) = self.options.keys.range();
        effects.watch = Some(WatchOrder {
            generation: self.watch.generation,
            start,
            end,
            first_revision: self.watch.first_revision,
        });
    }

    fn probe(&mut self, now: Now, effects: &mut Effects) {
        self.syncs.ask(now.monotonic_ms);
        self.probed_ms = now.monotonic_ms;
        let key = self.options.keys.front(self.options.front);
        self.calls.make(Call::Probe { key }, Purpose::Probe, effects);
    }

    /// Writes a key to see how far the watch stream is, for syncs that wait for it, and for contact: etcd's revision may be that of
    /// a key outside of the prefix.
    fn mark_if_due(&mut self, now: Now, effects: &mut Effects) {
        let before = |ms| now.monotonic_ms.saturating_sub(ms);
        let is_due = self.syncs.are_behind(before(Engine::MARK_MS))
            || self.contact.is_behind(before(Engine::CONTACT_MARK_MS));
        if !is_due || self.flights.has_mark() || !self.may_write_own(now) {
            return;
        }
        let number = self.flights.next_number();
        let front = self.options.front;
        let value = encode_mark(Tag { front, number });
        let mark = Operation::Put { key: self.options.keys.front(front), value, lease: None };
        let transaction = Transaction { compares: Vec::new(), operations: vec![mark] };
        self.launch(number, transaction, vec![Part::Mark], effects);
    }

    /// Writes the secret for passwords of sessions, if no front end has. The watch stream tells which one it became.
    fn make_secret(&mut self, now: Now, effects: &mut Effects) {
        let is_due = self.secret_ms.is_none_or(|asked_ms| now.monotonic_ms >= asked_ms + Engine::SECRET_MS);
        let key = self.options.keys.secret();
        if !is_due || self.flights.is_written(&key) {
            return;
        }
        self.secret_ms = Some(now.monotonic_ms);
        let compares = vec![Compare { key: key.clone(), mod_revision: 0 }];
        let value = encode_secret(&self.options.secret);
        let operations = vec![Operation::Put { key, value, lease: None }];
        let number = self.flights.next_number();
        self.launch(number, Transaction { compares, operations }, vec![Part::Secret], effects);
    }

    fn launch(&mut self, number: u32, transaction: Transaction, parts: Vec<Part>, effects: &mut Effects) {
        self.counts.transactions += 1;
        let transaction = Arc::new(transaction);
        self.flights.insert(number, transaction.clone(), parts);
        self.calls.make(Call::Transact(transaction), Purpose::Flight(number), effects);
    }

    /// Sends again what got no answer.
    fn resend(&mut self, now: Now, effects: &mut Effects) {
        for (number, flight) in self.flights.iter_mut() {
            flight.since_ms.get_or_insert(now.monotonic_ms);
            if std::mem::take(&mut flight.is_lost) {
                self.counts.resent += 1;
                let call = Call::Transact(flight.transaction.clone());
                self.calls.make(call, Purpose::Flight(number), effects);
            }
        }
    }

    fn expire_sessions(&mut self, now: Now, state: &State) {
        let heard_ms = now.monotonic_ms.saturating_sub(paddock_state::TOUCH_DELAY_MS);
        for session in self.leases.liveness.expire(heard_ms) {
            if state.tree().session_owner(session) == Some(Mirror::MEMBER) {
                tracing::info!(%session, "session expired");
                self.expiring.insert(session);
            }
        }
    }

    /// Closes a connection; what of it was not begun is dropped.
    fn close(&mut self, conn: ConnId, state: &State, out: &mut Outboxes) {
        state.watches().drop_conn(conn);
        self.leases.serving.end_conn(conn);
        self.lanes.close(conn);
        self.lanes.release(conn);
        out.close(conn);
    }
}
