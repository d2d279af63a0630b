//! A hash table that never stops to grow: it is made of small ones, of which one is split in two at a time (linear hashing).
//!
//! An ordinary table moves all that it holds when it is full, which takes tenths of a second with a million paths, and a thread that
//! waits for the lock around it waits as long. Entries know their hashes, so that no path is looked at when they move. For the
//! same reason a table can be taken apart in pieces.

use std::mem::take;

use hashbrown::HashTable;

pub(super) trait Hashed {
    fn hash(&self) -> u64;
}

#[derive(Debug)]
pub(super) struct GradualTable<T> {
    /// The first shard. Most tables are small and have no other.
    first: HashTable<T>,
    more: Vec<HashTable<T>>,
    len: usize,
}

impl<T> Default for GradualTable<T> {
    fn default() -> GradualTable<T> {
        GradualTable { first: HashTable::new(), more: Vec::new(), len: 0 }
    }
}

impl<T: Hashed> GradualTable<T> {
    /// Entries of a shard, on average. One that has not been split while others were holds up to twice as many.
    pub(super) const SHARD_LEN: usize = 400;

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        self.shard(self.place(hash)).find(hash, is_it)
    }

    /// Keeps an entry that is not there yet.
    pub(super) fn insert(&mut self, entry: T) {
        if self.len >= (1 + self.more.len()) * Self::SHARD_LEN {
            self.split();
        }
        let hash = entry.hash();
        let place = self.place(hash);
        self.shard_mut(place).insert_unique(hash, entry, T::hash);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let place = self.place(hash);
        let shard = self.shard_mut(place);
        let (entry, _) = shard.find_entry(hash, is_it).ok()?.remove();
        if shard.is_empty() {
            // Its memory goes now, and not with that of all others.
            *shard = HashTable::new();
        }
        self.len -= 1;
        Some(entry)
    }

    /// Takes some entries out, [`Self::SHARD_LEN`] on average; none if there are none.
    pub(super) fn take_some(&mut self) -> impl Iterator<Item = T> + use<T> {
        let shard = self.more.pop().unwrap_or_else(|| take(&mut self.first));
        self.len -= shard.len();
        shard.into_iter()
    }

    /// Splits the shard whose turn it is, which puts the new one behind all others.
    fn split(&mut self) {
        let new = 1 + self.more.len();
        self.more.push(HashTable::new());
        let old = new - (new + 1).next_power_of_two() / 2;
        for entry in take(self.shard_mut(old)) {
            let hash = entry.hash();
            let place = self.place(hash);
            assert!(place == old || place == new, "an entry of shard {old} moves to {place}");
            self.shard_mut(place).insert_unique(hash, entry, T::hash);
        }
    }

    /// The number of an entry's shard. A shard goes by other bits of the hash.
    fn place(&self, hash: u64) -> usize {
        let shards = 1 + self.more.len();
        let all = shards.next_power_of_two();
        let place = (hash >> 32) as usize & (all - 1);
        if place < shards { place } else { place - all / 2 }
    }

    fn shard(&self, place: usize) -> &HashTable<T> {
        if place == 0 { &self.first } else { &self.more[place - 1] }
    }

    fn shard_mut(&mut self, place: usize) -> &mut HashTable<T> {
        if place == 0 { &mut self.first } else { &mut self.more[place - 1] }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[derive(Debug)]
    struct Number {
        hash: u64,
        number: u64,
    }

    impl Hashed for Number {
        fn hash(&self) -> u64 {
            self.hash
        }
    }

    fn filled(hasher: &RandomState, count: u64) -> GradualTable<Number> {
        let mut table = GradualTable::default();
        (0..count).for_each(|number| insert(&mut table, hasher, number));
        table
    }

    fn insert(table: &mut GradualTable<Number>, hasher: &RandomState, number: u64) {
        table.insert(Number { hash: hasher.hash_one(number), number });
    }

    #[test]
    fn everything_is_found_however_far_it_has_grown() {
        let hasher = RandomState::new();
        let mut table = GradualTable::default();
        for number in 0..10_000 {
            insert(&mut table, &hasher, number);
            for known in [0, number / 2, number] {
                let found = table.get(hasher.hash_one(known), |entry| entry.number == known);
                assert_eq!(found.map(|entry| entry.number), Some(known), "of {number}");
            }
        }
        for number in (0..10_000).filter(|number| number % 3 == 0) {
            assert!(table.remove(hasher.hash_one(number), |entry| entry.number == number).is_some());
        }
        for number in 0..10_000 {
            let found = table.get(hasher.hash_one(number), |entry| entry.number == number);
            assert_eq!(found.is_some(), number % 3 != 0, "{number}");
        }
        assert_eq!(table.len(), 10_000 - 3334);
    }

    #[test]
    fn no_step_moves_much() {
        let hasher = RandomState::new();
        for count in [1000, 10_000, 100_000] {
            let table = filled(&hasher, count);
            let largest = table.more.iter().chain([&table.first]).map(HashTable::len).max();
            let bound = 2 * GradualTable::<Number>::SHARD_LEN + 200;
            assert!(largest.is_some_and(|len| len < bound), "{largest:?} of {count} in one shard");
        }
    }

    #[test]
    fn it_is_taken_apart_in_pieces() {
        let hasher = RandomState::new();
        let mut table = filled(&hasher, 10_000);
        let mut taken = BTreeSet::new();
        while !table.is_empty() {
            let before = taken.len();
            taken.extend(table.take_some().map(|entry| entry.number));
            assert_eq!(table.len(), 10_000 - taken.len());
            assert!(taken.len() - before < 1000, "{} at once", taken.len() - before);
        }
        assert!(taken.into_iter().eq(0..10_000));
    }
}
