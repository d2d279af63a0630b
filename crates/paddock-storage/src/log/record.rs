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
//! An entry that is the next one of its group and term behind the last entry of its segment has a short header:
//! ```text
//!  0 u32 length      as above, plus 3 for an entry, 5 for a packed one: no single bit makes one header of the other
//!  4 u32 durable
//!  8 u32 body crc
//! 12 u32 header crc  as above; 1 in the place of 0
//! 16     payload and padding
//! ```
//! Checksums are CRC-32C. The header has its own, so that a length can be trusted before the body is read. The first
//! word and the last word of a header, and the last word of a record, are never zero: that tells a flipped bit from a
//! write that did not reach the disk (see `tail.rs`).

use std::ops::Range;

use super::pack::Packed;
use crate::{GroupNumber, Index, Term};

/// Bytes of a whole header.
pub(super) const HEADER_BYTES: usize = 40;
pub(super) const SHORT_HEADER_BYTES: usize = 16;
pub(super) const ALIGNMENT: usize = 8;

/// The largest payload of one record: 1 GiB.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// A packed payload: what cannot be compressed takes a little more.
const PACKED_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + PAYLOAD_BYTES_MAX / 128;

/// Record of the log. Payloads are opaque bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// An entry of a group. It follows the group's last one, or replaces it and all from its index on.
    Entry { group: GroupNumber, term: Term, index: Index, payload: &'a [u8] },
    /// A small state of a group; the latest one counts. The log carries it along when it recycles segments.
    HardState { group: GroupNumber, payload: &'a [u8] },
    /// A snapshot has taken the place of everything up to this entry; what the log had of this group is void. The
    /// group's next entry has the next index.
    Base { group: GroupNumber, term: Term, index: Index },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordKind {
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

/// Number that a short header adds to its length, for entries as they are
const SHORT_ENTRY: u32 = 3;
/// and for packed ones.
const SHORT_PACKED: u32 = 5;

/// Position of an entry in the log of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryPosition {
    pub(super) group: GroupNumber,
    pub(super) term: Term,
    pub(super) index: Index,
}

impl EntryPosition {
    const NOWHERE: EntryPosition = EntryPosition { group: GroupNumber(0), term: Term(0), index: Index(0) };

    /// Position of the entry that a record is.
    pub(super) fn of(record: &Record<'_>) -> Option<EntryPosition> {
        match *record {
            Record::Entry { group, term, index, .. } => Some(EntryPosition { group, term, index }),
            Record::HardState { .. } | Record::Base { .. } => None,
        }
    }

    pub(super) fn next(self) -> EntryPosition {
        EntryPosition { index: self.index.next(), ..self }
    }
}

/// A record as it is written: a [`Record`] or a mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    kind: RecordKind,
    /// `None` for an entry that is behind the one before it.
    place: Option<EntryPosition>,
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

    /// Checksum of a header's bytes before it.
    fn header_crc(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }
}

impl<'a> Stored<'a> {
    pub(super) const MARK: Stored<'static> =
        Stored { kind: RecordKind::Mark, place: Some(EntryPosition::NOWHERE), payload: &[] };

    /// This entry, packed.
    pub(super) fn packed(self, packed: Packed<'a>) -> Stored<'a> {
        let kind = if packed.is_first { RecordKind::PackedFirst } else { RecordKind::Packed };
        Stored { kind, payload: packed.bytes, ..self }
    }

    /// This entry, which stands behind the last one of its segment. The first of a stream says all the same where that is.
    pub(super) fn following(self) -> Stored<'a> {
        Stored { place: self.place.filter(|_| self.kind == RecordKind::PackedFirst), ..self }
    }

    pub(super) fn bytes(&self) -> u64 {
        (header_bytes(self.place) + self.payload.len() + padding(self.payload.len())) as u64
    }

    pub(super) fn encode(&self, key: SegmentKey, durable: u32, out: &mut Vec<u8>) {
        assert!(
            self.payload.len() <= PACKED_BYTES_MAX,
            "payload of {} bytes is too large",
            self.payload.len()
        );
        let padding = padding(self.payload.len());
        let padding_bytes = [padding as u8; ALIGNMENT];
        let body_crc = crc32c::crc32c_append(crc32c::crc32c(self.payload), &padding_bytes[..padding]);
        let length = u32::try_from(self.bytes()).expect("the payload is limited");
        out.reserve(length as usize);
        match self.place {
            Some(place) => self.encode_header(place, [length, durable, body_crc], key, out),
            None => self.encode_short_header([length, durable, body_crc], key, out),
        }
        out.extend_from_slice(self.payload);
        out.extend_from_slice(&padding_bytes[..padding]);
    }

    fn encode_header(
        &self,
        place: EntryPosition,
        [length, durable, body_crc]: [u32; 3],
        key: SegmentKey,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&place.group.0.to_le_bytes());
        out.extend_from_slice(&place.term.0.to_le_bytes());
        out.extend_from_slice(&place.index.0.to_le_bytes());
        out.extend_from_slice(&durable.to_le_bytes());
        out.extend_from_slice(&body_crc.to_le_bytes());
        out.extend_from_slice(&[self.kind as u8, 0, 0, 0]);
        out.extend_from_slice(&key.header_crc(&out[start..]).to_le_bytes());
    }

    fn encode_short_header(&self, [length, durable, body_crc]: [u32; 3], key: SegmentKey, out: &mut Vec<u8>) {
        let start = out.len();
        let form = match self.kind {
            RecordKind::Entry => SHORT_ENTRY,
            RecordKind::Packed => SHORT_PACKED,
            kind => unreachable!("{kind:?} always has a whole header"),
        };
        out.extend_from_slice(&(length + form).to_le_bytes());
        out.extend_from_slice(&durable.to_le_bytes());
        out.extend_from_slice(&body_crc.to_le_bytes());
        out.extend_from_slice(&key.header_crc(&out[start..]).max(1).to_le_bytes());
    }
}

impl<'a> From<Record<'a>> for Stored<'a> {
    fn from(record: Record<'a>) -> Self {
        match record {
            Record::Entry { group, term, index, payload } => {
                Self { kind: RecordKind::Entry, place: Some(EntryPosition { group, term, index }), payload }
            }
            Record::HardState { group, payload } => Self {
                kind: RecordKind::HardState,
                place: Some(EntryPosition { group, ..EntryPosition::NOWHERE }),
                payload,
            },
            Record::Base { group, term, index } => Self {
                kind: RecordKind::Base,
                place: Some(EntryPosition { group, term, index }),
                payload: &[],
            },
        }
    }
}

/// A record header that has passed its checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader {
    pub(super) length: u32,
    pub(super) durable: u32,
    kind: RecordKind,
    /// `None` in a short one.
    place: Option<EntryPosition>,
    body_crc: u32,
}

impl RecordHeader {
    /// Reads a header from the first bytes given. `None` if there is none: the rest of the header is looked at only if
    /// its checksum is right, so damage of any kind ends here.
    pub(super) fn decode(bytes: &[u8], key: SegmentKey) -> Option<Self> {
        let header = match u32_at(bytes.get(..SHORT_HEADER_BYTES)?, 0) % ALIGNMENT as u32 {
            0 => Self::decode_whole(bytes.get(..HEADER_BYTES)?, key),
            SHORT_ENTRY => Self::decode_short(&bytes[..SHORT_HEADER_BYTES], RecordKind::Entry, key),
            SHORT_PACKED => Self::decode_short(&bytes[..SHORT_HEADER_BYTES], RecordKind::Packed, key),
            _ => None,
        };
        header.filter(|header| header.length as usize >= header_bytes(header.place) + ALIGNMENT)
    }

    fn decode_whole(bytes: &[u8], key: SegmentKey) -> Option<Self> {
        let kind = RecordKind::decode(bytes[32])?;
        let header = Self {
            length: u32_at(bytes, 0),
            durable: u32_at(bytes, 24),
            kind,
            place: Some(EntryPosition {
                group: GroupNumber(u32_at(bytes, 4)),
                term: Term(u64_at(bytes, 8)),
                index: Index(u64_at(bytes, 16)),
            }),
            body_crc: u32_at(bytes, 28),
        };
        (key.header_crc(&bytes[..36]) == u32_at(bytes, 36)).then_some(header)
    }

    fn decode_short(bytes: &[u8], kind: RecordKind, key: SegmentKey) -> Option<Self> {
        let length = u32_at(bytes, 0) / ALIGNMENT as u32 * ALIGNMENT as u32;
        let header =
            Self { length, durable: u32_at(bytes, 4), kind, place: None, body_crc: u32_at(bytes, 8) };
        (key.header_crc(&bytes[..12]).max(1) == u32_at(bytes, 12)).then_some(header)
    }

    /// Possible lengths of the header that begins with these bytes, if it does not pass its checksum. Where both are possible,
    /// the shorter one is first.
    pub(super) fn possible_bytes(bytes: &[u8]) -> &'static [usize] {
        match u32_at(bytes, 0) % ALIGNMENT as u32 {
            0 => &[HEADER_BYTES],
            _ => &[SHORT_HEADER_BYTES, HEADER_BYTES],
        }
    }

    /// Place of the payload in the whole record, if the body is what was written.
    pub(super) fn check_body(&self, record: &[u8]) -> Option<Range<usize>> {
        assert!(record.len() == self.length as usize, "the caller reads the whole record");
        let start = header_bytes(self.place);
        if crc32c::crc32c(&record[start..]) != self.body_crc {
            return None;
        }
        let padding = usize::from(*record.last()?);
        let end = record.len().checked_sub(padding)?;
        let padded = (1..=ALIGNMENT).contains(&padding) && end >= start;
        padded.then_some(start..end)
    }

    /// The payload as it is to be unpacked, if it is packed.
    pub(super) fn packed<'a>(&self, payload: &'a [u8]) -> Option<Packed<'a>> {
        let is_packed = matches!(self.kind, RecordKind::PackedFirst | RecordKind::Packed);
        is_packed.then_some(Packed { is_first: self.kind == RecordKind::PackedFirst, bytes: payload })
    }

    /// Place of the record behind the last entry of its segment. `None` if it needs one and there is none.
    pub(super) fn place_behind(&self, last: Option<EntryPosition>) -> Option<EntryPosition> {
        self.place.or_else(|| last.map(EntryPosition::next))
    }

    /// The record with its payload, unpacked, or `None` for a mark.
    pub(super) fn record<'a>(&self, place: EntryPosition, payload: &'a [u8]) -> Option<Record<'a>> {
        let EntryPosition { group, term, index } = place;
        match self.kind {
            RecordKind::Entry | RecordKind::PackedFirst | RecordKind::Packed => {
                Some(Record::Entry { group, term, index, payload })
            }
            RecordKind::HardState => Some(Record::HardState { group, payload }),
            RecordKind::Base => Some(Record::Base { group, term, index }),
            RecordKind::Mark => None,
        }
    }
}

impl RecordKind {
    fn decode(byte: u8) -> Option<Self> {
        let all = [Self::Entry, Self::HardState, Self::Base, Self::Mark, Self::PackedFirst, Self::Packed];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Bytes of a header that says where its entry stands, or need not.
fn header_bytes(place: Option<EntryPosition>) -> usize {
    if place.is_some() { HEADER_BYTES } else { SHORT_HEADER_BYTES }
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

    fn encoded(stored: Stored<'_>, segment: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        stored.encode(SegmentKey::new(segment), 64, &mut bytes);
        assert_eq!(bytes.len() as u64, stored.bytes());
        bytes
    }

    const PLACE: EntryPosition = EntryPosition { group: GroupNumber(7), term: Term(8), index: Index(9) };

    fn entry(payload: &[u8]) -> Record<'_> {
        let EntryPosition { group, term, index } = PLACE;
        Record::Entry { group, term, index, payload }
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        for size in 0..40 {
            let payload: Vec<u8> = (0..size).collect();
            let records = [
                entry(&payload),
                Record::HardState { group: GroupNumber(7), payload: &payload },
                Record::Base { group: GroupNumber(7), term: Term(8), index: Index(9) },
            ];
            for record in records {
                let bytes = encoded(record.into(), 1);
                let header = RecordHeader::decode(&bytes, SegmentKey::new(1)).expect("valid header");
                assert_eq!(header.durable, 64);
                let payload = header.check_body(&bytes).expect("valid body");
                let place = header.place_behind(None).expect("it says where it stands");
                assert_eq!(header.record(place, &bytes[payload]), Some(record));
            }
        }
    }

    #[test]
    fn an_entry_behind_another_takes_24_bytes_less() {
        for size in 0..40 {
            let payload: Vec<u8> = (0..size).collect();
            let stored = Stored::from(entry(&payload));
            let bytes = encoded(stored.following(), 1);
            assert_eq!(bytes.len() as u64, stored.bytes() - 24);
            let header = RecordHeader::decode(&bytes, SegmentKey::new(1)).expect("valid header");
            assert_eq!((header.durable, header.length as usize), (64, bytes.len()));
            let body = header.check_body(&bytes).expect("valid body");
            let before = EntryPosition { index: Index(8), ..PLACE };
            assert_eq!(header.place_behind(Some(before)), Some(PLACE));
            assert_eq!(header.record(PLACE, &bytes[body]), Some(entry(&payload)));
            assert_eq!(header.place_behind(None), None);
        }
    }

    #[test]
    fn a_record_of_another_segment_is_none_of_ours() {
        for stored in both(&[1, 2, 3]) {
            assert!(RecordHeader::decode(&encoded(stored, 1), SegmentKey::new(2)).is_none());
        }
    }

    /// One entry with either header.
    fn both(payload: &[u8]) -> [Stored<'_>; 2] {
        let stored = Stored::from(entry(payload));
        [stored, stored.following()]
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for stored in both(&[0; 20]) {
            let good = encoded(stored, 1);
            for bit in 0..good.len() * 8 {
                let mut bytes = good.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let header = RecordHeader::decode(&bytes, SegmentKey::new(1));
                let longer = |header: &RecordHeader| header.length as usize > bytes.len();
                let is_noticed =
                    |header: RecordHeader| longer(&header) || header.check_body(&bytes).is_none();
                assert!(header.is_none_or(is_noticed), "bit {bit}");
            }
        }
    }

    #[test]
    fn no_flipped_bit_makes_a_short_header_look_whole() {
        for packed in [SHORT_ENTRY, SHORT_PACKED] {
            for bit in 0..3 {
                let word = (48 + packed) ^ (1 << bit);
                assert_eq!(RecordHeader::possible_bytes(&word.to_le_bytes()), [16, 40]);
            }
        }
    }

    #[test]
    fn the_words_that_tell_a_tear_from_a_flip_are_never_zero() {
        for segment in 0..100 {
            for (stored, header_bytes) in both(&[0; 24]).into_iter().zip([HEADER_BYTES, SHORT_HEADER_BYTES]) {
                let bytes = encoded(stored, segment);
                for word in [0, header_bytes - 8, bytes.len() - 8] {
                    assert_ne!(bytes[word..word + 8], [0; 8]);
                }
            }
        }
    }
}
