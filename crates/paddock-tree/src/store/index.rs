//! Finds a znode by its parent and name.
//!
//! The index holds numbers, and of each hash so much that it grows without asking for the names again. It is split into
//! shards, so that growing takes a small part of it at a time. The seed is random, because clients choose the names: nothing
//! may depend on the order within the index, and nothing can, for it has no way to iterate.

mod shard;

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;

use foldhash::quality::RandomState;

use super::node::NodeId;
use shard::{EntryHash, Shard};

const SHARD_BITS: u32 = 12;

#[derive(Debug)]
pub(super) struct Index {
    shards: Vec<Shard>,
    hasher: RandomState,
}

/// The hash of a parent and a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameHash(u64);

impl NameHash {
    pub(super) fn number(self) -> u64 {
        self.0
    }

    fn of(hasher: &RandomState, parent: NodeId, name: &[u8]) -> NameHash {
        let mut hasher = hasher.build_hasher();
        hasher.write_u32(parent.0);
        hasher.write(name);
        NameHash(hasher.finish())
    }

    fn of_entry(self) -> EntryHash {
        self.0 as EntryHash
    }

    /// The last shard gets twice as many as the first, and each between them a bit more than the one before: so shards are
    /// full one after the other, and they do not all grow at once.
    fn shard(self) -> usize {
        const BITS: u32 = 28;
        let fraction = (self.0 >> 32) % (1 << BITS);
        let bent = fraction * ((4 << BITS) - fraction) / 3;
        (bent >> (2 * BITS - SHARD_BITS)) as usize
    }
}

impl Index {
    pub(super) fn new() -> Index {
        let shards = (0..1 << SHARD_BITS).map(|_| Shard::default()).collect();
        Index { shards, hasher: RandomState::default() }
    }

    pub(super) fn hash(&self, parent: NodeId, name: &[u8]) -> NameHash {
        NameHash::of(&self.hasher, parent, name)
    }

    /// The index in parts of about the same size, which can be filled at the same time.
    pub(super) fn parts(&mut self, count: usize) -> Vec<IndexPart<'_>> {
        let Index { shards, hasher } = self;
        let (all, mut rest, mut first) = (shards.len(), &mut shards[..], 0);
        let mut parts = Vec::with_capacity(count);
        for number in 1..=count {
            // As hashes are bent towards the last shards.
            let fraction = number as f64 / count as f64;
            let end = (fraction * (4.0 - fraction) / 3.0 * all as f64).round() as usize;
            let (part, behind) = rest.split_at_mut(end - first);
            parts.push(IndexPart { shards: part, first, hasher });
            (rest, first) = (behind, end);
        }
        parts
    }

    /// The znode of this parent and name, which `is_it` recognises among others with a similar hash.
    pub(super) fn find(&self, hash: NameHash, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        self.shards[hash.shard()].find(hash.of_entry(), is_it)
    }

    /// The znode of this parent and name, or another one with a similar hash.
    pub(super) fn guess(&self, hash: NameHash) -> Option<NodeId> {
        self.find(hash, |_| true)
    }

    /// Something of the memory that `find` will look at.
    pub(super) fn look_at(&self, hash: NameHash) -> usize {
        self.shards[hash.shard()].look_at(hash.of_entry())
    }

    /// Adds a znode that is not there yet.
    pub(super) fn insert(&mut self, hash: NameHash, id: NodeId) {
        self.shards[hash.shard()].insert(hash.of_entry(), id);
    }

    pub(super) fn remove(&mut self, hash: NameHash, id: NodeId) {
        let was_there = self.shards[hash.shard()].remove(hash.of_entry(), id);
        assert!(was_there, "every node but the root is in the index");
    }
}

/// Some of the shards of an index, which have the znodes with certain hashes.
#[derive(Debug)]
pub(super) struct IndexPart<'i> {
    shards: &'i mut [Shard],
    /// Number of the first of them.
    first: usize,
    hasher: &'i RandomState,
}

impl IndexPart<'_> {
    /// The hash of a parent and a name, if it is one of this part.
    pub(super) fn hash(&self, parent: NodeId, name: &[u8]) -> Option<NameHash> {
        let hash = NameHash::of(self.hasher, parent, name);
        (self.first..self.first + self.shards.len()).contains(&hash.shard()).then_some(hash)
    }

    /// Adds znodes; fails with the first one of which `is_double` says that another has its parent and its name.
    pub(super) fn insert_all(
        &mut self,
        nodes: &[(NodeId, NameHash)],
        is_double: impl Fn(NodeId, NodeId) -> bool,
    ) -> Result<(), NodeId> {
        let Self { shards, first, .. } = self;
        let looked_at = nodes.iter().map(|(_, hash)| shards[hash.shard() - *first].look_at(hash.of_entry()));
        black_box(looked_at.sum::<usize>());
        for (id, hash) in nodes {
            let shard = &mut shards[hash.shard() - *first];
            if shard.find(hash.of_entry(), |other| is_double(*id, other)).is_some() {
                return Err(*id);
            }
            shard.insert(hash.of_entry(), *id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_hashes_once_and_about_as_many_each() {
        for count in 1..=4 {
            let mut index = Index::new();
            let parts = index.parts(count);
            let mut found = vec![0; count];
            for n in 0..40_000_u32 {
                let has = |part: &IndexPart<'_>| part.hash(NodeId(n % 7), &n.to_le_bytes()).is_some();
                let places: Vec<usize> = (0..count).filter(|place| has(&parts[*place])).collect();
                assert_eq!(places.len(), 1);
                found[places[0]] += 1;
            }
            let even = 40_000 / count;
            assert!(found.iter().all(|entries| even.abs_diff(*entries) < even / 20), "{found:?}");
        }
    }

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
        let hash = |index: &Index, n: u32| index.hash(NodeId(n % 7), &name(n));
        for n in 0..20_000 {
            index.insert(hash(&index, n), NodeId(n));
        }
        for n in (0..20_000).step_by(3) {
            index.remove(hash(&index, n), NodeId(n));
        }
        for n in 0..20_000 {
            let found = index.find(hash(&index, n), |id| id == NodeId(n));
            assert_eq!(found, (n % 3 > 0).then_some(NodeId(n)));
        }
    }
}
