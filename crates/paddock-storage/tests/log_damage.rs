//! Every way to damage a small log, and what opening it must make of it.

#[path = "shared/common.rs"]
mod common;

use std::path::Path;

use common::{DIR, Kept, append_each, copy, entries, entry, open, open_to_pack, segment};
use paddock_storage::log::Damage;
use paddock_storage::{Disk, GroupNumber, Index, Log, LogError, MemDisk, Record, Term};

const SEGMENT_BYTES: u64 = 1024;

/// A log of several segments, one batch per entry, that ended without a mark.
fn small_log() -> (MemDisk, Vec<Kept>) {
    log_that_packs(false)
}

fn log_that_packs(compresses: bool) -> (MemDisk, Vec<Kept>) {
    let disk = MemDisk::new(1);
    let (mut log, _) = open_to_pack(&disk, SEGMENT_BYTES, compresses).expect("open");
    log.append(Record::HardState { group: GroupNumber(0), payload: b"vote" });
    let count = if compresses { 60 } else { 20 };
    let written: Vec<Kept> = (1..=count).map(|index| entry(index, 60 + index as usize * 5)).collect();
    append_each(&mut log, &written);
    assert!(log.segments() >= 3, "the log has {} segments", log.segments());
    (copy(&disk), written)
}

fn last_segment(disk: &MemDisk) -> u64 {
    let names = disk.list(Path::new(DIR)).expect("list");
    names.iter().filter(|name| name.starts_with("log-")).count() as u64
}

/// End of the records of a segment: what is behind is zero.
fn end(disk: &MemDisk, number: u64) -> usize {
    let bytes = disk.contents(&segment(number)).expect("it exists");
    bytes.iter().rposition(|byte| *byte != 0).expect("it has records") + 1
}

/// The length of an entry's record behind that of another one.
fn record_bytes(entry: &Kept) -> usize {
    let Kept::Entry { payload, .. } = entry else { panic!("not an entry") };
    16 + (payload.len() / 8 + 1) * 8
}

#[test]
fn every_flipped_byte_is_refused_or_harmless() {
    [false, true].into_iter().for_each(flip_every_byte);
}

fn flip_every_byte(compresses: bool) {
    let (disk, written) = log_that_packs(compresses);
    let last = last_segment(&disk);
    for number in 1..=last {
        let end = end(&disk, number);
        let size = disk.contents(&segment(number)).expect("it exists").len();
        for offset in 0..size {
            let damaged = copy(&disk);
            assert!(damaged.flip(&segment(number), offset as u64, (offset % 8) as u8));
            match open(&damaged, SEGMENT_BYTES) {
                Ok((_, found)) => {
                    assert!(offset >= end, "a flip at {offset} of segment {number} was not noticed");
                    assert_eq!(entries(&found), written, "a flip at {offset} of segment {number}");
                }
                Err(LogError::Damaged { path, offset: at, what }) => {
                    // A byte never written counts for nothing, unless it makes a header where the next record would be.
                    assert!(
                        offset < end + 40,
                        "a flip at {offset} of segment {number} does no damage: {at} {what}"
                    );
                    assert_eq!(path, segment(number));
                    assert!(
                        at <= offset as u64,
                        "the damage at {offset} is behind the offset reported, {at}"
                    );
                }
                Err(other) => panic!("a flip at {offset} of segment {number}: {other}"),
            }
        }
    }
}

#[test]
fn the_error_says_where_and_what_to_do() {
    let (disk, _) = small_log();
    disk.flip(&segment(2), 100, 0);
    let message = open(&disk, SEGMENT_BYTES).expect_err("damaged").to_string();
    for part in ["log-0000000000000002", "offset 96", "restore a backup", "empty data directory"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn refusing_changes_nothing() {
    let (disk, _) = small_log();
    disk.flip(&segment(2), 100, 0);
    let before: Vec<_> = (1..=3).map(|number| disk.contents(&segment(number))).collect();
    open(&disk, SEGMENT_BYTES).expect_err("damaged");
    let after: Vec<_> = (1..=3).map(|number| disk.contents(&segment(number))).collect();
    assert_eq!(before, after);
}

#[test]
fn the_last_record_may_be_cut_short_anywhere() {
    let (disk, written) = small_log();
    let last = last_segment(&disk);
    let end = end(&disk, last);
    let start = end - record_bytes(written.last().expect("there are some"));
    let bytes = disk.contents(&segment(last)).expect("it exists");
    for length in start..end {
        let cut = copy(&disk);
        cut.put(&segment(last), &bytes[..length]);
        let (mut log, found) = open(&cut, SEGMENT_BYTES).expect("a torn end is cut");
        assert_eq!(entries(&found), written[..19], "cut at {length}");
        append_each(&mut log, &written[19..]);
        let (_, found) = open(&cut, SEGMENT_BYTES).expect("it goes on");
        assert_eq!(entries(&found), written, "cut at {length}");
    }
}

#[test]
fn small_records_are_told_from_torn_ones() {
    for size in [0, 1, 7, 8, 24] {
        let written: Vec<Kept> = (1..=3).map(|index| entry(index, size)).collect();
        let disk = MemDisk::new(1);
        append_each(&mut open(&disk, SEGMENT_BYTES).expect("open").0, &written);
        let disk = copy(&disk);
        let end = end(&disk, 1);
        let start = end - record_bytes(&written[2]);
        let bytes = disk.contents(&segment(1)).expect("it exists");
        for length in start..end {
            let cut = copy(&disk);
            cut.put(&segment(1), &bytes[..length]);
            let (_, found) = open(&cut, SEGMENT_BYTES).expect("a torn end is cut");
            assert_eq!(entries(&found), written[..2], "{size} bytes, cut at {length}");
        }
        for bit in start * 8..end * 8 {
            let damaged = copy(&disk);
            damaged.flip(&segment(1), bit as u64 / 8, (bit % 8) as u8);
            let error = open(&damaged, SEGMENT_BYTES).expect_err("no crash does that");
            assert!(matches!(error, LogError::Damaged { .. }), "{size} bytes, bit {bit}: {error}");
        }
    }
}

#[test]
fn a_segment_cut_short_before_its_last_batch_is_noticed_where_it_can_be() {
    let (disk, written) = small_log();
    for number in 1..last_segment(&disk) {
        let bytes = disk.contents(&segment(number)).expect("it exists");
        for length in 0..end(&disk, number) {
            let cut = copy(&disk);
            cut.put(&segment(number), &bytes[..length]);
            let error = open(&cut, SEGMENT_BYTES).expect_err("later segments exist");
            assert!(matches!(error, LogError::Damaged { .. }), "{error}");
        }
        let cut = copy(&disk);
        cut.put(&segment(number), &bytes[..end(&disk, number)]);
        let (_, found) = open(&cut, SEGMENT_BYTES).expect("only zeros are missing");
        assert_eq!(entries(&found), written);
    }
}

/// One batch of three entries over several sectors, after one entry of its own batch.
fn log_with_large_batch(payload: u8) -> (MemDisk, usize) {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, 16384).expect("open");
    append_each(&mut log, &[entry(1, 10)]);
    let start = end(&disk, 1);
    for index in 2..=4 {
        let payload = [payload; 1500];
        log.append(Record::Entry {
            group: GroupNumber(0),
            term: Term(1),
            index: Index(index),
            payload: &payload,
        });
    }
    log.sync().expect("sync");
    (copy(&disk), start)
}

fn lose_sectors(disk: &MemDisk, from: usize, to: usize) {
    let mut bytes = disk.contents(&segment(1)).expect("it exists");
    bytes[from..to].fill(0);
    disk.put(&segment(1), &bytes);
}

#[test]
fn any_lost_sectors_of_the_last_batch_are_a_torn_write() {
    let (disk, start) = log_with_large_batch(9);
    let sectors = end(&disk, 1).div_ceil(512);
    for lost in 0..1u32 << sectors {
        let torn = copy(&disk);
        for sector in (0..sectors).filter(|sector| lost & (1 << sector) != 0) {
            lose_sectors(&torn, (sector * 512).max(start), (sector + 1) * 512);
        }
        let (_, found) = open(&torn, 16384).expect("a torn end is cut");
        let found = entries(&found);
        assert!(
            !found.is_empty() && (lost == 0) == (found.len() == 4),
            "sectors {lost:b}: {} found",
            found.len()
        );
    }
}

#[test]
fn a_lost_sector_before_the_last_batch_is_damage() {
    let (disk, start) = log_with_large_batch(9);
    let (mut log, _) = open(&disk, 16384).expect("open leaves a mark");
    log.mark().expect("another does no harm");
    lose_sectors(&disk, start.next_multiple_of(512), start.next_multiple_of(512) + 512);
    let error = open(&copy(&disk), 16384).expect_err("synced records follow");
    let expected_offset = start as u64;
    assert!(
        matches!(error, LogError::Damaged { offset, what: Damage::BeforeSyncedRecords, .. } if offset == expected_offset),
        "{error}"
    );
}

/// The limit of what can be told from a torn write, and how the mark moves it.
#[test]
fn a_flip_in_a_last_batch_of_zeros_is_noticed_behind_a_mark_only() {
    let (disk, start) = log_with_large_batch(0);
    let flip = start as u64 + 200;
    let unmarked = copy(&disk);
    unmarked.flip(&segment(1), flip, 0);
    let (_, found) = open(&unmarked, 16384).expect("it looks torn");
    assert_eq!(entries(&found).len(), 1);

    let (log, _) = open(&disk, 16384).expect("open leaves a mark");
    drop(log);
    disk.flip(&segment(1), flip, 0);
    open(&disk, 16384).expect_err("the mark was synced after it");
}

#[test]
fn a_missing_segment_is_named() {
    let (disk, _) = small_log();
    disk.remove(&segment(2)).expect("remove");
    let error = open(&disk, SEGMENT_BYTES).expect_err("there is a hole");
    assert!(matches!(&error, LogError::MissingSegment { path } if *path == segment(2)), "{error}");
}

#[test]
fn a_segment_under_another_name_is_noticed() {
    let (disk, _) = small_log();
    let stranger = disk.contents(&segment(1)).expect("it exists");
    disk.put(&segment(2), &stranger);
    let error = open(&disk, SEGMENT_BYTES).expect_err("it is another");
    assert!(matches!(error, LogError::Damaged { offset: 0, what: Damage::WrongNumber, .. }), "{error}");
}

#[test]
fn a_segment_that_was_being_created_is_no_trouble() {
    for leftover in [vec![], vec![0; 8], vec![0; SEGMENT_BYTES as usize]] {
        let (disk, written) = small_log();
        disk.put(&segment(last_segment(&disk) + 1), &leftover);
        let (mut log, found) = open(&disk, SEGMENT_BYTES).expect("it has nothing yet");
        assert_eq!(entries(&found), written);
        let more: Vec<Kept> = (21..=30).map(|index| entry(index, 100)).collect();
        append_each(&mut log, &more);
        let (_, found) = open(&disk, SEGMENT_BYTES).expect("it goes on");
        assert_eq!(entries(&found), [written, more].concat());
    }
}

#[test]
fn the_first_segment_may_be_torn_at_its_creation() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    log.append(entry(1, 600).record());
    log.sync().expect("sync");
    lose_sectors(&disk, 0, 512);
    let (mut log, found) = open(&copy(&disk), SEGMENT_BYTES).expect("nobody was promised it");
    assert!(found.is_empty());
    append_each(&mut log, &[entry(1, 600)]);
}

#[test]
fn records_of_an_earlier_life_are_not_taken_for_new_ones() {
    let (disk, written) = small_log();
    let last = last_segment(&disk);
    let mut bytes = disk.contents(&segment(last)).expect("it exists");
    let earlier = disk.contents(&segment(1)).expect("it exists");
    // As if the file had been the first segment before and had not been zeroed.
    let end = end(&disk, last);
    bytes[end..].copy_from_slice(&earlier[end..]);
    disk.put(&segment(last), &bytes);
    match open(&disk, SEGMENT_BYTES) {
        Ok((_, found)) => assert_eq!(entries(&found), written),
        Err(error) => assert!(matches!(error, LogError::Damaged { .. }), "{error}"),
    }
}

#[test]
fn inspecting_sees_the_same_and_changes_nothing() {
    let (disk, written) = small_log();
    let last = last_segment(&disk);
    let bytes = disk.contents(&segment(last)).expect("it exists");
    disk.put(&segment(last), &bytes[..end(&disk, last) - 3]);
    let before = disk.contents(&segment(last));
    let mut seen = Vec::new();
    let inspect = |record: Record<'_>| seen.push(Kept::from(record));
    let inspection = Log::inspect(&disk, Path::new(DIR), &mut { inspect }).expect("it can be opened");
    assert_eq!(entries(&seen), written[..19]);
    assert!(inspection.torn);
    assert_eq!(inspection.segments.len() as u64, last);
    assert_eq!(disk.contents(&segment(last)), before);
}
