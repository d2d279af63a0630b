//! The process around the member: the shared state and the mailboxes, the links, the clock.

use std::sync::atomic::Ordering::Relaxed;

use paddock_links::Links;
use paddock_member::{Clock, Shell, SnapshotOrder, Taken};
use paddock_proto::MemberNumber;
use paddock_replica::{HeldState, Replicated, SoughtMembers};
use paddock_state::{Now, Outboxes};
use paddock_statistics::server_metrics::StartStep;
use paddock_storage::SnapshotError;

use super::links::Addresses;
use super::snapshot_thread::SnapshotThread;
use crate::host::EngineHost;

#[derive(Debug)]
pub(crate) struct MemberShell {
    pub(super) host: EngineHost,
    /// `None` for a member alone, and while the log is replayed: no member is greeted before the member knows what it has.
    links: Option<Links>,
    /// Messages that leave together, each behind the number of its receiver.
    messages: Vec<(MemberNumber, Vec<u8>)>,
    addresses: Addresses,
    snapshot: SnapshotThread,
}

impl MemberShell {
    pub(crate) fn new(host: EngineHost) -> MemberShell {
        let addresses = Addresses::new(&host.shared().config);
        MemberShell {
            host,
            addresses,
            links: None,
            messages: Vec::new(),
            snapshot: SnapshotThread::default(),
        }
    }

    /// From now on the member talks to others.
    pub(crate) fn connect(&mut self, links: Option<Links>) {
        self.links = links;
        self.host.record_deaths();
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
        self.host.now()
    }

    fn note_progress(&self, work: &'static str, done: u64, unit: &'static str) {
        let metrics = &self.host.shared().statistics.server_metrics;
        metrics.start_progress.note(StartStep { work, done, unit });
    }
}

impl Shell for MemberShell {
    fn send(&mut self, to: MemberNumber, message: Vec<u8>) {
        self.messages.push((to, message));
    }

    fn flush(&mut self) {
        // While the log is replayed there are no links yet.
        let Some(links) = &self.links else { return self.messages.clear() };
        // Messages to one receiver keep their order.
        self.messages.sort_by_key(|(to, _)| *to);
        let mut messages = self.messages.drain(..).peekable();
        while let Some((to, first)) = messages.next() {
            let others = std::iter::from_fn(|| Some(messages.next_if(|(next, _)| *next == to)?.1));
            links.send_all(to, std::iter::once(first).chain(others));
        }
    }

    fn refuse(&mut self, peer: MemberNumber, cluster: u64) {
        if let Some(links) = &self.links {
            links.refuse(peer, cluster);
        }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T {
        self.host.change(change)
    }

    fn apply(&mut self, apply: &mut dyn FnMut(&mut dyn HeldState)) {
        self.host.change_in_portions(apply);
    }

    fn members_changed(&mut self) {
        if let Some(links) = &self.links {
            self.addresses.follow(self.host.shared(), links);
        }
    }

    fn seek_members(&mut self, sought: SoughtMembers) {
        self.addresses.seek(sought);
        self.members_changed();
    }

    fn raise_alarm(&mut self, _: MemberNumber) {
        self.host.shared().statistics.clients.differing.fetch_add(1, Relaxed);
    }

    fn begin_snapshot(&mut self, order: SnapshotOrder) {
        self.snapshot.begin(self.host.shared(), order);
    }

    fn finished_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.snapshot.finished()
    }

    fn await_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.snapshot.wait()
    }
}

#[cfg(test)]
mod tests;
