//! The rules at work in a world of lists, and the mistakes that can be planted.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListsMistake {
    /// A list takes of each group what its replica has applied.
    NewestOfEach,
    /// A change is in a list by its stamp.
    CutByStamp,
    /// A change is in a list by its stamp, and the list's stamp rises until no decision has a part at or below it and
    /// another one above. This breaks nothing where there are no watches.
    CutByRaisedStamp,
    /// The stamp of a list may be below what its session has seen.
    BelowSeen,
    /// The stamp of a list may be below the last change of the split point itself.
    BelowOwnChange,
    /// A list does not count as seen.
    RevealsNothing,
    /// A replica is at its last stamp though an older part is staged there.
    AtPastStagedPart,
}

/// A write, or a staged run or multi.
#[derive(Clone, Debug)]
pub(super) struct ListsChange {
    /// Each part: its group and its write. The parts of a run are writes in order, those of a multi the same write.
    pub(super) parts: Vec<(usize, u8)>,
    /// A change that the writer has made or seen before.
    pub(super) after: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Lists {
    pub(super) mistake: Option<ListsMistake>,
    /// Two groups of children, or three with home, which has the split point itself.
    pub(super) groups: usize,
    pub(super) changes: Vec<ListsChange>,
    /// Lists and reads of each session that looks on.
    pub(super) looks: Vec<u8>,
}

impl Lists {
    pub(super) fn is(&self, mistake: ListsMistake) -> bool {
        self.mistake == Some(mistake)
    }
}
