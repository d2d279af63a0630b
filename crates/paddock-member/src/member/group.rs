//! A group of a member, and what the member does for it alone.

use paddock_replica::{Effects, Group};
use paddock_storage::GroupNumber;

use crate::group_state::GroupState;
use crate::incoming::Incoming;
use crate::snapshots::Snapshots;

#[derive(Debug)]
pub(super) struct MemberGroup {
    pub(super) number: GroupNumber,
    pub(super) group: Group,
    pub(super) effects: Effects,
    pub(super) snapshots: Snapshots,
    pub(super) incoming: Incoming,
    /// A round whose records are in the log's buffer and not on disk.
    pub(super) unsynced: Option<u64>,
    /// Writes that were applied since the member was started, those of its log included.
    pub(super) writes: u64,
    /// The group's state; `None` for the home group, whose state the shell has.
    pub(super) own_state: Option<GroupState>,
    /// Term in which this member may put into the group's log what other groups have for it, as far as the carrier was told.
    pub(super) joining_term: Option<u64>,
}

impl MemberGroup {
    /// True if there is nothing to do: nothing of the group is on its way to the disk, or from another member.
    pub(super) fn is_at_rest(&self) -> bool {
        let effects = &self.effects;
        let is_idle = effects.is_empty() && effects.install.is_none() && effects.diverged_at.is_none();
        is_idle && self.unsynced.is_none() && !self.snapshots.is_under_way()
    }
}
