//! A member's process: the engine's loop and the workers, as steps.

use std::sync::Arc;

use paddock_member::{Config, Member, MemberError, Work};
use paddock_proto::{Id, SessionId};
use paddock_replica::{Input, Role};
use paddock_state::{ConnId, Now, Outboxes};
use paddock_storage::LogError;

use super::disk::SimDisk;
use super::front::{Front, FrontYield};
use super::shell::{Harvest, Locked, SimShell, SnapshotDesk};
use crate::wire::{Frame, Packet};

/// A member that does so much in one go does it for ever.
const ROUNDS_MAX: usize = 100_000;

/// What the engine does next.
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
    pub(crate) state: Locked,
    outboxes: Outboxes,
    desk: SnapshotDesk,
    front: Front,
    inbox: Vec<Input>,
    is_tick_due: bool,
    has_ticked: bool,
    /// The last inputs have not been carried out to their end.
    is_carrying: bool,
    /// Whether the engine waits for the disk, and takes nothing.
    pub(crate) is_busy: bool,
    /// Whether it has been told that there is something in the inbox.
    pub(crate) is_woken: bool,
}

impl Process {
    /// A member out of what its disk holds.
    pub(crate) fn start(
        disk: &SimDisk,
        config: Config,
        workers: usize,
        now: Now,
    ) -> Result<Process, MemberError> {
        let mut front = Front::new(workers, &config);
        let (member, state) = Member::recover(Arc::new(disk.clone()), config, &now)?;
        front.set_confirmed(member.confirmed_ms());
        Ok(Process {
            member,
            state: Locked::new(state),
            outboxes: Outboxes::new(workers),
            desk: SnapshotDesk::default(),
            front,
            inbox: Vec::new(),
            is_tick_due: false,
            has_ticked: false,
            is_carrying: true,
            is_busy: false,
            is_woken: false,
        })
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

    /// Whether there was a tick since this was asked last: then the next one is to be planned.
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
        self.front.set_confirmed(self.member.confirmed_ms());
        if !matches!(next, Ok(Next::Synced)) {
            disk.complete_sync();
        }
        next
    }

    fn work(&mut self, now: Now, disk: &SimDisk, harvest: &mut Harvest) -> Result<Next, MemberError> {
        let Process { member, state, outboxes, desk, front, .. } = self;
        let mut shell = SimShell { now, disk, state, outboxes, front, desk, harvest };
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
        let Process { member, state, mut outboxes, mut desk, mut front, .. } = self;
        let (state, outboxes, desk, front) = (&state, &mut outboxes, &mut desk, &mut front);
        let mut harvest = Harvest::default();
        member.end(&mut SimShell { now, disk, state, outboxes, front, desk, harvest: &mut harvest })
    }

    pub(crate) fn accept(&mut self, conn: ConnId, id: Id) {
        self.front.accept(conn, id);
    }

    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.front.conns()
    }

    pub(crate) fn session(&self, conn: ConnId) -> SessionId {
        self.front.session(conn)
    }

    /// A worker's thread: a frame has come.
    pub(crate) fn receive(&mut self, conn: ConnId, frame: Frame, now_ms: u64) -> Vec<(ConnId, Packet)> {
        let mut out = FrontYield::default();
        self.front.take(conn, frame, self.state.read().state(), now_ms, &mut out);
        self.hand_over(out)
    }

    /// A worker's thread: there is mail.
    pub(crate) fn deliver(&mut self, worker: usize, now_ms: u64) -> Vec<(ConnId, Packet)> {
        let mut out = FrontYield::default();
        self.front.deliver(worker, now_ms, &mut out);
        self.hand_over(out)
    }

    /// The workers' threads: it is time to report who was heard, and to look who cannot be served any more.
    pub(crate) fn report_touches(&mut self, now_ms: u64) -> Vec<(ConnId, Packet)> {
        let mut out = FrontYield::default();
        self.front.touches(now_ms, &mut out);
        self.hand_over(out)
    }

    fn hand_over(&mut self, out: FrontYield) -> Vec<(ConnId, Packet)> {
        self.inbox.extend(out.inputs.into_iter().map(Input::Client));
        out.packets
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty() || self.is_tick_due || self.is_carrying
    }
}
