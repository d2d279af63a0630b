//! The rules at work in a world of multis over groups, and the mistakes that can be planted.

use crate::worlds::level_logs::{GROUPS, HOME};
use crate::worlds::write_order::Writes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelMultisMistake {
    /// A group that has tried its part holds nothing.
    NoHold,
    /// A group holds what its part sets, not what it checks.
    ChecksNotHeld,
    /// A part is tried on znodes that another multi holds.
    IgnoresHolds,
    /// Home decides for the multi whatever the votes.
    VotesDoNotCount,
    /// Home tries its own part with the first decision, and holds nothing.
    HomeTriesEarly,
    /// A multi that is open goes on when its session has a new owner.
    OutlivesOwner,
    /// Home tells the client when all groups have voted, before it decides.
    ToldByVotes,
}

/// A multi: it fails if one of these changes is there, and sets the znodes. A znode is the one of its group's number.
#[derive(Clone, Debug)]
pub(super) struct LevelMulti {
    pub(super) checks: Vec<(usize, u8)>,
    pub(super) sets: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelMultisRequest {
    Multi(usize),
    /// A write with this number among the changes, to the znode of a group.
    Write {
        change: u8,
        group: usize,
    },
    /// A read of any znode.
    Look,
}

#[derive(Clone, Debug)]
pub(super) struct LevelMultis {
    pub(super) mistake: Option<LevelMultisMistake>,
    /// Their numbers are those of the first changes.
    pub(super) multis: Vec<LevelMulti>,
    pub(super) programs: Vec<Vec<LevelMultisRequest>>,
    pub(super) moves: u8,
}

impl LevelMultis {
    pub(super) fn is(&self, mistake: LevelMultisMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The groups beside home in which a multi has a part, one bit each.
    pub(super) fn groups_of(&self, multi: usize) -> u8 {
        let groups = (1..GROUPS).filter(|&group| self.touches(multi, group));
        groups.fold(0, |all, group| all | 1 << group)
    }

    pub(super) fn touches(&self, multi: usize, group: usize) -> bool {
        let known = &self.multis[multi];
        known.sets.contains(&group) || known.checks.iter().any(|check| check.0 == group)
    }

    pub(super) fn holds(&self, multi: usize, group: usize) -> bool {
        let sets = self.multis[multi].sets.contains(&group);
        match self.mistake {
            Some(LevelMultisMistake::NoHold) => false,
            Some(LevelMultisMistake::ChecksNotHeld) => sets,
            _ => self.touches(multi, group),
        }
    }

    /// Changes that a part finds and that make the multi fail.
    pub(super) fn failing(&self, multi: usize, group: usize, changes: Writes) -> Writes {
        let checks = self.multis[multi].checks.iter().filter(|check| check.0 == group);
        checks.fold(0, |all, check| all | 1 << check.1) & changes
    }

    /// Changes that come behind a multi whose part was tried where these had been made: those that were not there, and those that
    /// were and should not have been.
    pub(super) fn lacks(&self, multi: usize, group: usize, changes: Writes) -> Writes {
        let tries = if self.touches(multi, group) { self.changes_of(group) & !changes } else { 0 };
        (tries | self.failing(multi, group, changes)) & !(1 << multi)
    }

    /// All changes that the znode of a group has or will have.
    pub(super) fn changes_of(&self, group: usize) -> Writes {
        let multis = (0..self.multis.len()).filter(|&multi| self.multis[multi].sets.contains(&group));
        let multis = multis.fold(0, |all, multi| all | 1 << multi);
        self.programs.iter().flatten().fold(multis, |all, request| match request {
            LevelMultisRequest::Write { change, group: of } if *of == group => all | 1 << change,
            _ => all,
        })
    }

    /// The session that asks for a multi.
    pub(super) fn session_of(&self, multi: usize) -> usize {
        let asks = |program: &Vec<LevelMultisRequest>| program.contains(&LevelMultisRequest::Multi(multi));
        self.programs.iter().position(asks).unwrap_or(HOME)
    }
}
