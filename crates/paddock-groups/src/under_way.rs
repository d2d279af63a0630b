//! Writes that were handed to a group and may not have been applied yet, though their connection may be gone.

use paddock_tree::Origin;

use crate::view::Groups;

/// The last write of a session that was handed to a group, by its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) group: u32,
    pub(crate) origin: Origin,
    pub(crate) batch: u64,
}

impl UnderWay {
    /// True if it was handed over by what counts as an earlier start of the process in its group.
    pub(crate) fn is_of_earlier_start(&self, groups: &Groups<'_>) -> bool {
        groups.get(self.group).is_some_and(|view| view.origin != self.origin)
    }

    /// True if the write was applied, or can never be.
    pub(crate) fn is_over(&self, groups: &Groups<'_>) -> bool {
        let Some(view) = groups.get(self.group) else { return false };
        let is_of_earlier_start = view
            .tree()
            .incarnation(self.origin.member)
            .is_some_and(|incarnation| incarnation > self.origin.incarnation);
        is_of_earlier_start || view.tree().applied_batch(self.origin) >= self.batch
    }
}
