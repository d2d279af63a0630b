//! A segment: one file of the log. Its name, its header, and what the log remembers of it.
//!
//! The header, little-endian:
//! ```text
//!  0 8 bytes magic
//!  8 u32 version
//! 12 u32 zero
//! 16 u64 number
//! 24 u64 capacity       of the file
//! 32 u64 previous end   offset up to which the segment before this one was written, all of it synced
//! 40 u32 zero
//! 44 u32 crc            CRC-32C of the bytes above
//! ```
//! Records follow it, then zeros.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::groups::Ranges;
use super::record::{u32_at, u64_at};

pub(super) const SEGMENT_HEADER_BYTES: usize = 48;
const MAGIC: &[u8; 8] = b"PADKLOG\0";
/// 1 had no records with short headers.
pub(super) const VERSION: u32 = 2;
/// Versions of a file of the log: all that are read; the last one is written.
pub const LOG_VERSIONS: RangeInclusive<u32> = 1..=VERSION;
const SEGMENT_PREFIX: &str = "log-";
const SPARE_PREFIX: &str = "spare-";

/// The largest segment: offsets inside one are kept in 32 bits.
pub(super) const SEGMENT_BYTES_MAX: u64 = u32::MAX as u64 / 4096 * 4096;

/// The size of a log's first segment, if segments may be as large. Each one behind it may be twice as large as the one before, so that a member
/// that has hardly written anything takes little room on the disk, and one that writes much soon has large segments.
const FIRST_SEGMENT_BYTES: u64 = 4 << 20;

/// The size of the segment behind one of `last` bytes, or of the first one, if segments may have `segment_bytes`.
pub(super) fn next_capacity(last: Option<u64>, segment_bytes: u64) -> u64 {
    let mut capacity = FIRST_SEGMENT_BYTES;
    while last.is_some_and(|last| capacity <= last) && capacity < segment_bytes {
        capacity *= 2;
    }
    capacity.min(segment_bytes)
}

/// A segment on disk.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) capacity: u64,
    /// End of the records. All before it is synced.
    pub(super) end: u64,
    pub(super) ranges: Ranges,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) version: u32,
    pub(super) number: u64,
    pub(super) capacity: u64,
    pub(super) previous_end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    Invalid,
    UnknownVersion(u32),
}

impl SegmentHeader {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.capacity.to_le_bytes());
        out.extend_from_slice(&self.previous_end.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let crc = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES).ok_or(HeaderError::Invalid)?;
        if &bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..44]) != u32_at(bytes, 44) {
            return Err(HeaderError::Invalid);
        }
        let version = u32_at(bytes, 8);
        if !LOG_VERSIONS.contains(&version) {
            return Err(HeaderError::UnknownVersion(version));
        }
        let header = Self {
            version,
            number: u64_at(bytes, 16),
            capacity: u64_at(bytes, 24),
            previous_end: u64_at(bytes, 32),
        };
        let sane = (SEGMENT_HEADER_BYTES as u64..=SEGMENT_BYTES_MAX).contains(&header.capacity)
            && header.capacity.is_multiple_of(8);
        if sane { Ok(header) } else { Err(HeaderError::Invalid) }
    }
}

pub(super) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{SEGMENT_PREFIX}{number:016x}"))
}

pub(super) fn spare_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{SPARE_PREFIX}{number:016x}"))
}

pub(super) fn segment_number(name: &str) -> Option<u64> {
    parse(name, SEGMENT_PREFIX)
}

pub(super) fn spare_number(name: &str) -> Option<u64> {
    parse(name, SPARE_PREFIX)
}

/// Only names that we would give ourselves count: the same number has one name.
fn parse(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (digits == format!("{number:016x}")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_every_flip_is_noticed() {
        let header = SegmentHeader { version: VERSION, number: 5, capacity: 4096, previous_end: 1024 };
        let mut good = Vec::new();
        header.encode(&mut good);
        assert_eq!(good.len(), SEGMENT_HEADER_BYTES);
        assert_eq!(SegmentHeader::decode(&good), Ok(header));
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::Invalid), "bit {bit}");
        }
        assert_eq!(SegmentHeader::decode(&good[..47]), Err(HeaderError::Invalid));
    }

    #[test]
    fn segments_grow_to_their_size_and_stay_there() {
        let mib = |mib: u64| mib << 20;
        let grown = |segment_bytes| {
            let mut last = None;
            let next = || {
                last = Some(next_capacity(last, segment_bytes));
                last.map_or(0, |bytes| bytes >> 10)
            };
            std::iter::repeat_with(next).take(7).collect::<Vec<u64>>()
        };
        assert_eq!(grown(mib(64)), [4, 8, 16, 32, 64, 64, 64].map(|mib| mib << 10));
        assert_eq!(grown(mib(10)), [4, 8, 10, 10, 10, 10, 10].map(|mib| mib << 10));
        assert_eq!(grown(mib(1)), [1 << 10; 7]);
        // A segment that was made for a large record, or by other settings.
        assert_eq!(next_capacity(Some(mib(5) + 8), mib(64)), mib(8));
        assert_eq!(next_capacity(Some(mib(200)), mib(64)), mib(64));
    }

    #[test]
    fn a_later_version_is_named() {
        for version in [0, VERSION + 1] {
            let mut bytes = Vec::new();
            SegmentHeader { version, number: 5, capacity: 4096, previous_end: 0 }.encode(&mut bytes);
            assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::UnknownVersion(version)));
        }
    }

    #[test]
    fn only_our_own_names_are_segments() {
        assert_eq!(segment_path(Path::new("/d"), 26), Path::new("/d/log-000000000000001a"));
        assert_eq!(segment_number("log-000000000000001a"), Some(26));
        for name in
            ["log-1a", "log-000000000000001A", "log-+00000000000001a", "spare-000000000000001a", "log-"]
        {
            assert_eq!(segment_number(name), None, "{name}");
        }
        assert_eq!(spare_number("spare-000000000000001a"), Some(26));
    }
}
