//! One record of the log, in memory and on disk.
//!
//! On disk, little-endian, from an offset that is a multiple of 8:
//! ```text
//!  0 u32 length      of the whole record, a multiple of 8
//!  4 u32 group
//!  8 u64 term
//! 16 u64 index
//! 24 u32 durable     offset in this segment up to which all was synced when this record was written
//! 28 u32 body crc    of payload and padding
//! 32 u8  kind, then three zeros
//! 36 u32 header crc  of the bytes above, started from a value that depends on the segment's number
//! 40     payload
//!  …     padding     1 to 8 bytes that all say how many they are
//! ```
//! Checksums are CRC-32C. The header has its own, so that a length can be trusted before the body is read. The first
//! word and the last word of a header, and the last word of a record, are never zero: that tells a flipped bit from a
//! write that did not reach the disk (see `tail.rs`).

use std::ops::Range;

use super::pack::Packed;
use crate::{Group, Index, Term};

pub(super) const HEADER_BYTES: usize = 40;
pub(super) const ALIGNMENT: usize = 8;
const RECORD_BYTES_MIN: usize = HEADER_BYTES + ALIGNMENT;

/// The largest payload of one record: 1 GiB.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// What the log keeps. Payloads are opaque bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// An entry of a group. It follows the group's last one, or replaces it and all from its index on.
    Entry { group: Group, term: Term, index: Index, payload: &'a [u8] },
    /// A small state of a group; the latest one counts. The log carries it along when it recycles segments.
    HardState { group: Group, payload: &'a [u8] },
    /// A snapshot has taken the place of everything up to this entry; what the log had of this group is void. The
    /// group's next entry has the next index.
    Base { group: Group, term: Term, index: Index },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Entry = 1,
    HardState = 2,
    Base = 3,
    /// Says nothing but that all before it was synced.
    Mark = 4,
    /// An entry whose payload is packed (see `pack.rs`), the first of its stream,
    PackedFirst = 5,
    /// and the next one.
    Packed = 6,
}

/// A record as it is written: a [`Record`] or a mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    kind: Kind,
    group: Group,
    term: Term,
    index: Index,
    payload: &'a [u8],
}

/// The checksum that the headers of one segment start from. Bytes left over from the file's earlier life as another
/// segment cannot pass for a record of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentKey(u32);

impl SegmentKey {
    pub(super) fn new(segment: u64) -> Self {
        Self(crc32c::crc32c_append(crc32c::crc32c(b"paddock record"), &segment.to_le_bytes()))
    }
}

impl<'a> Stored<'a> {
    pub(super) const MARK: Stored<'static> =
        Stored { kind: Kind::Mark, group: Group(0), term: Term(0), index: Index(0), payload: &[] };

    /// An entry, with its payload packed.
    pub(super) fn packed(group: Group, term: Term, index: Index, packed: Packed<'a>) -> Stored<'a> {
        let kind = if packed.is_first { Kind::PackedFirst } else { Kind::Packed };
        Stored { kind, group, term, index, payload: packed.bytes }
    }

    pub(super) fn bytes(&self) -> u64 {
        (HEADER_BYTES + self.payload.len() + padding(self.payload.len())) as u64
    }

    pub(super) fn encode(&self, key: SegmentKey, durable: u32, out: &mut Vec<u8>) {
        assert!(
            self.payload.len() <= PAYLOAD_BYTES_MAX,
            "payload of {} bytes is too large",
            self.payload.len()
        );
        let start = out.len();
        let padding = padding(self.payload.len());
        let length = u32::try_from(self.bytes()).expect("the payload is limited");
        out.reserve(length as usize);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.group.0.to_le_bytes());
        out.extend_from_slice(&self.term.0.to_le_bytes());
        out.extend_from_slice(&self.index.0.to_le_bytes());
        out.extend_from_slice(&durable.to_le_bytes());
        let padding_bytes = [padding as u8; ALIGNMENT];
        let body_crc = crc32c::crc32c_append(crc32c::crc32c(self.payload), &padding_bytes[..padding]);
        out.extend_from_slice(&body_crc.to_le_bytes());
        out.extend_from_slice(&[self.kind as u8, 0, 0, 0]);
        let header_crc = crc32c::crc32c_append(key.0, &out[start..]);
        out.extend_from_slice(&header_crc.to_le_bytes());
        out.extend_from_slice(self.payload);
        out.extend_from_slice(&padding_bytes[..padding]);
    }
}

impl<'a> From<Record<'a>> for Stored<'a> {
    fn from(record: Record<'a>) -> Self {
        match record {
            Record::Entry { group, term, index, payload } => {
                Self { kind: Kind::Entry, group, term, index, payload }
            }
            Record::HardState { group, payload } => {
                Self { kind: Kind::HardState, group, term: Term(0), index: Index(0), payload }
            }
            Record::Base { group, term, index } => {
                Self { kind: Kind::Base, group, term, index, payload: &[] }
            }
        }
    }
}

/// A record header that has passed its checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader {
    pub(super) length: u32,
    pub(super) durable: u32,
    kind: Kind,
    group: Group,
    term: Term,
    index: Index,
    body_crc: u32,
}

impl RecordHeader {
    /// Reads a header from the first bytes given. `None` if there is none: the rest of the header is looked at only if
    /// its checksum is right, so damage of any kind ends here.
    pub(super) fn decode(bytes: &[u8], key: SegmentKey) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let length = u32_at(bytes, 0);
        let kind = Kind::decode(bytes[32])?;
        let plausible = length as usize >= RECORD_BYTES_MIN && (length as usize).is_multiple_of(ALIGNMENT);
        if !plausible || crc32c::crc32c_append(key.0, &bytes[..36]) != u32_at(bytes, 36) {
            return None;
        }
        Some(Self {
            length,
            durable: u32_at(bytes, 24),
            kind,
            group: Group(u32_at(bytes, 4)),
            term: Term(u64_at(bytes, 8)),
            index: Index(u64_at(bytes, 16)),
            body_crc: u32_at(bytes, 28),
        })
    }

    /// Where in the whole record the payload is, if the body is what was written.
    pub(super) fn check_body(&self, record: &[u8]) -> Option<Range<usize>> {
        assert!(record.len() == self.length as usize, "the caller reads the whole record");
        if crc32c::crc32c(&record[HEADER_BYTES..]) != self.body_crc {
            return None;
        }
        let padding = usize::from(*record.last()?);
        let end = record.len().checked_sub(padding)?;
        let padded = (1..=ALIGNMENT).contains(&padding) && end >= HEADER_BYTES;
        padded.then_some(HEADER_BYTES..end)
    }

    /// The payload as it is to be unpacked, if it is packed.
    pub(super) fn packed<'a>(&self, payload: &'a [u8]) -> Option<Packed<'a>> {
        let is_packed = matches!(self.kind, Kind::PackedFirst | Kind::Packed);
        is_packed.then_some(Packed { is_first: self.kind == Kind::PackedFirst, bytes: payload })
    }

    /// The record with its payload, unpacked, or `None` for a mark.
    pub(super) fn record<'a>(&self, payload: &'a [u8]) -> Option<Record<'a>> {
        let Self { group, term, index, .. } = *self;
        match self.kind {
            Kind::Entry | Kind::PackedFirst | Kind::Packed => {
                Some(Record::Entry { group, term, index, payload })
            }
            Kind::HardState => Some(Record::HardState { group, payload }),
            Kind::Base => Some(Record::Base { group, term, index }),
            Kind::Mark => None,
        }
    }
}

impl Kind {
    fn decode(byte: u8) -> Option<Self> {
        let all = [Self::Entry, Self::HardState, Self::Base, Self::Mark, Self::PackedFirst, Self::Packed];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

fn padding(payload_bytes: usize) -> usize {
    ALIGNMENT - payload_bytes % ALIGNMENT
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(record: Record<'_>, segment: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Stored::from(record).encode(SegmentKey::new(segment), 64, &mut bytes);
        bytes
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        for size in 0..40 {
            let payload: Vec<u8> = (0..size).collect();
            let records = [
                Record::Entry { group: Group(7), term: Term(8), index: Index(9), payload: &payload },
                Record::HardState { group: Group(7), payload: &payload },
                Record::Base { group: Group(7), term: Term(8), index: Index(9) },
            ];
            for record in records {
                let bytes = encoded(record, 1);
                assert_eq!(bytes.len() as u64, Stored::from(record).bytes());
                let header = RecordHeader::decode(&bytes, SegmentKey::new(1)).expect("valid header");
                assert_eq!(header.durable, 64);
                let payload = header.check_body(&bytes).expect("valid body");
                assert_eq!(header.record(&bytes[payload]), Some(record));
            }
        }
    }

    #[test]
    fn a_record_of_another_segment_is_none_of_ours() {
        let bytes = encoded(Record::HardState { group: Group(0), payload: b"x" }, 1);
        assert!(RecordHeader::decode(&bytes, SegmentKey::new(2)).is_none());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let payload = [0; 20];
        let good =
            encoded(Record::Entry { group: Group(0), term: Term(0), index: Index(0), payload: &payload }, 1);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let header = RecordHeader::decode(&bytes, SegmentKey::new(1));
            assert!(header.is_none_or(|header| header.check_body(&bytes).is_none()), "bit {bit}");
        }
    }

    #[test]
    fn the_words_that_tell_a_tear_from_a_flip_are_never_zero() {
        let record = Record::Entry { group: Group(0), term: Term(0), index: Index(0), payload: &[0; 24] };
        for segment in 0..100 {
            let bytes = encoded(record, segment);
            for word in [0, 32, bytes.len() - 8] {
                assert_ne!(bytes[word..word + 8], [0; 8]);
            }
        }
    }
}
