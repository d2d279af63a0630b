//! The rules at work in a world of owners, and the mistakes that can be planted.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnersMistake {
    /// A session attaches before its first ephemeral only: a group takes other writes of sessions that it does not know.
    AttachesForEphemeralsOnly,
    /// Home attaches a session that has ended.
    AttachesAfterEnd,
    /// An owner is a member's process, so a session that comes back to one has an owner that it had before.
    OwnerIsProcess,
    /// A new owner's write waits for the item of its own group only.
    WriteWaitsForItsGroup,
    /// A `sync` after a move waits for the item of one group only.
    SyncWaitsForItsGroup,
    /// A new owner leaves the undecided run of the former one, which may still decide it.
    RunOutlivesOwner,
    /// A group stages parts for former owners.
    FormerOwnerStages,
    /// A group that hears of a new owner, or of the end, keeps what is staged.
    ItemKeepsPart,
    /// Home forgets a group that the session detaches from before that group has heard of it.
    DetachForgets,
    /// A group lets go of a session that has an ephemeral there.
    DetachLeavesEphemeral,
    /// An item of a new owner takes the place of a release that was not sent yet.
    SupersedesRelease,
    /// An item that arrives again is applied again.
    ItemTwice,
    /// An item is applied though an earlier one has not arrived.
    ItemAfterGap,
}

/// One request of the session's client, in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnersRequest {
    Write {
        group: usize,
    },
    CreateEphemeral {
        group: usize,
    },
    /// Writes to both groups that are staged, and take effect with home's decision.
    Run,
    Sync {
        group: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Owners {
    pub(super) mistake: Option<OwnersMistake>,
    pub(super) program: Vec<OwnersRequest>,
    /// The number of times that the session may move.
    pub(super) moves: u8,
    /// The number of times that the session may detach from a group.
    pub(super) detaches: u8,
}

impl Owners {
    pub(super) fn is(&self, mistake: OwnersMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// True if a group that knows the owner `known` takes what the owner `from` sends. Owners have numbers of their own;
    /// the session's first and third are in the same process.
    pub(super) fn is_owner(&self, known: u8, from: u8) -> bool {
        if self.is(OwnersMistake::OwnerIsProcess) { known % 2 == from % 2 } else { known == from }
    }
}
