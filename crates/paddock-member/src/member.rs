//! The heart of a member's process: it carries out what its groups ask for. The groups beside the home group come in `member/others.rs`.
//!
//! Its owner gives it inputs and ticks and lets it work, a round at a time. In a round everything that has gathered is
//! written with one sync, what is committed is applied, and who waits for it is answered.

mod between;
mod group;
mod leaving;
mod others;
mod routing;
mod served;

use std::sync::Arc;

use paddock_groups::{Carrier, Hosting, Router};
use paddock_proto::{MemberNumber, Zxid};
use paddock_replica::{
    Applied, Cluster, Effects, Group, HardState, Input, Install, LogEntry, MemberFacts, Presence, Replica,
    ReplicaOptions, Replicated, Role, Standing, member_number, raft_id,
};
use paddock_state::{Now, Outboxes, Serving};
use paddock_storage::snapshot::SnapshotFile;
use paddock_storage::{
    DirLock, Disk, GroupNumber, Housekeeper, Index, Log, LogError, PAYLOAD_BYTES_MAX, Record, Term,
};
use paddock_tree::{FeatureLevel, UnknownLevel};

use crate::config::HOME;
use crate::incoming::{self, Incoming, IncomingError};
use crate::progress::Report;
use crate::recovery::{self, Found, RecoveryError};
use crate::snapshots::{Mark, Snapshots, Taken};
use crate::{Clock, Config, Shell, StateLock};
use crate::{addressed, diverged, identity};
use group::MemberGroup;
use leaving::LeftGroup;
use routing::{MapFacts, RoutedState};

// Every entry that the replica gives can be written.
const _: () = assert!(LogEntry::PAYLOAD_BYTES_MAX <= PAYLOAD_BYTES_MAX);

/// After this time without a write, what is on disk is marked as whole.
const QUIET_MS: u64 = 500;

/// Time in milliseconds before a full disk is tried again, or a file for which there was no descriptor.
const SHORTAGE_PAUSE_MS: u64 = 1000;

/// Since when a disk is full, or descriptors are lacking, and when it is tried again.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    since_ms: u64,
    retry_at_ms: u64,
    /// Message for the log when it has passed.
    passed: &'static str,
}

/// Reason for which a member has to stop.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The transaction log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A snapshot of another member could not be taken over.
    #[error(transparent)]
    Incoming(#[from] IncomingError),
    /// The state that was taken over could not be loaded.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The ensemble uses features that this program does not know.
    #[error(transparent)]
    FeatureLevel(#[from] UnknownLevel),
    #[error(
        "the state of this member is not the one that most others have, at entry {index}: it stopped; when it is started \
         again, it puts its files aside and fetches the state from the leader"
    )]
    /// A digest has shown another state than most members have. `index` is the entry's number.
    Diverged { index: u64 },
}

impl MemberError {
    /// True if there was no room or no descriptor, which passes when someone makes room.
    fn is_passing(&self) -> bool {
        let is_full = match self {
            MemberError::Log(LogError::DiskFull { .. }) => true,
            MemberError::Incoming(error) => error.is_disk_full(),
            MemberError::Recovery(RecoveryError::Identity(error)) => error.is_disk_full(),
            _ => false,
        };
        is_full || self.is_exhausted()
    }

    /// True if the system had no descriptor or no memory for a file.
    fn is_exhausted(&self) -> bool {
        match self {
            MemberError::Log(LogError::Exhausted { .. }) => true,
            MemberError::Recovery(RecoveryError::Identity(error)) => error.is_exhausted(),
            MemberError::Recovery(RecoveryError::Snapshot(error)) => error.is_exhausted(),
            MemberError::Incoming(error) => error.is_exhausted(),
            _ => false,
        }
    }
}

/// Result of a round of work.
#[derive(Debug)]
pub enum Work {
    /// There may be more to do.
    Done,
    /// There was nothing to do.
    Nothing,
    /// There was nothing to do but to wait for room on the disk, or for a descriptor, which is tried again later. What waits for
    /// it was not promised to a client.
    Shortage,
}

/// Result of a round of work for one group, before the log is synced.
enum GroupWork {
    Nothing,
    /// Clients were answered who waited for nothing else.
    Answered,
    /// It waits for room on the disk, or for a descriptor.
    Shortage,
    /// There is something to sync, or all that had to be done is done. `is_idle` is true if that was nothing.
    Gathered {
        is_idle: bool,
    },
}

#[derive(Debug)]
pub struct Member {
    config: Config,
    presence: Presence,
    /// The home group is the first.
    groups: Vec<MemberGroup>,
    /// Groups, by their places, that may have something to do: a round does not look at the others. The home group always may.
    stirred: Vec<bool>,
    log: Log,
    disk: Arc<dyn Disk>,
    /// While the disk is full, or descriptors are lacking.
    shortage: Option<Shortage>,
    /// The ensemble that the directory is known to belong to.
    cluster: Cluster,
    /// The log's first record, the number of the first start, is on disk, and the identity.
    has_begun: bool,
    /// Number of times the log was synced.
    syncs: u64,
    /// Time at which something was written that has not been marked, in milliseconds of the monotonic clock.
    unmarked_since_ms: Option<u64>,
    /// Answers and events of a group, on their way to the router.
    mail: Outboxes,
    /// Present from the moment on at which znodes are spread over several groups.
    router: Option<Router>,
    /// Groups that this member has for others.
    hosting: Hosting,
    /// The way of what the groups are to have of each other.
    carrier: Carrier,
    /// Groups whose replicas have ended, and of which there is something on the disk.
    left: Vec<LeftGroup>,
    /// While the log is replayed, if it holds anything behind the snapshot.
    replay: Option<Report>,
    /// Entries that were applied while the log was read, for those who check them.
    #[cfg(feature = "testing")]
    replayed: Vec<(u32, LogEntry)>,
    /// Last, so that the directories stay ours until nothing else of the member is left.
    _locks: Vec<DirLock>,
}

impl Member {
    /// The time between two ticks: a tenth of an election timeout.
    pub const TICK_MS: u64 = Replica::TICK_MS;

    /// The member whose data is in a directory, or a new one, and its state as of the newest snapshot. What the log holds
    /// behind that is applied by the first rounds of work.
    pub fn recover(
        disk: Arc<dyn Disk>,
        config: Config,
        clock: &impl Clock,
    ) -> Result<(Member, Replicated), RecoveryError> {
        let Found { state, recovered, replayed, others, log, cluster, has_begun, locks } =
            recovery::recover(disk.clone(), &config, clock)?;
        let replay = (!recovered.entries.is_empty()).then(|| Report::start("replaying log", "writes", clock));
        let now = clock.now();
        let watches = state.state().watches().clone();
        let mut presence = Presence::new(replica_options(&config), &recovered, watches, now);
        let mut group = Group::new(&presence, recovered, &state, now);
        Replica::new(&mut presence, &mut group).open(&state, now);
        let home = MemberGroup {
            number: HOME,
            group,
            effects: Effects::default(),
            snapshots: Snapshots::new(HOME),
            incoming: Incoming::new(HOME, disk.clone(), config.snapshot_dir(HOME)),
            unsynced: None,
            writes: replayed.commands,
            own_state: None,
            joining_term: None,
        };
        let mut member = Member {
            presence,
            groups: vec![home],
            stirred: vec![true],
            config,
            log,
            disk,
            shortage: None,
            cluster,
            has_begun,
            syncs: 0,
            unmarked_since_ms: None,
            mail: Outboxes::new(1),
            router: None,
            hosting: Hosting::default(),
            carrier: Carrier::default(),
            left: Vec::new(),
            replay,
            #[cfg(feature = "testing")]
            replayed: replayed.entries.into_iter().map(|entry| (HOME.0, entry)).collect(),
            _locks: locks,
        };
        member.begin_others(others, &state, now);
        member.follow_map(MapFacts::of(state.tree()), 1);
        Ok((member, state))
    }

    fn facts(&self) -> MemberFacts<'_> {
        MemberFacts::of(&self.presence, &self.groups[0].group)
    }

    /// The group at this place, at work.
    fn replica(&mut self, at: usize) -> Replica<'_> {
        self.stir(at);
        Replica::new(&mut self.presence, &mut self.groups[at].group)
    }

    /// The group at this place may have something to do.
    fn stir(&mut self, at: usize) {
        self.stirred[at] = true;
    }

    /// True if a round of work has to look at the group at this place.
    fn is_stirred(&self, at: usize) -> bool {
        at == 0 || self.stirred[at]
    }

    /// Gives all groups the same input.
    fn step_all(&mut self, now: Now, input: impl Fn() -> Input) {
        (0..self.groups.len()).for_each(|at| self.replica(at).step(now, input()));
    }

    /// Part of this member in its ensemble, as far as it knows.
    pub fn role(&self) -> Role {
        self.facts().role()
    }

    /// Standing of this member in its ensemble now.
    pub fn standing(&self) -> Standing {
        self.with_groups(self.facts().standing())
    }

    /// The ensemble that this member belongs to.
    pub fn cluster(&self) -> Cluster {
        self.presence.cluster()
    }

    /// Tells this process from all others, those with the same member number included.
    pub fn process(&self) -> u64 {
        self.config.process()
    }

    /// Every session that was heard here before this time, in milliseconds of the clock that never goes back, was known
    /// then to a leader that a quorum followed. See [`MemberFacts::confirmed_ms`].
    pub fn confirmed_ms(&self) -> u64 {
        self.facts().confirmed_ms()
    }

    /// The last entry in this member's log.
    pub fn last_entry(&self) -> u64 {
        self.facts().last_entry()
    }

    /// Entry up to which everything is committed, as far as this member knows.
    pub fn committed_entry(&self) -> u64 {
        self.facts().committed_entry()
    }

    /// Number of times the log was synced.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Housekeeper that prepares and recycles the log's files. To be run beside the member.
    pub fn housekeeper(&self) -> Housekeeper {
        self.log.housekeeper()
    }

    /// Takes what happened. What is to be done about it is done by `work`.
    pub fn take(&mut self, clock: &impl Clock, inputs: impl IntoIterator<Item = Input>) {
        let now = clock.now();
        for input in inputs {
            match input {
                Input::Peer { from, bytes } => self.take_message(now, from, bytes),
                Input::LinkLost { peer } => {
                    self.step_all(now, || Input::LinkLost { peer });
                    // Another host is chosen at once: this one may be there again with the next tick, and know nothing of its guests.
                    self.router.iter_mut().for_each(Router::look_for_hosts);
                }
                Input::StepDown => self.step_all(now, || Input::StepDown),
                Input::Client(input) => self.take_from_client(now, input),
                // What the process asks for concerns the home group.
                input => self.replica(0).step(now, input),
            }
        }
    }

    /// A message of another member, for the group that it names.
    fn take_message(&mut self, now: Now, from: u64, sealed: Vec<u8>) {
        if let Some((way, group, letters)) = addressed::open_letters(&sealed) {
            return self.take_letters(number_of(from), way, (group, letters));
        }
        let opened = addressed::open(sealed);
        let opened = opened.and_then(|(number, bytes)| Some((self.place_of(number)?, bytes)));
        match opened {
            Some((at, bytes)) => {
                self.replica(at).step(now, Input::Peer { from, bytes });
                self.tell_successions(at);
            }
            // A member that has not come so far in the home group's log is sent it again.
            None => tracing::debug!(from, "message for a Raft group that this member does not have dropped"),
        }
    }

    fn place_of(&self, number: GroupNumber) -> Option<usize> {
        self.groups.binary_search_by_key(&number, |group| group.number).ok()
    }

    /// Connections serve these sessions already, which the state has. To be called before anything of them is taken.
    pub fn adopt(&mut self, clock: &impl Clock, serving: Serving) {
        self.replica(0).adopt(clock.now(), serving);
    }

    /// Orders a snapshot, whatever has been written since the last one. It begins with one of the next ticks, behind one that is
    /// under way.
    pub fn want_snapshot(&mut self) {
        self.groups.iter_mut().for_each(|group| group.snapshots.want());
    }

    /// To be called each [`Member::TICK_MS`].
    pub fn tick(&mut self, shell: &mut impl Shell) -> Result<(), MemberError> {
        let now = shell.now();
        #[cfg(feature = "testing")]
        self.check_rest(now);
        self.step_all(now, || Input::Tick);
        self.carrier.tick();
        self.router.iter_mut().for_each(Router::tick);
        self.hosting.tick();
        self.carry_between_groups();
        if self.unmarked_since_ms.is_some_and(|since_ms| now.monotonic_ms - since_ms >= QUIET_MS) {
            self.mark()?;
        }
        self.look_at_snapshots(shell);
        if self.presence.has_groups_away() {
            self.leave_groups()?;
            self.found_new_groups(now);
        }
        match self.presence.unknown_level() {
            Some(unknown) => Err(unknown.clone().into()),
            None => Ok(()),
        }
    }

    /// Begins a snapshot of a group if it is time, or goes on with the one that is under way: a member takes one at a time.
    fn look_at_snapshots(&mut self, shell: &mut impl Shell) {
        let mut under_way = self.groups.iter().position(|group| group.snapshots.is_under_way());
        for at in 0..self.groups.len() {
            if under_way.is_none_or(|group| group == at) {
                self.look_at_snapshots_of(at, shell);
                under_way = self.groups[at].snapshots.is_under_way().then_some(at);
            }
        }
    }

    fn look_at_snapshots_of(&mut self, at: usize, shell: &mut impl Shell) {
        let group = &mut self.groups[at];
        let mark = Mark { writes: group.writes, log_bytes: self.log.bytes() };
        let taken = group.snapshots.poll(group.own_state.as_ref(), shell, &self.disk, &self.config, mark);
        let Some(Taken { index, term, membership, release, .. }) = taken else { return };
        self.log.release(group.number, Index(release));
        self.replica(at).step(shell.now(), Input::SnapshotTaken { index, term, membership });
        if at == 0 {
            self.release_idle_groups();
        }
    }

    /// Leaves a mark behind all that is synced. On a full disk that has to wait, which does no harm.
    fn mark(&mut self) -> Result<(), MemberError> {
        self.unmarked_since_ms = None;
        match self.log.mark() {
            Err(error) if error.is_passing() => Ok(()),
            result => Ok(result?),
        }
    }

    /// Carries out a round of what the groups ask for: what they have to write is synced together. To be called until there is nothing to
    /// do.
    pub fn work(&mut self, shell: &mut impl Shell) -> Result<Work, MemberError> {
        self.route(shell);
        let (mut is_short, mut has_answered, mut gathered) = (false, false, None);
        for at in 0..self.groups.len() {
            if !self.is_stirred(at) {
                continue;
            }
            self.stirred[at] = false;
            match self.work_for(at, shell)? {
                GroupWork::Nothing => continue,
                GroupWork::Answered => has_answered = true,
                GroupWork::Shortage => is_short = true,
                GroupWork::Gathered { is_idle } => gathered = Some(gathered.unwrap_or(true) && is_idle),
            }
            self.stir(at);
        }
        // Messages of all groups to one member leave together.
        shell.flush();
        match gathered {
            // The others write in the next round: no client that is answered now waits for their disk.
            _ if has_answered => Ok(Work::Done),
            None if self.has_routes() => Ok(Work::Done),
            None if is_short => Ok(Work::Shortage),
            None => {
                self.end_replay(shell);
                Ok(Work::Nothing)
            }
            Some(is_idle) => {
                self.persist(shell)?;
                Ok(if is_idle && self.shortage.is_some() { Work::Shortage } else { Work::Done })
            }
        }
    }

    /// Stops if a group that is left alone has something to do. With each tick, because this looks at all of them.
    #[cfg(feature = "testing")]
    fn check_rest(&mut self, now: Now) {
        for at in 1..self.groups.len() {
            if self.is_stirred(at) {
                continue;
            }
            let MemberGroup { number, group, effects, unsynced, .. } = &mut self.groups[at];
            Replica::new(&mut self.presence, group).collect(now, effects);
            if !effects.foreign.is_empty() {
                // That is the member's, and told to the group that is looked at first.
                self.stir(at);
                continue;
            }
            let is_at_rest = effects.is_empty() && effects.install.is_none() && unsynced.is_none();
            assert!(is_at_rest, "{number:?} was left alone, and has something to do: {effects:?}");
        }
    }

    /// Carries out what a group asks for, but for the sync of the log.
    fn work_for(&mut self, at: usize, shell: &mut impl Shell) -> Result<GroupWork, MemberError> {
        let effects = &self.groups[at].effects;
        let is_held_up = effects.install.is_some() || effects.diverged_at.is_some();
        if is_held_up && self.has_to_wait(shell) {
            return Ok(GroupWork::Shortage);
        }
        if !is_held_up {
            let MemberGroup { number, group, effects, joining_term, .. } = &mut self.groups[at];
            let mut replica = Replica::new(&mut self.presence, group);
            replica.collect(shell.now(), effects);
            let term = replica.joining_term().filter(|_| at > 0);
            if term != *joining_term {
                *joining_term = term;
                self.carrier.stir(number.0);
            }
        }
        let MemberGroup { effects, unsynced, .. } = &self.groups[at];
        let is_idle = effects.is_empty();
        if is_idle && effects.install.is_none() && unsynced.is_none() {
            return Ok(GroupWork::Nothing);
        }
        if let Some(index) = effects.diverged_at {
            let marked = diverged::mark(self.disk.as_ref(), &self.config, index);
            return match marked.map_err(|error| MemberError::from(RecoveryError::from(error))) {
                Err(error) if error.is_passing() => Ok(self.run_short(shell, &error)),
                Err(error) => Err(error),
                Ok(()) => Err(MemberError::Diverged { index }),
            };
        }
        if effects.can_answer_first() {
            self.apply(at, shell);
            return Ok(GroupWork::Answered);
        }
        self.talk(at, shell);
        if let Some(install) = self.groups[at].effects.install.take() {
            match self.install(at, shell, &install) {
                Err(error) if error.is_passing() => {
                    self.groups[at].effects.install = Some(install);
                    return Ok(self.run_short(shell, &error));
                }
                result => result?,
            }
            self.end_shortage(shell);
        }
        self.apply(at, shell);
        if let Some(round) = self.groups[at].effects.round.take() {
            self.write(at, shell);
            self.groups[at].unsynced = Some(round);
        }
        Ok(GroupWork::Gathered { is_idle })
    }

    /// Carries out the effects that concern other members and need not wait for the disk.
    fn talk(&mut self, at: usize, shell: &mut impl Shell) {
        let are_several = self.router.is_some();
        let MemberGroup { number, group, effects, snapshots, incoming, .. } = &mut self.groups[at];
        effects.differing.drain(..).for_each(|member| shell.raise_alarm(number_of(member)));
        for (from, cluster) in effects.foreign.drain(..) {
            shell.refuse(number_of(from), cluster);
        }
        if let Some(sought) = effects.sought_members.take() {
            shell.seek_members(sought);
        }
        for (to, message) in effects.messages.drain(..) {
            shell.send(number_of(to), addressed::seal(*number, message));
        }
        if !are_several {
            shell.flush();
        }
        if std::mem::take(&mut effects.wants_snapshot) {
            snapshots.want();
        }
        let now = shell.now();
        let mut replica = Replica::new(&mut self.presence, group);
        for read in effects.snapshot_reads.drain(..) {
            let (dir, piece_bytes) = (self.config.snapshot_dir(*number), self.config.piece_bytes);
            let piece = incoming::read_piece(self.disk.as_ref(), &dir, read, piece_bytes);
            replica.step(now, Input::SnapshotRead { read, piece });
        }
        for piece in effects.snapshot_writes.drain(..) {
            let written = incoming.write(&piece);
            if let Err(error) = &written {
                tracing::error!(%error, "snapshot of the leader could not be written; it is fetched again");
            }
            let offset = piece.offset + piece.bytes.len() as u64;
            let (index, is_last, is_good) = (piece.index, piece.is_last, written.is_ok());
            replica.step(now, Input::SnapshotWritten { index, offset, is_last, is_good });
        }
    }

    /// Puts the snapshot that came from the leader in the place of log and state.
    fn install(&mut self, at: usize, shell: &mut impl Shell, install: &Install) -> Result<(), MemberError> {
        let MemberGroup { group, snapshots, incoming, own_state, .. } = &mut self.groups[at];
        // One of this member's own may be walking over the state that goes.
        snapshots.finish(shell);
        let path = incoming.install(install, &mut self.log)?;
        let file = SnapshotFile { index: Index(install.index), path };
        let (mut tree, _) = recovery::load(self.disk.as_ref(), &file, shell)?;
        tree.raised_level().check(self.config.known_level)?;
        tree.set_long_list(self.config.long_list);
        tracing::info!(zxid = %tree.zxid(), "snapshot of the leader installed");
        let now = shell.now();
        let mut replica = Replica::new(&mut self.presence, group);
        let is_home = own_state.is_none();
        let put = |state: &mut Replicated, outboxes: &mut Outboxes| {
            let (at, membership) = ((install.index, install.term), install.membership.clone());
            if is_home {
                state.replace(tree, at, membership);
            } else {
                state.replace_beside_others(tree, at, membership);
            }
            replica.installed(now, state, outboxes);
        };
        match own_state {
            Some(state) => {
                state.write(|state| put(state, &mut self.mail));
                self.end_routes(at, shell);
                self.take_mail(at, shell);
                self.follow_received(at);
            }
            None => {
                let carrier = &mut self.carrier;
                let (mut map, mut workers) = (MapFacts::default(), 0);
                shell.change(|state, outboxes| {
                    put(state, outboxes);
                    carrier.follow_home(state.tree());
                    map = MapFacts::of(state.tree());
                    workers = outboxes.workers();
                });
                self.end_routes(at, shell);
                self.follow_map(map, workers);
                shell.members_changed();
                self.found_new_groups(now);
            }
        }
        Ok(())
    }

    /// Gives the records of a group's round to the log.
    fn write(&mut self, at: usize, shell: &impl Shell) {
        let MemberGroup { number: group, effects, .. } = &mut self.groups[at];
        let group = *group;
        let last = self.log.last_index(group).map_or(0, |last| last.0);
        let (first, behind) = around_entries(effects.hard_state.take(), &effects.entries, last);
        if let Some(hard_state) = first {
            self.log.append(Record::HardState { group, payload: &hard_state.encode() });
        }
        for entry in effects.entries.drain(..) {
            let (term, index) = (Term(entry.term), Index(entry.index));
            self.log.append(Record::Entry { group, term, index, payload: &entry.payload });
        }
        if let Some(hard_state) = behind {
            self.log.append(Record::HardState { group, payload: &hard_state.encode() });
        }
        self.unmarked_since_ms = Some(shell.now().monotonic_ms);
    }

    /// Waits until the records of all groups are on disk. Nothing is acknowledged before.
    fn persist(&mut self, shell: &impl Shell) -> Result<(), MemberError> {
        let mut places = (0..self.groups.len()).filter(|at| self.is_stirred(*at));
        let is_due = places.any(|at| self.groups[at].unsynced.is_some());
        if !is_due || self.has_to_wait(shell) {
            return Ok(());
        }
        self.syncs += 1;
        let began = shell.now();
        match self.write_down() {
            Err(error) if error.is_passing() => {
                self.run_short(shell, &error);
                return Ok(());
            }
            result => result?,
        }
        self.presence.synced(shell.sync_ms(began) * 1000);
        let now = shell.now();
        for at in 0..self.groups.len() {
            if self.is_stirred(at)
                && let Some(round) = self.groups[at].unsynced.take()
            {
                self.replica(at).step(now, Input::Persisted { round });
            }
        }
        self.end_shortage(shell);
        Ok(())
    }

    /// True while it is too early to try again what found no room or no descriptor.
    fn has_to_wait(&self, shell: &impl Shell) -> bool {
        self.shortage.is_some_and(|shortage| shell.now().monotonic_ms < shortage.retry_at_ms)
    }

    /// Ends the wait: everything that was held back has been done.
    fn end_shortage(&mut self, shell: &impl Shell) {
        if let Some(shortage) = self.shortage.take() {
            let now = shell.now();
            tracing::info!(seconds = (now.monotonic_ms - shortage.since_ms) / 1000, "{}", shortage.passed);
            self.step_all(now, || Input::DiskFull(false));
        }
    }

    /// Something found no room or no descriptor, which is tried again later. Until then writes are refused.
    fn run_short(&mut self, shell: &impl Shell, error: &MemberError) -> GroupWork {
        let now = shell.now();
        let retry_at_ms = now.monotonic_ms + SHORTAGE_PAUSE_MS;
        if let Some(shortage) = &mut self.shortage {
            shortage.retry_at_ms = retry_at_ms;
            return GroupWork::Shortage;
        }
        let passed = if error.is_exhausted() {
            let cause = std::error::Error::source(error).map(tracing::field::display);
            tracing::error!(%error, cause, "out of file descriptors or memory: refusing writes; raise the limit");
            "files can be opened again: accepting writes"
        } else {
            tracing::error!(%error, "disk full: refusing writes; free some space");
            "disk has room again: accepting writes"
        };
        self.shortage = Some(Shortage { since_ms: now.monotonic_ms, retry_at_ms, passed });
        self.step_all(now, || Input::DiskFull(true));
        GroupWork::Shortage
    }

    /// Makes durable what the round promises: first in which ensemble, then the rest.
    fn write_down(&mut self) -> Result<(), MemberError> {
        let cluster = self.presence.cluster();
        if !self.has_begun {
            // An identity without a log would tell of a log that is lost. Nothing is promised before both are there.
            self.log.sync()?;
            identity::write(self.disk.as_ref(), &self.config, cluster).map_err(RecoveryError::from)?;
            (self.cluster, self.has_begun) = (cluster, true);
        } else if cluster != self.cluster {
            identity::write(self.disk.as_ref(), &self.config, cluster).map_err(RecoveryError::from)?;
            self.cluster = cluster;
        }
        Ok(self.log.sync()?)
    }

    /// Applies what a group has committed and sends the answers.
    fn apply(&mut self, at: usize, shell: &mut impl Shell) {
        let are_several = self.router.is_some();
        let MemberGroup { effects, own_state, .. } = &self.groups[at];
        if effects.committed.is_empty() && !effects.locals {
            return;
        }
        if own_state.is_some() {
            return self.apply_in_other(at, shell);
        }
        if effects.committed.iter().any(LogEntry::founds_groups) {
            self.begin_routing();
        }
        let MemberGroup { group, effects, writes, .. } = &mut self.groups[at];
        let now = shell.now();
        #[cfg(feature = "testing")]
        shell.committed(&effects.committed);
        let mut replica = Replica::new(&mut self.presence, group);
        let mut applied = Applied::default();
        let Member { carrier, mail, router, .. } = self;
        let (mut map, mut workers, mut told_by_others) = (MapFacts::default(), 0, Zxid(0));
        shell.apply(&mut |mut held| {
            if let Some(router) = router.as_mut() {
                let workers = held.parts().1.workers();
                if mail.workers() != workers {
                    *mail = Outboxes::new(workers);
                }
                let told = held.parts().0.tree().zxid();
                let mut routed = RoutedState { held: &mut held, mail, router, told };
                applied = replica.apply(now, effects, &mut routed);
                routed.pass_out();
                told_by_others = routed.told;
            } else {
                applied = replica.apply(now, effects, &mut held);
            }
            if are_several {
                let tree = held.parts().0.tree();
                carrier.follow_home(tree);
                map = MapFacts::behind(tree, told_by_others);
                workers = held.parts().1.workers();
            }
        });
        *writes += applied.commands as u64;
        if applied.members_changed {
            shell.members_changed();
        }
        if let Some(replay) = &mut self.replay {
            replay.advance(applied.commands as u64, shell);
        }
        self.found_new_groups(now);
        if are_several {
            self.follow_map(map, workers);
            self.take_mail(0, shell);
            self.carry_between_groups();
        }
    }

    /// Logs the end of the replay: everything that the log held has been applied.
    fn end_replay(&mut self, clock: &impl Clock) {
        if let Some(replay) = self.replay.take().filter(|replay| replay.done() > 0) {
            let (writes, per_second) = (replay.done(), replay.per_second(clock));
            let seconds = format!("{:.2}", replay.seconds(clock));
            tracing::info!(writes, seconds, per_second, "log replayed");
        }
    }

    /// The member's orderly end, when there is nothing to do: nothing that is on disk can be doubted at the next start.
    pub fn end(mut self, shell: &mut impl Shell) -> Result<(), MemberError> {
        self.groups.iter_mut().for_each(|group| group.snapshots.finish(shell));
        if self.groups.iter().any(|group| group.unsynced.is_some()) {
            // What waited for room was not promised to a client, and the end does not wait for an operator.
            self.log.sync()?;
        }
        self.mark()
    }
}

/// The member that the Raft group knows by this id. Only a member is sent messages, and only one has sent any.
fn number_of(id: u64) -> MemberNumber {
    member_number(id).expect("ids of the group are those of members")
}

fn replica_options(config: &Config) -> ReplicaOptions {
    ReplicaOptions {
        member: raft_id(config.member),
        founding: config.founding.clone(),
        tick_ms: config.tick_ms,
        garbage_interval_ms: config.settings.garbage_interval_ms,
        garbage_max: config.settings.garbage_max,
        removed_at_once: config.removed_at_once,
        work_at_once: config.work_at_once,
        entry_bytes_kept: config.settings.entry_bytes_kept,
        linearizable_reads: config.linearizable_reads,
        group_count: config.settings.group_count,
        group_replicas: config.settings.group_replicas,
        split_points: config.settings.split_points.clone(),
        stamps: config.stamps,
        known_level: config.known_level,
        level_max: FeatureLevel(config.settings.feature_level_max.try_into().unwrap_or(u16::MAX)),
        lease_clock_bound_ms: config.lease_clock_bound_ms,
        seed: config.seed,
        secret: config.secret,
        process: config.process(),
    }
}

/// Hard states in front of the entries of a round and behind them, in a log that ends with entry `last`. The beginning of a write may reach the disk without the
/// rest: so the one in front says nothing of entries in whose place others come.
fn around_entries(
    hard_state: Option<HardState>,
    entries: &[LogEntry],
    last: u64,
) -> (Option<HardState>, Option<HardState>) {
    let kept = entries.first().filter(|first| first.index <= last).map(|first| first.index - 1);
    match (hard_state, kept) {
        (Some(hard_state), Some(kept)) if hard_state.commit > kept => {
            (Some(HardState { commit: kept, ..hard_state }), Some(hard_state))
        }
        (hard_state, _) => (hard_state, None),
    }
}

#[cfg(test)]
mod tests;
