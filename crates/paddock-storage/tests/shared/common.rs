//! Helpers of the log's tests.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(unreachable_pub, reason = "it is a module of several tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paddock_storage::{Disk, GroupNumber, Index, Log, LogError, LogOptions, MemDisk, Record, Term};

pub const DIR: &str = "/data/log";

/// A record that owns its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    Entry { group: GroupNumber, term: Term, index: Index, payload: Vec<u8> },
    HardState { group: GroupNumber, payload: Vec<u8> },
    Base { group: GroupNumber, term: Term, index: Index },
}

impl Kept {
    pub fn record(&self) -> Record<'_> {
        match self {
            Self::Entry { group, term, index, payload } => {
                Record::Entry { group: *group, term: *term, index: *index, payload }
            }
            Self::HardState { group, payload } => Record::HardState { group: *group, payload },
            Self::Base { group, term, index } => Record::Base { group: *group, term: *term, index: *index },
        }
    }
}

impl From<Record<'_>> for Kept {
    fn from(record: Record<'_>) -> Self {
        match record {
            Record::Entry { group, term, index, payload } => {
                Self::Entry { group, term, index, payload: payload.to_vec() }
            }
            Record::HardState { group, payload } => Self::HardState { group, payload: payload.to_vec() },
            Record::Base { group, term, index } => Self::Base { group, term, index },
        }
    }
}

/// An entry of group 0 and term 1 with a payload that no other index has and that has no zeros.
pub fn entry(index: u64, payload_bytes: usize) -> Kept {
    let payload = (0..payload_bytes).map(|at| ((index as usize * 31 + at * 7) % 251 + 1) as u8).collect();
    Kept::Entry { group: GroupNumber(0), term: Term(1), index: Index(index), payload }
}

pub fn options(segment_bytes: u64) -> LogOptions {
    LogOptions { segment_bytes, spares: 1, compresses: false }
}

pub fn open(disk: &MemDisk, segment_bytes: u64) -> Result<(Log, Vec<Kept>), LogError> {
    open_on(Arc::new(disk.clone()), Path::new(DIR), segment_bytes)
}

pub fn open_on(disk: Arc<dyn Disk>, dir: &Path, segment_bytes: u64) -> Result<(Log, Vec<Kept>), LogError> {
    open_with(disk, dir, options(segment_bytes))
}

/// Opens a log that packs from now on, or does not.
pub fn open_to_pack(
    disk: &MemDisk,
    segment_bytes: u64,
    compresses: bool,
) -> Result<(Log, Vec<Kept>), LogError> {
    let options = LogOptions { compresses, ..options(segment_bytes) };
    open_with(Arc::new(disk.clone()), Path::new(DIR), options)
}

fn open_with(disk: Arc<dyn Disk>, dir: &Path, options: LogOptions) -> Result<(Log, Vec<Kept>), LogError> {
    let mut kept = Vec::new();
    let log = Log::open(disk, dir, options, &mut |record: Record<'_>| kept.push(record.into()))?;
    Ok((log, kept))
}

/// Appends entries one sync each.
pub fn append_each(log: &mut Log, entries: &[Kept]) {
    for entry in entries {
        log.append(entry.record());
        log.sync().expect("sync");
    }
}

pub fn segment(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("log-{number:016x}"))
}

/// These files on a disk of its own.
pub fn copy(disk: &MemDisk) -> MemDisk {
    let copy = MemDisk::new(1);
    for name in disk.list(Path::new(DIR)).expect("list") {
        let path = Path::new(DIR).join(name);
        copy.put(&path, &disk.contents(&path).expect("it is listed"));
    }
    copy
}

/// The entries among records.
pub fn entries(records: &[Kept]) -> Vec<Kept> {
    records.iter().filter(|record| matches!(record, Kept::Entry { .. })).cloned().collect()
}
