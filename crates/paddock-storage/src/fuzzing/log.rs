//! Opening a log whatever is in its directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Choices;
use crate::log::LogOptions;
use crate::{Disk, GroupNumber, Index, Log, LogError, MemDisk, Record, Term};

const DIR: &str = "/log";
const SEGMENT_BYTES: u64 = 2048;
const GROUP: GroupNumber = GroupNumber(0);

/// Record that was seen: its kind, its place, and its payload.
type SeenRecord = (u8, GroupNumber, Term, Index, Vec<u8>);

/// Opens a log made of the given bytes: either a good log with one damage, or segments with any contents.
pub fn log_recovery(data: &[u8]) {
    let mut choices = Choices(data);
    match choices.byte() % 2 {
        0 => damaged_log(choices),
        _ => arbitrary_segments(choices),
    }
}

/// Whatever is damaged, no record is invented or changed; and a flip costs the last batch at most.
fn damaged_log(mut choices: Choices<'_>) {
    let (damage, segment, offset) = (choices.byte(), choices.byte(), choices.number());
    let disk = MemDisk::new(1);
    let (written, before_last_batch) = write(&disk, choices);
    let is_flip = damage.is_multiple_of(2);
    let path = path(u64::from(segment % 4) + 1);
    if is_flip {
        disk.flip(&path, offset % SEGMENT_BYTES, damage / 2 % 8);
    } else {
        lose(&disk, &path, offset % SEGMENT_BYTES, damage / 2 % 2 == 0)
    }
    let Ok((_, found)) = open(&disk) else { return };
    assert!(written.starts_with(&found), "something was changed or invented");
    assert!(
        !is_flip || found.len() >= before_last_batch,
        "{} of {} records found",
        found.len(),
        written.len()
    );
}

/// Writes a log as the bytes say. Answers with its entries, and how many there were before the last batch.
fn write(disk: &MemDisk, mut choices: Choices<'_>) -> (Vec<SeenRecord>, usize) {
    let (mut log, _) = open(disk).expect("an empty directory is a log");
    let (mut written, mut batch_start, mut before_last_batch) = (Vec::new(), 0, 0);
    while choices.are_left() && written.len() < 100 {
        let (choice, size) = (choices.byte(), usize::from(choices.byte()));
        let payload = if choice < 128 { vec![0; size * 8] } else { choices.bytes(size).to_vec() };
        let index = Index(written.len() as u64 + 1);
        log.append(Record::Entry { group: GROUP, term: Term(1), index, payload: &payload });
        written.push((0, GROUP, Term(1), index, payload));
        if choice % 4 != 0 || !choices.are_left() {
            log.sync().expect("the disk is good");
            (before_last_batch, batch_start) = (batch_start, written.len());
        }
    }
    log.sync().expect("the disk is good");
    if batch_start < written.len() {
        before_last_batch = batch_start;
    }
    (written, before_last_batch)
}

/// Zeroes a sector, or everything from an offset on.
fn lose(disk: &MemDisk, path: &Path, offset: u64, sector: bool) {
    let Some(mut bytes) = disk.contents(path) else { return };
    let from = bytes.len().min(if sector { offset / 512 * 512 } else { offset } as usize);
    let to = bytes.len().min(if sector { from + 512 } else { bytes.len() });
    bytes[from..to].fill(0);
    disk.put(path, &bytes);
}

/// Opens segments of any bytes. A log that opens once opens again with the same records, after a crash, too, and takes new ones.
fn arbitrary_segments(mut choices: Choices<'_>) {
    let disk = MemDisk::new(1);
    let (seal, first_bytes) = (choices.byte(), choices.number() as usize);
    let first = choices.bytes(first_bytes % 4096);
    for (number, bytes) in [(1, first), (2, choices.0)] {
        if number == 1 || !bytes.is_empty() {
            disk.put(&path(number), &sealed(number, bytes.to_vec(), seal));
        }
    }
    let Ok((mut log, found)) = open(&disk) else { return };
    disk.crash();
    let (_, again) = open(&disk).expect("it opened before");
    assert!(newest_of_each(&again) == newest_of_each(&found), "opening changed what is there");

    let index = log.last_index(GROUP).map_or(Index(1), Index::next);
    disk.kill();
    (log, _) = open(&disk).expect("it opened before");
    if index < Index(u64::MAX) {
        log.append(Record::Entry { group: GROUP, term: Term(9), index, payload: b"new" });
        log.sync().expect("the disk is good");
        let (_, after) = open(&disk).expect("it opened before");
        assert_eq!(after.last(), Some(&(0, GROUP, Term(9), index, b"new".to_vec())));
    }
}

/// The entries in order, then the hard states that count: a new segment repeats them.
fn newest_of_each(seen: &[SeenRecord]) -> Vec<&SeenRecord> {
    let mut kept: Vec<&SeenRecord> = seen.iter().filter(|record| record.0 != 1).collect();
    let mut states = std::collections::BTreeMap::new();
    states.extend(seen.iter().filter(|record| record.0 == 1).map(|record| (record.1, record)));
    kept.extend(states.into_values());
    kept
}

/// Makes checksums right, so that the fuzzer comes behind them: of the segment header, and of record headers and bodies
/// as far as their lengths lead.
fn sealed(number: u64, mut bytes: Vec<u8>, seal: u8) -> Vec<u8> {
    if seal & 1 != 0 && bytes.len() >= 48 {
        bytes[..16].copy_from_slice(b"PADKLOG\0\x01\0\0\0\0\0\0\0");
        bytes[16..24].copy_from_slice(&number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..44]);
        bytes[44..48].copy_from_slice(&crc.to_le_bytes());
    }
    let key = crc32c::crc32c_append(crc32c::crc32c(b"paddock record"), &number.to_le_bytes());
    let mut at = 48;
    while seal & 2 != 0 && at + 48 <= bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        let end = at.saturating_add(length);
        if seal & 4 != 0 && length >= 48 && end <= bytes.len() {
            let crc = crc32c::crc32c(&bytes[at + 40..end]);
            bytes[at + 28..at + 32].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(key, &bytes[at..at + 36]);
        bytes[at + 36..at + 40].copy_from_slice(&crc.to_le_bytes());
        at = end.max(at + 8);
    }
    bytes
}

fn open(disk: &MemDisk) -> Result<(Log, Vec<SeenRecord>), LogError> {
    let mut seen = Vec::new();
    let options = LogOptions { segment_bytes: SEGMENT_BYTES, spares: 1, compresses: false };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let log = Log::open(disk, Path::new(DIR), options, &mut |record: Record<'_>| seen.push(see(record)))?;
    Ok((log, seen))
}

fn see(record: Record<'_>) -> SeenRecord {
    match record {
        Record::Entry { group, term, index, payload } => (0, group, term, index, payload.to_vec()),
        Record::HardState { group, payload } => (1, group, Term(0), Index(0), payload.to_vec()),
        Record::Base { group, term, index } => (2, group, term, index, Vec::new()),
    }
}

fn path(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("log-{number:016x}"))
}
