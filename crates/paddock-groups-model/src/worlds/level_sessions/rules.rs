//! The rules at work in a world of sessions without open parts, and the mistakes that can be planted.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelSessionsMistake {
    /// A session attaches before its first ephemeral only: a group takes other writes of sessions that it does not know.
    AttachesForEphemeralsOnly,
    /// Home attaches a session that has ended.
    AttachesAfterEnd,
    /// A new owner's write waits for the item of its own group only.
    WriteWaitsForItsGroup,
    /// A process takes a session back at once, and the writes of its new connection wait for what it has under way.
    TakenBackAtOnce,
    /// A process takes a session back at once, and nothing waits for what it has under way.
    LeavesUnderWay,
    /// Every item of a new owner stalls the session in the group until the owner says to go on, with nothing under way any more. Then
    /// a process may take a session back at once: this breaks nothing.
    OwnerItemStalls,
    /// An owner is a member: a group takes what an earlier process of it has sent.
    OwnerIsMember,
    /// A `sync` after a move waits for nothing.
    SyncWaitsNot,
    /// A new session is not shown the stamp with which home has created it.
    CreationShowsNothing,
}

/// One request of the session's client, in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelSessionsRequest {
    Write { group: usize },
    CreateEphemeral { group: usize },
    Sync,
}

/// A member, and the number of its process.
pub(super) type Process = (u8, u8);

#[derive(Clone, Debug)]
pub(super) struct LevelSessions {
    pub(super) mistake: Option<LevelSessionsMistake>,
    pub(super) program: Vec<LevelSessionsRequest>,
    /// The processes that own the session one after the other.
    pub(super) processes: Vec<Process>,
}

impl LevelSessions {
    pub(super) fn is(&self, mistake: LevelSessionsMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// True if a group that knows the owner `known` takes what the owner `from` sends: commands carry no number.
    pub(super) fn is_owner(&self, known: u8, from: u8) -> bool {
        let [known, from] = [known, from].map(|owner| self.processes[owner as usize]);
        known == from || self.is(LevelSessionsMistake::OwnerIsMember) && known.0 == from.0
    }

    pub(super) fn is_same_process(&self, one: u8, other: u8) -> bool {
        self.processes[one as usize] == self.processes[other as usize]
    }
}
