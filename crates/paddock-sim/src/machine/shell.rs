//! Surroundings of a member: the state, mailboxes, a snapshot that is walked when the world says so. They only collect:
//! the world hands on what a dead process has not said.

use crate::numbering::machine_of;
use std::cell::{Ref, RefCell, RefMut};

use paddock_member::{Clock, Shell, SnapshotOrder, SnapshotWalk, StateLock, Taken};
use paddock_proto::MemberNumber;
use paddock_replica::{HeldState, Input, LogEntry, Replicated, SoughtMembers};
use paddock_state::{Now, Outboxes};
use paddock_storage::SnapshotError;

use super::beside::{Beside, Others};
use super::disk::SimDisk;
use super::front::Workers;
use super::links::SimLinks;
use crate::time::SimDuration;

#[derive(Debug)]
pub(crate) struct Locked(RefCell<Replicated>);

impl Locked {
    pub(crate) fn new(state: Replicated) -> Locked {
        Locked(RefCell::new(state))
    }

    pub(crate) fn read(&self) -> Ref<'_, Replicated> {
        self.0.borrow()
    }
}

impl StateLock for Locked {
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.0.borrow_mut())
    }
}

/// The snapshot that is being taken.
#[derive(Debug, Default)]
pub(crate) struct SnapshotDesk {
    ordered: Option<SnapshotOrder>,
    walk: Option<SnapshotWalk>,
    finished: Option<Result<Taken, SnapshotError>>,
}

impl SnapshotDesk {
    /// Goes on with it. Says whether there is more to do.
    pub(crate) fn step(&mut self, state: &Locked, now: Now) -> bool {
        if let Some(order) = self.ordered.take() {
            match order.begin(state, &now) {
                Ok(walk) => self.walk = Some(walk),
                Err(early) => self.ordered = Some(early),
            }
        } else if let Some(mut walk) = self.walk.take() {
            if walk.step(state) {
                self.walk = Some(walk)
            } else {
                self.finished = Some(walk.finish(state, &now))
            }
        }
        self.walk.is_some() || self.ordered.is_some()
    }
}

/// Yield of a member's work.
#[derive(Debug, Default)]
pub(crate) struct RoundOutput {
    pub(crate) letters: Vec<(u8, Vec<u8>)>,
    pub(crate) committed: Vec<LogEntry>,
    /// Entries of other groups than the home group, behind the number of their group.
    pub(crate) committed_in_groups: Vec<(u32, LogEntry)>,
    /// Workers that have mail and had none.
    pub(crate) woken: Vec<usize>,
    pub(crate) orders_snapshot: bool,
    /// Peers of another ensemble that this one has refused.
    pub(crate) refused: Vec<u8>,
    /// Members whose state differs, as this one says.
    pub(crate) differing: Vec<u8>,
}

pub(crate) struct SimShell<'a> {
    pub(crate) now: Now,
    /// Time that the sync before took: how long one takes is drawn when it has begun.
    pub(crate) last_sync: SimDuration,
    pub(crate) disk: &'a SimDisk,
    pub(crate) state: &'a Locked,
    pub(crate) links: &'a mut SimLinks,
    pub(crate) outboxes: &'a mut Outboxes,
    pub(crate) workers: &'a mut Workers,
    pub(crate) desk: &'a mut SnapshotDesk,
    /// Inputs that the engine has not taken yet.
    pub(crate) inbox: &'a mut Vec<Input>,
    pub(crate) round_output: &'a mut RoundOutput,
    pub(crate) others: &'a mut dyn Others,
}

impl SimShell<'_> {
    /// Puts what is in the outboxes into the mailboxes. A process that has died says nothing any more.
    fn post(&mut self) {
        if self.disk.is_dead() {
            self.outboxes.iter_mut().for_each(|(_, outbox)| outbox.clear());
        }
        self.round_output.woken.extend(self.workers.post(self.outboxes));
    }
}

/// The state in the engine's hands. It is `None` while others have it.
struct LockedState<'s, 'a> {
    shell: &'s mut SimShell<'a>,
    state: Option<RefMut<'a, Replicated>>,
}

impl HeldState for LockedState<'_, '_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (self.state.as_mut().expect("the engine has the state"), self.shell.outboxes)
    }

    fn yield_to_others(&mut self) {
        self.shell.post();
        self.state = None;
        let SimShell { now, disk, state, workers, desk, inbox, others, .. } = &mut *self.shell;
        if !disk.is_dead() {
            // Who takes a snapshot waits for its syncs, not the engine.
            disk.defer_sync(false);
            others.have_state(&mut Beside { now: *now, state, workers, desk, inbox });
            disk.defer_sync(true);
        }
        self.state = Some(self.shell.state.0.borrow_mut());
    }
}

impl Clock for SimShell<'_> {
    fn now(&self) -> Now {
        self.now
    }
}

impl Shell for SimShell<'_> {
    fn send(&mut self, to: MemberNumber, message: Vec<u8>) {
        if !self.disk.is_dead() {
            self.round_output.letters.push((machine_of(to), message));
        }
    }

    fn refuse(&mut self, peer: MemberNumber, _: u64) {
        self.round_output.refused.push(machine_of(peer));
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Replicated, &mut Outboxes) -> T) -> T {
        let result = self.state.write(|state| change(state, self.outboxes));
        self.post();
        result
    }

    fn apply(&mut self, apply: &mut dyn FnMut(&mut dyn HeldState)) {
        let state = Some(self.state.0.borrow_mut());
        apply(&mut LockedState { shell: self, state });
        self.post();
    }

    fn sync_ms(&self, _began: Now) -> u64 {
        self.last_sync.0 / 1000
    }

    fn committed(&mut self, entries: &[LogEntry]) {
        self.round_output.committed.extend_from_slice(entries);
    }

    fn committed_in(&mut self, group: u32, entries: &[LogEntry]) {
        self.round_output.committed_in_groups.extend(entries.iter().map(|entry| (group, entry.clone())));
    }

    fn members_changed(&mut self) {
        self.links.follow(&self.state.read());
    }

    fn seek_members(&mut self, sought: SoughtMembers) {
        self.links.seek(sought);
        self.members_changed();
    }

    fn raise_alarm(&mut self, member: MemberNumber) {
        self.round_output.differing.push(machine_of(member));
    }

    fn begin_snapshot(&mut self, order: SnapshotOrder) {
        self.desk.ordered = Some(order);
        self.round_output.orders_snapshot = true;
    }

    fn finished_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        self.desk.finished.take()
    }

    fn await_snapshot(&mut self) -> Option<Result<Taken, SnapshotError>> {
        while self.desk.step(self.state, self.now) || self.desk.walk.is_some() {}
        self.desk.finished.take()
    }
}
