//! Lists of children as they go over the wire, kept for znodes that are listed again and again.
//!
//! A list is kept from the second time on that it is asked for without a change between. Children that come and go are noted, and taken up
//! when the list is asked for next. It is no part of the state: nothing but the order of names in a list shows whether it was prepared.
//! Invariant: a prepared list with its pending changes holds the names of the znode's children.

mod names;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use paddock_proto::jute::Writer;

use super::{NodeId, Store};
pub(crate) use names::ListNames;

/// Children below which a list is not kept: it is put together as quickly as it is looked up.
pub(crate) const CHILDREN_MIN: u32 = 8;
/// Bytes of prepared lists of a tree, if no other limit was set.
pub(crate) const BYTES_MAX: usize = 32 << 20;
/// Bytes that are counted for a list beside its names.
const LIST_OVERHEAD: usize = 128;
/// Lists that may be kept, whatever their size.
const LISTS_MAX: usize = 60_000;
/// Lists that are remembered as having been asked for once. One that falls on another's place displaces it.
const ASKED: usize = 1 << 12;
/// Marks of znodes with a prepared list. Znodes share them.
const MARKS: usize = 1 << 12;

/// Prepared lists of a tree, for many readers at once.
#[derive(Debug, Default)]
pub(crate) struct PreparedLists {
    table: Mutex<ListTable>,
}

#[derive(Debug)]
struct ListTable {
    lists: Vec<Prepared>,
    places: HashMap<NodeId, usize, FixedState>,
    /// Number of lists by the numbers of their znodes, shortened to a place: a write looks here first. Empty before the first list.
    marks: Vec<u16>,
    /// Versions of lists that were asked for once, by the numbers of their znodes. Empty before the first list.
    asked: Vec<u64>,
    /// The list that is looked at next when one has to go.
    hand: usize,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Prepared {
    parent: NodeId,
    names: ListNames,
    /// Asked for since the hand passed it.
    is_used: bool,
}

/// Result of asking for a list.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The list in one piece.
    One(Arc<Vec<u8>>),
    Many(Vec<Arc<Vec<u8>>>),
    /// The list is not kept. `is_wanted` if it should be.
    Missing {
        is_wanted: bool,
    },
}

impl Default for ListTable {
    fn default() -> ListTable {
        ListTable {
            lists: Vec::new(),
            places: HashMap::default(),
            marks: Vec::new(),
            asked: Vec::new(),
            hand: 0,
            bytes: 0,
            bytes_max: BYTES_MAX,
        }
    }
}

fn mark_of(parent: NodeId) -> usize {
    parent.0 as usize % MARKS
}

impl PreparedLists {
    fn lock(&self) -> MutexGuard<'_, ListTable> {
        // A reader that panicked ends the member; others on their way out do no harm.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&mut self) -> &mut ListTable {
        self.table.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListTable {
    /// The list of a znode, whose version tells whether it has changed.
    fn find(&mut self, parent: NodeId, version: u64, hash: impl Fn(&[u8]) -> u64) -> Lookup {
        let Some(&place) = self.places.get(&parent) else {
            return Lookup::Missing { is_wanted: self.is_asked_again(parent, version) };
        };
        let list = &mut self.lists[place];
        list.is_used = true;
        if list.names.has_pending() {
            let before = list.names.held_bytes();
            let fits = list.names.settle(hash);
            assert!(list.names.held_bytes() < before, "a name takes less in the list than as a change");
            self.bytes -= before - list.names.held_bytes();
            if !fits {
                self.remove(place);
                return Lookup::Missing { is_wanted: true };
            }
        }
        match self.lists[place].names.buckets() {
            [only] => Lookup::One(Arc::clone(only)),
            buckets => Lookup::Many(buckets.to_vec()),
        }
    }

    /// Remembers that a list is asked for; true if this version of it was before.
    fn is_asked_again(&mut self, parent: NodeId, version: u64) -> bool {
        if self.asked.is_empty() {
            self.asked = vec![0; ASKED];
        }
        // Different for each znode that shares the place.
        let version = version ^ u64::from(parent.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let asked = &mut self.asked[parent.0 as usize % ASKED];
        std::mem::replace(asked, version) == version
    }

    fn keep(&mut self, parent: NodeId, names: ListNames) {
        let bytes = names.held_bytes() + LIST_OVERHEAD;
        // One list is not to displace all others.
        if bytes > self.bytes_max / 2 {
            return;
        }
        if self.places.contains_key(&parent) {
            // Another reader was first.
            return;
        }
        self.make_room(bytes);
        if self.marks.is_empty() {
            self.marks = vec![0; MARKS];
        }
        self.marks[mark_of(parent)] += 1;
        self.places.insert(parent, self.lists.len());
        self.lists.push(Prepared { parent, names, is_used: false });
        self.bytes += bytes;
    }

    /// Drops lists that were not asked for lately until there is room for this many bytes.
    fn make_room(&mut self, bytes: usize) {
        while !self.lists.is_empty() && (self.bytes + bytes > self.bytes_max || self.lists.len() >= LISTS_MAX)
        {
            self.hand = if self.hand < self.lists.len() { self.hand } else { 0 };
            if std::mem::take(&mut self.lists[self.hand].is_used) {
                self.hand += 1;
            } else {
                self.remove(self.hand);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let list = self.lists.swap_remove(place);
        self.places.remove(&list.parent);
        if let Some(moved) = self.lists.get(place) {
            self.places.insert(moved.parent, place);
        }
        self.marks[mark_of(list.parent)] -= 1;
        self.bytes -= list.names.held_bytes() + LIST_OVERHEAD;
    }

    #[inline]
    fn is_marked(&self, parent: NodeId) -> bool {
        self.marks.get(mark_of(parent)).is_some_and(|lists| *lists > 0)
    }

    fn note(&mut self, parent: NodeId, name: &[u8], has_come: bool) {
        let Some(&place) = self.places.get(&parent) else { return };
        let names = &mut self.lists[place].names;
        let before = names.held_bytes();
        let is_worth_it = names.note(name, has_come);
        self.bytes += names.held_bytes() - before;
        if !is_worth_it {
            self.remove(place);
        }
        // A change takes no more once it is taken up, so the lists exceed the limit here or nowhere.
        if self.bytes > self.bytes_max {
            self.make_room(0);
        }
    }
}

impl Store {
    /// A child is about to go, or has just come.
    #[inline]
    pub(super) fn note_in_prepared_list(&mut self, parent: NodeId, child: NodeId, has_come: bool) {
        let table = self.prepared_lists.table();
        if table.is_marked(parent) {
            table.note(parent, self.blobs.name(self.nodes[child.0].blob), has_come);
        }
    }

    /// The prepared list of a znode.
    pub(crate) fn prepared_list(&self, parent: NodeId) -> Lookup {
        // Only to tell whether to keep it, so a rare mistake does no harm.
        let extra = self.extra(parent);
        let numbers = u64::from(extra.cversion as u32) << 32 | u64::from(extra.children);
        let version = (extra.pzxid as u64).wrapping_mul(0xff51_afd7_ed55_8ccd) ^ numbers;
        self.prepared_lists.lock().find(parent, version, |name| self.name_hash(parent, name))
    }

    /// The hash by which names of children lie in buckets.
    pub(crate) fn name_hash(&self, parent: NodeId, name: &[u8]) -> u64 {
        self.index.hash(parent, name).number()
    }

    pub(crate) fn prepared_list_bytes(&self) -> usize {
        self.prepared_lists.lock().bytes
    }

    pub(crate) fn set_prepared_list_bytes_max(&mut self, bytes_max: usize) {
        let table = self.prepared_lists.table();
        table.bytes_max = bytes_max;
        table.make_room(0);
    }

    /// Keeps the list of a znode's children. It is to be that of this moment.
    pub(crate) fn keep_list(&self, parent: NodeId, names: ListNames) {
        self.prepared_lists.lock().keep(parent, names);
    }

    fn put_names_one_by_one(&self, parent: NodeId, out: &mut Vec<u8>) {
        self.children(parent).for_each(|child| out.put_buffer(Some(self.name(child))));
    }

    /// Appends the names of a znode's children.
    #[inline(never)]
    pub(crate) fn put_names_of_children(&self, parent: NodeId, out: &mut Vec<u8>) {
        // Where short lists count as long, as in the simulator, they are kept, too.
        if self.child_count(parent) < CHILDREN_MIN.min(self.long_list()) {
            return self.put_names_one_by_one(parent, out);
        }
        match self.prepared_list(parent) {
            Lookup::One(names) => out.extend_from_slice(&names),
            Lookup::Many(buckets) => buckets.iter().for_each(|names| out.extend_from_slice(names)),
            Lookup::Missing { is_wanted } => {
                let start = out.len();
                self.put_names_one_by_one(parent, out);
                if is_wanted {
                    let hash = |name: &[u8]| self.name_hash(parent, name);
                    self.keep_list(parent, ListNames::of_encoded(&out[start..], hash));
                }
            }
        }
    }
}
