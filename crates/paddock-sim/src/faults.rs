//! Faults of a run: planned from its seed before it begins, so that a fault can be left out and all else stays.

use std::fmt;

use paddock_chance::Chance;
use paddock_storage::disk::DiskFault;

use crate::time::{SimDuration, Time};

/// Moment of an operation at which a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

/// Whom a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    Member(u8),
    /// The member that leads then; or this one, if none does.
    Leader(u8),
}

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its process is killed. All that it has written is there, synced or not.
    Killed,
    /// The power is cut. All that was not synced is lost, or torn.
    PowerCut,
    /// As the operator wants it.
    Orderly,
}

/// The files of a member in which a bit is flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    Snapshots,
    Other,
}

/// The part of a leader that is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowPart {
    Disk,
    Links,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    End {
        whom: Whom,
        end: End,
        down: SimDuration,
    },
    /// Between two operations on its disk.
    EndAtDisk {
        whom: Whom,
        operations: u64,
        moment: Moment,
        end: End,
    },
    /// While others have the state between two commands of an entry, for as many times.
    EndWithinEntry {
        whom: Whom,
        moments: u64,
        end: End,
    },
    /// The member is killed between two operations on its disk, and while it recovers from that the power is cut.
    EndTwice {
        whom: Whom,
        operations: u64,
        again: u64,
    },
    /// The leader ends, is back at once, and ends again in the election that follows.
    EndInElection {
        whom: Whom,
        down: SimDuration,
        operations: u64,
    },
    PowerCutOfAll {
        down: SimDuration,
    },
    /// Likewise, this time after the first member has written the first entry of a group beside the home group.
    PowerCutOfFounders {
        after: SimDuration,
        down: SimDuration,
    },
    /// The machine stands still. Messages of members are taken later than those of clients by a time, when it goes on.
    Pause {
        whom: Whom,
        span: SimDuration,
        deaf: SimDuration,
    },
    /// The members of a set of bits and all others do not reach each other.
    Cut {
        side: u64,
        holds: bool,
        span: SimDuration,
    },
    /// One member and all others do not reach each other.
    CutOff {
        whom: Whom,
        holds: bool,
        span: SimDuration,
    },
    /// Messages of the member do not reach the others, or theirs do not reach it.
    OneWay {
        whom: Whom,
        outwards: bool,
        holds: bool,
        span: SimDuration,
    },
    Slow {
        whom: Whom,
        by: SimDuration,
        span: SimDuration,
    },
    /// Messages of others reach the member later by a time, and after half of that its own are lost.
    HearsLate {
        whom: Whom,
        by: SimDuration,
        span: SimDuration,
    },
    /// Messages about the home group, and no others, reach the member only when the time is over.
    HomeLate {
        whom: Whom,
        span: SimDuration,
    },
    Reset {
        whom: Whom,
    },
    Loss {
        permille: u64,
        span: SimDuration,
    },
    ClientsCut {
        whom: Whom,
        span: SimDuration,
    },
    ClientReset {
        client: u64,
    },
    /// The disk of the leader alone becomes slow, or its links do, while all else is well.
    SlowLeader {
        part: SlowPart,
        by: SimDuration,
        span: SimDuration,
    },
    SlowDisk {
        whom: Whom,
        by: SimDuration,
        span: SimDuration,
    },
    FailingDisk {
        whom: Whom,
        fault: DiskFault,
        after: u64,
    },
    FullDisk {
        whom: Whom,
        room: u64,
        span: SimDuration,
    },
    /// The disk gets full when the member begins to put the next snapshot of a leader in the place of its log and state.
    FullDiskAtInstall {
        member: u8,
        span: SimDuration,
    },
    Flip {
        whom: Whom,
        place: FileKind,
        dice: u64,
    },
    /// The machine gets a new disk.
    NewDisk {
        whom: Whom,
        down: SimDuration,
    },
    /// The machine gets a new disk, and what comes to that is cut short.
    NewDiskAndEnd {
        whom: Whom,
        down: SimDuration,
        operations: u64,
    },
    /// Machines of a voter and of an observer get new disks, and meet each other only.
    NewDisksApart {
        down: SimDuration,
        span: SimDuration,
    },
    /// A machine gets a new disk, and is cut off together with one that sleeps: that one will find it when it wakes, as
    /// the leader that it was, or as a member that has heard of none.
    NewDiskBesideSleeper {
        leads: bool,
        down: SimDuration,
        span: SimDuration,
    },
    /// A machine comes back with the disk of a member of another ensemble.
    ForeignDisk {
        whom: Whom,
        down: SimDuration,
        dice: u64,
    },
    /// The disk is copied of a member that follows, or puts such a copy back.
    OldDisk {
        member: u8,
        down: SimDuration,
    },
    /// An old disk, and the clock goes back: between the two the member was started again with a clock that was ahead.
    OldDiskAndClock {
        member: u8,
        down: SimDuration,
        ahead_ms: i64,
    },
    /// A machine is started with a copy of the disk of another member of its ensemble, and with its own after that.
    NeighboursDisk {
        whom: Whom,
        down: SimDuration,
    },
    /// A second process with the number of a member, started elsewhere with a copy of its disk.
    Twin {
        whom: Whom,
        span: SimDuration,
        dice: u64,
    },
    /// Memory of a member that follows is damaged, so that its state is not what the log made it.
    WrongState {
        member: u8,
        dice: u64,
    },
    /// The member that hands the lead over next hears nothing of the other members from then on.
    DeafOnceHandedOver {
        span: SimDuration,
    },
    WallJump {
        whom: Whom,
        by_ms: i64,
    },
    MonotonicJump {
        whom: Whom,
        by: SimDuration,
    },
    Drift {
        whom: Whom,
        millionths: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: Time,
    pub(crate) fault: Fault,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.at, self.fault)
    }
}

/// Kinds of faults; each is thrown with its own particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    End,
    EndAtDisk,
    EndWithinEntry,
    EndTwice,
    EndInElection,
    PowerCutOfAll,
    Pause,
    Cut,
    CutOff,
    OneWay,
    Slow,
    HearsLate,
    HomeLate,
    Reset,
    Loss,
    ClientsCut,
    ClientReset,
    SlowDisk,
    SlowLeader,
    FailingDisk,
    FullDisk,
    Flip,
    NewDisk,
    NewDiskAndEnd,
    NewDisksApart,
    NewDiskBesideSleeper,
    ForeignDisk,
    OldDisk,
    OldDiskAndClock,
    NeighboursDisk,
    WrongState,
    Twin,
    DeafOnceHandedOver,
    WallJump,
    MonotonicJump,
    Drift,
}

impl FaultKind {
    pub(crate) const ALL: [FaultKind; 29] = [
        FaultKind::End,
        FaultKind::EndAtDisk,
        FaultKind::EndWithinEntry,
        FaultKind::EndInElection,
        FaultKind::PowerCutOfAll,
        FaultKind::Pause,
        FaultKind::Cut,
        FaultKind::OneWay,
        FaultKind::Slow,
        FaultKind::Reset,
        FaultKind::Loss,
        FaultKind::ClientsCut,
        FaultKind::ClientReset,
        FaultKind::SlowDisk,
        FaultKind::FailingDisk,
        FaultKind::FullDisk,
        FaultKind::Flip,
        FaultKind::NewDisk,
        FaultKind::NewDiskBesideSleeper,
        FaultKind::ForeignDisk,
        FaultKind::DeafOnceHandedOver,
        FaultKind::WallJump,
        FaultKind::MonotonicJump,
        FaultKind::Drift,
        FaultKind::EndTwice,
        FaultKind::NewDiskAndEnd,
        FaultKind::NewDisksApart,
        FaultKind::HearsLate,
        FaultKind::NeighboursDisk,
    ];

    /// True if a machine may forget by it, or hold what was never written.
    pub(crate) fn brings_older_disk(self) -> bool {
        matches!(self, FaultKind::OldDisk | FaultKind::OldDiskAndClock)
    }

    pub(crate) fn loses_data(self) -> bool {
        use FaultKind::{Flip, ForeignDisk, NewDisk, NewDiskAndEnd, NewDiskBesideSleeper, NewDisksApart};
        use FaultKind::{OldDisk, OldDiskAndClock, WrongState};
        let is_new = matches!(self, NewDisk | NewDiskAndEnd | NewDisksApart | NewDiskBesideSleeper);
        is_new || matches!(self, Flip | ForeignDisk | OldDisk | OldDiskAndClock | WrongState)
    }
}

/// Plans faults on `machines` machines from a time on, until the end of a run.
pub(crate) fn plan(
    kinds: &[FaultKind],
    from: Time,
    machines: u8,
    length: SimDuration,
    chance: &mut Chance,
) -> Vec<Planned> {
    let interval = SimDuration::millis(*chance.pick(&[300, 1000, 3000, 10_000]));
    let mut faults = Vec::new();
    let mut at = from;
    while !kinds.is_empty() && at < Time(0) + length {
        let kind = *chance.pick(kinds);
        faults.push(Planned { at, fault: throw(kind, machines, chance) });
        at = at + SimDuration(chance.between(0, 2 * interval.0));
    }
    faults
}

fn throw(kind: FaultKind, machines: u8, chance: &mut Chance) -> Fault {
    let whom = whom(machines, chance);
    let span = span(chance);
    match kind {
        FaultKind::End => Fault::End { whom, end: end(chance), down: span },
        FaultKind::EndAtDisk => {
            let moment = *chance.pick(&[Moment::Before, Moment::After]);
            let end = *chance.pick(&[End::Killed, End::PowerCut]);
            Fault::EndAtDisk { whom, operations: chance.mostly_low(1, 500), moment, end }
        }
        FaultKind::EndWithinEntry => {
            let end = *chance.pick(&[End::Killed, End::PowerCut]);
            Fault::EndWithinEntry { whom, moments: chance.mostly_low(1, 300), end }
        }
        FaultKind::EndTwice => {
            let again = chance.between(1, 12);
            Fault::EndTwice { whom, operations: chance.mostly_low(1, 300), again }
        }
        FaultKind::EndInElection => {
            let down = SimDuration::millis(chance.mostly_low(1, 300));
            Fault::EndInElection { whom, down, operations: chance.between(1, 30) }
        }
        FaultKind::PowerCutOfAll => Fault::PowerCutOfAll { down: span },
        FaultKind::Pause => {
            Fault::Pause { whom, span, deaf: SimDuration::millis(chance.mostly_low(0, 1000)) }
        }
        FaultKind::Cut => {
            Fault::Cut { side: chance.below(1 << (machines + 1)), holds: chance.one_in(2), span }
        }
        FaultKind::CutOff => {
            let span = SimDuration::millis(chance.mostly_low(500, 30_000));
            Fault::CutOff { whom, holds: chance.one_in(2), span }
        }
        FaultKind::OneWay => {
            Fault::OneWay { whom, outwards: chance.one_in(2), holds: chance.one_in(2), span }
        }
        FaultKind::Slow => Fault::Slow { whom, by: SimDuration::millis(chance.mostly_low(1, 2000)), span },
        FaultKind::HearsLate => {
            let by = SimDuration::millis(chance.between(500, 3000));
            Fault::HearsLate { whom, by, span: SimDuration::seconds(4) }
        }
        FaultKind::HomeLate => Fault::HomeLate { whom, span },
        FaultKind::Reset => Fault::Reset { whom },
        FaultKind::Loss => Fault::Loss { permille: chance.between(10, 800), span },
        FaultKind::ClientsCut => Fault::ClientsCut { whom, span },
        FaultKind::ClientReset => Fault::ClientReset { client: chance.word() },
        FaultKind::SlowDisk => {
            Fault::SlowDisk { whom, by: SimDuration::millis(chance.mostly_low(1, 3000)), span }
        }
        FaultKind::SlowLeader => Fault::SlowLeader {
            part: if chance.one_in(2) { SlowPart::Disk } else { SlowPart::Links },
            by: SimDuration::millis(chance.between(40, 150)),
            span: SimDuration::seconds(8),
        },
        FaultKind::FailingDisk => {
            let kinds = [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename];
            Fault::FailingDisk { whom, fault: *chance.pick(&kinds), after: chance.mostly_low(0, 100) }
        }
        FaultKind::FullDisk => Fault::FullDisk { whom, room: chance.mostly_low(0, 100_000), span },
        FaultKind::Flip => {
            let place = *chance.pick(&[FileKind::Log, FileKind::Log, FileKind::Snapshots, FileKind::Other]);
            Fault::Flip { whom, place, dice: chance.word() }
        }
        FaultKind::NewDisk => Fault::NewDisk { whom, down: span },
        FaultKind::NewDiskAndEnd => {
            let down = SimDuration::millis(chance.mostly_low(1, 300));
            Fault::NewDiskAndEnd { whom, down, operations: chance.between(8, 60) }
        }
        FaultKind::NewDisksApart => {
            Fault::NewDisksApart { down: SimDuration::millis(chance.mostly_low(1, 300)), span }
        }
        FaultKind::NewDiskBesideSleeper => {
            let (leads, down) = (chance.one_in(2), SimDuration::millis(chance.mostly_low(1, 300)));
            Fault::NewDiskBesideSleeper { leads, down, span }
        }
        FaultKind::ForeignDisk => Fault::ForeignDisk { whom, down: span, dice: chance.word() },
        FaultKind::OldDisk => {
            let member = chance.between(1, u64::from(machines)) as u8;
            Fault::OldDisk { member, down: SimDuration::millis(chance.mostly_low(1, 300)) }
        }
        FaultKind::OldDiskAndClock => {
            let member = chance.between(1, u64::from(machines)) as u8;
            let down = SimDuration::millis(chance.mostly_low(1, 300));
            Fault::OldDiskAndClock { member, down, ahead_ms: chance.between(60_000, 100_000_000) as i64 }
        }
        FaultKind::NeighboursDisk => Fault::NeighboursDisk { whom, down: span },
        FaultKind::Twin => {
            let span = SimDuration::millis(chance.between(500, 15_000));
            Fault::Twin { whom, span, dice: chance.word() }
        }
        FaultKind::WrongState => {
            let member = chance.between(1, u64::from(machines)) as u8;
            Fault::WrongState { member, dice: chance.word() }
        }
        FaultKind::DeafOnceHandedOver => Fault::DeafOnceHandedOver { span },
        FaultKind::WallJump => {
            let by_ms = chance.mostly_low(1, 100_000_000) as i64;
            Fault::WallJump { whom, by_ms: if chance.one_in(2) { by_ms } else { -by_ms } }
        }
        FaultKind::MonotonicJump => {
            Fault::MonotonicJump { whom, by: SimDuration::millis(chance.mostly_low(1, 60_000)) }
        }
        FaultKind::Drift => Fault::Drift { whom, millionths: chance.between(0, 100_000) as i64 - 50_000 },
    }
}

fn whom(machines: u8, chance: &mut Chance) -> Whom {
    let member = chance.between(1, u64::from(machines)) as u8;
    if chance.one_in(2) { Whom::Leader(member) } else { Whom::Member(member) }
}

/// Mostly around an election timeout, sometimes much longer than that.
fn span(chance: &mut Chance) -> SimDuration {
    SimDuration::millis(chance.mostly_low(50, 20_000))
}

fn end(chance: &mut Chance) -> End {
    *chance.pick(&[End::Killed, End::PowerCut, End::Orderly])
}
