//! The log at work: segments, recycling, full disks, failures.

#[path = "shared/common.rs"]
mod common;

use std::path::Path;
use std::sync::Arc;

use common::{DIR, Kept, append_each, copy, entries, entry, open, open_on, options, segment};
use paddock_storage::disk::DiskFault;
use paddock_storage::{
    Disk, GroupNumber, Housekeeper, Index, Log, LogError, MemDisk, OsDisk, Progress, Record, Replay, Term,
};

const SEGMENT_BYTES: u64 = 1024;
const LARGE_SEGMENT_BYTES: u64 = 8192;
const GROUP: GroupNumber = GroupNumber(0);

fn run_all(housekeeper: &Housekeeper) {
    while housekeeper.run().expect("housekeeping") {}
}

fn names(disk: &MemDisk) -> Vec<String> {
    disk.list(Path::new(DIR)).expect("list")
}

fn range(from: u64, to: u64, bytes: usize) -> Vec<Kept> {
    (from..=to).map(|index| entry(index, bytes)).collect()
}

fn check_write_and_read(disk: Arc<dyn Disk>, dir: &Path) {
    let (mut log, found) = open_on(disk.clone(), dir, SEGMENT_BYTES).expect("open");
    assert!(found.is_empty());
    assert_eq!((log.first_index(GROUP), log.last_index(GROUP)), (None, None));
    let written = range(1, 40, 100);
    for batch in written.chunks(7) {
        batch.iter().for_each(|entry| log.append(entry.record()));
        log.sync().expect("sync");
    }
    run_all(&log.housekeeper());
    log.release(GROUP, Index(25));
    run_all(&log.housekeeper());
    assert!(log.segments() < 7 && log.bytes() < 7 * SEGMENT_BYTES);
    drop(log);

    let (log, found) = open_on(disk, dir, SEGMENT_BYTES).expect("open again");
    let found = entries(&found);
    assert!(found.len() >= 15 && found.len() < 40, "{} are left", found.len());
    assert_eq!(found, written[40 - found.len()..]);
    assert_eq!(log.first_index(GROUP), Some(Index(41 - found.len() as u64)));
    assert_eq!(log.last_index(GROUP), Some(Index(40)));
}

#[test]
fn it_works_on_both_disks() {
    check_write_and_read(Arc::new(MemDisk::new(1)), Path::new(DIR));
    let temp = tempfile::tempdir().expect("temporary directory");
    check_write_and_read(Arc::new(OsDisk), &temp.path().join("data/log"));
}

/// Segments of many blocks, batches that end anywhere in them, and spares that have been segments before.
#[test]
fn a_log_on_the_systems_disk_has_everything_in_every_life() {
    for segment_bytes in [64 << 10, (48 << 10) + 8] {
        let temp = tempfile::tempdir().expect("temporary directory");
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let (mut written, mut released) = (Vec::new(), 0);
        for life in 1..=5 {
            let (mut log, found) = open_on(disk.clone(), temp.path(), segment_bytes).expect("open");
            let found = entries(&found);
            assert!(found.len() >= written.len() - released, "life {life}: only {} are left", found.len());
            assert_eq!(found, written[written.len() - found.len()..], "life {life}");
            for batch in 0..60 {
                for _ in 0..1 + batch % 5 {
                    let index = written.len() as u64 + 1;
                    written.push(entry(index, index as usize * 37 % 2500));
                    log.append(written.last().expect("it was pushed").record());
                }
                log.sync().expect("sync");
                if batch % 10 == 9 {
                    released = written.len() - 20;
                    log.release(GROUP, Index(released as u64));
                    run_all(&log.housekeeper());
                }
            }
        }
    }
}

#[test]
fn a_large_record_gets_a_segment_of_its_size() {
    let disk = MemDisk::new(1);
    let written = [entry(1, 10), entry(2, 5000), entry(3, 10), entry(4, 900), entry(5, 3_000_000)];
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    written.iter().for_each(|entry| log.append(entry.record()));
    log.sync().expect("one batch over many segments");
    disk.crash();
    let (mut log, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found), written);

    append_each(&mut log, &range(6, 20, 500));
    log.release(GROUP, Index(20));
    run_all(&log.housekeeper());
    assert!(
        disk.used_bytes() <= 3 * SEGMENT_BYTES,
        "large segments are not kept: {} bytes",
        disk.used_bytes()
    );
}

#[test]
fn segments_are_recycled_and_the_hard_states_live_on() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    for group in 0..3 {
        log.append(Record::HardState { group: GroupNumber(group), payload: b"old" });
        log.append(Record::HardState { group: GroupNumber(group), payload: &[group as u8] });
    }
    let mut most = 0;
    for index in 1..=300 {
        append_each(&mut log, &[entry(index, 100)]);
        log.release(GROUP, Index(index.saturating_sub(5)));
        run_all(&log.housekeeper());
        most = most.max(names(&disk).len());
    }
    assert!(most <= 5, "there were {most} files for 5 entries");
    assert!(log.segments() <= 3);
    disk.crash();

    let mut states = std::collections::BTreeMap::new();
    let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
    for record in &found {
        if let Kept::HardState { group, payload } = record {
            states.insert(*group, payload.clone());
        }
    }
    let expected = (0..3).map(|group| (GroupNumber(group), vec![group as u8])).collect();
    assert_eq!(states, expected);
    let found = entries(&found);
    assert_eq!(found.last(), Some(&entry(300, 100)));
    assert!(found.len() < 20);
}

#[test]
fn without_housekeeping_the_log_helps_itself() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    for index in 1..=100 {
        append_each(&mut log, &[entry(index, 100)]);
        log.release(GROUP, Index(index));
    }
    assert_eq!(log.segments(), 1);
    let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found).last(), Some(&entry(100, 100)));
}

#[test]
fn one_group_holds_back_what_another_released() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    let other = Record::Entry { group: GroupNumber(9), term: Term(1), index: Index(77), payload: b"wanted" };
    log.append(other);
    append_each(&mut log, &range(1, 30, 100));
    let before = log.segments();
    log.release(GROUP, Index(30));
    assert_eq!(log.segments(), before);
    log.release(GroupNumber(9), Index(77));
    // Where the group ends has to be in another segment first.
    log.sync().expect("sync");
    log.release(GROUP, Index(30));
    assert_eq!(log.segments(), 1);
    let (log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!((log.first_index(GroupNumber(9)), log.last_index(GroupNumber(9))), (None, Some(Index(77))));
}

#[test]
fn a_log_of_which_all_is_released_says_where_it_ends() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 30, 100));
    let hard_state = Record::HardState { group: GROUP, payload: &[7; SEGMENT_BYTES as usize / 2] };
    for _ in 0..4 {
        log.append(hard_state);
        log.sync().expect("sync");
        log.release(GROUP, Index(30));
    }
    log.sync().expect("sync");
    log.release(GROUP, Index(30));
    run_all(&log.housekeeper());
    assert_eq!(log.segments(), 1, "there are only hard states in it");
    disk.crash();
    let (mut log, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found), []);
    assert_eq!((log.first_index(GROUP), log.last_index(GROUP)), (None, Some(Index(30))));
    append_each(&mut log, &range(31, 33, 100));
}

#[test]
fn a_replaced_tail_is_replayed_as_it_was_written() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 10, 10));
    let replacement = Record::Entry { group: GROUP, term: Term(2), index: Index(5), payload: b"other" };
    log.append(replacement);
    log.sync().expect("sync");
    assert_eq!(log.last_index(GROUP), Some(Index(5)));
    let (log, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found).last(), Some(&Kept::from(replacement)));
    assert_eq!(log.last_index(GROUP), Some(Index(5)));
}

#[test]
fn a_base_starts_a_group_anew() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 3, 10));
    log.append(Record::Base { group: GROUP, term: Term(4), index: Index(100) });
    assert_eq!((log.first_index(GROUP), log.last_index(GROUP)), (None, Some(Index(100))));
    append_each(&mut log, &range(101, 103, 10));
    let (log, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found), [range(1, 3, 10), range(101, 103, 10)].concat());
    assert_eq!((log.first_index(GROUP), log.last_index(GROUP)), (Some(Index(101)), Some(Index(103))));
}

#[test]
fn a_base_that_goes_back_leaves_nothing_of_what_stood_before_it() {
    let base = Record::Base { group: GROUP, term: Term(0), index: Index(0) };
    let hard_state = Record::HardState { group: GROUP, payload: &[7; SEGMENT_BYTES as usize / 2] };
    for is_opened_between in [false, true] {
        let disk = MemDisk::new(1);
        let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
        append_each(&mut log, &range(1, 30, 100));
        log.release(GROUP, Index(20));
        log.append(base);
        log.sync().expect("sync");
        assert_eq!((log.first_index(GROUP), log.last_index(GROUP)), (None, Some(Index(0))));
        if is_opened_between {
            log = open(&disk, SEGMENT_BYTES).expect("open again").0;
        }
        log.release(GROUP, Index(0));
        assert!(log.segments() <= 2, "of {} segments none has anything but the last", log.segments());
        // Where the group ends goes from segment to segment.
        for _ in 0..4 {
            log.append(hard_state);
            log.sync().expect("sync");
            log.release(GROUP, Index(0));
        }
        assert!(log.segments() <= 2, "{} segments are left", log.segments());
        append_each(&mut log, &range(1, 3, 10));
        log.release(GROUP, Index(1));
        drop(log);
        disk.crash();
        let (log, found) = open(&disk, SEGMENT_BYTES).expect("open");
        assert_eq!(entries(&found)[entries(&found).len() - 3..], range(1, 3, 10));
        assert_eq!((log.first_index(GROUP), log.last_index(GROUP)), (Some(Index(1)), Some(Index(3))));
    }
}

#[test]
#[should_panic(expected = "the log has a gap")]
fn a_gap_is_our_own_mistake() {
    let (mut log, _) = open(&MemDisk::new(1), SEGMENT_BYTES).expect("open");
    append_each(&mut log, &[entry(1, 10)]);
    log.append(entry(3, 10).record());
}

#[test]
#[should_panic(expected = "is released up to")]
fn replacing_a_released_entry_is_our_own_mistake() {
    let (mut log, _) = open(&MemDisk::new(1), SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 3, 10));
    log.release(GROUP, Index(2));
    log.append(entry(2, 10).record());
}

#[test]
fn a_snapshot_must_reach_the_log() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    log.check_follows(GROUP, None).expect("both are empty");
    log.check_follows(GROUP, Some(Index(50))).expect("the log is empty");
    append_each(&mut log, &range(51, 60, 10));
    log.check_follows(GROUP, Some(Index(50))).expect("it follows");
    log.check_follows(GROUP, Some(Index(55))).expect("it overlaps");
    for snapshot in [None, Some(Index(49))] {
        let error = log.check_follows(GROUP, snapshot).expect_err("there is a gap");
        assert!(matches!(error, LogError::SnapshotGap { first: Index(51), .. }), "{error}");
    }
    log.append(Record::Base { group: GROUP, term: Term(1), index: Index(100) });
    log.check_follows(GROUP, Some(Index(99))).expect_err("the base was a snapshot");
    log.check_follows(GROUP, Some(Index(100))).expect("that one");
}

#[test]
fn a_failed_write_or_sync_poisons() {
    for fault in [DiskFault::Write, DiskFault::Sync] {
        let disk = MemDisk::new(1);
        let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
        append_each(&mut log, &[entry(1, 10)]);
        log.append(entry(2, 10).record());
        disk.fail_after(fault, 0);
        assert!(matches!(log.sync(), Err(LogError::Io { .. })), "{fault:?}");
        log.append(entry(3, 10).record());
        for _ in 0..2 {
            assert!(matches!(log.sync(), Err(LogError::Poisoned)));
            assert!(matches!(log.mark(), Err(LogError::Poisoned)));
        }
    }
}

/// After a failed sync the system shows data that is on no disk. A new process must not trust it before it is.
#[test]
fn what_a_failed_sync_left_is_written_again() {
    for seed in 0..50 {
        let disk = MemDisk::new(seed);
        let (mut log, _) = open(&disk, LARGE_SEGMENT_BYTES).expect("open");
        append_each(&mut log, &[entry(1, 100)]);
        log.append(entry(2, 2000).record());
        disk.fail_after(DiskFault::Sync, 0);
        log.sync().expect_err("told to fail");
        disk.kill();
        let (_, shown) = open(&disk, LARGE_SEGMENT_BYTES).expect("open");
        assert_eq!(entries(&shown), [entry(1, 100), entry(2, 2000)]);
        disk.crash();
        let (_, found) = open(&disk, LARGE_SEGMENT_BYTES).expect("open");
        assert_eq!(entries(&found), entries(&shown), "seed {seed}");
    }
}

/// A segment was renamed for another life, and the sync of its directory failed. If the next process did not
/// sync the directory first, a crash would bring the old name back to a file that is zero by then.
#[test]
fn a_name_that_was_not_durable_does_not_come_back() {
    for seed in 0..30 {
        let disk = MemDisk::new(seed);
        let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
        append_each(&mut log, &range(1, 30, 100));
        log.release(GROUP, Index(30));
        disk.fail_after(DiskFault::SyncDir, 0);
        log.housekeeper().run().expect_err("told to fail");
        disk.kill();
        let (log, _) = open(&disk, SEGMENT_BYTES).expect("open");
        run_all(&log.housekeeper());
        disk.crash();
        let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
        assert_eq!(entries(&found).last(), Some(&entry(30, 100)), "seed {seed}");
    }
}

/// A torn end stays on the disk for ever, but no later record is ever written over it. So it does not matter which
/// of the syncs during the repair fails, and what a crash makes of that.
#[test]
fn a_torn_end_does_not_come_back() {
    for seed in 0..300 {
        let disk = MemDisk::new(seed);
        let (mut log, _) = open(&disk, LARGE_SEGMENT_BYTES).expect("open");
        append_each(&mut log, &range(1, 2, 100));
        range(3, 5, 200).iter().for_each(|entry| log.append(entry.record()));
        disk.fail_after(DiskFault::Write, 0);
        log.sync().expect_err("told to fail");
        disk.kill();

        disk.fail_after(DiskFault::Sync, seed % 5);
        let _may_fail = open(&disk, LARGE_SEGMENT_BYTES);
        disk.clear_faults();
        disk.kill();
        let (mut log, found) = open(&disk, LARGE_SEGMENT_BYTES).expect("open");
        let found = entries(&found);
        log.append(Record::Entry { group: GROUP, term: Term(2), index: Index(3), payload: &[7; 50] });
        disk.fail_after(DiskFault::Sync, 0);
        log.sync().expect_err("told to fail");
        disk.crash();
        let (_, after) = open(&disk, LARGE_SEGMENT_BYTES).expect("a crash leaves a log that opens");
        assert!(entries(&after).starts_with(&found), "seed {seed}: {after:?}");
    }
}

/// As a log of the first version is, which had whole headers only.
#[test]
fn a_segment_of_an_earlier_version_is_read_and_not_written() {
    let disk = MemDisk::new(1);
    append_each(&mut open(&disk, SEGMENT_BYTES).expect("open").0, &range(1, 1, 100));
    let mut first = disk.contents(&segment(1)).expect("it exists");
    first[8] = 1;
    let crc = crc32c::crc32c(&first[..44]);
    first[44..48].copy_from_slice(&crc.to_le_bytes());
    disk.put(&segment(1), &first);

    let (mut log, found) = open(&disk, SEGMENT_BYTES).expect("an earlier version is known");
    assert_eq!(entries(&found), range(1, 1, 100));
    append_each(&mut log, &range(2, 3, 100));
    assert_eq!(disk.contents(&segment(1)), Some(first));
    let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found), range(1, 3, 100));
}

#[test]
fn a_full_disk_passes() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 3, 100));
    let used = disk.used_bytes();
    disk.set_capacity(Some(used + 500));
    // The batch begins in a segment with room and goes on in one that cannot be made.
    let more = range(4, 32, 100);
    more.iter().for_each(|entry| log.append(entry.record()));
    assert!(log.room() < 500);
    for _ in 0..3 {
        let error = log.sync().expect_err("there is no room");
        assert!(matches!(error, LogError::DiskFull { needed_bytes: SEGMENT_BYTES, .. }), "{error}");
        assert_eq!(disk.used_bytes(), used, "what could not be used is given back");
    }
    let (_, found) = open(&copy(&disk), SEGMENT_BYTES).expect("it can be opened meanwhile");
    assert_eq!(entries(&found), range(1, 3, 100), "nothing of the batch is written");

    disk.set_capacity(None);
    log.sync().expect("there is room again");
    disk.crash();
    let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found), range(1, 32, 100));
}

#[test]
fn released_segments_serve_when_the_disk_is_full() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 30, 100));
    disk.set_capacity(Some(disk.used_bytes()));
    log.release(GROUP, Index(30));
    append_each(&mut log, &range(31, 50, 100));
    let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(entries(&found).last(), Some(&entry(50, 100)));
}

#[test]
fn room_counts_what_needs_no_new_segment() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    assert_eq!(log.room(), 0);
    run_all(&log.housekeeper());
    assert_eq!((log.room(), log.housekeeper().ready()), (SEGMENT_BYTES, 1));
    log.append(entry(1, 100).record());
    let expected = SEGMENT_BYTES - 48 - 144;
    assert_eq!(log.room(), expected);
    log.sync().expect("sync");
    assert_eq!(log.room(), expected);
}

#[test]
fn another_segment_size_is_no_trouble() {
    let disk = MemDisk::new(1);
    let mut written = Vec::new();
    for (turn, segment_bytes) in [1024, 4096, 512, 2048].into_iter().enumerate() {
        let (mut log, found) = open(&disk, segment_bytes).expect("open");
        assert_eq!(entries(&found), written);
        let more = range(turn as u64 * 20 + 1, turn as u64 * 20 + 20, 100);
        append_each(&mut log, &more);
        run_all(&log.housekeeper());
        written.extend(more);
    }
}

#[test]
fn opening_again_and_again_costs_a_mark_each() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &[entry(1, 100)]);
    for _ in 0..50 {
        let (_, found) = open(&disk, SEGMENT_BYTES).expect("open");
        assert_eq!(entries(&found), [entry(1, 100)]);
    }
    assert_eq!(names(&disk).len() as u64, (144 + 50 * 48) / SEGMENT_BYTES + 1);
}

#[test]
fn progress_is_told() {
    struct Watcher(Vec<Progress>);
    impl Replay for Watcher {
        fn record(&mut self, _record: Record<'_>) {}
        fn progress(&mut self, progress: Progress) {
            self.0.push(progress);
        }
    }
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &range(1, 15, 100));
    let segments = log.segments();
    let mut watcher = Watcher(Vec::new());
    Log::open(Arc::new(disk), Path::new(DIR), options(SEGMENT_BYTES), &mut watcher).expect("open");
    let expected: Vec<Progress> =
        (0..=segments).map(|segments_done| Progress { segments_done, segments }).collect();
    assert_eq!(watcher.0, expected);
}

#[test]
fn a_foreign_file_in_the_directory_is_left_alone() {
    let disk = MemDisk::new(1);
    disk.put(&Path::new(DIR).join("notes.txt"), b"mine");
    disk.put(&Path::new(DIR).join("log-1"), b"mine");
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &[entry(1, 10)]);
    assert_eq!(names(&disk), ["log-0000000000000001", "log-1", "notes.txt"]);
    assert!(disk.contents(&segment(1)).is_some());
}

/// Bytes of all files of a log.
fn bytes_on_disk(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).expect("list").map(|entry| entry.expect("an entry"));
    files.map(|file| file.metadata().expect("its size").len()).sum()
}

#[test]
fn a_young_log_takes_little_room_and_a_large_one_has_large_segments() {
    const MIB: u64 = 1 << 20;
    let temp = tempfile::tempdir().expect("temporary directory");
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let (mut log, _) = open_on(disk.clone(), temp.path(), 64 * MIB).expect("open");
    let mut written = Vec::new();
    let mut append = |log: &mut Log, bytes: usize| {
        let entry = entry(written.len() as u64 + 1, bytes);
        log.append(entry.record());
        log.sync().expect("sync");
        run_all(&log.housekeeper());
        written.push(entry);
    };
    append(&mut log, 100);
    assert_eq!(bytes_on_disk(temp.path()), 12 * MIB, "the first segment and a spare for the next one");
    // Each is half a segment of the first size: the last one begins the segment of 32 MiB.
    (0..15).for_each(|_| append(&mut log, 2 << 20));
    assert_eq!((log.segments(), bytes_on_disk(temp.path())), (4, (4 + 8 + 16 + 32 + 64) * MIB));
    drop(log);

    let (mut log, found) = open_on(disk.clone(), temp.path(), 64 * MIB).expect("open again");
    assert_eq!(entries(&found), written);
    let last = log.last_index(GROUP).expect("there are entries");
    log.append(entry(last.0 + 1, 100).record());
    log.sync().expect("sync");
    run_all(&log.housekeeper());
    assert_eq!(bytes_on_disk(temp.path()), (4 + 8 + 16 + 32 + 64) * MIB, "it goes on where it was");
    // Small ones do not become segments again.
    log.release(GROUP, Index(last.0));
    run_all(&log.housekeeper());
    assert_eq!(bytes_on_disk(temp.path()), (32 + 64) * MIB);
}

/// True if the next segment of 1 MiB is ready after one sync, behind a log that has written an entry of `bytes`.
fn is_zeroed_at_once(bytes: usize, choose: fn(Housekeeper) -> Housekeeper) -> bool {
    let disk = MemDisk::new(7);
    let (mut log, _) = open(&disk, 1 << 20).expect("open");
    log.append(entry(1, bytes).record());
    log.sync().expect("sync");
    assert_eq!(log.housekeeper().ready(), 0, "the first segment was the only one");
    disk.fail_after(DiskFault::Sync, 1);
    choose(log.housekeeper()).run().is_ok()
}

#[test]
fn a_housekeeper_that_pauses_writes_small_pieces_while_the_log_has_room() {
    assert!(is_zeroed_at_once(100, |housekeeper| housekeeper));
    assert!(!is_zeroed_at_once(100, Housekeeper::with_pauses), "a sync of the log would wait for the whole");
    assert!(!is_zeroed_at_once(500 << 10, Housekeeper::with_pauses));
    assert!(is_zeroed_at_once(600 << 10, Housekeeper::with_pauses), "the log needs the segment soon");
}
