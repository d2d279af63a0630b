//! Finds a znode by its parent and name.
//!
//! The index holds only numbers; what they stand for is asked of the caller. It is split into shards, so that growing
//! moves a small part of it at a time. The seed is random, because clients choose the names: nothing may depend on the
//! order within the index, and nothing can, for it has no way to iterate.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::node::NodeId;

const SHARD_BITS: u32 = 8;

/// The hash of a parent and a name. A node keeps its own, so that growing the index does not visit the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NameHash(u32);

impl NameHash {
    fn shard(self) -> usize {
        (self.0 & ((1 << SHARD_BITS) - 1)) as usize
    }

    /// The bits that the shard does not use, spread: the table takes buckets from the low end and tags from the top.
    fn within_shard(self) -> u64 {
        u64::from(self.0 >> SHARD_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[derive(Debug)]
pub(super) struct Index {
    shards: Vec<HashTable<NodeId>>,
    hasher: RandomState,
}

impl Index {
    pub(super) fn new() -> Index {
        let shards = (0..1 << SHARD_BITS).map(|_| HashTable::new()).collect();
        Index { shards, hasher: RandomState::default() }
    }

    pub(super) fn hash(&self, parent: NodeId, name: &[u8]) -> NameHash {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(parent.0);
        hasher.write(name);
        NameHash(hasher.finish() as u32)
    }

    /// The entry with this hash that `is_it` recognises.
    pub(super) fn find(&self, hash: NameHash, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        self.shards[hash.shard()].find(hash.within_shard(), |&id| is_it(id)).copied()
    }

    /// Adds an entry that is not there yet; `hash_of` tells the hash of every entry there is.
    pub(super) fn insert(&mut self, hash: NameHash, id: NodeId, hash_of: impl Fn(NodeId) -> NameHash) {
        let rehash = |&other: &NodeId| hash_of(other).within_shard();
        self.shards[hash.shard()].insert_unique(hash.within_shard(), id, rehash);
    }

    pub(super) fn remove(&mut self, hash: NameHash, id: NodeId) {
        let entry = self.shards[hash.shard()].find_entry(hash.within_shard(), |&other| other == id);
        entry.expect("every node but the root is in the index").remove();
    }
}
