//! The process around the member: the shared state and the mailboxes, the links, the clock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use paddock_member::{Clock, Shell, SnapshotOrder, StateLock, Taken};
use paddock_replica::{HeldState, Replicated};
use paddock_state::{Now, Outboxes};
use paddock_storage::SnapshotError;
use parking_lot::RwLockWriteGuard;

use super::links::Addresses;
use super::snapshot_thread::SnapshotThread;
use crate::host::{audit_deaths, post};
use crate::peers::Links;
use crate::shared::Shared;
use crate::statistics::request_times::{self, Stage};

#[derive(Debug)]
pub(crate) struct MemberShell {
    shared: Arc<Shared>,
    /// `None` for a member alone, and while the log is replayed: no member is greeted before the member knows what it has.
    links: Option<Links>,
    addresses: Addresses,
    outboxes: Outboxes,
    snapshot: SnapshotThread,
}

impl MemberShell {
    pub(crate) fn new(shared: Arc<Shared>) -> MemberShell {
        let outboxes = Outboxes::new(shared.inner_worker() + 1);
        MemberShell {
            addresses: Addresses::new(&shared.config),
            shared,
            links: None,
            outboxes,
            snapshot: SnapshotThread::default(),
        }
    }

    /// From now on the member talks to others.
    pub(crate) fn connect(&mut self, links: Option<Links>) {
        self.links = links;
        if self.shared.audit.is_some() {
            self.shared.state.write().record_deaths();
        }
        self.members_changed();
    }

    /// Ends the links.
    pub(crate) fn shutdown(self) {
        if let Some(links) = self.links {
            links.shutdown();
        }
    }
}

impl Clock for MemberShell {
    fn now(&self) -> Now {
        self.shared.clock.now()
    }
}

impl Shell for MemberShell {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        // While the log is replayed there are none yet.
        if let Some(links) = &self.links {
            links.send(to, message);
        }
    }

    fn refuse(&mut self, peer: u8, cluster: u64) {
        if let Some(links) = &self.links {
            links.refuse(peer, cluster);
        }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T {
        let started = request_times::start_of_timed();
        let mut state = self.shared.state.write();
        let result = change(&mut state, &mut self.outboxes);
        let applied = started.map(|started| note_applied(&self.shared, started));
        let_go(&self.shared, state, &mut self.outboxes, applied);
        result
    }

    fn apply(&mut self, apply: &mut dyn FnMut(&mut dyn HeldState)) {
        let started = request_times::start_of_timed();
        let state = self.shared.state.write();
        let mut locked = LockedState { shared: &self.shared, state, outboxes: &mut self.outboxes };
        apply(&mut locked);
        let LockedState { shared, state, outboxes } = locked;
        let applied = started.map(|started| note_applied(shared, started));
        let_go(shared, state, outboxes, applied);
    }

    fn members_changed(&mut self) {
        if let Some(links) = &self.links {
            self.addresses.follow(&self.shared, links);
        }
    }

    fn raise_alarm(&mut self, _: u64) {
        self.shared.stats.differing.fetch_add(1, Relaxed);
    }

    fn begin_snapshot(&mut self, order: SnapshotOrder) {
        self.snapshot.begin(&self.shared, order);
    }

    fn finished_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.snapshot.finished()
    }

    fn await_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.snapshot.wait()
    }
}

impl StateLock for Shared {
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.state.write())
    }
}

/// The state's lock in the engine's hands.
struct LockedState<'a> {
    shared: &'a Shared,
    state: RwLockWriteGuard<'a, Replicated>,
    outboxes: &'a mut Outboxes,
}

impl HeldState for LockedState<'_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (&mut self.state, self.outboxes)
    }

    fn yield_to_others(&mut self) {
        let woken = post(self.shared, self.outboxes, None);
        woken.into_iter().for_each(|worker| self.shared.mailbox(worker).wake());
        RwLockWriteGuard::bump(&mut self.state);
    }
}

/// Delivers what is in the outboxes, and lets the state go: in this order, so that a thread that gets the state finds its mail.
fn let_go(
    shared: &Shared,
    mut state: RwLockWriteGuard<'_, Replicated>,
    outboxes: &mut Outboxes,
    applied: Option<Instant>,
) {
    let woken = post(shared, outboxes, applied);
    let deaths = state.take_deaths();
    drop(state);
    woken.into_iter().for_each(|worker| shared.mailbox(worker).wake());
    audit_deaths(shared, &deaths);
}

/// Notes how long a change took that began then, and returns the time now.
fn note_applied(shared: &Shared, started: Instant) -> Instant {
    let now = Instant::now();
    shared.times.engine.spent(Stage::Apply, (now - started).as_micros() as u64);
    now
}

#[cfg(test)]
mod tests;
