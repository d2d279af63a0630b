//! Place in the log up to which this member has applied it.

use paddock_tree::FeatureLevel;

#[derive(Debug)]
pub(crate) struct AppliedPosition {
    index: u64,
    term: u64,
    /// The entry up to which a snapshot has taken the place of the state, until that is on disk and the Raft library may know it.
    installed: Option<u64>,
    /// The state has a secret for passwords of sessions.
    pub(crate) has_secret: bool,
    /// Level of the features that the state may use.
    pub(crate) level: FeatureLevel,
    /// Number of groups of the ensemble, as the state of the home group says.
    pub(crate) groups: u32,
    /// Paths of the ensemble's split points, as the state of the home group says.
    pub(crate) split_points: Vec<String>,
}

impl AppliedPosition {
    pub(crate) fn new((index, term): (u64, u64)) -> AppliedPosition {
        let level = FeatureLevel::NONE;
        let split_points = Vec::new();
        AppliedPosition { index, term, installed: None, has_secret: false, level, groups: 1, split_points }
    }

    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Index and term.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.index, self.term)
    }

    /// The next entry was applied.
    pub(crate) fn set(&mut self, index: u64, term: u64) {
        (self.index, self.term) = (index, term);
    }

    /// A snapshot has taken the place of the state.
    pub(crate) fn install(&mut self, (index, term): (u64, u64)) {
        (self.index, self.term, self.installed) = (index, term, Some(index));
    }

    /// The entry up to which the snapshot goes that is on disk now, if one was installed.
    pub(crate) fn take_installed(&mut self) -> Option<u64> {
        self.installed.take()
    }
}
