//! Long lists of children that are copied in portions, and keep up with the children that come and go between them.
//!
//! A child that comes is in front of all others, so the copying never meets it; one that goes may have been copied. So a list notes both, and
//! takes them up in its next portion. All who ask for the same list meanwhile share the copy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::prepared_lists::ListNames;
use super::{NodeId, Store};

/// Children of a znode above which its list is long, unless [`crate::Tree::set_long_list`] says otherwise.
pub(crate) const LONG_LIST: u32 = 2000;
/// Bytes of changes between two portions, beside a quarter of the list, above which a copy does not keep up.
const PENDING_BYTES: usize = 64 << 10;

/// Lists that are being copied.
#[derive(Debug)]
pub(crate) struct LongLists {
    /// Children of a znode above which its list is long.
    above: u32,
    growing: Mutex<Vec<Weak<Mutex<GrowingList>>>>,
}

/// The names that were copied so far.
#[derive(Debug)]
pub(crate) struct GrowingList {
    parent: NodeId,
    /// The child that is copied next.
    next: Option<NodeId>,
    names: ListNames,
    /// More changed between two portions than is noted. Nothing is held any more.
    is_overrun: bool,
}

/// Result of copying a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// There are more children.
    Portion,
    /// The copy is the list as it is now.
    All,
    /// More children have come or gone than the copy can keep up with, or the znode has gone. The copy is worth nothing any more.
    Outdated,
}

impl Default for LongLists {
    fn default() -> LongLists {
        LongLists { above: LONG_LIST, growing: Mutex::default() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GrowingList {
    fn note(&mut self, child: NodeId, behind: Option<NodeId>, name: &[u8], has_come: bool) {
        if self.is_overrun {
            return;
        }
        if !has_come && self.next == Some(child) {
            self.next = behind;
        }
        self.names.note(name, has_come);
        if self.names.pending_bytes() > PENDING_BYTES + self.names.bytes() / 4 {
            // Connections may hold the copy for long before they go on with it, and find that it is worth nothing.
            (self.is_overrun, self.next, self.names) = (true, None, ListNames::for_bytes(0));
        }
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

    /// A copy of the list of a znode's children, whose names take about `expected` bytes: the one that is under way, if there is one.
    pub(crate) fn growing_list(&self, parent: NodeId, expected: usize) -> Arc<Mutex<GrowingList>> {
        let mut growing = lock(&self.long_lists.growing);
        growing.retain(|list| list.strong_count() > 0);
        let mut others = growing.iter().filter_map(Weak::upgrade);
        let under_way = others.find(|list| {
            let list = lock(list);
            list.parent == parent && !list.is_overrun
        });
        under_way.unwrap_or_else(|| {
            let next = self.extra(parent).first_child.some();
            let names = ListNames::for_bytes(expected);
            let list = Arc::new(Mutex::new(GrowingList { parent, next, names, is_overrun: false }));
            growing.push(Arc::downgrade(&list));
            list
        })
    }

    /// Takes up some changes, and copies at most `max` children. Returns the names, too, when all are there.
    pub(crate) fn grow_list(
        &self,
        parent: NodeId,
        list: &Mutex<GrowingList>,
        max: usize,
    ) -> (Copied, usize, Option<ListNames>) {
        let mut list = lock(list);
        if list.is_overrun || list.parent != parent {
            return (Copied::Outdated, 0, None);
        }
        let hash = |name: &[u8]| self.name_hash(parent, name);
        // To take up that a child has gone takes as long as to copy some: it is looked for.
        list.names.settle_some((max / 4).max(16), hash);
        for _ in 0..max {
            let Some(child) = list.next else { break };
            let name = self.name(child);
            list.names.push(name, hash(name));
            list.next = self.nodes[child.0].next.some();
        }
        let bytes = list.names.bytes();
        if list.next.is_some() || list.names.has_pending() {
            return (Copied::Portion, bytes, None);
        }
        (Copied::All, bytes, Some(list.names.clone()))
    }

    /// A child is about to go, or has just come.
    #[inline]
    pub(super) fn note_in_growing_lists(&mut self, parent: NodeId, child: NodeId, has_come: bool) {
        let growing = self.long_lists.growing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !growing.is_empty() {
            self.note_list_change(parent, child, has_come);
        }
    }

    #[cold]
    fn note_list_change(&mut self, parent: NodeId, child: NodeId, has_come: bool) {
        let node = &self.nodes[child.0];
        let (name, behind) = (self.blobs.name(node.blob), node.next.some());
        let growing = self.long_lists.growing.get_mut().unwrap_or_else(PoisonError::into_inner);
        growing.retain(|list| {
            let Some(list) = list.upgrade() else { return false };
            let mut list = lock(&list);
            if list.parent == parent {
                list.note(child, behind, name, has_come);
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_does_not_keep_up_holds_nothing_however_much_changes() {
        let (child, name) = (NodeId::ROOT, b"0123456789".as_slice());
        let mut list = GrowingList {
            parent: child,
            next: Some(child),
            names: ListNames::for_bytes(0),
            is_overrun: false,
        };
        (0..1000).for_each(|_| list.names.push(name, 0));
        let mut most = 0;
        for _ in 0..10_000 {
            list.note(child, None, name, true);
            most = most.max(list.names.pending_bytes());
        }
        assert!(list.is_overrun && list.next.is_none());
        assert_eq!((list.names.bytes(), list.names.pending_bytes()), (0, 0));
        assert!(most > PENDING_BYTES && most <= PENDING_BYTES + list_bytes(1000, name) / 4, "{most}");
    }

    fn list_bytes(children: usize, name: &[u8]) -> usize {
        children * (4 + name.len())
    }
}
