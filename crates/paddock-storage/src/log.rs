//! The transaction log: one stream of records for all groups, in segments that do not change their size. The first ones are small.
//!
//! The owner appends records, which only buffers them, and syncs: one positioned write that is durable when it returns, for
//! all that was appended, however much it is (one more for every segment that it fills up). Segments are allocated and
//! zeroed before they are used and recycled when their entries are released.
//!
//! # What is promised
//!
//! - What a successful [`Log::sync`] covered is streamed by every later [`Log::open`], in order and byte for byte, until
//!   it is released; nothing else is, except records that were appended last and whose sync did not return.
//! - A crash at any moment leaves a log that opens. The remains of an unfinished sync are cut: that segment is not
//!   written any more, and the next one says where it ended.
//! - A flipped bit in anything that was synced makes `open` fail and name the file and the offset. In the last batch, too:
//!   its sectors are all there, so no crash explains it.
//! - Bytes that are lost (they read as zeros, or the file ends before them) do the same as long as any header of a record
//!   is left that was written after they were synced. Otherwise they look like a write that a crash cut short, and so does a
//!   flip in the last batch if the record's bytes are zero at the end of a sector. Then that record and all after it are
//!   cut. [`Log::mark`] puts such a header behind everything; `open` does, too. So call it when there has been nothing to
//!   write for a while, and before a clean end.
//! - That the whole last segment is gone shows only to an owner who knows a later index.
//!
//! # Failure
//!
//! After a failed write or sync the log is poisoned: it is not known what the disk has, and asking it again may give a
//! wrong answer, so the process has to end. The next `open` writes the last batch again before it trusts it. A full disk is
//! different: room is taken before anything is written, so [`LogError::DiskFull`] leaves the log as it was. It is the same with
//! [`LogError::Exhausted`], for want of a descriptor: it comes before a segment is written, and never from a sync.

mod batch;
mod error;
mod form;
mod groups;
mod housekeeper;
mod live;
mod pack;
mod record;
mod recovery;
mod repair;
mod segment;
mod tail;
mod window;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::{Damage, LogError};
pub use housekeeper::Housekeeper;
pub use live::{LiveEntries, LiveLogError};
pub use record::{PAYLOAD_BYTES_MAX, Record};
pub use segment::LOG_VERSIONS;

use crate::disk::{Access, Disk, DiskFile};
use crate::{GroupNumber, Index};
use batch::Chunk;
use form::Former;
use groups::Groups;
use record::Stored;
use recovery::LastSegment;
use segment::{SEGMENT_BYTES_MAX, Segment, next_capacity};

/// Layout of a log's files.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// The size of a segment, which those of a young log have not reached yet. A record that does not fit gets a segment of its own
    /// size. A log may be opened with another value than before.
    pub segment_bytes: u64,
    /// Number of segments that the housekeeper keeps ready.
    pub spares: usize,
    /// True if entries are compressed from now on. Those that are there are read either way.
    pub compresses: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, spares: 1, compresses: false }
    }
}

/// Receiver of a log's records when it is opened. A closure over records is one.
pub trait Replay {
    /// The next record. A hard state may come more than once; the last one counts.
    fn record(&mut self, record: Record<'_>);

    /// Called before each segment and at the end.
    fn progress(&mut self, _progress: Progress) {}
}

impl<F: FnMut(Record<'_>)> Replay for F {
    fn record(&mut self, record: Record<'_>) {
        self(record);
    }
}

/// Progress of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub segments_done: usize,
    pub segments: usize,
}

/// Result of [`Log::inspect`].
#[derive(Debug)]
pub struct Inspection {
    /// The segments and where the records in them end.
    pub segments: Vec<(PathBuf, u64)>,
    /// True if opening would cut the remains of an unfinished sync.
    pub torn: bool,
    groups: Groups,
}

impl Inspection {
    /// The first entry of a group that is there.
    pub fn first_index(&self, group: GroupNumber) -> Option<Index> {
        self.groups.first(group)
    }

    /// The last entry of a group; or the base, if nothing follows it.
    pub fn last_index(&self, group: GroupNumber) -> Option<Index> {
        self.groups.last(group)
    }

    /// As [`Log::check_follows`].
    pub fn check_follows(&self, group: GroupNumber, snapshot: Option<Index>) -> Result<(), LogError> {
        check_follows(&self.groups, group, snapshot)
    }
}

/// A log that has been read, and not yet repaired: on disk it is as it was.
#[derive(Debug)]
pub struct ReadLog {
    log: Log,
    unborn: Option<PathBuf>,
    last: Option<LastSegment>,
}

impl ReadLog {
    /// The log that was read, to look at.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The second half of [`Log::open`].
    pub fn repair(self) -> Result<Log, LogError> {
        let ReadLog { mut log, unborn, last } = self;
        log.repair(unborn, last)?;
        Ok(log)
    }
}

/// The transaction log of one member.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    segment_bytes: u64,
    housekeeper: Housekeeper,
    /// On disk and synced, the oldest first. The last one is being written.
    segments: VecDeque<Segment>,
    /// The file of the last segment; `None` in a log that never had one.
    file: Option<Box<dyn DiskFile>>,
    /// Chunks that are appended and not synced, in the order in which they will be written.
    pending: VecDeque<Chunk>,
    /// The buffer of an earlier chunk.
    buffer: Vec<u8>,
    groups: Groups,
    hard_states: BTreeMap<GroupNumber, Vec<u8>>,
    former: Former,
    poisoned: bool,
}

impl Log {
    /// Opens the log in a directory, which is created if need be, and tells `replay` every record in order. Then repairs
    /// what a crash left, and makes durable what was found. The caller holds the [`DirLock`](crate::DirLock).
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: LogOptions,
        replay: &mut dyn Replay,
    ) -> Result<Self, LogError> {
        Log::read(disk, dir, options, replay)?.repair()
    }

    /// The first half of `open`, which changes nothing but creates the directory: for an owner who may refuse what it
    /// is told.
    pub fn read(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: LogOptions,
        replay: &mut dyn Replay,
    ) -> Result<ReadLog, LogError> {
        let LogOptions { segment_bytes, spares, compresses } = options;
        assert!(segment_bytes.is_multiple_of(8), "segment size {segment_bytes} is no multiple of 8");
        assert!(
            (128..=SEGMENT_BYTES_MAX).contains(&segment_bytes),
            "segment size {segment_bytes} is out of range"
        );
        disk.create_dir(dir).map_err(LogError::io("create directory", dir))?;
        let scan = recovery::scan(disk.as_ref(), dir, Access::ReadWrite, replay)?;
        let last = scan.segments.last().map(|segment| segment.capacity);
        let next = next_capacity(last, segment_bytes);
        let housekeeper = Housekeeper::new(disk.clone(), dir, next, spares, &scan.spares);
        let log = Self {
            disk,
            dir: dir.to_owned(),
            segment_bytes,
            housekeeper,
            segments: scan.segments.into(),
            file: None,
            pending: VecDeque::new(),
            buffer: Vec::new(),
            groups: scan.groups,
            hard_states: scan.hard_states,
            former: Former::new(compresses),
            poisoned: false,
        };
        Ok(ReadLog { log, unborn: scan.unborn, last: scan.last })
    }

    /// Reads a log as `open` does, and changes nothing.
    pub fn inspect(disk: &dyn Disk, dir: &Path, replay: &mut dyn Replay) -> Result<Inspection, LogError> {
        let scan = recovery::scan(disk, dir, Access::Read, replay)?;
        let torn = scan.unborn.is_some() || scan.last.is_some_and(|last| last.tail != tail::Tail::Clean);
        let segments = scan.segments.into_iter().map(|segment| (segment.path, segment.end)).collect();
        Ok(Inspection { segments, torn, groups: scan.groups })
    }

    /// Takes a record into the next batch. Writes nothing.
    ///
    /// # Panics
    /// If an entry leaves a gap in its group, or replaces a released one: the log would be wrong. If its payload is larger than
    /// [`PAYLOAD_BYTES_MAX`]: the makers of entries, and those that take them from others, refuse such.
    pub fn append(&mut self, record: Record<'_>) {
        if let Record::Entry { group, index, payload, .. } = record {
            assert!(
                payload.len() <= PAYLOAD_BYTES_MAX,
                "entry {index} of {} bytes is too large",
                payload.len()
            );
            let released = self.groups.released(group);
            assert!(released < Some(index), "entry {index} of group {group} is released up to {released:?}");
        }
        if let Some(group) = self.groups.goes_back(&record) {
            let segments = self.segments.iter_mut().map(|segment| &mut segment.ranges);
            let chunks = self.pending.iter_mut().map(|chunk| &mut chunk.ranges);
            segments.chain(chunks).for_each(|ranges| ranges.forget(group));
        }
        let noted = self.groups.note(&record);
        assert!(noted.is_ok(), "the log has a gap before {record:?}: {noted:?}");
        let mut former = std::mem::take(&mut self.former);
        self.append_formed(&mut former, &record);
        self.former = former;
        if let Record::HardState { group, payload } = record {
            self.hard_states.insert(group, payload.to_vec());
        }
    }

    /// Makes everything durable that was appended. Nothing of it may be acknowledged before this returns `Ok`.
    ///
    /// After an error that passes ([`LogError::is_passing`]) what is not written is still there: call again, later.
    pub fn sync(&mut self) -> Result<(), LogError> {
        if self.poisoned {
            return Err(LogError::Poisoned);
        }
        let mut spares = self.take_spares()?;
        while let Some(chunk) = self.pending.pop_front() {
            if chunk.starts_segment() {
                let spare = spares.pop_front().expect("a spare was taken for each new segment");
                if let Err(error) = self.adopt(&chunk, spare) {
                    self.poisoned = !error.is_passing();
                    self.pending.push_front(chunk);
                    spares.into_iter().rev().for_each(|spare| self.housekeeper.put_back(spare));
                    return Err(error);
                }
            }
            if let Err(error) = self.write(chunk) {
                self.poisoned = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Syncs, and leaves a mark behind all that is synced: no part of it can be taken for a torn write any more.
    pub fn mark(&mut self) -> Result<(), LogError> {
        self.sync()?;
        self.chunk_with_room(Stored::MARK.bytes()).push_mark();
        self.sync()
    }

    /// Says that the entries of a group up to an index are in a snapshot that is durable. Segments in which nothing else
    /// is left go to the housekeeper, the oldest first; this itself is quick. Where a group ends is never forgotten: once
    /// all its entries are released, a base takes the place of the last one, with the next sync.
    pub fn release(&mut self, group: GroupNumber, through: Index) {
        self.groups.release(group, through);
        if let Some(base) = self.groups.base(group).filter(|_| !self.ends_with(group)) {
            self.append(base);
        }
        while self.may_go_without_first() {
            let segment = self.segments.pop_front().expect("there is more than one");
            self.housekeeper.release(segment.path);
        }
    }

    /// True if the last segment, as it is or as it will be, says where a group ends.
    fn ends_with(&self, group: GroupNumber) -> bool {
        let pending = self.pending.iter().map(|chunk| &chunk.ranges);
        let written = self.segments.back().map(|segment| &segment.ranges);
        pending.chain(written).any(|ranges| ranges.hold(group))
    }

    /// True if the oldest segment says nothing that those after it do not say. The last one is being written; it has
    /// a copy of the hard states.
    fn may_go_without_first(&self) -> bool {
        let mut segments = self.segments.iter().map(|segment| &segment.ranges);
        let (Some(first), later) = (segments.next(), segments) else { return false };
        let goes_on = |group| later.clone().any(|ranges| ranges.hold(group));
        later.len() > 0 && self.groups.have_released(first) && first.groups().all(goes_on)
    }

    /// Housekeeper that prepares and recycles segments. To be run from another thread.
    pub fn housekeeper(&self) -> Housekeeper {
        self.housekeeper.clone()
    }

    /// The first entry of a group that is here and not released.
    pub fn first_index(&self, group: GroupNumber) -> Option<Index> {
        self.groups.first(group)
    }

    /// The last entry of a group, appended or replayed; or the base, if nothing follows it.
    pub fn last_index(&self, group: GroupNumber) -> Option<Index> {
        self.groups.last(group)
    }

    /// Checks that the log of a group continues from its snapshot without a gap (`None`: there is no snapshot, and
    /// the log has to begin with entry 1). To be called before starting from a snapshot, above all from an older one,
    /// and best on a [`ReadLog`], so that refusing changes nothing.
    /// A log that ends before the snapshot follows it, too: the owner appends a [`Record::Base`] to go on from there.
    pub fn check_follows(&self, group: GroupNumber, snapshot: Option<Index>) -> Result<(), LogError> {
        check_follows(&self.groups, group, snapshot)
    }

    /// The number of segments that hold records still wanted.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The bytes of records in these segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.end).sum()
    }

    /// The bytes that can be appended before a new segment has to be made. A record takes up to 48 bytes more than its
    /// payload, and each new segment begins with the hard states. The owner can refuse new work while this is little
    /// and the housekeeper finds the disk full.
    pub fn room(&self) -> u64 {
        let started = self.position().map_or(0, |position| position.capacity - position.end);
        let unstarted = self.pending.iter().filter(|chunk| chunk.starts_segment()).count();
        let ready = self.housekeeper.ready().saturating_sub(unstarted) as u64;
        started + ready * self.housekeeper.segment_bytes()
    }
}

fn check_follows(groups: &Groups, group: GroupNumber, snapshot: Option<Index>) -> Result<(), LogError> {
    let snapshot = snapshot.unwrap_or_default();
    let Some(last) = groups.last(group) else { return Ok(()) };
    // Without entries there is a base: a snapshot of that index was there once.
    let first = groups.first(group).unwrap_or(last.next());
    if first <= snapshot.next() { Ok(()) } else { Err(LogError::SnapshotGap { group, snapshot, first }) }
}
