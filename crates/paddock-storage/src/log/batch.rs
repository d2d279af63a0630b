//! Records that have been appended and not yet synced, encoded as they will be written.

use super::groups::Ranges;
use super::record::{Record, SegmentKey, Stored};
use super::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

/// A buffer that grew larger than this is not kept for the next batch.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The bytes of one batch that go to one segment, in one write.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) number: u64,
    pub(super) capacity: u64,
    /// Offset in the segment where it starts. All before it is synced; at 0 the chunk brings the segment's header.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) ranges: Ranges,
    key: SegmentKey,
}

impl Chunk {
    pub(super) fn new(number: u64, capacity: u64, offset: u64, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { number, capacity, offset, bytes, ranges: Ranges::default(), key: SegmentKey::new(number) }
    }

    /// The first chunk of a new segment, with its header.
    pub(super) fn start_segment(header: SegmentHeader, bytes: Vec<u8>) -> Self {
        let mut chunk = Self::new(header.number, header.capacity, 0, bytes);
        header.encode(&mut chunk.bytes);
        chunk
    }

    pub(super) fn starts_segment(&self) -> bool {
        self.offset == 0
    }

    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.end() + bytes <= self.capacity
    }

    pub(super) fn push(&mut self, record: &Record<'_>, stored: &Stored<'_>) {
        self.ranges.note(record);
        self.push_stored(stored);
    }

    pub(super) fn push_mark(&mut self) {
        self.push_stored(&Stored::MARK);
    }

    fn push_stored(&mut self, stored: &Stored<'_>) {
        assert!(self.has_room(stored.bytes()), "the caller has made room");
        let durable = u32::try_from(self.offset).expect("a segment has less than 4 GiB");
        stored.encode(self.key, durable, &mut self.bytes);
    }

    /// The buffer, for another chunk.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        if self.bytes.capacity() <= KEPT_BYTES_MAX { self.bytes } else { Vec::new() }
    }
}

/// The bytes a new segment needs at least: header, the hard states it carries along, and a first record.
pub(super) fn segment_bytes_needed(carried: u64, first_record: u64) -> u64 {
    SEGMENT_HEADER_BYTES as u64 + carried + first_record
}
