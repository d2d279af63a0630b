//! The rules at work in a world of watches, and the mistakes that can be planted.

use crate::worlds::write_order::Writes;

pub(super) const GROUPS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchesMistake {
    /// A reply does not wait for the groups in which the session watches.
    RepliesNotGated,
    /// An event does not wait for the other groups in which the session watches.
    EventsNotGated,
    /// A group counts as being at a stamp though an older part is staged there.
    AtPastStagedPart,
    /// An event goes in front of a reply with a smaller stamp that was read before. This breaks nothing.
    EventOvertakesReply,
    /// An answer that was read at less than the stamp of an event in front of it is not read again.
    AnswerStaysBehindEvent,
    /// An answer that was read behind a part is not read again for an event behind it.
    AnswerStaysBehindSamePart,
    /// A change behind a staged part has the place of its own stamp among events and replies.
    PlacedByStamp,
    /// Events of two groups in one place leave in any order.
    TiesInAnyOrder,
    /// A part that is released has the place of its own stamp, another one in each group.
    ReleasePlacedByStamp,
    /// The event of a watch in two groups keeps the stamp of the change that was applied first.
    KeepsFirstStamp,
    /// A list with a watch registers it as of what the replicas have applied.
    RegistersAtApplied,
    /// A change is in a list by its stamp, not by its place, and the list's stamp is no less than the last part of a multi
    /// that has a part at or below it.
    ListByStamp,
    /// Each group has a table of watches of its own.
    TablePerGroup,
    /// `setWatches` registers the watches and does not compare stamps.
    SetWatchesFiresNothing,
    /// A reply carries the stamp of its own answer.
    ZxidOfAnswer,
    /// A reply carries the last stamp that its member has applied in any group.
    ZxidOfApplied,
    /// A member takes a session before it is at what the client has seen.
    MoveDoesNotWait,
    /// A member takes a session when it has applied an entry with that stamp, though an older part is staged there.
    MoveWaitsForApplied,
    /// The acknowledgement of a session's own write waits for no other group, and carries what was revealed before.
    AckNotGated,
}

/// A write of another session, or of the watching one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WatchesChange {
    /// The group; both, with a staged part in each, for a multi.
    pub(super) groups: (usize, usize),
    /// A write that the writer has made or seen before.
    pub(super) after: Option<usize>,
}

/// The change of one znode in one group.
pub(super) fn change(group: usize, after: Option<usize>) -> WatchesChange {
    WatchesChange { groups: (group, group), after }
}

#[derive(Clone, Debug)]
pub(super) struct Watches {
    pub(super) mistake: Option<WatchesMistake>,
    pub(super) changes: Vec<WatchesChange>,
    /// The watching session's own write, one of the changes.
    pub(super) own: Option<usize>,
    /// Requests of the watching session that read.
    pub(super) requests: u8,
    /// True if it lists the split point, whose children all changes change, and watches them; else it watches data.
    pub(super) lists: bool,
    pub(super) moves: u8,
    /// Reads of a session that only reads.
    pub(super) observer_reads: u8,
}

impl Watches {
    pub(super) fn is(&self, mistake: WatchesMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// All writes that a group has or will have.
    pub(super) fn writes_of(&self, group: usize) -> Writes {
        let is_of = |change: &WatchesChange| change.groups.0 == group || change.groups.1 == group;
        (0..self.changes.len())
            .filter(|&write| is_of(&self.changes[write]))
            .fold(0, |all, write| all | 1 << write)
    }
}
