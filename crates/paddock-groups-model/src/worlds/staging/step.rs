//! A step of a world.

use super::entry::GroupEntry;

/// A step of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StagingStep {
    /// A session sends its next request, other than a read.
    Send { session: usize },
    /// A session reads at a replica that has applied this number of entries.
    Read { session: usize, entries: usize },
    /// A session takes the answer to its oldest request.
    Answer { session: usize },
    /// A leader logs an entry.
    Log { group: usize, entry: GroupEntry },
    /// A quorum has all that is logged.
    Commit { group: usize },
    /// A coordinator tries again, group after group, or tells its session that a vote was no.
    TryAgain { transaction: u8 },
    /// Fault: the member that serves a session dies.
    Die { session: usize },
    /// Fault: home gives up an attempt that stands for too long.
    TimeOut { entry: GroupEntry },
    /// Fault: an entry that is late, early or there already.
    Stray { group: usize, entry: GroupEntry },
    /// Fault: a new leader has lost what was not committed, but for this number of entries.
    Elect { group: usize, kept: usize },
    /// Fault: a group loses its quorum for good.
    GoAway { group: usize },
}
