//! The rules at work in a world of watches and levels, and the mistakes that can be planted.

use crate::worlds::level_logs::{GROUPS, HOME};
use crate::worlds::write_order::Writes;

/// The number of the split point, whose children are the znodes of the listed groups. A znode else has the number of its group.
pub(super) const CHILDREN: usize = GROUPS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelWatchesMistake {
    /// Events keep the place of their own stamp when an item is applied behind their change.
    EventsNotPulled,
    /// Events leave without waiting for a group in which a write of the session is under way.
    WriteNotAwaited,
    /// Groups with events that have not left do not count as watched: their watches have fired.
    FiredNotAwaited,
    /// An event goes in front of the reply of an own write whose place is before it.
    EventOvertakesOwn,
    /// The reply of an own write leaves by its stamp, as that of a read.
    OwnByStamp,
    /// The reply of an own write that moved forward carries its stamp.
    OwnCarriesStamp,
    /// A decision's place is its stamp, which its change at home has as well.
    NoSpareStamp,
    /// An answer is not read again though an event goes in front of it.
    NotReadAgain,
    /// An answer is read again only if its replica was at less than the event's place. This breaks nothing.
    AgainIfOlder,
    /// Events in one place leave in any order.
    TiesInAnyOrder,
    /// The event of a watch on children keeps the change that was applied first, and no other group's.
    KeepsFirstChange,
    /// A list takes of each group what is applied.
    ListsApplied,
    /// A list takes what has stamps up to its own, not what has places.
    ListsByStamp,
    RepliesNotGated,
    EventsNotGated,
    /// A read does not wait for what events have shown.
    EventsShowNothing,
    /// An event shows its stamp, not its place.
    EventsShowStamp,
    SetWatchesFiresNothing,
    MoveDoesNotWait,
}

/// A change by another session, by home, or by the watching session itself.
#[derive(Clone, Debug)]
pub(super) struct LevelWatchesChange {
    /// The znode, which is in the group of its number; several for a decision.
    pub(super) znodes: Vec<usize>,
    pub(super) is_decision: bool,
    /// A change that its writer has seen before.
    pub(super) after: Option<usize>,
}

pub(super) fn set(znode: usize, after: Option<usize>) -> LevelWatchesChange {
    LevelWatchesChange { znodes: vec![znode], is_decision: false, after }
}

pub(super) fn decision(znodes: &[usize]) -> LevelWatchesChange {
    LevelWatchesChange { znodes: znodes.to_vec(), is_decision: true, after: None }
}

#[derive(Clone, Debug)]
pub(super) struct LevelWatches {
    pub(super) mistake: Option<LevelWatchesMistake>,
    pub(super) changes: Vec<LevelWatchesChange>,
    /// The watching session's own write, one of the changes.
    pub(super) own: Option<usize>,
    /// Groups in which children of the split point are.
    pub(super) listed: Vec<usize>,
    /// Znodes that it may read, and those of them that it may watch.
    pub(super) reads: Vec<usize>,
    pub(super) watched: Vec<usize>,
    pub(super) requests: u8,
    pub(super) moves: u8,
    /// Reads of a session that only reads.
    pub(super) observer_reads: u8,
}

impl LevelWatches {
    pub(super) fn is(&self, mistake: LevelWatchesMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The groups of a znode, or of the split point's children.
    pub(super) fn groups_with(&self, znode: usize) -> Vec<usize> {
        if znode == CHILDREN { self.listed.clone() } else { vec![znode] }
    }

    /// All changes that a znode, or the split point's children, have or will have.
    pub(super) fn changes_of(&self, znode: usize) -> Writes {
        let groups = self.groups_with(znode);
        let of_znode = |change: &usize| self.changes[*change].znodes.iter().any(|of| groups.contains(of));
        (0..self.changes.len()).filter(of_znode).fold(0, |all, change| all | 1 << change)
    }

    pub(super) fn group_of(&self, change: usize) -> usize {
        let change = &self.changes[change];
        if change.is_decision { HOME } else { change.znodes[0] }
    }

    /// The groups that get an item of a decision, one bit each.
    pub(super) fn groups_of(&self, change: usize) -> u8 {
        let groups = self.changes[change].znodes.iter().filter(|&&group| group != HOME);
        groups.fold(0, |all, group| all | 1 << group)
    }
}
