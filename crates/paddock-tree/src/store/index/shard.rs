//! A part of the index: the numbers of znodes in the order of their hashes, with gaps between them.
//!
//! An entry stands at the place that its hash points to, or behind it, and there is no gap between the two. So a lookup
//! begins there and is done at the first gap or higher hash, mostly in one line of the cache. An entry that comes
//! pushes those behind it towards the next gap; one that goes lets them move up.
//!
//! All entries are in one piece of memory, which grows by a fifth or so, in the sizes that allocators have: that wastes
//! little, and as the order stays, growing is one walk through both pieces.

use crate::store::node::NodeId;

/// Part of its hash that an entry keeps.
pub(super) type EntryHash = u16;

const ENTRY_BYTES: usize = size_of::<IndexEntry>();
/// An entry mostly stands no farther behind the place that its hash points to.
const NEAR: usize = 7;
/// Bytes of memory that the first entry makes.
const BYTES_MIN: usize = 32;

/// The entries of the znodes whose hashes are this shard's.
#[derive(Debug, Default)]
pub(super) struct Shard {
    slots: Box<[IndexEntry]>,
    len: u32,
}

/// Bytes, for nothing is to be lost to alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IndexEntry {
    id: [u8; 4],
    hash: [u8; 2],
}

impl IndexEntry {
    const VACANT: IndexEntry = IndexEntry { id: NodeId::NONE.0.to_le_bytes(), hash: [0; 2] };

    fn new(hash: EntryHash, id: NodeId) -> IndexEntry {
        IndexEntry { id: id.0.to_le_bytes(), hash: hash.to_le_bytes() }
    }

    fn id(self) -> NodeId {
        NodeId(u32::from_le_bytes(self.id))
    }

    fn hash(self) -> EntryHash {
        EntryHash::from_le_bytes(self.hash)
    }

    fn is_vacant(self) -> bool {
        self.id == IndexEntry::VACANT.id
    }
}

impl Shard {
    /// The first of the entries with this hash that `is_it` recognises.
    pub(super) fn find(&self, hash: EntryHash, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let from = self.slots[home(self.slots.len(), hash)..].iter();
        let run = from.take_while(|entry| !entry.is_vacant() && entry.hash() <= hash);
        run.filter(|entry| entry.hash() == hash).map(|entry| entry.id()).find(|&id| is_it(id))
    }

    /// Something of the memory that `find` will look at.
    pub(super) fn look_at(&self, hash: EntryHash) -> usize {
        let home = home(self.slots.len(), hash);
        let ends = [home, home + NEAR].into_iter().filter_map(|at| self.slots.get(at));
        ends.map(|entry| usize::from(entry.id[0])).sum()
    }

    pub(super) fn insert(&mut self, hash: EntryHash, id: NodeId) {
        if (self.len as usize + 1) * 8 > self.slots.len() * 7 {
            self.grow();
        }
        while !put(&mut self.slots, IndexEntry::new(hash, id)) {
            self.grow();
        }
        self.len += 1;
    }

    /// False if there is no such entry.
    #[must_use]
    pub(super) fn remove(&mut self, hash: EntryHash, id: NodeId) -> bool {
        let wanted = IndexEntry::new(hash, id);
        let capacity = self.slots.len();
        let run = home(capacity, hash)..capacity;
        let Some(mut at) =
            run.take_while(|&at| !self.slots[at].is_vacant()).find(|&at| self.slots[at] == wanted)
        else {
            return false;
        };
        while let Some(&next) =
            self.slots.get(at + 1).filter(|next| !next.is_vacant() && home(capacity, next.hash()) <= at)
        {
            self.slots[at] = next;
            at += 1;
        }
        self.slots[at] = IndexEntry::VACANT;
        self.len -= 1;
        true
    }

    fn grow(&mut self) {
        let mut capacity = self.slots.len();
        loop {
            capacity = larger(capacity);
            if let Some(slots) = spread(&self.slots, capacity) {
                self.slots = slots;
                return;
            }
        }
    }
}

/// Place where entries with this hash stand, or as close behind as they can. The last places are left to those that are pushed.
fn home(capacity: usize, hash: EntryHash) -> usize {
    let homes = capacity - capacity.min((capacity / 16).min(16) + 1);
    (homes * usize::from(hash)) >> EntryHash::BITS
}

/// Puts an entry behind those with lower hashes; false if there is no gap to push those behind it into.
fn put(slots: &mut [IndexEntry], entry: IndexEntry) -> bool {
    let from = home(slots.len(), entry.hash());
    let is_before = |other: &IndexEntry| !other.is_vacant() && other.hash() <= entry.hash();
    let Some(at) = (from..slots.len()).find(|&at| !is_before(&slots[at])) else { return false };
    let Some(gap) = (at..slots.len()).find(|&at| slots[at].is_vacant()) else { return false };
    slots.copy_within(at..gap, at + 1);
    slots[at] = entry;
    true
}

/// These entries in `capacity` slots, if there is room behind each one's home.
fn spread(entries: &[IndexEntry], capacity: usize) -> Option<Box<[IndexEntry]>> {
    let mut slots = vec![IndexEntry::VACANT; capacity].into_boxed_slice();
    let mut next = 0;
    for entry in entries.iter().filter(|entry| !entry.is_vacant()) {
        let at = home(capacity, entry.hash()).max(next);
        *slots.get_mut(at)? = *entry;
        next = at + 1;
    }
    Some(slots)
}

/// The next number of slots. Allocators have four sizes between each power of two and the next.
fn larger(capacity: usize) -> usize {
    let bytes = (capacity * ENTRY_BYTES).next_multiple_of(16);
    let step = if bytes < BYTES_MIN { BYTES_MIN - bytes } else { ((1 << bytes.ilog2()) / 4).max(16) };
    (bytes + step) / ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    impl Shard {
        /// Panics where the order, or an entry's way from its home, is not what it has to be.
        fn check(&self) {
            let entries = || self.slots.iter().enumerate().filter(|(_, entry)| !entry.is_vacant());
            assert_eq!(entries().count(), self.len as usize);
            assert!(entries().map(|(_, entry)| entry.hash()).is_sorted());
            for (at, entry) in entries() {
                let home = home(self.slots.len(), entry.hash());
                assert!(home <= at, "an entry stands before its home");
                assert!(self.slots[home..at].iter().all(|slot| !slot.is_vacant()), "a gap behind a home");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 50,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Many entries have the same hash, and many the highest ones, which have the least room behind them.
        #[test]
        fn it_holds_what_was_put_in_and_not_taken_out(
            steps in prop::collection::vec((any::<bool>(), 0..300u32, prop_oneof![Just(0), Just(EntryHash::MAX)]), 1..500)
        ) {
            let hash = |id: u32, high: EntryHash| (id as EntryHash % 97).wrapping_mul(677) | high & 0xff00;
            let mut shard = Shard::default();
            let mut model = BTreeSet::new();
            for (comes, id, high) in steps {
                let hash = hash(id, high);
                if comes && model.insert((hash, id)) {
                    shard.insert(hash, NodeId(id));
                } else if !comes {
                    prop_assert_eq!(shard.remove(hash, NodeId(id)), model.remove(&(hash, id)));
                }
                shard.check();
            }
            for id in 0..300 {
                for high in [0, EntryHash::MAX] {
                    let hash = hash(id, high);
                    let found = shard.find(hash, |found| found == NodeId(id));
                    prop_assert_eq!(found.is_some(), model.contains(&(hash, id)));
                }
            }
        }
    }

    #[test]
    fn entries_of_one_hash_fit_wherever_it_points() {
        for hash in [0, 1 << 15, EntryHash::MAX] {
            let mut shard = Shard::default();
            (0..200).for_each(|id| shard.insert(hash, NodeId(id)));
            shard.check();
            assert!((0..200).all(|id| shard.find(hash, |found| found == NodeId(id)) == Some(NodeId(id))));
            assert_eq!(shard.find(hash, |_| false), None);
        }
    }

    #[test]
    fn little_memory_is_unused() {
        let mut shard = Shard::default();
        let (mut slots, mut entries) = (0, 0);
        for id in 0..100_000_u32 {
            shard.insert(xxh3_64(&id.to_le_bytes()) as EntryHash, NodeId(id));
            if id >= 1000 {
                slots += shard.slots.len();
                entries += shard.len as usize;
            }
        }
        let used = entries as f64 / slots as f64;
        assert!(used > 0.75, "{used}");
    }

    #[test]
    fn sizes_are_those_of_allocators() {
        let bytes = |capacity: usize| (capacity * ENTRY_BYTES).next_multiple_of(16);
        let sizes = std::iter::successors(Some(larger(0)), |&capacity| Some(larger(capacity))).map(bytes);
        let expected = [32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640];
        assert!(sizes.take(expected.len()).eq(expected));
    }
}
