//! Long lists of children, which are copied in portions: whoever copies one has to notice that it has changed meanwhile.

use super::{NodeId, Store};

/// Children of a znode above which it is counted how often one came or went.
pub(crate) const LONG_LIST: u32 = 2000;

impl Store {
    /// Number of times that a child of a znode came or went while there were more than [`LONG_LIST`]. It never goes back, not even
    /// when changes are taken back, or another znode takes the place of this one.
    pub(crate) fn list_changes(&self, parent: NodeId) -> u64 {
        self.list_changes.get(&parent).copied().unwrap_or_default()
    }

    /// To be called with the number of children behind one that came, or before one that goes.
    pub(super) fn note_list_change(&mut self, parent: NodeId, children: u32) {
        if children > LONG_LIST {
            *self.list_changes.entry(parent).or_default() += 1;
        }
    }

    /// The child with which the list begins. The others follow by [`Store::next_sibling`].
    pub(crate) fn first_child(&self, parent: NodeId) -> Option<NodeId> {
        self.extra(parent).first_child.some()
    }

    pub(crate) fn next_sibling(&self, child: NodeId) -> Option<NodeId> {
        self.nodes[child.0].next.some()
    }
}
