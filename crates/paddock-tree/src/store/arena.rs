//! Room for byte strings of up to a few KiB, packed closely.
//!
//! Memory is taken in chunks. A chunk is divided into spans, and a span that is in use into slots of one size, a multiple
//! of four bytes. A slot's number says where it lies, so getting at its bytes asks nothing but the chunk. The slots that
//! were freed in a span are a list that lies in themselves. A span without a slot in use may serve any size next; a chunk
//! without a span in use goes back to the allocator, but for one, so that a single znode that comes and goes does not make
//! the chunk come and go with it.
//! Bytes that were put in are not moved: see decision 0015 for the cost of that.
//! Invariant: a span is in `roomy` of its size if it has a slot in use and one that is not; a chunk is in `open` if it has
//! memory and a span that is not in use.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

const GRANULE: usize = 4;
/// In granules, as are all sizes and places below.
const SPAN_BITS: u32 = 14;
const SPAN: u32 = 1 << SPAN_BITS;
const CHUNK_BITS: u32 = SPAN_BITS + CHUNK_SPANS.trailing_zeros();
const CHUNK: u32 = 1 << CHUNK_BITS;
const CHUNK_SPANS: u32 = 8;
/// The bytes of the largest slot.
pub(super) const SLOT_BYTES_MAX: usize = 4096;
const SIZES: usize = SLOT_BYTES_MAX / GRANULE;

/// Where a slot begins, in granules from the beginning of the first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(pub(super) u32);

impl SlotId {
    /// Every slot's number is below, which lets the arena have 14 GiB.
    pub(super) const END: u32 = 7 << 29;

    fn span(self) -> u32 {
        self.0 >> SPAN_BITS
    }

    fn place_in_span(self) -> u16 {
        (self.0 % SPAN) as u16
    }
}

#[derive(Debug)]
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    spans: Vec<Span>,
    /// For each size, the spans with room. The first is filled first, so that the last become empty.
    roomy: Vec<BTreeSet<u32>>,
    /// Chunks with spans to be had.
    open: BTreeSet<u32>,
    /// Chunks without memory.
    returned: Vec<u32>,
    /// The one chunk that is kept although no span of it is in use.
    idle: Option<u32>,
    chunks_max: usize,
}

/// The default is one without memory.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Box<[u8]>,
    /// One bit for each span.
    in_use: u8,
}

const _: () = assert!(CHUNK_SPANS == u8::BITS);

/// The default is one that is not in use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Span {
    /// Size of its slots, in bytes.
    size: u16,
    in_use: u16,
    /// Slots from here on were never used. The memory behind has not been touched, so the system may not have given it yet.
    fresh: u16,
    /// The slot freed last, plus one; 0 for none. A free slot begins with the same of the one freed before it.
    free: u16,
}

impl Span {
    fn is_full(&self) -> bool {
        self.free == 0 && u32::from(self.fresh) + u32::from(self.size) > SPAN
    }
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena::with_chunks_max((SlotId::END >> CHUNK_BITS) as usize)
    }

    pub(super) fn with_chunks_max(chunks_max: usize) -> Arena {
        Arena {
            chunks: Vec::new(),
            spans: Vec::new(),
            roomy: vec![BTreeSet::new(); SIZES + 1],
            open: BTreeSet::new(),
            returned: Vec::new(),
            idle: None,
            chunks_max,
        }
    }

    #[cfg(test)]
    pub(super) fn slots_in_use(&self) -> usize {
        self.spans.iter().map(|span| usize::from(span.in_use)).sum()
    }

    /// A slot for so many bytes, whatever they were before; `None` when all numbers for spans are in use.
    pub(super) fn take(&mut self, bytes: usize) -> Option<SlotId> {
        let size = size_of_slot(bytes);
        let number = match self.roomy[usize::from(size)].first() {
            Some(&number) => number,
            None => self.open_span(size)?,
        };
        let span = &mut self.spans[number as usize];
        let place = match span.free.checked_sub(1) {
            Some(place) => place,
            None => {
                let place = span.fresh;
                span.fresh += size;
                place
            }
        };
        let slot = SlotId(number << SPAN_BITS | u32::from(place));
        if span.free != 0 {
            let (bytes, at) = locate(&self.chunks, slot);
            span.free = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        }
        span.in_use += 1;
        if span.is_full() {
            self.roomy[usize::from(size)].remove(&number);
        }
        Some(slot)
    }

    pub(super) fn free(&mut self, slot: SlotId) {
        let number = slot.span();
        let span = &mut self.spans[number as usize];
        assert!(span.in_use > 0, "a slot is freed once");
        let size = usize::from(span.size);
        let was_full = span.is_full();
        span.in_use -= 1;
        if span.in_use == 0 {
            *span = Span::default();
            self.roomy[size].remove(&number);
            self.close_span(number);
            return;
        }
        let before = std::mem::replace(&mut span.free, slot.place_in_span() + 1);
        self.bytes_mut(slot)[..2].copy_from_slice(&before.to_le_bytes());
        if was_full {
            self.roomy[size].insert(number);
        }
    }

    /// The bytes of the slot, and whatever lies behind it.
    pub(super) fn bytes_from(&self, slot: SlotId) -> &[u8] {
        let (bytes, at) = locate(&self.chunks, slot);
        &bytes[at..]
    }

    pub(super) fn bytes_mut(&mut self, slot: SlotId) -> &mut [u8] {
        let size = usize::from(self.spans[slot.span() as usize].size) * GRANULE;
        let at = (slot.0 % CHUNK) as usize * GRANULE;
        &mut self.chunks[(slot.0 >> CHUNK_BITS) as usize].bytes[at..at + size]
    }

    /// True if so many bytes take a slot of the same size as this one.
    pub(super) fn fits(&self, slot: SlotId, bytes: usize) -> bool {
        bytes <= SLOT_BYTES_MAX && self.spans[slot.span() as usize].size == size_of_slot(bytes)
    }

    fn open_span(&mut self, size: u16) -> Option<u32> {
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
        let number = chunk * CHUNK_SPANS + nth;
        self.spans[number as usize].size = size;
        self.roomy[usize::from(size)].insert(number);
        Some(number)
    }

    fn close_span(&mut self, number: u32) {
        let chunk = number / CHUNK_SPANS;
        let in_use = &mut self.chunks[chunk as usize].in_use;
        *in_use &= !(1 << (number % CHUNK_SPANS));
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
                self.spans.extend([Span::default(); CHUNK_SPANS as usize]);
                (self.chunks.len() - 1) as u32
            }
        };
        // Zeroed memory of this size comes from the system untouched: it counts only when it is written to.
        self.chunks[chunk as usize].bytes = vec![0; CHUNK as usize * GRANULE].into_boxed_slice();
        self.open.insert(chunk);
        Some(chunk)
    }
}

fn locate(chunks: &[Chunk], slot: SlotId) -> (&[u8], usize) {
    (&chunks[(slot.0 >> CHUNK_BITS) as usize].bytes, (slot.0 % CHUNK) as usize * GRANULE)
}

fn size_of_slot(bytes: usize) -> u16 {
    assert!(bytes <= SLOT_BYTES_MAX, "a slot has at most {SLOT_BYTES_MAX} bytes");
    bytes.div_ceil(GRANULE).max(1) as u16
}
