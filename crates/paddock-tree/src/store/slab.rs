//! Rows with small numbers, in chunks of a fixed size.
//!
//! A chunk never moves and is never copied to grow: a vector that doubles would need three times its memory for a
//! moment, and a long one.

const CHUNK_BITS: u32 = 12;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Rows are numbered from 0. A removed row leaves a default behind, and its number is used again, last first.
#[derive(Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
    slots: u32,
}

impl<T: Default> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { chunks: Vec::new(), free: Vec::new(), slots: 0 }
    }

    /// Count of numbers that have been given out: every row's number is below.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.slots as usize - self.free.len()
    }

    /// The number that the next `insert` gives.
    pub(super) fn next_id(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.slots)
    }

    pub(super) fn insert(&mut self, row: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = row;
            return id;
        }
        let id = self.slots;
        assert!(id < u32::MAX, "a slab holds fewer than 2^32 rows");
        if (id as usize).is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks.last_mut().expect("a chunk was pushed for the first of its rows").push(row);
        self.slots += 1;
        id
    }

    pub(super) fn remove(&mut self, id: u32) -> T {
        self.free.push(id);
        std::mem::take(&mut self[id])
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, id: u32) -> &T {
        &self.chunks[(id >> CHUNK_BITS) as usize][id as usize % CHUNK]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[(id >> CHUNK_BITS) as usize][id as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_last_first() {
        let mut slab = Slab::new();
        for n in 0..CHUNK as u32 + 2 {
            assert_eq!(slab.insert(n + 1), n);
        }
        assert_eq!(slab.remove(3), 4);
        assert_eq!(slab.remove(4097), 4098);
        assert_eq!(slab[3], 0);
        assert_eq!(slab.next_id(), 4097);
        assert_eq!(slab.insert(70), 4097);
        assert_eq!(slab.insert(71), 3);
        assert_eq!((slab[3], slab[4097]), (71, 70));
        assert_eq!(slab.slots(), CHUNK as u32 + 2);
    }
}
