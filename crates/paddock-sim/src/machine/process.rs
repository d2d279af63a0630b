//! A member's process: the engine's loop and the workers, as steps.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use paddock_front::Settings;
use paddock_member::{Config, Member, MemberError, Work};
use paddock_proto::SessionId;
use paddock_replica::{Input, Role};
use paddock_state::{ConnId, Now, Outboxes};
use paddock_storage::LogError;

use super::disk::SimDisk;
use super::front::{Workers, Yield};
use super::shell::{Harvest, Locked, SimShell, SnapshotDesk};
use crate::wire::{Frame, Packet};
use paddock_chance::Chance;

/// A member that does so much in one go does it for ever.
const ROUNDS_MAX: usize = 100_000;

/// Next thing that the engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for something to happen.
    Rest,
    /// It has synced, which takes its time.
    Synced,
}

#[derive(Debug)]
pub(crate) struct Process {
    member: Member,
    pub(crate) state: Rc<Locked>,
    outboxes: Outboxes,
    desk: SnapshotDesk,
    workers: Workers,
    inbox: Vec<Input>,
    is_tick_due: bool,
    has_ticked: bool,
    /// The last inputs have not been carried out to their end.
    is_carrying: bool,
    /// True if the engine waits for the disk, and takes nothing.
    pub(crate) is_busy: bool,
    /// True if it has been told that there is something in the inbox.
    pub(crate) is_woken: bool,
}

impl Process {
    /// A member out of what its disk holds.
    pub(crate) fn start(
        disk: &SimDisk,
        config: Config,
        (workers, settings): (usize, &Settings),
        now: Now,
    ) -> Result<Process, MemberError> {
        let chance = Chance::of(config.seed, "sockets");
        let (member, state) = Member::recover(Arc::new(disk.clone()), config, &now)?;
        let state = Rc::new(Locked::new(state));
        let mut process = Process {
            workers: Workers::new(workers, settings, &state, chance),
            member,
            state,
            outboxes: Outboxes::new(workers),
            desk: SnapshotDesk::default(),
            inbox: Vec::new(),
            is_tick_due: false,
            has_ticked: false,
            is_carrying: true,
            is_busy: false,
            is_woken: false,
        };
        process.tell_workers();
        Ok(process)
    }

    fn tell_workers(&mut self) {
        self.workers.note_member(self.member.confirmed_ms(), self.member.role() == Role::Looking);
    }

    pub(crate) fn role(&self) -> Role {
        self.member.role()
    }

    pub(crate) fn put(&mut self, input: Input) {
        self.inbox.push(input);
    }

    pub(crate) fn tick_is_due(&mut self) {
        self.is_tick_due = true;
    }

    /// True if there was a tick since this was asked last: then the next one is to be planned.
    pub(crate) fn has_ticked(&mut self) -> bool {
        std::mem::take(&mut self.has_ticked)
    }

    /// The engine's thread: takes all that waits and carries it out, up to the next sync.
    pub(crate) fn turn(
        &mut self,
        now: Now,
        disk: &SimDisk,
        harvest: &mut Harvest,
    ) -> Result<Next, MemberError> {
        disk.defer_sync(true);
        let next = self.work(now, disk, harvest);
        disk.defer_sync(false);
        self.tell_workers();
        if !matches!(next, Ok(Next::Synced)) {
            disk.complete_sync();
        }
        next
    }

    fn work(&mut self, now: Now, disk: &SimDisk, harvest: &mut Harvest) -> Result<Next, MemberError> {
        let Process { member, state, outboxes, desk, workers, .. } = self;
        let mut shell = SimShell { now, disk, state, outboxes, workers, desk, harvest };
        for _ in 0..ROUNDS_MAX {
            if self.is_carrying {
                let synced = member.syncs();
                match member.work(&mut shell)? {
                    Work::Nothing | Work::DiskFull => self.is_carrying = false,
                    Work::Done if member.syncs() > synced => return Ok(Next::Synced),
                    Work::Done => {}
                }
                continue;
            }
            if self.inbox.is_empty() && !self.is_tick_due {
                return Ok(Next::Rest);
            }
            member.take(&shell, self.inbox.drain(..));
            if std::mem::take(&mut self.is_tick_due) {
                self.has_ticked = true;
                member.tick(&mut shell)?;
                shell.state.read().state().sweep_watches();
            }
            self.is_carrying = true;
        }
        panic!("the member is never done");
    }

    /// The snapshot's thread. Says whether there is more to do.
    pub(crate) fn walk(&mut self, now: Now) -> bool {
        self.desk.step(&self.state, now)
    }

    /// The housekeeper's thread. A disk without room is no reason to end.
    pub(crate) fn keep_house(&mut self) -> Result<(), MemberError> {
        match self.member.housekeeper().run() {
            Ok(_) | Err(LogError::DiskFull { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The orderly end of a process whose engine rests.
    pub(crate) fn end(self, now: Now, disk: &SimDisk) -> Result<(), MemberError> {
        let Process { member, state, mut outboxes, mut desk, mut workers, .. } = self;
        let (state, outboxes, desk, workers) = (&state, &mut outboxes, &mut desk, &mut workers);
        let mut harvest = Harvest::default();
        member.end(&mut SimShell { now, disk, state, outboxes, workers, desk, harvest: &mut harvest })
    }

    pub(crate) fn accept(&mut self, conn: ConnId, address: SocketAddr) {
        self.workers.accept(conn, address);
    }

    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.workers.conns()
    }

    pub(crate) fn session(&self, conn: ConnId) -> SessionId {
        self.workers.session(conn)
    }

    /// True if all that has come on a connection was read: a connection that asks for too much is not.
    pub(crate) fn has_read_all(&self, conn: ConnId) -> bool {
        self.workers.has_read_all(conn)
    }

    /// A worker's thread: a frame has come.
    pub(crate) fn receive(&mut self, conn: ConnId, frame: &Frame, now: Now) -> Vec<(ConnId, Packet)> {
        let out = self.workers.receive(conn, frame, now);
        self.hand_over(out)
    }

    /// A worker's thread: there is mail.
    pub(crate) fn deliver(&mut self, worker: usize, now: Now) -> Vec<(ConnId, Packet)> {
        let out = self.workers.deliver(worker, now);
        self.hand_over(out)
    }

    /// The workers' threads: it is time to report the sessions that were heard, and to look for those that cannot be served any
    /// more.
    pub(crate) fn report_heard(&mut self, now: Now) -> Vec<(ConnId, Packet)> {
        let out = self.workers.report_heard(now);
        self.hand_over(out)
    }

    fn hand_over(&mut self, out: Yield) -> Vec<(ConnId, Packet)> {
        self.inbox.extend(out.inputs.into_iter().map(Input::Client));
        out.packets
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty() || self.is_tick_due || self.is_carrying
    }
}
