//! The end of a stage.

use crate::counts::Counts;

/// Counted tests of a stage, and the success of its programs.
pub(super) struct Outcome {
    pub(super) counts: Counts,
    pub(super) success: bool,
}

impl Outcome {
    /// The outcome of two programs of one stage.
    pub(super) fn and(mut self, other: Outcome) -> Outcome {
        self.counts += other.counts;
        self.success &= other.success;
        self
    }
}
