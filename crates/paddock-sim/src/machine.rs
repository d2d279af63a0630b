//! A machine: a disk, two clocks, and perhaps a member's process.

pub(crate) mod beside;
pub(crate) mod clock;
pub(crate) mod disk;
mod front;
pub(crate) mod links;
pub(crate) mod process;
pub(crate) mod setup;
pub(crate) mod shell;
pub(crate) mod twin;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use paddock_chance::Chance;
use paddock_member::{MemberError, StateLock};
use paddock_model::dump;
use paddock_state::Now;
use paddock_storage::disk::Disk;
use paddock_tree::FeatureLevel;

use crate::faults::{End, FileKind, Moment};
use crate::time::{SimDuration, Time};
use clock::MachineClock;
use disk::SimDisk;
use process::SimProcess;
use setup::Settings;

/// Directory in which a member keeps what it has.
pub(crate) const DATA_DIR: &str = "/data";
/// The log is in here, and snapshots.
const LOG_DIR: &str = "/data/log";
const SNAPSHOT_DIR: &str = "/data/snapshots";
/// Says whose disk it is.
const IDENTITY: &str = "/data/identity";
/// Time after which a member that was started again is heard by others, though the end of its link got lost.
const SUCCESSION: SimDuration = SimDuration::millis(2500);
/// Begin of the world, for clocks that people set.
const WALL_MS: i64 = 1_700_000_000_000;

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) number: u8,
    /// Feature level that its build knows, or the one with which it is started next.
    pub(crate) build: FeatureLevel,
    pub(crate) disk: SimDisk,
    /// Faults that are planned for its disk and its process, or go on.
    pub(crate) faults: MachineFaults,
    pub(crate) promises: Promises,
    pub(crate) blame: Blame,
    pub(crate) clock: MachineClock,
    pub(crate) process: Option<SimProcess>,
    /// Counts beginnings and ends of processes: what was planned for one does not concern the next.
    pub(crate) life: u64,
    /// The start of the process, or of the last one.
    pub(crate) began: Time,
    pub(crate) paused_until: Time,
    /// Until then nothing of other members is taken, though it arrives.
    pub(crate) deaf_until: Time,
    /// Until then what other members say about the home group is held back.
    pub(crate) home_late_until: Time,
    has_battery: bool,
    starts: u64,
    chance: Chance,
}

/// Faults of a machine: those that go on, and those that are planned.
#[derive(Debug)]
pub(crate) struct MachineFaults {
    /// Syncs take longer by a time, until a moment.
    pub(crate) slow: (SimDuration, Time),
    /// Moments at which syncs have begun since then.
    pub(crate) slow_syncs: Vec<Time>,
    /// There is no room on the disk until then.
    pub(crate) full_until: Time,
    /// Time for which there is no room once a snapshot of a leader is installed.
    pub(crate) full_at_install: Option<SimDuration>,
    /// Something was done to its disk that may make a process end.
    pub(crate) is_disturbed: bool,
    /// A copy of its disk as it once was.
    pub(crate) copy: Option<SimDisk>,
    /// True if its disk is such a copy, and no process has been started with it.
    pub(crate) is_copy: bool,
    /// Milliseconds by which its clock was put ahead when that was copied, and the start of it that others knew of then.
    pub(crate) ahead: Option<(i64, u64)>,
    /// A copy of another member's disk, with which it is started next.
    pub(crate) neighbours_disk: Option<SimDisk>,
    /// Number of operations of its disk after which the power is cut, once it is started next.
    pub(crate) power_cut_in_recovery: Option<u64>,
    /// End of the process when it dies at an operation of its disk.
    pub(crate) death: End,
    /// Number of moments within entries, while others have the state, in the last of which the process dies.
    pub(crate) dies_within_entry: Option<u64>,
    /// Its disk was found damaged: it waits for an operator.
    pub(crate) is_out_of_service: bool,
}

/// Promises of a machine's members that others may rely on.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The last entry that it has applied.
    pub(crate) applied: u64,
    /// The last entry that it has acknowledged in its newest term, and that term.
    pub(crate) acknowledged: (u64, u64),
    /// The newest term in which it has told others of its vote, and for whom that was.
    pub(crate) voted: (u64, u64),
    /// Digests that this process has told others, by entry.
    pub(crate) told_digests: BTreeMap<u64, u64>,
    /// Up to here entries were applied by any member when it lost its data.
    pub(crate) forgot: u64,
}

/// Excuses that a machine has for what its member does or shows.
#[derive(Debug, Default)]
pub(crate) struct Blame {
    /// The znode whose data is not what the log made it, while its state is wrong.
    pub(crate) wrong: Option<Rc<str>>,
    /// True if the state of this process is wrong or was: a digest of then may still be judged when the state is right again.
    pub(crate) was_wrong: bool,
    /// The znode that was wrong last: a snapshot may still hold it.
    pub(crate) flipped: Option<Rc<str>>,
    /// Its state is wrong, or was once.
    pub(crate) has_been_wrong: bool,
    /// Bits have been flipped on its disk.
    pub(crate) is_damaged: bool,
    /// That, or its disk was replaced: what it had promised may be forgotten.
    pub(crate) has_lost_data: bool,
    /// This process has been told that most members have another state, and has to stop.
    pub(crate) is_told_to_stop: bool,
    /// Its disk is that of a member of another ensemble.
    pub(crate) is_foreign: bool,
}

impl Machine {
    pub(crate) fn new(number: u8, build: FeatureLevel, has_battery: bool, mut chance: Chance) -> Machine {
        let drift = chance.between(0, 2000) as i64 - 1000;
        let monotonic = SimDuration::seconds(chance.between(1, 1_000_000));
        let wall_ms = WALL_MS + chance.between(0, 10_000) as i64;
        Machine {
            number,
            build,
            disk: SimDisk::new(chance.word()),
            faults: MachineFaults {
                slow: (SimDuration::ZERO, Time(0)),
                slow_syncs: Vec::new(),
                full_until: Time(0),
                full_at_install: None,
                is_disturbed: false,
                copy: None,
                is_copy: false,
                ahead: None,
                neighbours_disk: None,
                power_cut_in_recovery: None,
                death: End::Killed,
                dies_within_entry: None,
                is_out_of_service: false,
            },
            promises: Promises::default(),
            blame: Blame::default(),
            clock: MachineClock::new(Time(0), monotonic, wall_ms, drift),
            process: None,
            life: 0,
            began: Time(0),
            paused_until: Time(0),
            deaf_until: Time(0),
            home_late_until: Time(0),
            has_battery,
            starts: 0,
            chance,
        }
    }

    pub(crate) fn now(&self, now: Time) -> Now {
        self.clock.now(now)
    }

    /// True if its process began so long ago that the others listen to it, and not to the one before.
    pub(crate) fn is_heard(&self, now: Time) -> bool {
        now - self.began >= SUCCESSION
    }

    pub(crate) fn is_paused(&self, now: Time) -> bool {
        self.paused_until > now
    }

    pub(crate) fn is_deaf(&self, now: Time) -> bool {
        self.deaf_until > now
    }

    /// The last entry in the log of a member that does not run, as far as it can be read.
    pub(crate) fn last_logged_entry(&self) -> Option<(u64, u64)> {
        match self.disk.memory().list(Path::new(LOG_DIR)) {
            Ok(_) => self.disk.last_entry(Path::new(LOG_DIR)),
            Err(_) => Some((0, 0)),
        }
    }

    /// The member says that it has all entries up to this one.
    pub(crate) fn acknowledges(&mut self, (index, term): (u64, u64)) {
        let (before, former) = self.promises.acknowledged;
        self.promises.acknowledged = (if term == former { index.max(before) } else { index }, term);
    }

    /// The last term in the log of a member that does not run, and its vote in that, as far as it can be read.
    pub(crate) fn last_logged_vote(&self) -> Option<(u64, u64)> {
        match self.disk.memory().list(Path::new(LOG_DIR)) {
            Ok(_) => self.disk.last_vote(Path::new(LOG_DIR)),
            Err(_) => Some((0, 0)),
        }
    }

    /// The znode whose data may be wrong in what its process sends. An answer that was read while the state was wrong may leave after
    /// the state has become right.
    pub(crate) fn may_show_wrong(&self) -> Option<Rc<str>> {
        self.blame.flipped.clone().filter(|_| self.blame.was_wrong)
    }

    /// The member is told the digest that most voters had after an entry.
    pub(crate) fn is_told(&mut self, (index, right): (u64, u64)) {
        self.blame.is_told_to_stop |= self.promises.told_digests.get(&index).is_some_and(|own| *own != right);
    }

    pub(crate) fn votes(&mut self, term: u64, candidate: u64) {
        self.promises.voted = self.promises.voted.max((term, candidate));
    }

    /// True if it has promises to keep that it knows of, in each of these groups.
    pub(crate) fn has_a_say(&self, groups: Range<u32>) -> bool {
        !self.blame.has_lost_data && self.disk.has_a_say(Path::new(LOG_DIR), groups)
    }

    pub(crate) fn start(&mut self, now: Time, settings: &Settings) -> Result<(), MemberError> {
        if let Some(operations) = self.faults.power_cut_in_recovery.take() {
            self.faults.death = End::PowerCut;
            self.disk.die_after(operations, Moment::After);
        }
        self.starts += 1;
        self.life += 1;
        self.began = now;
        self.promises.told_digests.clear();
        self.blame.is_told_to_stop = false;
        let config = settings.config(self.number, self.chance.word(), self.build);
        self.process = Some(SimProcess::start(&self.disk, config, settings, self.now(now))?);
        Ok(())
    }

    /// The process is gone.
    pub(crate) fn end(&mut self, now: Time, power_cut: bool) {
        self.life += 1;
        self.process = None;
        self.disk.end_process(power_cut);
        (self.faults.is_disturbed, self.faults.dies_within_entry) = (false, None);
        (self.paused_until, self.deaf_until) = (now, now);
        if power_cut {
            self.clock.boot(now, (!self.has_battery).then_some(WALL_MS));
        }
    }

    /// The machine has an empty disk, and no process runs. By now some member has applied entries up to `forgets`.
    pub(crate) fn replace_disk(&mut self, forgets: u64) {
        (self.promises.forgot, self.promises.voted, self.faults.power_cut_in_recovery) =
            (forgets, (0, 0), None);
        self.faults.is_copy = false;
        self.disk = SimDisk::new(self.chance.word());
        (self.blame.is_foreign, self.blame.wrong, self.blame.flipped) = (false, None, None);
        (self.promises.applied, self.promises.acknowledged, self.blame.has_lost_data) = (0, (0, 0), true);
        (self.blame.is_damaged, self.faults.is_out_of_service, self.faults.is_disturbed) =
            (false, false, false);
        self.faults.full_until = Time(0);
    }

    /// True if its disk says whose it is.
    pub(crate) fn has_identity(&self) -> bool {
        self.disk.memory().contents(Path::new(IDENTITY)).is_some()
    }

    /// Starts it with the disk of another member. Its own is not touched.
    pub(crate) fn start_with(
        &mut self,
        disk: &SimDisk,
        now: Time,
        settings: &Settings,
    ) -> Result<(), MemberError> {
        let config = settings.config(self.number, self.chance.word(), self.build);
        SimProcess::start(disk, config, settings, self.now(now)).map(drop)
    }

    /// Flips a bit of the data of a znode in memory, where it stays until the state is learned again or a client writes that
    /// znode. Returns its path, if there is one with data.
    pub(crate) fn flip_in_memory(&mut self, mut dice: Chance) -> Option<Rc<str>> {
        let process = self.process.as_ref()?;
        let znodes = dump(process.state.read().tree()).znodes;
        let is_simple = |path: &str| !path.starts_with("/zookeeper/");
        let with_data =
            znodes.iter().filter(|(_, znode)| znode.data.as_ref().is_some_and(|data| !data.is_empty()));
        let paths: Vec<&str> =
            with_data.map(|(path, _)| path.as_str()).filter(|path| is_simple(path)).collect();
        if paths.is_empty() {
            return None;
        }
        let path = *dice.pick(&paths);
        process.state.write(|state| state.tree_mut().flip_bit(path));
        (self.blame.has_been_wrong, self.blame.has_lost_data) = (true, true);
        self.blame.flipped = Some(path.into());
        (self.blame.wrong, self.blame.was_wrong) = (self.blame.flipped.clone(), true);
        self.blame.flipped.clone()
    }

    /// The process has ended because its state is wrong, and the next one begins with none. By now some member has applied
    /// entries up to `forgets`.
    pub(crate) fn puts_state_aside(&mut self, forgets: u64) {
        (self.blame.wrong, self.blame.flipped, self.promises.forgot, self.promises.voted) =
            (None, None, forgets, (0, 0));
        (self.promises.applied, self.promises.acknowledged) = (0, (0, 0));
    }

    /// A copy of the disk is kept.
    pub(crate) fn copy_disk(&mut self) {
        self.faults.copy = Some(self.disk.copy(self.chance.word()));
    }

    /// Leaves so little room on the disk, until then.
    pub(crate) fn fill_disk(&mut self, room: u64, until: Time) {
        let memory = self.disk.memory();
        memory.set_capacity(Some(memory.used_bytes() + room));
        self.faults.full_until = self.faults.full_until.max(until);
    }

    /// Leaves no room on the disk for this time, once a snapshot of a leader is installed.
    pub(crate) fn fill_disk_at_install(&mut self, span: SimDuration) {
        self.faults.full_at_install = Some(span);
        self.disk.fill_at_install(true);
    }

    /// The time for which the disk has no room, if it has none since the last look because a snapshot was installed.
    pub(crate) fn take_filled(&mut self, now: Time) -> Option<SimDuration> {
        let span = self.faults.full_at_install.take_if(|_| self.disk.take_filled())?;
        self.faults.full_until = self.faults.full_until.max(now + span);
        Some(span)
    }

    /// There is room again, unless the disk is to be full for longer.
    pub(crate) fn make_room(&mut self, now: Time) {
        if self.faults.full_until <= now {
            self.disk.memory().set_capacity(None);
            self.disk.make_room();
        }
    }

    pub(crate) fn is_full(&self, now: Time) -> bool {
        self.faults.full_until > now
    }

    /// Takes back all that is to come, and what can be taken back of what has come.
    pub(crate) fn mend(&mut self, now: Time) {
        self.disk.live_on();
        (self.faults.power_cut_in_recovery, self.faults.neighbours_disk) = (None, None);
        (self.faults.dies_within_entry, self.faults.full_at_install) = (None, None);
        self.faults.is_disturbed = false;
        self.faults.full_until = now;
        self.make_room(now);
        (self.paused_until, self.deaf_until, self.home_late_until) = (now, now, now);
        self.be_slow(SimDuration::ZERO, now);
    }

    /// Syncs take longer by a time, until a moment.
    pub(crate) fn be_slow(&mut self, by: SimDuration, until: Time) {
        self.faults.slow = (by, until);
        self.faults.slow_syncs.clear();
    }

    /// Time that the next sync takes, if it takes at most `sync` when all is well.
    pub(crate) fn sync_takes(&mut self, now: Time, sync: SimDuration) -> SimDuration {
        let (by, until) = self.faults.slow;
        let slow = if until > now { by } else { SimDuration::ZERO };
        self.faults.slow_syncs.extend((until > now).then_some(now));
        SimDuration(self.chance.mostly_low(30, sync.0)) + slow
    }

    /// Flips a bit somewhere. Says where, if there is anything.
    pub(crate) fn flip(&mut self, place: FileKind, mut dice: Chance) -> Option<String> {
        let dir = Path::new(match place {
            FileKind::Log => LOG_DIR,
            FileKind::Snapshots => SNAPSHOT_DIR,
            FileKind::Other => DATA_DIR,
        });
        let memory = self.disk.memory();
        let files: Vec<_> = memory.list(dir).ok()?.iter().map(|name| dir.join(name)).collect();
        let files: Vec<_> =
            files.into_iter().filter_map(|path| Some((memory.contents(&path)?, path))).collect();
        let files: Vec<_> = files.into_iter().filter(|(bytes, _)| !bytes.is_empty()).collect();
        if files.is_empty() {
            return None;
        }
        let (bytes, path) = dice.pick(&files);
        let (offset, bit) = (dice.clone().below(bytes.len() as u64), dice.clone().below(8) as u8);
        self.blame.is_damaged |= memory.flip(path, offset, bit);
        self.blame.has_lost_data |= self.blame.is_damaged;
        Some(format!("{} at {offset}, bit {bit}", path.display()))
    }
}
