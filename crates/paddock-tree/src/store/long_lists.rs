//! Long lists of children, which are copied in portions: a copy has to notice that it has changed meanwhile.

use std::collections::BTreeMap;

use super::{NodeId, Store};

/// Children of a znode above which its list is long, unless [`crate::Tree::set_long_list`] says otherwise.
pub(crate) const LONG_LIST: u32 = 2000;

/// Lists that are long, and how often each has changed.
#[derive(Debug)]
pub(crate) struct LongLists {
    /// Children of a znode above which it is counted how often one came or went.
    above: u32,
    /// Number of times that a child came or went while the list was long, by parent.
    changes: BTreeMap<NodeId, u64>,
}

impl Default for LongLists {
    fn default() -> LongLists {
        LongLists { above: LONG_LIST, changes: BTreeMap::new() }
    }
}

impl Store {
    /// Lists of more children than this are long from now on. Copies that are under way are not to be gone on with.
    pub(crate) fn set_long_list(&mut self, above: u32) {
        self.long_lists.above = above;
    }

    /// Children of a znode above which its list is long.
    pub(crate) fn long_list(&self) -> u32 {
        self.long_lists.above
    }

    /// Number of times that a child of a znode came or went while its list was long. It never goes back, not even
    /// when changes are taken back, or another znode takes the place of this one.
    pub(crate) fn list_changes(&self, parent: NodeId) -> u64 {
        self.long_lists.changes.get(&parent).copied().unwrap_or_default()
    }

    /// To be called with the number of children behind one that came, or before one that goes.
    pub(super) fn note_list_change(&mut self, parent: NodeId, children: u32) {
        if children > self.long_lists.above {
            *self.long_lists.changes.entry(parent).or_default() += 1;
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
