//! Worlds of runs: a session's order over groups.

use super::family::Family;
use super::mistake::StagingMistake as Mistake;
use super::model::{ALL_OR_NOTHING, END, ONCE, ORDER, RISING, TOLD, WINDOWS};
use super::plan::PlannedRequest::{Read, Staged, Write};
use super::plan::StagedOperation::Set;
use super::plan::StagingShown::Parked;
use super::plan::{Faults, StagingPlan, plan, run};
use crate::world::ModelWorld;

/// A run in groups 1, 2 and 1 again; a session that reads.
fn reader() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[read(0), read(1), read(0)]];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, strays: 1, ..Faults::default() },
        ..plan(&[1, 2], &[Set(0), Set(1), Set(0)], &[run(&[0, 1, 2])], &programs)
    }
}

/// A run in groups 1, 2 and 1 again; a session that reads, and writes in the other group; a second one that writes there.
pub(super) fn writers() -> StagingPlan {
    let programs =
        [&[Staged(0)][..], &[Read { znode: 0 }, Write(3), Read { znode: 1 }], &[Write(4), Read { znode: 0 }]];
    let operations = [Set(0), Set(1), Set(0), Set(1), Set(2)];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, ..Faults::default() },
        first_stamps: [0, 0, 3],
        ..plan(&[1, 2, 2], &operations, &[run(&[0, 1, 2])], &programs)
    }
}

/// Two runs in opposite orders, two sessions that read.
pub(super) fn crossed() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Staged(1)], &[read(0), read(2)], &[read(3), read(1)]];
    let runs = [run(&[0, 1]), run(&[2, 3])];
    plan(&[1, 2, 2, 1], &[Set(0), Set(1), Set(2), Set(3)], &runs, &programs)
}

/// Two windows of a session, the second one in home and a group of the first; a session that reads.
pub(super) fn windows() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0), Staged(1)][..], &[read(3), read(0), read(1)]];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, ..Faults::default() },
        ..plan(&[1, 2, 2, 0], &[Set(0), Set(1), Set(2), Set(3)], &[run(&[0, 1]), run(&[2, 3])], &programs)
    }
}

/// A write, and a run in other groups behind it while its reply waits; a session that reads.
pub(super) fn behind_a_write() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Write(0), Staged(0)][..], &[read(2), read(0)]];
    StagingPlan { has_tails: true, ..plan(&[1, 2, 0], &[Set(0), Set(1), Set(2)], &[run(&[1, 2])], &programs) }
}

/// Sessions that have seen something in home, whose clock is ahead, begin runs in opposite orders, and one reads.
fn after_reads() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Write(0), Staged(0)][..], &[read(0), Staged(1)], &[read(2), read(0), read(1)]];
    let operations = [Set(0), Set(1), Set(2), Set(2), Set(1)];
    StagingPlan {
        first_stamps: [4, 0, 0],
        ..plan(&[0, 1, 2], &operations, &[run(&[1, 2]), run(&[3, 4])], &programs)
    }
}

/// No runs: a write in a group whose clock is ahead, one that depends on it in another group, a session that reads both.
fn plain() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [
        &[Write(0)][..],
        &[read(0), Write(1), read(2)],
        &[read(1), read(0), Write(2)],
        &[read(2), read(1), read(0)],
    ];
    plan(&[1, 2, 0], &[Set(0), Set(1), Set(2)], &[], &programs)
}

/// Two runs that meet in home and a group in opposite orders; home's entry releases its own parts.
pub(super) fn at_home() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Staged(1)], &[read(0), read(1), Write(4)], &[read(1), read(0)]];
    let operations = [Set(0), Set(1), Set(1), Set(0), Set(2)];
    plan(&[0, 1, 0], &operations, &[run(&[0, 1]), run(&[2, 3])], &programs)
}

/// A run of which one group loses its quorum at any moment.
fn away() -> StagingPlan {
    let programs = [&[Staged(0)][..], &[Read { znode: 0 }, Write(2)]];
    StagingPlan {
        faults: Faults { deaths: 1, away: Some(2), ..Faults::default() },
        ..plan(&[1, 2, 1], &[Set(0), Set(1), Set(2)], &[run(&[0, 1])], &programs)
    }
}

/// Leaders change, and lose what is not committed; the writer reads both groups.
fn elections() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[read(0), Write(2), read(1)]];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, elections: 3, strays: 1, away: None },
        has_tails: true,
        ..plan(&[1, 2], &[Set(0), Set(1), Set(1)], &[run(&[0, 1])], &programs)
    }
}

/// A session that reads behind its own run.
fn window_and_read() -> StagingPlan {
    let programs = [&[Staged(0), Read { znode: 1 }][..], &[Write(2), Read { znode: 0 }]];
    plan(&[1, 2], &[Set(0), Set(1), Set(1)], &[run(&[0, 1])], &programs)
}

pub(super) fn worlds() -> Vec<ModelWorld> {
    let families = [
        Family::new("plain", "ordinary writes and reads of four sessions in three groups, whose clocks differ", plain())
            .finds(Mistake::ReadDoesNotWait, ORDER)
            .finds(Mistake::FloorWithoutSeen, ORDER)
            .finds(Mistake::NoEmptyEntries, END),
        Family::new("run", "a run in two groups, a session that reads; the coordinator dies, home gives up, parts and decisions come late", reader())
            .finds(Mistake::ReadDoesNotWait, ORDER)
            .finds(Mistake::AtPastStagedParts, ORDER)
            .finds(Mistake::DecidesEarly, ALL_OR_NOTHING)
            .finds(Mistake::DecidesAfterGivenUp, TOLD)
            .finds(Mistake::LatePartNotAsked, END)
            .finds(Mistake::DeadNotGivenUp, END)
            .finds(Mistake::GroupGivesUp, ALL_OR_NOTHING)
            .finds(Mistake::AnswerReleases, ONCE),
        Family::new("run-writers", "a run, a session that reads one group and writes in the other, a second writer", writers().showing(&[Parked]))
            .finds(Mistake::WritesNotGated, ORDER)
            .finds(Mistake::GateInLeader, ORDER)
            .finds(Mistake::CoordinatorsStamps, RISING)
            .finds(Mistake::ReleaseAboveOwnLogOnly, ORDER),
        Family::new("run-crossed", "two runs in opposite orders, two sessions that read", crossed())
            .finds(Mistake::ReleaseInAnyOrder, ORDER),
        Family::new("run-windows", "two windows of a session in different groups, a session that reads", windows())
            .finds(Mistake::LaterWindowFirst, WINDOWS)
            .finds(Mistake::ReleaseBelowEarlierWindows, ORDER),
        Family::new("run-read", "a session that reads behind its own run", window_and_read())
            .finds(Mistake::ReadsDoNotEndWindows, ORDER),
        Family::new("run-behind-write", "a run in other groups behind a write whose reply waits", behind_a_write())
            .finds(Mistake::RunBeforeWriteApplied, ORDER)
            .finds(Mistake::RunWithoutOwnWrites, ORDER),
        Family::new("run-after-reads", "sessions that have seen something begin runs in opposite orders", after_reads())
            .finds(Mistake::PartWithoutSeen, ORDER)
            .holds_without(Mistake::RunsGated),
        Family::new("run-at-home", "two runs that meet in home and another group, readers, a writer", at_home())
            .finds(Mistake::HomeReleasesLater, ORDER),
        Family::new("run-away", "a group of a run loses its quorum at any moment", away())
            .finds(Mistake::AllPartsDecide, END),
        Family::new("run-elections", "a run and a writer, elections that lose what is not committed, and all other faults", elections())
            .large()
            .finds(Mistake::AnsweredWhenLogged, ALL_OR_NOTHING)
            .finds(Mistake::SentWhenLogged, ALL_OR_NOTHING)
            .finds(Mistake::WriteAcknowledgedWhenLogged, TOLD),
    ];
    families.into_iter().flat_map(Family::worlds).collect()
}
