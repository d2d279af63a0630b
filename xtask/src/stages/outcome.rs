//! The end of a stage.

use crate::counts::TestCounts;

/// Counted tests of a stage, and the success of its programs.
pub(super) struct StageOutcome {
    pub(super) counts: TestCounts,
    pub(super) success: bool,
}

impl StageOutcome {
    /// The outcome of two programs of one stage.
    pub(super) fn and(mut self, other: StageOutcome) -> StageOutcome {
        self.counts += other.counts;
        self.success &= other.success;
        self
    }
}
