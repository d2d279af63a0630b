//! Room for byte strings of up to a few KiB, packed closely.
//!
//! Memory is taken in chunks. A chunk is divided into slabs, and a slab that is in use into slots of one size, a multiple
//! of four bytes. A slot's number says where it lies, so getting at its bytes asks nothing but the chunk. The slots that
//! were freed in a slab are a list that lies in themselves. A slab without a slot in use may serve any size next; a chunk
//! without a slab in use goes back to the allocator, but for one, so that a single znode that comes and goes does not make
//! the chunk come and go with it.
//! Bytes that were put in are not moved: see decision 0015 for the cost of that.
//! Invariant: a slab is in `roomy` of its size if it has a slot in use and one that is not; a chunk is in `open` if it has
//! memory and a slab that is not in use.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

const GRANULE: usize = 4;
/// In granules, as are all sizes and places below.
const SLAB_BITS: u32 = 14;
const SLAB: u32 = 1 << SLAB_BITS;
const CHUNK_BITS: u32 = SLAB_BITS + CHUNK_SLABS.trailing_zeros();
const CHUNK: u32 = 1 << CHUNK_BITS;
const CHUNK_SLABS: u32 = 8;
/// The bytes of the largest slot.
pub(super) const SLOT_BYTES_MAX: usize = 4096;
const SIZES: usize = SLOT_BYTES_MAX / GRANULE;

/// Begin of a slot, in granules from the beginning of the first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(pub(super) u32);

impl SlotId {
    /// Every slot's number is below, which lets the arena have 14 GiB.
    pub(super) const END: u32 = 7 << 29;

    fn slab(self) -> u32 {
        self.0 >> SLAB_BITS
    }

    fn place_in_slab(self) -> u16 {
        (self.0 % SLAB) as u16
    }
}

#[derive(Debug)]
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    slabs: Vec<Slab>,
    /// For each size, the slabs with room. The first is filled first, so that the last become empty.
    roomy: Vec<BTreeSet<u32>>,
    /// Chunks with slabs to be had.
    open: BTreeSet<u32>,
    /// Chunks without memory.
    returned: Vec<u32>,
    /// The one chunk that is kept although no slab of it is in use.
    idle: Option<u32>,
    chunks_max: usize,
}

/// The default is one without memory.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Box<[u8]>,
    /// One bit for each slab.
    in_use: u8,
}

const _: () = assert!(CHUNK_SLABS == u8::BITS);

/// The default is one that is not in use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slab {
    /// Size of its slots, in bytes.
    size: u16,
    in_use: u16,
    /// Slots from here on were never used. The memory behind has not been touched, so the system may not have given it yet.
    fresh: u16,
    /// The slot freed last, plus one; 0 for none. A free slot begins with the same of the one freed before it.
    free: u16,
}

impl Slab {
    fn is_full(&self) -> bool {
        self.free == 0 && u32::from(self.fresh) + u32::from(self.size) > SLAB
    }
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena::with_chunks_max((SlotId::END >> CHUNK_BITS) as usize)
    }

    pub(super) fn with_chunks_max(chunks_max: usize) -> Arena {
        Arena {
            chunks: Vec::new(),
            slabs: Vec::new(),
            roomy: vec![BTreeSet::new(); SIZES + 1],
            open: BTreeSet::new(),
            returned: Vec::new(),
            idle: None,
            chunks_max,
        }
    }

    #[cfg(test)]
    pub(super) fn slots_in_use(&self) -> usize {
        self.slabs.iter().map(|slab| usize::from(slab.in_use)).sum()
    }

    /// A slot for `bytes` bytes, whatever they were before; `None` when all numbers for slabs are in use.
    pub(super) fn take(&mut self, bytes: usize) -> Option<SlotId> {
        let size = size_of_slot(bytes);
        let number = match self.roomy[usize::from(size)].first() {
            Some(&number) => number,
            None => self.open_slab(size)?,
        };
        let slab = &mut self.slabs[number as usize];
        let place = match slab.free.checked_sub(1) {
            Some(place) => place,
            None => {
                let place = slab.fresh;
                slab.fresh += size;
                place
            }
        };
        let slot = SlotId(number << SLAB_BITS | u32::from(place));
        if slab.free != 0 {
            let (bytes, at) = locate(&self.chunks, slot);
            slab.free = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        }
        slab.in_use += 1;
        if slab.is_full() {
            self.roomy[usize::from(size)].remove(&number);
        }
        Some(slot)
    }

    pub(super) fn free(&mut self, slot: SlotId) {
        let number = slot.slab();
        let slab = &mut self.slabs[number as usize];
        assert!(slab.in_use > 0, "a slot is freed once");
        let size = usize::from(slab.size);
        let was_full = slab.is_full();
        slab.in_use -= 1;
        if slab.in_use == 0 {
            *slab = Slab::default();
            self.roomy[size].remove(&number);
            self.close_slab(number);
            return;
        }
        let before = std::mem::replace(&mut slab.free, slot.place_in_slab() + 1);
        self.bytes_mut(slot)[..2].copy_from_slice(&before.to_le_bytes());
        if was_full {
            self.roomy[size].insert(number);
        }
    }

    /// The bytes of the slot, and whatever lies behind it.
    #[inline]
    pub(super) fn bytes_from(&self, slot: SlotId) -> &[u8] {
        let (bytes, at) = locate(&self.chunks, slot);
        &bytes[at..]
    }

    pub(super) fn bytes_mut(&mut self, slot: SlotId) -> &mut [u8] {
        let size = usize::from(self.slabs[slot.slab() as usize].size) * GRANULE;
        let at = (slot.0 % CHUNK) as usize * GRANULE;
        &mut self.chunks[(slot.0 >> CHUNK_BITS) as usize].bytes[at..at + size]
    }

    /// True if `bytes` bytes take a slot of the same size as this one.
    pub(super) fn fits(&self, slot: SlotId, bytes: usize) -> bool {
        bytes <= SLOT_BYTES_MAX && self.slabs[slot.slab() as usize].size == size_of_slot(bytes)
    }

    fn open_slab(&mut self, size: u16) -> Option<u32> {
        let chunk = match self.open.first() {
            Some(&chunk) => chunk,
            None => self.open_chunk()?,
        };
        if self.idle == Some(chunk) {
            self.idle = None;
        }
        let in_use = &mut self.chunks[chunk as usize].in_use;
        let nth = in_use.trailing_ones();
        *in_use |= 1 << nth;
        if *in_use == u8::MAX {
            self.open.remove(&chunk);
        }
        let number = chunk * CHUNK_SLABS + nth;
        self.slabs[number as usize].size = size;
        self.roomy[usize::from(size)].insert(number);
        Some(number)
    }

    fn close_slab(&mut self, number: u32) {
        let chunk = number / CHUNK_SLABS;
        let in_use = &mut self.chunks[chunk as usize].in_use;
        *in_use &= !(1 << (number % CHUNK_SLABS));
        self.open.insert(chunk);
        if *in_use > 0 {
            return;
        }
        if self.idle.is_some() {
            self.chunks[chunk as usize] = Chunk::default();
            self.open.remove(&chunk);
            self.returned.push(chunk);
        } else {
            self.idle = Some(chunk);
        }
    }

    fn open_chunk(&mut self) -> Option<u32> {
        let chunk = match self.returned.pop() {
            Some(chunk) => chunk,
            None if self.chunks.len() == self.chunks_max => return None,
            None => {
                self.chunks.push(Chunk::default());
                self.slabs.extend([Slab::default(); CHUNK_SLABS as usize]);
                (self.chunks.len() - 1) as u32
            }
        };
        // Zeroed memory of this size comes from the system untouched: it counts only when it is written to.
        self.chunks[chunk as usize].bytes = vec![0; CHUNK as usize * GRANULE].into_boxed_slice();
        self.open.insert(chunk);
        Some(chunk)
    }
}

#[inline]
fn locate(chunks: &[Chunk], slot: SlotId) -> (&[u8], usize) {
    (&chunks[(slot.0 >> CHUNK_BITS) as usize].bytes, (slot.0 % CHUNK) as usize * GRANULE)
}

fn size_of_slot(bytes: usize) -> u16 {
    assert!(bytes <= SLOT_BYTES_MAX, "a slot has at most {SLOT_BYTES_MAX} bytes");
    bytes.div_ceil(GRANULE).max(1) as u16
}
