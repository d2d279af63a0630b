//! The rules at work in a world of moves, and the mistakes that can be planted.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovesMistake {
    /// The map changes when the copy is there, without a staged delta.
    NoStagedDelta,
    /// A change between the copy and the delta is not in the delta.
    DeltaLacksMeanwhile,
    /// The last delta does not hold the slot: writes go on behind it.
    DeltaDoesNotHold,
    /// The group that gave the slot away refuses commands on that slot only.
    RefusesSlotOnly,
    /// The group that gave the slot away takes what comes with an older version of the map.
    RefusesNothing,
    /// A member that learns the map's new version uses it while requests with the older one are on their way.
    MixesVersions,
    /// The target takes commands on the slot before it has installed it.
    TargetTakesEarly,
    /// Owners of ephemerals in the slot are attached to the target before the copy, and not looked at again.
    OwnersAttachedOnce,
    /// A session that has ended may have ephemerals in the delta.
    EndDoesNotDisturb,
    /// The place of a child in a list is by the map of now.
    PlaceByMapOfNow,
    /// A list takes each group's children by what that group's replica has applied.
    PlaceByReplica,
    /// A list takes of each group what was applied, not what was there as of its stamp, and each replica says what it has.
    ListsApplied,
    /// A delta that was given up keeps its hold.
    GivenUpHolds,
}

#[derive(Clone, Debug)]
pub(super) struct Moves {
    pub(super) mistake: Option<MovesMistake>,
    /// The writer's requests: true for one on the slot that moves.
    pub(super) program: Vec<bool>,
    /// Attempts to move the slot; one more when the owner of an ephemeral has ended.
    pub(super) attempts: u8,
    /// True if a session creates an ephemeral in the slot and ends.
    pub(super) ephemeral: bool,
    /// Reads and lists of the session that looks on.
    pub(super) looks: u8,
}

impl Moves {
    pub(super) fn is(&self, mistake: MovesMistake) -> bool {
        self.mistake == Some(mistake)
    }
}
