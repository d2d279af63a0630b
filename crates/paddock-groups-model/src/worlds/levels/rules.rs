//! The rules at work in a world of levels, and the mistakes that can be planted.

use crate::worlds::level_logs::{GROUPS, HOME, LevelRule};
use crate::worlds::write_order::Writes;

pub(super) const SESSIONS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelsMistake {
    Level(LevelRule),
    /// A read waits for nothing that its session was shown in other groups.
    ReadDoesNotWait,
    /// A write waits for no decision up to what its session was shown in other groups.
    WriteDoesNotWait,
    /// A write is stamped by its group's log alone, whatever its session was shown in other groups.
    WriteStampedByLog,
    /// A session carries one stamp and the group that showed it; that group need not be at it, however much others showed before.
    OneStampAndGroup,
    /// After a move the largest stamp counts as shown by the group that the session looked at last.
    ClaimIsOwn,
    /// A replica need not have applied what its own group has shown to the session.
    OwnGroupNotApplied,
    /// Being shown a group's own stamps makes its reads wait for that level, too. This breaks nothing.
    OwnGroupWaits,
    /// The answer about a missing znode shows no stamp.
    MissingShowsNothing,
    /// An ACL has no stamp.
    AclShowsNothing,
    /// An entry with an item is stamped by the group's own log alone.
    ItemStampedBelow,
    /// The change of an item shows the stamp of its entry in the group, not that of the decision. This breaks nothing.
    ItemShowsEntry,
    /// A sync asks the first group beside home only, as if its path lay there and that were enough.
    SyncOfOneGroup,
    /// An idle group that is asked logs nothing.
    NoEmptyEntries,
    /// An idle home that is asked logs nothing.
    NoEmptyEntriesAtHome,
}

/// The part of a znode that a change is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelsChangeKind {
    Set,
    /// The znode is missing behind it, and its parent is there.
    Delete,
    /// An ACL, of which a znode says nothing with a stamp.
    Acl,
}

/// A change that is made once: by a session, in the group of its one znode, or by home, in all groups of its znodes.
#[derive(Clone, Debug)]
pub(super) struct LevelsChange {
    pub(super) kind: LevelsChangeKind,
    pub(super) znodes: Vec<usize>,
    pub(super) is_decision: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelsRequest {
    Read(usize),
    /// A read of any znode.
    Look,
    Write(usize),
    /// From here on the session sees all that anyone was told before.
    Sync,
}

#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) mistake: Option<LevelsMistake>,
    /// The stamp that the clock of each group shows at first.
    pub(super) clocks: [u8; GROUPS],
    /// The group of each znode.
    pub(super) znodes: Vec<usize>,
    pub(super) changes: Vec<LevelsChange>,
    pub(super) programs: [Vec<LevelsRequest>; SESSIONS],
    /// The number of times that a session may move to another member.
    pub(super) moves: u8,
}

impl Levels {
    pub(super) fn is(&self, mistake: LevelsMistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn rule(&self) -> LevelRule {
        match self.mistake {
            Some(LevelsMistake::Level(rule)) => rule,
            _ => LevelRule::Right,
        }
    }

    /// All changes that a znode has or will have.
    pub(super) fn changes_of(&self, znode: usize) -> Writes {
        let of_znode = |change: &usize| self.changes[*change].znodes.contains(&znode);
        (0..self.changes.len()).filter(of_znode).fold(0, |all, change| all | 1 << change)
    }

    /// The group in whose log a change is made: home for a decision.
    pub(super) fn group_of(&self, change: usize) -> usize {
        let change = &self.changes[change];
        if change.is_decision { HOME } else { self.znodes[change.znodes[0]] }
    }

    /// True for a decision that home makes on its own, not for a session.
    pub(super) fn is_homes_own(&self, change: usize) -> bool {
        let is_asked = self.programs.iter().flatten().any(|request| *request == LevelsRequest::Write(change));
        self.changes[change].is_decision && !is_asked
    }

    /// The groups that get an item of a decision, one bit each.
    pub(super) fn groups_of(&self, change: usize) -> u8 {
        let groups = self.changes[change].znodes.iter().map(|&znode| self.znodes[znode]);
        groups.filter(|&group| group != HOME).fold(0, |all, group| all | 1 << group)
    }
}

pub(super) fn write(kind: LevelsChangeKind, znode: usize) -> LevelsChange {
    LevelsChange { kind, znodes: vec![znode], is_decision: false }
}

pub(super) fn set(znode: usize) -> LevelsChange {
    write(LevelsChangeKind::Set, znode)
}

/// A decision of home's: an end with ephemerals on these znodes, or a slot that moves.
pub(super) fn decision(znodes: &[usize]) -> LevelsChange {
    LevelsChange { kind: LevelsChangeKind::Set, znodes: znodes.to_vec(), is_decision: true }
}
