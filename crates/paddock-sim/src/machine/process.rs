//! A member's process: the engine's loop and the workers, as steps.

use std::rc::Rc;
use std::sync::Arc;

use paddock_chance::Chance;
use paddock_member::{Config, Member, MemberError, Work};
use paddock_proto::{MemberNumber, SessionId};
use paddock_replica::{GroupStanding, Input, LogEntry, Membership, Replicated, Role};
use paddock_state::{ConnId, Now, Outboxes};
use paddock_storage::LogError;
use paddock_tree::FeatureLevel;

use super::beside::{Beside, Others};
use super::disk::SimDisk;
use super::front::Workers;
use super::links::SimLinks;
use super::setup::Settings;
use super::shell::{Locked, RoundOutput, SimShell, SnapshotDesk};
use crate::time::SimDuration;

/// A member that works through this many rounds in one go does it for ever.
const ROUNDS_MAX: usize = 100_000;

/// Next thing that the engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextWork {
    /// The process waits for something to happen.
    Rest,
    /// The process has synced, which takes its time.
    Synced,
}

#[derive(Debug)]
pub(crate) struct SimProcess {
    member: Member,
    pub(crate) state: Rc<Locked>,
    pub(crate) links: SimLinks,
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
    /// Time that the last sync took.
    pub(crate) last_sync: SimDuration,
    /// True if it has been told that there is something in the inbox.
    pub(crate) is_woken: bool,
    /// True if connections whose turns were cut short are to have their next ones some time from now.
    pub(crate) are_turns_planned: bool,
}

impl SimProcess {
    /// A member out of what its disk holds.
    pub(crate) fn start(
        disk: &SimDisk,
        config: Config,
        settings: &Settings,
        now: Now,
    ) -> Result<SimProcess, MemberError> {
        let (chance, workers) = (Chance::of(config.seed, "sockets"), settings.workers);
        let (member, state) = Member::recover(Arc::new(disk.clone()), config, &now)?;
        let links = SimLinks::new(settings.all_numbers(), &state);
        let state = Rc::new(Locked::new(state));
        let mut process = SimProcess {
            workers: Workers::new(workers, &settings.front(), &state, chance),
            member,
            state,
            links,
            outboxes: Outboxes::new(workers),
            desk: SnapshotDesk::default(),
            inbox: Vec::new(),
            is_tick_due: false,
            has_ticked: false,
            is_carrying: true,
            is_busy: false,
            last_sync: SimDuration::ZERO,
            is_woken: false,
            are_turns_planned: false,
        };
        process.tell_workers();
        Ok(process)
    }

    /// Entries that were applied while the log was read, each behind the number of its group.
    pub(crate) fn take_replayed(&mut self) -> Vec<(u32, LogEntry)> {
        self.member.take_replayed()
    }

    fn tell_workers(&mut self) {
        self.workers.note_member(self.member.confirmed_ms(), self.member.role() == Role::Looking);
    }

    pub(crate) fn role(&self) -> Role {
        self.member.role()
    }

    /// Entry up to which a follower of this leader has everything, as far as the leader knows.
    pub(crate) fn matched(&self, follower: MemberNumber) -> Option<u64> {
        let followers = self.member.standing().followers;
        followers.iter().find(|standing| standing.member == follower).map(|standing| standing.matched)
    }

    /// Feature levels that other members have told this one.
    pub(crate) fn told_levels(&self) -> Vec<(MemberNumber, FeatureLevel)> {
        self.member.standing().told_levels
    }

    pub(crate) fn group_standings(&self) -> Vec<GroupStanding> {
        self.member.group_standings().collect()
    }

    /// Entry and digest of the state of a group beside the home group, if the member has it.
    pub(crate) fn group_digest(&self, group: u32) -> Option<(u64, u64)> {
        self.member.look_at_group(group, |state| (state.applied().0, state.tree().digest()))
    }

    /// Entry and membership of a group beside the home group, if the member has it.
    pub(crate) fn group_membership(&self, group: u32) -> Option<(u64, Membership)> {
        self.member.look_at_group(group, |state| (state.applied().0, state.membership().clone()))
    }

    /// Calls `look` with the state of a group beside the home group, if the member has it.
    pub(crate) fn look_at_group<T>(&self, group: u32, look: impl FnOnce(&Replicated) -> T) -> Option<T> {
        self.member.look_at_group(group, look)
    }

    /// Submits a command, for which no connection waits, to a group beside the home group.
    pub(crate) fn submit_to_group(&mut self, group: u32, command: &[u8]) {
        self.member.submit_to_group(group, command);
        self.is_carrying = true;
    }

    /// Times that it has handed the lead over because it was slow.
    pub(crate) fn slow_handovers(&self) -> u64 {
        let standing = self.member.standing();
        standing.slow_disk_handovers + standing.slow_link_handovers
    }

    pub(crate) fn put(&mut self, input: Input) {
        self.inbox.push(input);
    }

    /// Number of the workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.count()
    }

    /// From now on clients' bytes come and go at once, and not in pieces.
    pub(crate) fn take_bytes_whole(&mut self) {
        self.workers.take_whole();
    }

    pub(crate) fn tick_is_due(&mut self) {
        self.is_tick_due = true;
    }

    /// True if there was a tick since this was asked last: then the next one is to be planned.
    pub(crate) fn has_ticked(&mut self) -> bool {
        std::mem::take(&mut self.has_ticked)
    }

    /// The engine's thread: takes all that waits and carries it out, up to the next sync. Within entries `others` have the state now and
    /// then.
    pub(crate) fn turn(
        &mut self,
        now: Now,
        disk: &SimDisk,
        round_output: &mut RoundOutput,
        others: &mut dyn Others,
    ) -> Result<NextWork, MemberError> {
        disk.defer_sync(true);
        let next = self.work(now, disk, round_output, others);
        disk.defer_sync(false);
        self.tell_workers();
        if !matches!(next, Ok(NextWork::Synced)) {
            disk.complete_sync();
        }
        next
    }

    fn work(
        &mut self,
        now: Now,
        disk: &SimDisk,
        round_output: &mut RoundOutput,
        others: &mut dyn Others,
    ) -> Result<NextWork, MemberError> {
        let last_sync = self.last_sync;
        let SimProcess { member, state, links, outboxes, desk, workers, inbox, .. } = self;
        let mut shell = SimShell {
            now,
            last_sync,
            disk,
            state,
            links,
            outboxes,
            workers,
            desk,
            inbox,
            round_output,
            others,
        };
        for _ in 0..ROUNDS_MAX {
            if self.is_carrying {
                let synced = member.syncs();
                match member.work(&mut shell)? {
                    Work::Nothing | Work::Shortage => self.is_carrying = false,
                    Work::Done if member.syncs() > synced => return Ok(NextWork::Synced),
                    Work::Done => {}
                }
                continue;
            }
            if shell.inbox.is_empty() && !self.is_tick_due {
                return Ok(NextWork::Rest);
            }
            let inputs = std::mem::take(shell.inbox);
            member.take(&shell, inputs);
            if std::mem::take(&mut self.is_tick_due) {
                self.has_ticked = true;
                member.tick(&mut shell)?;
                shell.state.read().state().watches().sweep();
            }
            self.is_carrying = true;
        }
        panic!("the member is never done");
    }

    /// The housekeeper's thread, which says whether it has done something. A disk without room is no reason to end.
    pub(crate) fn keep_house(&mut self) -> Result<bool, MemberError> {
        match self.member.housekeeper().run() {
            Ok(has_done) => Ok(has_done),
            Err(LogError::DiskFull { .. } | LogError::Exhausted { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The orderly end of a process whose engine rests.
    pub(crate) fn end(self, now: Now, disk: &SimDisk) -> Result<(), MemberError> {
        let SimProcess {
            member,
            state,
            mut links,
            mut outboxes,
            mut desk,
            mut workers,
            mut inbox,
            last_sync,
            ..
        } = self;
        let (state, links, outboxes) = (&state, &mut links, &mut outboxes);
        let (desk, workers) = (&mut desk, &mut workers);
        let (inbox, round_output, others) = (&mut inbox, &mut RoundOutput::default(), &mut ());
        member.end(&mut SimShell {
            now,
            last_sync,
            disk,
            state,
            links,
            outboxes,
            workers,
            desk,
            inbox,
            round_output,
            others,
        })
    }

    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.workers.conns()
    }

    /// The member's last contact with a leader, by its monotonic clock; `None` if it needs no other.
    pub(crate) fn confirmed_ms(&self) -> Option<u64> {
        Some(self.member.confirmed_ms()).filter(|confirmed_ms| *confirmed_ms != u64::MAX)
    }

    /// The session of a connection.
    pub(crate) fn session(&self, conn: ConnId) -> SessionId {
        self.workers.session(conn)
    }

    /// True if the turn of a connection was cut short, and the next one has not come.
    pub(crate) fn has_put_off(&self) -> bool {
        self.workers.has_put_off()
    }

    /// The other threads of the process.
    pub(crate) fn beside(&mut self, now: Now) -> Beside<'_> {
        let SimProcess { state, workers, desk, inbox, .. } = self;
        Beside { now, state, workers, desk, inbox }
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty() || self.is_tick_due || self.is_carrying
    }
}
