//! Reading a log directory: every surviving record in order, and what has to be repaired. Nothing is written here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::groups::{Groups, Ranges};
use super::pack::Unpacker;
use super::record::{
    ALIGNMENT, EntryPosition, HEADER_BYTES, Record, RecordHeader, SHORT_HEADER_BYTES, SegmentKey,
};
use super::segment::{
    HeaderError, SEGMENT_HEADER_BYTES, Segment, SegmentHeader, segment_number, segment_path, spare_number,
};
use super::tail::{Suspect, Tail, judge};
use super::window::Window;
use super::{Damage, LogError, Progress, Replay};
use crate::GroupNumber;
use crate::disk::{Access, Disk, DiskFile};

/// Content of a log directory.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) segments: Vec<Segment>,
    pub(super) groups: Groups,
    pub(super) hard_states: BTreeMap<GroupNumber, Vec<u8>>,
    /// End of the last of the segments.
    pub(super) last: Option<LastSegment>,
    /// The file of a segment that was being created when the process ended.
    pub(super) unborn: Option<PathBuf>,
    pub(super) spares: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct LastSegment {
    pub(super) file: Box<dyn DiskFile>,
    pub(super) file_bytes: u64,
    pub(super) version: u32,
    pub(super) tail: Tail,
    /// Offset of its last batch: what follows may never have been synced.
    pub(super) batch_start: u64,
}

/// One segment, read to its first invalid record.
struct Read {
    version: u32,
    segment: Segment,
    window: Window,
    batch_start: u64,
}

pub(super) fn scan(
    disk: &dyn Disk,
    dir: &Path,
    access: Access,
    replay: &mut dyn Replay,
) -> Result<Scan, LogError> {
    let names = disk.list(dir).map_err(LogError::io("list", dir))?;
    let numbers: Vec<u64> = names.iter().filter_map(|name| segment_number(name)).collect();
    check_contiguous(dir, &numbers)?;
    let mut scan =
        Scan { spares: names.iter().filter_map(|name| spare_number(name)).collect(), ..Scan::default() };
    let mut previous: Option<Read> = None;
    for (done, number) in numbers.iter().enumerate() {
        replay.progress(Progress { segments_done: done, segments: numbers.len() });
        let path = segment_path(dir, *number);
        let file = disk.open(&path, access).map_err(LogError::io("open", &path))?;
        let mut window = Window::new(file, path)?;
        let is_last = done + 1 == numbers.len();
        let Some(header) = read_header(&mut window, *number, is_last)? else {
            scan.unborn = Some(window.path().to_owned());
            break;
        };
        if let Some(previous) = previous.take() {
            check_end(&previous, header.previous_end)?;
            scan.segments.push(previous.segment);
        }
        previous = Some(scan.read_segment(window, header, replay)?);
    }
    replay.progress(Progress { segments_done: numbers.len(), segments: numbers.len() });
    if let Some(last) = previous {
        scan.finish(last)?;
    }
    Ok(scan)
}

impl Scan {
    fn read_segment(
        &mut self,
        mut window: Window,
        header: SegmentHeader,
        replay: &mut dyn Replay,
    ) -> Result<Read, LogError> {
        let mut ranges = Ranges::default();
        let (end, batch_start) = read_records(&mut window, &header, &mut |record| {
            if let Some(group) = self.groups.goes_back(&record) {
                self.segments.iter_mut().for_each(|segment| segment.ranges.forget(group));
                ranges.forget(group);
            }
            self.note(&record)?;
            ranges.note(&record);
            replay.record(record);
            Ok(())
        })?;
        let path = window.path().to_owned();
        let segment = Segment { number: header.number, path, capacity: header.capacity, end, ranges };
        Ok(Read { version: header.version, segment, window, batch_start })
    }

    fn note(&mut self, record: &Record<'_>) -> Result<(), Damage> {
        if let Record::HardState { group, payload } = *record {
            self.hard_states.insert(group, payload.to_vec());
        }
        self.groups.note(record).map_err(|_gap| Damage::IndexGap)
    }

    fn finish(&mut self, mut last: Read) -> Result<(), LogError> {
        let Segment { number, end, capacity, .. } = last.segment;
        let key = SegmentKey::new(number);
        let tail = if end + (SHORT_HEADER_BYTES + ALIGNMENT) as u64 <= capacity {
            let suspect = Suspect::record(&mut last.window, key, end, capacity)?;
            judge(&mut last.window, key, &suspect)?
        } else {
            Tail::Clean
        };
        let file_bytes = last.window.len();
        let (version, batch_start) = (last.version, last.batch_start);
        let (file, _path) = last.window.into_file();
        self.last = Some(LastSegment { file, file_bytes, version, tail, batch_start });
        self.segments.push(last.segment);
        Ok(())
    }
}

fn check_contiguous(dir: &Path, numbers: &[u64]) -> Result<(), LogError> {
    for pair in numbers.windows(2) {
        // The numbers are sorted, as the names are.
        let expected = pair[0] + 1;
        if pair[1] != expected {
            return Err(LogError::MissingSegment { path: segment_path(dir, expected) });
        }
    }
    Ok(())
}

/// The header, or `None` if the file is a segment that never came to life.
fn read_header(window: &mut Window, number: u64, is_last: bool) -> Result<Option<SegmentHeader>, LogError> {
    match SegmentHeader::decode(window.bytes(0, SEGMENT_HEADER_BYTES)?) {
        Ok(header) if header.number == number => Ok(Some(header)),
        Ok(_) => Err(LogError::damaged(window.path(), 0, Damage::WrongNumber)),
        Err(HeaderError::UnknownVersion(version)) => {
            Err(LogError::UnknownVersion { path: window.path().to_owned(), version })
        }
        Err(HeaderError::Invalid) if is_last => {
            judge(window, SegmentKey::new(number), &Suspect::segment_header())?;
            Ok(None)
        }
        Err(HeaderError::Invalid) => Err(LogError::damaged(window.path(), 0, Damage::Header)),
    }
}

/// Tells the records of a segment, up to the first one that is not valid. Returns the offset at which they end, and that of the last batch.
pub(super) fn read_records(
    window: &mut Window,
    segment: &SegmentHeader,
    tell: &mut dyn FnMut(Record<'_>) -> Result<(), Damage>,
) -> Result<(u64, u64), LogError> {
    let key = SegmentKey::new(segment.number);
    let path = window.path().to_owned();
    let (mut end, mut batch_start) = (SEGMENT_HEADER_BYTES as u64, 0);
    let mut unpacker = Unpacker::default();
    let mut last_entry = None;
    while let Some((header, payload)) = read_record(window, key, end, segment.capacity)? {
        let payload = match header.packed(payload) {
            Some(packed) => unpacker.unpack(packed),
            None => Some(payload),
        };
        let payload = payload.ok_or_else(|| LogError::damaged(&path, end, Damage::Packing))?;
        let place = header.place_behind(last_entry);
        let place = place.ok_or_else(|| LogError::damaged(&path, end, Damage::IndexGap))?;
        if let Some(record) = header.record(place, payload) {
            last_entry = EntryPosition::of(&record).or(last_entry);
            tell(record).map_err(|what| LogError::damaged(&path, end, what))?;
        }
        batch_start = u64::from(header.durable);
        end += u64::from(header.length);
    }
    Ok((end, batch_start))
}

/// A segment is started only when the one before it is synced, and its header says where that one ended.
fn check_end(previous: &Read, synced_end: u64) -> Result<(), LogError> {
    let Segment { path, end, .. } = &previous.segment;
    if *end != synced_end {
        return Err(LogError::damaged(path, (*end).min(synced_end), Damage::End));
    }
    Ok(())
}

/// The header and the payload at an offset, or `None` if there is no valid record.
fn read_record(
    window: &mut Window,
    key: SegmentKey,
    offset: u64,
    capacity: u64,
) -> Result<Option<(RecordHeader, &[u8])>, LogError> {
    let Some(header) = RecordHeader::decode(window.bytes(offset, HEADER_BYTES)?, key) else {
        return Ok(None);
    };
    // A length is never a reason to allocate what is not there.
    let fits = offset + u64::from(header.length) <= capacity.min(window.len());
    if !fits || u64::from(header.durable) > offset {
        return Ok(None);
    }
    let bytes = window.bytes(offset, header.length as usize)?;
    let Some(payload) = header.check_body(bytes) else { return Ok(None) };
    Ok(Some((header, &bytes[payload])))
}
