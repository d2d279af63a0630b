//! The process around the member: the shared state and the mailboxes, the links, the clock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_member::{Clock, Shell, SnapshotOrder, StateLock, Taken};
use paddock_replica::Replicated;
use paddock_state::{Now, Outboxes};
use paddock_storage::SnapshotError;

use super::links::Addresses;
use super::snapshot_thread::SnapshotThread;
use crate::peers::Links;
use crate::shared::Shared;

#[derive(Debug)]
pub(crate) struct MemberShell {
    shared: Arc<Shared>,
    /// `None` for a member alone, and while the log is replayed: nobody is greeted before the member knows what it has.
    links: Option<Links>,
    addresses: Addresses,
    outboxes: Outboxes,
    snapshot: SnapshotThread,
}

impl MemberShell {
    pub(crate) fn new(shared: Arc<Shared>) -> MemberShell {
        let outboxes = Outboxes::new(shared.config.worker_count());
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
        let mut state = self.shared.state.write();
        let result = change(&mut state, &mut self.outboxes);
        let woken = post(&self.shared, &mut self.outboxes);
        let deaths = state.take_deaths();
        drop(state);
        woken.into_iter().for_each(|worker| self.shared.mailbox(worker).wake());
        if let Some(audit) = &self.shared.audit {
            deaths.iter().for_each(|(session, path)| audit.ephemeral_deleted(session.0, path));
        }
        result
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

/// Puts what has to leave into the workers' mailboxes. To be called while the state is held, so that whoever reads it
/// afterwards finds in its box all events that came before. Returns the workers to wake when it is not.
fn post(shared: &Shared, outboxes: &mut Outboxes) -> Vec<usize> {
    let mut woken = Vec::new();
    for (worker, outbox) in outboxes.iter_mut() {
        if !outbox.is_empty() {
            shared.mailbox(worker).post(outbox);
            woken.push(worker);
        }
    }
    woken
}
