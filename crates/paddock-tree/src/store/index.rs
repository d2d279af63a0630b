//! Finds a znode by its parent and name.
//!
//! The index holds numbers, and of each hash so much that it grows without asking for the names again. It is split into
//! shards, so that growing takes a small part of it at a time. The seed is random, because clients choose the names: nothing
//! may depend on the order within the index, and nothing can, for it has no way to iterate.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::node::NodeId;

const SHARD_BITS: u32 = 12;

#[derive(Debug)]
pub(super) struct Index {
    shards: Vec<HashTable<Entry>>,
    hasher: RandomState,
}

/// Bytes, for nothing is to be lost to alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    id: [u8; 4],
    hash: [u8; 2],
}

/// The hash of a parent and a name.
#[derive(Clone, Copy)]
struct NameHash(u64);

impl Entry {
    fn new(hash: NameHash, id: NodeId) -> Entry {
        Entry { id: id.0.to_le_bytes(), hash: hash.of_entry() }
    }

    fn id(self) -> NodeId {
        NodeId(u32::from_le_bytes(self.id))
    }
}

impl NameHash {
    fn of_entry(self) -> [u8; 2] {
        (self.0 as u16).to_le_bytes()
    }

    /// The last shard gets twice as many as the first, and each between them a bit more than the one before: so shards are
    /// full one after the other, and the index is never all at once twice as large as before.
    fn shard(self) -> usize {
        const BITS: u32 = 28;
        let fraction = (self.0 >> 32) % (1 << BITS);
        let bent = fraction * ((4 << BITS) - fraction) / 3;
        (bent >> (2 * BITS - SHARD_BITS)) as usize
    }
}

/// What an entry has of its hash, where the table looks: it takes buckets from the low end and tags from the top.
fn within_shard(of_entry: [u8; 2]) -> u64 {
    let bits = u64::from(u16::from_le_bytes(of_entry));
    bits << 48 | bits
}

impl Index {
    pub(super) fn new() -> Index {
        let shards = (0..1 << SHARD_BITS).map(|_| HashTable::new()).collect();
        Index { shards, hasher: RandomState::default() }
    }

    /// The entry of this parent and name, which `is_it` recognises among others with a similar hash.
    pub(super) fn find(&self, parent: NodeId, name: &[u8], is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let hash = self.hash(parent, name);
        let of_entry = hash.of_entry();
        let is_entry = |entry: &Entry| entry.hash == of_entry && is_it(entry.id());
        self.shards[hash.shard()].find(within_shard(of_entry), is_entry).map(|entry| entry.id())
    }

    /// Adds an entry that is not there yet.
    pub(super) fn insert(&mut self, id: NodeId, parent: NodeId, name: &[u8]) {
        let hash = self.hash(parent, name);
        let entry = Entry::new(hash, id);
        let within = |entry: &Entry| within_shard(entry.hash);
        self.shards[hash.shard()].insert_unique(within(&entry), entry, within);
    }

    pub(super) fn remove(&mut self, id: NodeId, parent: NodeId, name: &[u8]) {
        let hash = self.hash(parent, name);
        let entry = Entry::new(hash, id);
        let place = self.shards[hash.shard()].find_entry(within_shard(entry.hash), |&other| other == entry);
        place.expect("every node but the root is in the index").remove();
    }

    fn hash(&self, parent: NodeId, name: &[u8]) -> NameHash {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(parent.0);
        hasher.write(name);
        NameHash(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_is_used_and_the_last_twice_as_much_as_the_first() {
        let shards = 1 << SHARD_BITS;
        let mut entries = vec![0; shards];
        let distance = (1 << 60) / (shards as u64 * 100);
        let hashes = (0..shards as u64 * 100).map(|n| NameHash(n * distance));
        hashes.for_each(|hash| entries[hash.shard()] += 1);
        assert!(entries.iter().all(|count| (74..=151).contains(count)), "{entries:?}");
        assert!(entries[0] < 77 && entries[shards - 1] > 148, "{entries:?}");
        assert!(entries.is_sorted_by(|a, b| a <= &(b + 1)), "{entries:?}");
    }

    #[test]
    fn an_entry_is_found_until_it_is_removed() {
        let mut index = Index::new();
        let name = |n: u32| format!("name-{n}").into_bytes();
        let find = |index: &Index, n: u32| index.find(NodeId(n % 7), &name(n), |id| id == NodeId(n));
        for n in 0..20_000 {
            index.insert(NodeId(n), NodeId(n % 7), &name(n));
        }
        for n in (0..20_000).step_by(3) {
            index.remove(NodeId(n), NodeId(n % 7), &name(n));
        }
        for n in 0..20_000 {
            assert_eq!(find(&index, n), (n % 3 > 0).then_some(NodeId(n)));
        }
    }
}
