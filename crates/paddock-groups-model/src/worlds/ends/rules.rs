//! The rules at work in a world of ends, and the mistakes that can be planted.

use crate::worlds::write_order::Writes;

pub(super) const GROUPS: usize = 3;
pub(super) const HOME: usize = 0;
/// The session's write that is on its way when it ends.
pub(super) const WRITE: Writes = 1 << 0;
/// The removal of all ephemerals of the session: one write.
pub(super) const END: Writes = 1 << 1;
/// A write of the first reader.
pub(super) const OTHER: Writes = 1 << 2;
pub(super) const READERS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndsMistake {
    /// Each group removes its ephemerals when it hears of the end.
    NotStaged,
    /// The end is staged at once, without fences.
    Unfenced,
    /// A fence only counts: the group goes on to take the session's writes until the release. This breaks nothing.
    FenceLetsWritesPass,
    /// The end is decided without the parts of a group that is away.
    DecidedWithoutAbsent,
    /// A replica counts as being at a stamp though an older part is staged there.
    AtPastStagedPart,
    /// A read does not wait until its replica is at what the session saw elsewhere.
    ReadDoesNotWait,
    /// A write of a reader does not wait for the release of a part that is older than what the reader saw elsewhere.
    WriteNotGated,
    /// The client is told "expired" as soon as home has logged the end.
    ToldAtTimeout,
    /// The client is told "expired" when all groups have fenced the session.
    ToldWhenFenced,
    /// An end whose part was busy is not tried again.
    BusyIsFinal,
}

#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) mistake: Option<EndsMistake>,
    /// Groups that the session is attached to, each with an ephemeral of it.
    pub(super) attached: Vec<usize>,
    /// The group of the write that is on its way.
    pub(super) write_to: usize,
    /// The group of the first reader's write.
    pub(super) other_to: usize,
    /// Reads of each reader.
    pub(super) reads: [u8; READERS],
    /// True if a data group may lose its quorum once.
    pub(super) outage: bool,
}

impl Ends {
    pub(super) fn is(&self, mistake: EndsMistake) -> bool {
        self.mistake == Some(mistake)
    }
}
