//! Entries of a group's log, and the log.

use super::plan::Stamp;

/// One attempt to stage a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) transaction: u8,
    pub(super) number: u8,
}

/// The end of an attempt, as home decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ruling {
    /// Its parts are released with stamps above this one.
    Released { above: Stamp },
    /// Its parts are dropped.
    GivenUp,
}

/// An item of the stream from home to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RulingItem {
    pub(super) number: u8,
    pub(super) attempt: Attempt,
    pub(super) ruling: Ruling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GroupEntry {
    /// An ordinary write, with what its session has seen in other groups.
    Command { operation: u8, session: u8, floor: Stamp, elsewhere: Stamp },
    /// A part of a transaction.
    Part { attempt: Attempt, floor: Stamp, elsewhere: Stamp },
    /// At home: the end of an attempt, if it is the first.
    Ruled { attempt: Attempt, ruling: Ruling },
    /// An item of home's stream.
    Item(RulingItem),
    /// Home's answer to a staged part that asked, and whose item has been applied before it came.
    Answered { attempt: Attempt, ruling: Ruling },
    /// Nothing, for those who wait until the group is at a stamp.
    Empty { floor: Stamp },
}

/// Log of a group. Entries from `committed` on may be lost by an election.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct GroupLog {
    pub(super) entries: Vec<GroupEntry>,
    pub(super) committed: usize,
    /// True once the group has no quorum any more.
    pub(super) is_away: bool,
}

impl GroupLog {
    /// True if an entry is on its way: logged, and not committed.
    pub(super) fn has_uncommitted(&self, entry: &GroupEntry) -> bool {
        self.entries[self.committed..].contains(entry)
    }
}
