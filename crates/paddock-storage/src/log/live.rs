//! Entries of a log that its owner goes on writing, read from its files by another thread, in little memory.
//!
//! Files are read as [`Log::open`](super::Log::open) reads them, up to what was written. Meanwhile the last segment grows, the oldest segments go
//! (their files get other names and other bytes), and entries that were never committed are replaced. So the caller names the last entry that it
//! wants with the term that this had when it was applied. If the log has that entry with that term, then all before it is what was committed
//! before it, and none of that is ever replaced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::groups::Groups;
use super::recovery::read_records;
use super::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_number, segment_path};
use super::window::Window;
use super::{LogError, Record};
use crate::disk::{Access, Disk};
use crate::{GroupNumber, Index, Term};

/// Reason for which entries of a log cannot be read while it is written.
#[derive(Debug, thiserror::Error)]
pub enum LiveLogError {
    /// Their segments were released, before or while they were read.
    #[error("the log no longer has entry {wanted}; the oldest that it has is {}", oldest.map_or("none".to_owned(), |oldest| oldest.to_string()))]
    Gone { wanted: Index, oldest: Option<Index> },
    /// The last entry that is wanted is not on this disk yet, though others have committed it.
    #[error("entry {wanted} is not on this member's disk yet")]
    NotYet { wanted: Index },
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Place of a record: the number of its segment, and how many records stand before it there.
type RecordPlace = (u64, u64);

/// Entries that were found in a log, to be read.
#[derive(Debug)]
pub struct LiveEntries {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    group: GroupNumber,
    first: Index,
    through: Index,
    /// Number of the segment with the first one.
    begin: u64,
    /// Places at which entries from an index on are replaced by others, in their order.
    replacements: Vec<(RecordPlace, Index)>,
}

impl LiveEntries {
    /// Finds the entries from `first` to `through`, which was applied with this term. Reads the whole log once.
    ///
    /// # Panics
    /// If `first` is behind `through`.
    pub fn find(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        group: GroupNumber,
        first: Index,
        (through, term): (Index, Term),
    ) -> Result<LiveEntries, LiveLogError> {
        assert!(first <= through, "entries {first} to {through} are wanted");
        let (mut groups, mut replacements, mut term_there) = (Groups::default(), Vec::new(), None);
        let mut begin = 0;
        walk(disk.as_ref(), dir, 0, first, &mut |place, record| {
            let replaced = match record {
                Record::Entry { group: of, index, .. } if of == group => {
                    groups.last(group).filter(|last| index <= *last).map(|_| index)
                }
                Record::Base { group: of, .. } if of == group => Some(Index(0)),
                _ => None,
            };
            if let Some(from) = replaced {
                replacements.push((place, from));
                term_there = term_there.filter(|_| from > through);
            }
            if let Record::Entry { group: of, index, term, .. } = record
                && of == group
            {
                if index == first {
                    begin = place.0;
                }
                if index == through {
                    term_there = Some(term);
                }
            }
            groups.note(&record).map_err(|_gap| super::Damage::IndexGap)
        })?;
        let oldest = groups.first(group);
        if oldest.is_none_or(|oldest| first < oldest) {
            return Err(LiveLogError::Gone { wanted: first, oldest });
        }
        if term_there != Some(term) {
            return Err(LiveLogError::NotYet { wanted: through });
        }
        Ok(LiveEntries {
            disk: disk.clone(),
            dir: dir.to_owned(),
            group,
            first,
            through,
            begin,
            replacements,
        })
    }

    /// Tells the entries in their order, until `tell` answers `false`. Fails if one of them goes before it is told.
    pub fn read(&self, tell: &mut dyn FnMut(Index, Term, &[u8]) -> bool) -> Result<(), LiveLogError> {
        let (mut next, mut is_wanted) = (self.first, true);
        walk(self.disk.as_ref(), &self.dir, self.begin, self.first, &mut |place, record| {
            if let Record::Entry { group, index, term, payload } = record
                && group == self.group
                && index == next
                && index <= self.through
                && is_wanted
                && !self.is_replaced(place, index)
            {
                is_wanted = tell(index, term, payload);
                next = next.next();
            }
            Ok(())
        })?;
        if is_wanted && next <= self.through {
            return Err(LiveLogError::Gone { wanted: next, oldest: None });
        }
        Ok(())
    }

    /// True if the log replaces this entry behind this place.
    fn is_replaced(&self, place: RecordPlace, index: Index) -> bool {
        let behind = self.replacements.partition_point(|(at, _)| *at <= place);
        self.replacements[behind..].iter().any(|(_, from)| *from <= index)
    }
}

/// Shows every record of the segments from number `begin` on. Fails if one of them goes before it is read.
fn walk(
    disk: &dyn Disk,
    dir: &Path,
    begin: u64,
    wanted: Index,
    tell: &mut dyn FnMut(RecordPlace, Record<'_>) -> Result<(), super::Damage>,
) -> Result<(), LiveLogError> {
    let mut previous: Option<(PathBuf, u64)> = None;
    for number in segments(disk, dir)?.into_iter().filter(|number| *number >= begin) {
        let read = read_segment(disk, dir, number, previous.as_ref(), tell);
        // A segment that is released while it is read shows zeros, the bytes of another one, or nothing. It was renamed before.
        let is_there = segments(disk, dir)?.contains(&number);
        match read {
            Ok(end) if is_there => previous = Some((segment_path(dir, number), end)),
            Err(error) if is_there => return Err(error.into()),
            _ => return Err(LiveLogError::Gone { wanted, oldest: None }),
        }
    }
    Ok(())
}

fn segments(disk: &dyn Disk, dir: &Path) -> Result<Vec<u64>, LogError> {
    let names = disk.list(dir).map_err(LogError::io("list", dir))?;
    Ok(names.iter().filter_map(|name| segment_number(name)).collect())
}

/// Shows the records of a segment. Returns the offset behind the last one.
fn read_segment(
    disk: &dyn Disk,
    dir: &Path,
    number: u64,
    previous: Option<&(PathBuf, u64)>,
    tell: &mut dyn FnMut(RecordPlace, Record<'_>) -> Result<(), super::Damage>,
) -> Result<u64, LogError> {
    let path = segment_path(dir, number);
    let file = disk.open(&path, Access::Read).map_err(LogError::io("open", &path))?;
    let mut window = Window::new(file, path)?;
    // The last segment has its name before it has a header.
    let Ok(header) = SegmentHeader::decode(window.bytes(0, SEGMENT_HEADER_BYTES)?) else {
        return Ok(SEGMENT_HEADER_BYTES as u64);
    };
    if header.number != number {
        return Err(LogError::damaged(window.path(), 0, super::Damage::WrongNumber));
    }
    if let Some((path, end)) = previous.filter(|(_, end)| *end != header.previous_end) {
        // The segment before had more to come when it was read, or its bytes are not what they were.
        return Err(LogError::damaged(path, *end, super::Damage::End));
    }
    let mut place = (number, 0);
    let (end, _) = read_records(&mut window, &header, &mut |record| {
        place.1 += 1;
        tell(place, record)
    })?;
    Ok(end)
}
