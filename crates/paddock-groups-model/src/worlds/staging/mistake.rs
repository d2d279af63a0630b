//! Mistakes that are planted, one in a world.

/// A mistake that is planted. The page says of each what [`StagingMistake::about`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StagingMistake {
    ReadDoesNotWait,
    SeenIsOneNumber,
    AtPastStagedParts,
    FloorWithoutSeen,
    PartWithoutSeen,
    CoordinatorsStamps,
    ReleaseAboveOwnLogOnly,
    ReleaseBelowEarlierWindows,
    ReleaseInAnyOrder,
    DecidesEarly,
    DecidesAfterGivenUp,
    LaterWindowFirst,
    RunBeforeWriteApplied,
    RunWithoutOwnWrites,
    AllPartsDecide,
    WritesNotGated,
    GateInLeader,
    RunsGated,
    MultiNotGated,
    VotesDoNotCount,
    NoHolds,
    ChecksNotHeld,
    RestOvertakes,
    RunIgnoresHolds,
    MultiIgnoresRuns,
    BusyWaitsInPlace,
    TriedInAnyOrder,
    ItemsWait,
    ReadsSeeStaged,
    AnsweredWhenLogged,
    SentWhenLogged,
    WriteAcknowledgedWhenLogged,
    AnswerReleases,
    LatePartNotAsked,
    ReadsDoNotEndWindows,
    HomeReleasesLater,
    SyncOfOneGroup,
    SyncBeforeStagedParts,
    NoEmptyEntries,
    DeadNotGivenUp,
    GroupGivesUp,
}

impl StagingMistake {
    /// Its name on the command line, behind that of a world.
    pub(super) fn name(self) -> &'static str {
        self.describe().0
    }

    /// The rule that is broken, as the page says it.
    pub(super) fn about(self) -> &'static str {
        self.describe().1
    }

    #[rustfmt::skip]
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadDoesNotWait => ("read-does-not-wait", "a read waits for nothing that its session saw in other groups"),
            Self::SeenIsOneNumber => ("seen-is-one-number", "seen is one number, and a group need not be at what came from itself"),
            Self::AtPastStagedParts => ("at-past-staged-parts", "a replica is at its last stamp, whatever is staged"),
            Self::FloorWithoutSeen => ("floor-without-seen", "a write is stamped above its log alone, not above what its session has seen"),
            Self::PartWithoutSeen => ("part-without-seen", "a part is stamped above its log alone, not above what its session has seen"),
            Self::CoordinatorsStamps => ("coordinators-stamps", "what is released has the stamps of its coordinator, not fresh ones"),
            Self::ReleaseAboveOwnLogOnly => ("above-own-log-only", "what is released is stamped above its own log alone, not above its parts elsewhere"),
            Self::ReleaseBelowEarlierWindows => ("below-earlier-windows", "what is released is stamped above its own parts alone, not above those of the session's earlier windows"),
            Self::ReleaseInAnyOrder => ("release-in-any-order", "a group releases decided parts in any order"),
            Self::DecidesEarly => ("decides-early", "a decision without all parts"),
            Self::DecidesAfterGivenUp => ("decides-after-given-up", "a decision counts although home has given the attempt up"),
            Self::LaterWindowFirst => ("later-window-first", "a session's windows are decided in any order"),
            Self::RunBeforeWriteApplied => ("before-write-applied", "a run is staged before an earlier ordinary write of its session is applied"),
            Self::RunWithoutOwnWrites => ("own-writes-not-seen", "a run's stamps are above what its session was told, not above its own applied writes whose replies wait"),
            Self::AllPartsDecide => ("all-parts-decide", "all parts durable is the decision; a group without its part can refuse, and home cannot give up for one that is away"),
            Self::WritesNotGated => ("writes-not-gated", "reads wait, and a write is never parked"),
            Self::GateInLeader => ("gate-in-leader", "the leader holds a write back by what it has applied, an entry less than is committed"),
            Self::RunsGated => ("runs-gated", "a part of a run waits where a write is parked"),
            Self::MultiNotGated => ("multi-not-gated", "a part of a multi votes where a write is parked"),
            Self::VotesDoNotCount => ("votes-do-not-count", "a vote of no does not count"),
            Self::NoHolds => ("no-holds", "a staged multi holds nothing"),
            Self::ChecksNotHeld => ("checks-not-held", "a staged multi holds what it sets, not what it checks"),
            Self::RestOvertakes => ("rest-overtakes", "later commands of a session overtake one that is held"),
            Self::RunIgnoresHolds => ("run-ignores-holds", "a run's part is staged on held znodes"),
            Self::MultiIgnoresRuns => ("multi-ignores-runs", "a multi votes on what a staged run will change"),
            Self::BusyWaitsInPlace => ("busy-waits-in-place", "a busy part is tried again while the other parts stand"),
            Self::TriedInAnyOrder => ("tried-in-any-order", "what was busy is tried again in any order of groups, with what stands left standing"),
            Self::ItemsWait => ("items-wait", "an item waits behind other parts and parked commands"),
            Self::ReadsSeeStaged => ("reads-see-staged", "reads see what is staged"),
            Self::AnsweredWhenLogged => ("part-when-logged", "a part counts as durable when its leader has logged it"),
            Self::SentWhenLogged => ("item-when-logged", "home sends items of decisions that it has not committed"),
            Self::WriteAcknowledgedWhenLogged => ("write-when-logged", "a write is acknowledged when its leader has logged it"),
            Self::AnswerReleases => ("answer-releases", "a staged part that asks home is released by the answer, beside the stream"),
            Self::LatePartNotAsked => ("late-part-not-asked", "a part that comes behind the item of its attempt does not ask home"),
            Self::ReadsDoNotEndWindows => ("reads-do-not-end-windows", "a read does not wait for its session's run"),
            Self::HomeReleasesLater => ("home-releases-later", "home's own parts are released by later entries of their own"),
            Self::SyncOfOneGroup => ("sync-of-one-group", "a sync asks one group"),
            Self::SyncBeforeStagedParts => ("sync-before-staged-parts", "a sync does not wait for the parts that were staged when it came"),
            Self::NoEmptyEntries => ("no-empty-entries", "an idle group that is asked logs nothing"),
            Self::DeadNotGivenUp => ("dead-not-given-up", "the part of a coordinator that died does not ask home"),
            Self::GroupGivesUp => ("group-gives-up", "a group drops the part of a coordinator that died, without home"),
        }
    }
}
