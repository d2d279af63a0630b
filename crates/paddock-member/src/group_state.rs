//! The state of a group that is not the home group.

use std::sync::Arc;

use paddock_replica::{GroupStanding, OtherGroup, Replicated};
use paddock_state::WatchTable;
use paddock_tree::{AppliedItem, RelayedAnswer};
use parking_lot::{Mutex, MutexGuard};

use crate::StateLock;

/// A group's state. The member's thread has it, and the one that takes a snapshot for moments.
#[derive(Clone, Debug)]
pub(crate) struct GroupState(Arc<Mutex<Replicated>>);

impl GroupState {
    pub(crate) fn new(mut state: Replicated) -> GroupState {
        state.tree_mut().record_relayed_answers();
        GroupState(Arc::new(Mutex::new(state)))
    }

    /// From now on changes are told to those who watch in this table.
    pub(crate) fn share_watches(&self, watches: &WatchTable) {
        self.0.lock().share_watches(watches);
    }

    pub(crate) fn look(&self) -> MutexGuard<'_, Replicated> {
        self.0.lock()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Replicated) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// Items that were applied since this was asked last, and what the relayed writes among them came to.
    pub(crate) fn take_applied_items(&self) -> (Vec<AppliedItem>, Vec<RelayedAnswer>) {
        let mut state = self.0.lock();
        let tree = state.tree_mut();
        (tree.take_applied_items(), tree.take_relayed_answers())
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
