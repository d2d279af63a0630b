//! Commands that were proposed or submitted, and may have been lost on their way.

/// Ticks after which a command that is not applied is proposed again: the Raft library may drop a proposal.
pub(crate) const LOST_TICKS: u32 = 20;

/// Term in which a command was proposed last, and the ticks since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastProposal(Option<(u64, u32)>);

impl LastProposal {
    /// True if it was proposed in this term and may yet be applied.
    pub(crate) fn is_under_way(self, term: u64) -> bool {
        self.0.is_some_and(|(of, ticks)| of == term && ticks < LOST_TICKS)
    }

    pub(crate) fn note(&mut self, term: u64) {
        self.0 = Some((term, 0));
    }

    pub(crate) fn tick(&mut self) {
        self.0.iter_mut().for_each(|(_, ticks)| *ticks = ticks.saturating_add(1));
    }
}
