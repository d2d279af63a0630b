//! Worlds of multis: votes, holds, and what is busy.

use super::family::Family;
use super::mistake::StagingMistake as Mistake;
use super::model::{END, ORDER, TOLD, VOTES};
use super::plan::PlannedRequest::{Read, Staged, Sync, Write};
use super::plan::StagedOperation::{Check, Set};
use super::plan::StagingShown::{Busy, InOrder, No, Parked};
use super::plan::{Faults, StagingPlan, multi, plan, run};
use crate::world::ModelWorld;

/// A multi in two groups; a session that reads one part, writes, and reads the other; a second one that writes ahead of its clock.
fn reader() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[read(1), Write(2), read(0)], &[Write(3), Write(4)]];
    let operations = [Set(0), Set(1), Set(2), Set(2), Set(2)];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, ..Faults::default() },
        ..plan(&[1, 2, 2], &operations, &[multi(&[0, 1])], &programs)
    }
}

/// A multi; a session that writes often where one part lies; one that reads there, at the other part, and there again.
fn half() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Write(2), Write(3)], &[read(2), read(0), read(1)]];
    let plan = plan(&[1, 2, 2], &[Set(0), Set(1), Set(2), Set(2)], &[multi(&[0, 1])], &programs);
    StagingPlan { first_stamps: [0, 0, 3], ..plan }
}

/// A multi whose check another session's write may break; then its session writes.
fn vote() -> StagingPlan {
    let programs = [&[Staged(0), Write(3)][..], &[Write(2), Read { znode: 0 }]];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, strays: 1, ..Faults::default() },
        ..plan(&[1, 2, 1], &[Set(0), Check(1), Set(1), Set(2)], &[multi(&[0, 1])], &programs)
    }
}

/// A multi; a session that writes a held znode and then a free one; one that reads both.
pub(super) fn holds() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Write(2), Write(3), read(1)], &[read(2), read(0)]];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, ..Faults::default() },
        ..plan(&[1, 2, 1], &[Set(0), Set(1), Set(0), Set(2)], &[multi(&[0, 1])], &programs)
    }
}

/// A multi that holds a znode; a session that writes it, and begins a run in other groups; one that reads the run's znode and the held one.
fn holds_and_run() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Write(2), Staged(1)], &[read(2), read(0)]];
    let operations = [Set(0), Set(1), Set(0), Set(2), Set(3)];
    plan(&[1, 2, 0, 2], &operations, &[multi(&[0, 1]), run(&[3, 4])], &programs)
}

/// Two multis of the same znodes, which their coordinators reach in any order; a reader.
pub(super) fn two() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Staged(1)], &[read(0), read(1)]];
    plan(&[1, 2], &[Set(0), Set(1), Set(1), Set(0)], &[multi(&[0, 1]), multi(&[2, 3])], &programs)
}

/// Three multis of three groups, each of which shares a znode with each other.
fn three() -> StagingPlan {
    let programs = [&[Staged(0)][..], &[Staged(1)], &[Staged(2)]];
    let operations = [Set(0), Set(1), Set(1), Set(2), Set(2), Set(0)];
    let multis = [multi(&[0, 1]), multi(&[2, 3]), multi(&[4, 5])];
    plan(&[0, 1, 2], &operations, &multis, &programs)
}

/// A run that sets what a multi checks.
pub(super) fn beside_run() -> StagingPlan {
    let programs = [&[Staged(0)][..], &[Staged(1)], &[Read { znode: 2 }, Write(4)]];
    let operations = [Set(0), Check(1), Set(1), Set(2), Set(1)];
    StagingPlan {
        faults: Faults { deaths: 1, ..Faults::default() },
        ..plan(&[1, 2, 1], &operations, &[multi(&[0, 1]), run(&[2, 3])], &programs)
    }
}

/// A session that has seen a run in one group asks for a multi where the run's other part is not released; another writes there.
fn gated() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs =
        [&[Staged(0)][..], &[read(0), Staged(1)], &[read(0), Write(4), read(2)], &[read(2), read(1)]];
    let operations = [Set(0), Set(1), Check(2), Set(3), Set(2)];
    plan(&[1, 2, 2, 0], &operations, &[run(&[0, 1]), multi(&[2, 3])], &programs)
}

/// A multi in home and a group; a session that writes what is held at home.
pub(super) fn at_home() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[Write(2), Write(3)], &[read(1), read(2)]];
    StagingPlan {
        faults: Faults { deaths: 1, timeouts: 1, ..Faults::default() },
        ..plan(&[0, 1, 0], &[Set(0), Set(1), Set(0), Set(2)], &[multi(&[0, 1])], &programs)
    }
}

/// A multi, a client that sees a part of it and tells another one, which syncs and reads the other part.
fn told() -> StagingPlan {
    let read = |znode| Read { znode };
    let programs = [&[Staged(0)][..], &[read(0)], &[Sync, read(1), read(2)], &[Write(2)]];
    plan(&[1, 2, 0], &[Set(0), Set(1), Set(2)], &[multi(&[0, 1])], &programs)
}

/// A multi with a check, a writer, and two elections.
fn elections() -> StagingPlan {
    let programs = [&[Staged(0)][..], &[Write(2), Write(3)]];
    StagingPlan {
        faults: Faults { deaths: 1, elections: 2, ..Faults::default() },
        has_tails: true,
        ..plan(&[1, 2], &[Set(0), Check(1), Set(1), Set(1)], &[multi(&[0, 1])], &programs)
    }
}

/// A multi of which one group loses its quorum at any moment; a session that writes a held znode of the other.
fn away() -> StagingPlan {
    let programs = [&[Staged(0)][..], &[Write(2), Read { znode: 0 }]];
    StagingPlan {
        faults: Faults { deaths: 1, away: Some(2), ..Faults::default() },
        ..plan(&[1, 2], &[Set(0), Set(1), Set(0)], &[multi(&[0, 1])], &programs)
    }
}

pub(super) fn worlds() -> Vec<ModelWorld> {
    let families = [
        Family::new("multi", "a multi in two groups, a session that reads and writes, a second writer", reader())
            .finds(Mistake::ReadsSeeStaged, ORDER),
        Family::new("multi-half", "a multi, many writes where one part lies, a session that reads there, at the other part and there again", half())
            .finds(Mistake::SeenIsOneNumber, ORDER),
        Family::new("multi-vote", "a multi whose check another session's write may break; all faults but elections", vote().showing(&[Parked, No]))
            .finds(Mistake::VotesDoNotCount, VOTES)
            .finds(Mistake::ChecksNotHeld, VOTES)
            .finds(Mistake::NoHolds, VOTES)
            .finds(Mistake::DecidesAfterGivenUp, TOLD),
        Family::new("multi-holds", "a session that writes a held znode and a free one", holds().showing(&[Parked]))
            .finds(Mistake::RestOvertakes, ORDER),
        Family::new("multi-holds-run", "a session that writes a held znode, and begins a run in other groups", holds_and_run().showing(&[Parked]))
            .finds(Mistake::RunBeforeWriteApplied, ORDER)
            .finds(Mistake::RunWithoutOwnWrites, ORDER),
        Family::new("multi-two", "two multis of the same znodes, staged in any order, and a reader", two().showing(&[Busy, InOrder]))
            .finds(Mistake::BusyWaitsInPlace, END)
            .finds(Mistake::TriedInAnyOrder, END)
            .finds(Mistake::ItemsWait, END),
        Family::new("multi-three", "three multis in three groups, home among them, each against each", three().showing(&[Busy, InOrder]))
            .large()
            .finds(Mistake::BusyWaitsInPlace, END),
        Family::new("multi-beside-run", "a run that sets what a multi checks", beside_run().showing(&[Busy, No, InOrder]))
            .finds(Mistake::RunIgnoresHolds, VOTES)
            .finds(Mistake::MultiIgnoresRuns, VOTES),
        Family::new("multi-gated", "a multi, and a write, of sessions that have seen half of a run", gated().showing(&[Busy, Parked]))
            .holds_without(Mistake::MultiNotGated),
        Family::new("multi-at-home", "a multi in home and a group, a session that writes what is held at home", at_home().showing(&[Parked]))
            .finds(Mistake::RestOvertakes, ORDER),
        Family::new("multi-sync", "a client sees a part of a multi and tells another, which syncs and reads", told())
            .finds(Mistake::SyncOfOneGroup, ORDER)
            .finds(Mistake::SyncBeforeStagedParts, ORDER),
        Family::new("multi-elections", "a multi with a check and a writer, two elections that lose what is not committed", elections())
            .finds(Mistake::AnsweredWhenLogged, TOLD),
        Family::new("multi-away", "a group of a multi loses its quorum at any moment", away())
            .finds(Mistake::AllPartsDecide, END),
    ];
    families.into_iter().flat_map(Family::worlds).collect()
}
