//! The state of a group that is not the home group.

use std::sync::Arc;

use paddock_replica::{GroupStanding, OtherGroup, Replicated};
use paddock_state::WatchTable;
use paddock_tree::AppliedItem;
use parking_lot::{Mutex, MutexGuard};

use crate::StateLock;

/// A group's state. The member's thread has it, and the one that takes a snapshot for moments.
#[derive(Clone, Debug)]
pub(crate) struct GroupState(Arc<Mutex<Replicated>>);

impl GroupState {
    /// A state of a group of this member, whose changes are told to those who watch in the member's table.
    pub(crate) fn new(mut state: Replicated, watches: &WatchTable) -> GroupState {
        state.share_watches(watches);
        GroupState(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn look(&self) -> MutexGuard<'_, Replicated> {
        self.0.lock()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// Items that were applied since this was asked last.
    pub(crate) fn take_applied_items(&self) -> Vec<AppliedItem> {
        self.0.lock().tree_mut().take_applied_items()
    }

    /// The group as it is told of, with this standing, and this number of commands that were applied.
    pub(crate) fn tell(&self, standing: GroupStanding, commands: u64) -> OtherGroup {
        let state = self.0.lock();
        let tree = state.tree();
        let (znodes, data_bytes) = (tree.node_count() as u64, tree.data_bytes());
        OtherGroup { standing, znodes, data_bytes, received_items: tree.received_items(), commands }
    }
}

impl StateLock for GroupState {
    fn write<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.0.lock())
    }
}
