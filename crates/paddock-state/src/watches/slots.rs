//! Entries under small numbers, which stay where they are.
//!
//! A number takes half of an address, and a set of numbers can be packed, which is what makes millions of watches small. The entries
//! lie in chunks of which none is ever moved, as a table must not stop to grow; a chunk whose entries are all gone is given back.

use std::collections::BTreeSet;
use std::mem::replace;

/// Entries of a chunk.
const CHUNK_LEN: usize = 64;

#[derive(Debug)]
pub(super) struct Slots<T> {
    /// Chunks with entries; one without has no memory.
    chunks: Vec<Option<Box<SlotChunk<T>>>>,
    /// Chunks that have room. The first one is filled first, so that the last ones may become empty.
    open: BTreeSet<u32>,
    /// Chunks without entries.
    empty: Vec<u32>,
}

#[derive(Debug)]
struct SlotChunk<T> {
    slots: [Slot<T>; CHUNK_LEN],
    used: u8,
    /// The first free slot, `CHUNK_LEN` if there is none.
    free: u8,
}

#[derive(Debug)]
enum Slot<T> {
    Used(T),
    /// The next free slot of the chunk, `CHUNK_LEN` behind the last.
    Free(u8),
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), open: BTreeSet::new(), empty: Vec::new() }
    }
}

impl<T> SlotChunk<T> {
    fn new() -> Self {
        Self { slots: std::array::from_fn(|at| Slot::Free(at as u8 + 1)), used: 0, free: 0 }
    }
}

impl<T> Slots<T> {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        (0..).map_while(|chunk| Some(self.entries(chunk)?.count())).sum()
    }

    /// Keeps an entry, and returns its number. Numbers of entries that were removed are used again.
    pub(super) fn insert(&mut self, entry: T) -> u32 {
        let number = self.open.first().copied().unwrap_or_else(|| self.open_chunk());
        let chunk = self.chunks[number as usize].get_or_insert_with(|| Box::new(SlotChunk::new()));
        let at = chunk.free;
        match replace(&mut chunk.slots[usize::from(at)], Slot::Used(entry)) {
            Slot::Free(next) => chunk.free = next,
            Slot::Used(_) => panic!("a free slot was in use"),
        }
        chunk.used += 1;
        if usize::from(chunk.used) == CHUNK_LEN {
            self.open.remove(&number);
        }
        number * CHUNK_LEN as u32 + u32::from(at)
    }

    /// The number of a chunk without entries.
    fn open_chunk(&mut self) -> u32 {
        let number = self.empty.pop().unwrap_or_else(|| {
            self.chunks.push(None);
            self.chunks.len() as u32 - 1
        });
        self.open.insert(number);
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> T {
        let (place, at) = place(number);
        let chunk = self.chunks[place].as_mut().expect(ENTRY_IS_THERE);
        let Slot::Used(entry) = replace(&mut chunk.slots[at], Slot::Free(chunk.free)) else {
            panic!("{ENTRY_IS_THERE}")
        };
        chunk.free = at as u8;
        chunk.used -= 1;
        if chunk.used == 0 {
            self.chunks[place] = None;
            self.open.remove(&(place as u32));
            self.empty.push(place as u32);
        } else {
            self.open.insert(place as u32);
        }
        entry
    }

    pub(super) fn get(&self, number: u32) -> &T {
        let (place, at) = place(number);
        match &self.chunks[place].as_ref().expect(ENTRY_IS_THERE).slots[at] {
            Slot::Used(entry) => entry,
            Slot::Free(_) => panic!("{ENTRY_IS_THERE}"),
        }
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        let (place, at) = place(number);
        match &mut self.chunks[place].as_mut().expect(ENTRY_IS_THERE).slots[at] {
            Slot::Used(entry) => entry,
            Slot::Free(_) => panic!("{ENTRY_IS_THERE}"),
        }
    }

    /// Entries of one chunk, 64 at most; `None` behind the last one.
    pub(super) fn entries(&self, chunk: usize) -> Option<impl Iterator<Item = &T>> {
        let chunk = self.chunks.get(chunk)?;
        Some(chunk.iter().flat_map(|chunk| &chunk.slots).filter_map(|slot| match slot {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }))
    }
}

const ENTRY_IS_THERE: &str = "only numbers of entries that are there are kept";

/// The number of an entry's chunk, and its place there.
fn place(number: u32) -> (usize, usize) {
    (number as usize / CHUNK_LEN, number as usize % CHUNK_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_numbers_however_many_come_and_go() {
        let mut slots = Slots::default();
        let numbers: Vec<u32> = (0..1000).map(|entry| slots.insert(entry)).collect();
        for (entry, number) in numbers.iter().enumerate().filter(|(entry, _)| entry % 3 == 0) {
            assert_eq!(slots.remove(*number), entry);
        }
        let again: Vec<u32> = (5000..5200).map(|entry| slots.insert(entry)).collect();
        assert!(again.iter().all(|number| numbers.contains(number)), "numbers are used again");
        for (entry, number) in numbers.iter().enumerate().filter(|(entry, _)| entry % 3 != 0) {
            assert_eq!(*slots.get(*number), entry);
        }
        for (entry, number) in again.iter().enumerate() {
            *slots.get_mut(*number) += 1;
            assert_eq!(*slots.get(*number), 5001 + entry);
        }
        assert_eq!(slots.len(), 1000 - 334 + 200);
    }

    #[test]
    fn pieces_without_entries_are_given_back() {
        let mut slots = Slots::default();
        let fill =
            |slots: &mut Slots<u32>| -> Vec<u32> { (0..1000).map(|entry| slots.insert(entry)).collect() };
        for (entry, number) in fill(&mut slots).into_iter().enumerate() {
            assert_eq!(slots.remove(number) as usize, entry);
        }
        assert!(slots.chunks.iter().all(Option::is_none) && slots.open.is_empty());
        let chunks = slots.chunks.len();
        fill(&mut slots);
        assert_eq!((slots.chunks.len(), slots.len()), (chunks, 1000), "their places are used again");
    }
}
