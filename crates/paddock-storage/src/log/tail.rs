//! The end of the last segment: where it ends cleanly, where a crash cut a write short, and where it is damaged.
//!
//! Only what was being written when the power went may be missing, and that is the last batch: a batch is written after
//! all before it was synced, and each of its records says up to which offset that was. So at the first place that is no
//! valid record:
//! - If any record after it was written when this place was synced already, a crash cannot have caused this: damage.
//! - Otherwise the place is in the last batch. Its sectors were zero before it was written, and a crash leaves a sector
//!   new, or old, or new in front and old behind. So in a torn record some sector ends in zeros. A record in which
//!   no sector does was written completely and changed afterwards: damage. If its header is not valid, only the header
//!   is looked at; if that may be a short one or a whole one, as either.
//! - What is left can be cut. The last batch was promised to no client, unless a disk has later lost a part of it that is zero
//!   now; nothing can tell that from a crash. A mark or any other batch behind it makes it tell.

use super::record::{HEADER_BYTES, RecordHeader, SegmentKey};
use super::segment::SEGMENT_HEADER_BYTES;
use super::window::Window;
use super::{Damage, LogError};
use crate::disk::SECTOR_BYTES;

const WORD_BYTES: u64 = 8;
const STEP_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Only zeros.
    Clean,
    /// The remains of a batch that was not synced.
    Torn,
}

/// Bytes at `from`, where something other than a valid record is.
#[derive(Debug)]
pub(super) struct Suspect {
    from: u64,
    /// If it has a valid header, its end.
    valid_until: Option<u64>,
    /// Offset at which records that belong together may end.
    ends: Vec<u64>,
}

impl Suspect {
    /// Offset at which the next record should be. If its header is valid, the length in it is, too.
    pub(super) fn record(
        window: &mut Window,
        key: SegmentKey,
        from: u64,
        capacity: u64,
    ) -> Result<Self, LogError> {
        let bytes = window.bytes(from, HEADER_BYTES)?;
        let end = |length: u64| (from + length).min(capacity);
        Ok(match RecordHeader::decode(bytes, key) {
            Some(header) => {
                let end = end(header.length.into());
                Self { from, valid_until: Some(end), ends: vec![end] }
            }
            None => {
                let lengths = RecordHeader::possible_bytes(bytes).iter();
                Self { from, valid_until: None, ends: lengths.map(|length| end(*length as u64)).collect() }
            }
        })
    }

    /// The header of a segment.
    pub(super) fn segment_header() -> Self {
        Self { from: 0, valid_until: None, ends: vec![SEGMENT_HEADER_BYTES as u64] }
    }
}

/// Tells what the suspect place is, or fails with the damage.
pub(super) fn judge(window: &mut Window, key: SegmentKey, suspect: &Suspect) -> Result<Tail, LogError> {
    let rest = look_behind(window, key, suspect)?;
    if rest.synced_later {
        return Err(LogError::damaged(window.path(), suspect.from, Damage::BeforeSyncedRecords));
    }
    if rest.only_zeros {
        return Ok(Tail::Clean);
    }
    for end in &suspect.ends {
        if !may_be_torn(window, suspect.from, *end)? {
            return Err(LogError::damaged(window.path(), suspect.from, Damage::NotTorn));
        }
    }
    Ok(Tail::Torn)
}

#[derive(Debug)]
struct Rest {
    synced_later: bool,
    only_zeros: bool,
}

/// Looks for records at every place where one could be, from the suspect place to the end of the file. The inside of
/// a record with a valid header is left out: a payload may look like a record.
fn look_behind(window: &mut Window, key: SegmentKey, suspect: &Suspect) -> Result<Rest, LogError> {
    let mut rest = Rest { synced_later: false, only_zeros: true };
    let records_from = suspect.valid_until.unwrap_or(suspect.from);
    let mut offset = suspect.from;
    while offset < window.len() && !rest.synced_later {
        let step_bytes = STEP_BYTES.min((window.len() - offset).next_multiple_of(WORD_BYTES) as usize);
        let step = window.bytes(offset, step_bytes + HEADER_BYTES)?;
        for at in (0..step_bytes).step_by(WORD_BYTES as usize) {
            if step[at..at + WORD_BYTES as usize] == [0; WORD_BYTES as usize] {
                continue;
            }
            let place = offset + at as u64;
            rest.only_zeros = false;
            if place >= records_from {
                let header = RecordHeader::decode(&step[at..], key);
                rest.synced_later |= header.is_some_and(|header| u64::from(header.durable) > suspect.from);
            }
        }
        offset += STEP_BYTES as u64;
    }
    Ok(rest)
}

fn may_be_torn(window: &mut Window, from: u64, end: u64) -> Result<bool, LogError> {
    let mut sector_end = (from / SECTOR_BYTES + 1) * SECTOR_BYTES;
    loop {
        let last_word = sector_end.min(end) - WORD_BYTES;
        // A file that ends inside a word has lost the rest of it.
        let missing = last_word + WORD_BYTES > window.len();
        if missing || window.bytes(last_word, WORD_BYTES as usize)? == [0; WORD_BYTES as usize] {
            return Ok(true);
        }
        if sector_end >= end {
            return Ok(false);
        }
        sector_end += SECTOR_BYTES;
    }
}
