//! The host of an engine: what every engine needs of its process, whichever it is.
//!
//! The host lends the engine the state, delivers what the engine leaves for connections before it lets the state go, tells of sessions that ended
//! and of quotas that were exceeded, removes the watches of connections that are gone, and publishes the engine's report.

mod quota_report;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_member::Clock as _;
use paddock_replica::{HeldState, Replicated};
use paddock_state::{ConnId, Now, Outboxes, RefusedWatches};
use paddock_statistics::request_times::{self, Stage};
use parking_lot::RwLockWriteGuard;

use crate::engine_report::EngineReport;
use crate::server_limit::ServerLimit;
use crate::shared::Shared;
use quota_report::QuotaReport;
#[cfg(test)]
pub(crate) use run::round;
pub(crate) use run::{Engine, Inbox, run};

/// The least pause between two looks at the watches that connections leave behind. The engine looks with its ticks.
const SWEEP_INTERVAL: Duration = Duration::from_millis(50);
/// The time between two slices of them, in which everybody else finds the state free.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);
/// Time for which mail may wait for its worker to be woken while an entry is applied. Each wake costs the worker a turn, and connections smaller writes to
/// their sockets.
const BETWEEN_WAKES: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct EngineHost {
    shared: Arc<Shared>,
    outboxes: Outboxes,
    quota_report: QuotaReport,
    /// Time from which on watches of connections that are gone are removed next.
    next_sweep: Instant,
    /// There were more of them than one slice removes.
    has_more_to_sweep: bool,
}

impl EngineHost {
    pub(crate) fn new(shared: Arc<Shared>) -> EngineHost {
        let now = Instant::now();
        EngineHost {
            outboxes: Outboxes::new(shared.mailboxes.count()),
            quota_report: QuotaReport::new(now),
            next_sweep: now,
            has_more_to_sweep: false,
            shared,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn now(&self) -> Now {
        self.shared.clock.now()
    }

    /// From now on ephemerals that go with their sessions are kept for the audit log, if there is one.
    pub(crate) fn record_deaths(&self) {
        if self.shared.opened.audit.is_some() {
            self.shared.state.write().record_deaths();
        }
    }

    /// Changes the state. What that leaves for connections is in their mailboxes before another thread has the state.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T {
        let started = request_times::start_of_timed();
        let mut state = self.shared.state.write();
        let result = change(&mut state, &mut self.outboxes);
        let applied = started.map(|started| note_applied(&self.shared, started));
        let_go(&self.shared, state, &mut self.outboxes, BTreeSet::new(), applied);
        result
    }

    /// Changes the state by work that lets others have the state now and then.
    pub(crate) fn change_in_portions(&mut self, change: &mut dyn FnMut(&mut dyn HeldState)) {
        let started = request_times::start_of_timed();
        let state = self.shared.state.write();
        let outboxes = &mut self.outboxes;
        let mut locked = LockedState {
            shared: &self.shared,
            state,
            outboxes,
            unwoken: BTreeSet::new(),
            woken_at: Instant::now(),
        };
        change(&mut locked);
        let LockedState { shared, state, outboxes, unwoken, .. } = locked;
        let applied = started.map(|started| note_applied(shared, started));
        let_go(shared, state, outboxes, unwoken, applied);
    }

    /// Publishes what the engine says of itself. To be called at each of its ticks.
    pub(crate) fn publish(&mut self, report: EngineReport) {
        self.shared.publish(report);
        self.quota_report.tell(&self.shared);
    }

    /// Time at which `sweep_watches` goes on, if it has not come to an end.
    pub(crate) fn next_slice(&self) -> Option<Instant> {
        self.has_more_to_sweep.then_some(self.next_sweep)
    }

    /// Removes some of the watches that connections have left behind, if it is time. There may be millions. To be called with each tick, and at
    /// [`EngineHost::next_slice`].
    pub(crate) fn sweep_watches(&mut self) {
        let now = Instant::now();
        if now >= self.next_sweep {
            self.has_more_to_sweep = self.look_after_watches();
            let pause = if self.has_more_to_sweep { SWEEP_PAUSE } else { SWEEP_INTERVAL };
            self.next_sweep = Instant::now() + pause;
        }
    }

    /// Removes some of the watches of connections that are gone, and tells of those that were refused. True if there is more to remove.
    fn look_after_watches(&mut self) -> bool {
        let state = self.shared.state.read();
        let (started, forgotten) = (Instant::now(), state.state().watches().statistics().forgotten_watchers);
        let is_more = state.state().watches().sweep();
        if is_more || state.state().watches().statistics().forgotten_watchers > forgotten {
            self.shared.statistics.server_metrics.watch_sweeps.record_since(started);
        }
        let refused = state.state().watches().take_refused();
        drop(state);
        if let Some(RefusedWatches { count, last, to_close }) = refused {
            let (client, session) = self.shared.statistics.clients.client(last);
            let now_ms = self.shared.clock.monotonic_ms();
            let hits = &self.shared.statistics.limit_hits;
            hits.hit_often(ServerLimit::Watches, count, client, session, now_ms, &"");
            self.change(|_, out| to_close.into_iter().for_each(|conn| out.close(conn)));
        }
        is_more
    }
}

/// Closes connections from outside of the engine.
pub(crate) fn close_connections(shared: &Shared, conns: &[ConnId]) {
    let mut outboxes = Outboxes::new(shared.mailboxes.count());
    conns.iter().for_each(|conn| outboxes.close(*conn));
    let_go(shared, shared.state.write(), &mut outboxes, BTreeSet::new(), None);
}

/// The state's lock in the engine's hands.
struct LockedState<'a> {
    shared: &'a Shared,
    state: RwLockWriteGuard<'a, Replicated>,
    outboxes: &'a mut Outboxes,
    /// Workers that have mail and were not woken for it.
    unwoken: BTreeSet<usize>,
    /// Moment at which workers were woken last, or the state was taken.
    woken_at: Instant,
}

impl HeldState for LockedState<'_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (&mut self.state, self.outboxes)
    }

    fn yield_to_others(&mut self) {
        post(self.shared, self.outboxes, None, &mut self.unwoken);
        let now = Instant::now();
        if now - self.woken_at >= BETWEEN_WAKES {
            self.woken_at = now;
            wake(self.shared, std::mem::take(&mut self.unwoken));
        }
        RwLockWriteGuard::bump(&mut self.state);
    }
}

/// Delivers what is in the outboxes, and lets the state go: in this order, so that a thread that gets the state finds its mail.
fn let_go(
    shared: &Shared,
    mut state: RwLockWriteGuard<'_, Replicated>,
    outboxes: &mut Outboxes,
    mut unwoken: BTreeSet<usize>,
    applied: Option<Instant>,
) {
    post(shared, outboxes, applied, &mut unwoken);
    let deaths = state.take_deaths();
    drop(state);
    shared.change_signal.notify();
    shared.memory_pace.stir();
    wake(shared, unwoken);
    if let Some(audit) = &shared.opened.audit {
        deaths.iter().for_each(|(session, path)| audit.ephemeral_deleted(session.0, path));
    }
}

/// Notes how long a change took that began then, and returns the time now.
fn note_applied(shared: &Shared, started: Instant) -> Instant {
    let now = Instant::now();
    shared.statistics.times.engine.spent(Stage::Apply, (now - started).as_micros() as u64);
    now
}

/// Puts what has to leave into the workers' mailboxes, and adds these to the workers to wake. To be called while the state is held.
fn post(shared: &Shared, outboxes: &mut Outboxes, now: Option<Instant>, unwoken: &mut BTreeSet<usize>) {
    for (worker, outbox) in outboxes.iter_mut() {
        if !outbox.is_empty() {
            shared.mailboxes.of(worker).post(outbox, now);
            unwoken.insert(worker);
        }
    }
}

fn wake(shared: &Shared, workers: BTreeSet<usize>) {
    workers.into_iter().for_each(|worker| shared.mailboxes.of(worker).wake());
}

#[cfg(test)]
mod tests;
