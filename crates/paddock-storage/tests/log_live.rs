//! Reading a log that its owner goes on writing.

#[path = "shared/common.rs"]
mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use common::{DIR, Kept, append_each, entry, open, open_on};
use paddock_storage::{
    Disk, GroupNumber, Index, LiveEntries, LiveLogError, Log, LogOptions, MemDisk, OsDisk, Record, Term,
};

const SEGMENT_BYTES: u64 = 1024;
const GROUP: GroupNumber = GroupNumber(0);

/// The entry that has this index in a term.
fn in_term(term: u64, index: u64) -> Kept {
    let Kept::Entry { group, index, mut payload, .. } = entry(index, 90) else { unreachable!() };
    payload.push(term as u8);
    Kept::Entry { group, term: Term(term), index, payload }
}

fn read(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    first: u64,
    through: (u64, u64),
) -> Result<Vec<Kept>, LiveLogError> {
    let through = (Index(through.0), Term(through.1));
    let found = LiveEntries::find(disk, dir, GROUP, Index(first), through)?;
    let mut kept = Vec::new();
    found.read(&mut |index, term, payload| {
        kept.push(Kept::Entry { group: GROUP, term, index, payload: payload.to_vec() });
        true
    })?;
    Ok(kept)
}

fn check(disk: &MemDisk, first: u64, through: (u64, u64), expected: &[Kept]) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let found = read(&disk, Path::new(DIR), first, through).expect("they are there");
    assert_eq!(found, expected, "{first} to {through:?}");
}

fn refused(disk: &MemDisk, first: u64, through: (u64, u64)) -> String {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    read(&disk, Path::new(DIR), first, through).expect_err("they are not there").to_string()
}

#[test]
fn entries_are_read_while_the_log_is_open() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    let all: Vec<Kept> = (1..=40).map(|index| in_term(1, index)).collect();
    append_each(&mut log, &all);
    check(&disk, 1, (40, 1), &all);
    check(&disk, 17, (23, 1), &all[16..23]);
    check(&disk, 40, (40, 1), &all[39..]);
    // An entry that is appended, and not written.
    log.append(in_term(1, 41).record());
    check(&disk, 1, (40, 1), &all);
    assert_eq!(refused(&disk, 1, (41, 1)), "entry 41 is not on this member's disk yet");
    log.sync().expect("sync");
    check(&disk, 41, (41, 1), &[in_term(1, 41)]);
}

#[test]
fn entries_that_a_later_leader_replaced_are_not_told() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    let first: Vec<Kept> = (1..=30).map(|index| in_term(1, index)).collect();
    append_each(&mut log, &first);
    // Entry 25 was committed by others with term 2, and is on its way here.
    assert_eq!(refused(&disk, 20, (25, 2)), "entry 25 is not on this member's disk yet");
    let second: Vec<Kept> = (22..=26).map(|index| in_term(2, index)).collect();
    append_each(&mut log, &second);
    let third: Vec<Kept> = (24..=40).map(|index| in_term(3, index)).collect();
    append_each(&mut log, &third);
    let expected = [&first[..21], &second[..2], &third[..]].concat();
    check(&disk, 1, (40, 3), &expected);
    check(&disk, 23, (24, 3), &expected[22..24]);
    check(&disk, 24, (40, 3), &third);
    // Entry 26 had term 2 before it was replaced.
    assert_eq!(refused(&disk, 1, (26, 2)), "entry 26 is not on this member's disk yet");
}

#[test]
fn entries_that_were_released_are_refused() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).expect("open");
    append_each(&mut log, &(1..=40).map(|index| in_term(1, index)).collect::<Vec<_>>());
    log.release(GROUP, Index(20));
    while log.housekeeper().run().expect("housekeeping") {}
    let told = refused(&disk, 1, (40, 1));
    let oldest: u64 = told.rsplit(' ').next().and_then(|last| last.parse().ok()).expect(&told);
    assert_eq!(told, format!("the log no longer has entry 1; the oldest that it has is {oldest}"));
    assert!((2..=21).contains(&oldest), "{told}");
    let left: Vec<Kept> = (oldest..=40).map(|index| in_term(1, index)).collect();
    check(&disk, oldest, (40, 1), &left);
    log.append(Record::Base { group: GROUP, term: Term(5), index: Index(90) });
    append_each(&mut log, &[in_term(5, 91)]);
    assert_eq!(refused(&disk, 21, (91, 5)), "the log no longer has entry 21; the oldest that it has is 91");
    check(&disk, 91, (91, 5), &[in_term(5, 91)]);
}

/// A writer appends, replaces what is not committed, and releases, in small segments that get new lives; a reader reads all the while.
#[test]
fn a_reader_beside_a_writer_is_told_what_was_committed_or_that_it_is_gone() {
    for compresses in [false, true] {
        let temp = tempfile::tempdir().expect("temporary directory");
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let (committed, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let options = LogOptions { segment_bytes: 16 << 10, spares: 1, compresses };
                let mut log =
                    Log::open(disk.clone(), temp.path(), options, &mut |_: Record<'_>| {}).expect("open");
                for round in 0..120 {
                    let last = committed.load(SeqCst);
                    // What a leader that was followed by another one has left, now and then.
                    let lost = if round % 7 == 3 { 3 } else { 0 };
                    append_each(
                        &mut log,
                        &(1..=lost).map(|ahead| in_term(99, last + ahead)).collect::<Vec<_>>(),
                    );
                    append_each(&mut log, &(1..=8).map(|ahead| in_term(1, last + ahead)).collect::<Vec<_>>());
                    committed.store(last + 8, SeqCst);
                    if round % 20 == 19 {
                        log.release(GROUP, Index(last.saturating_sub(300)));
                        while log.housekeeper().run().expect("housekeeping") {}
                    }
                }
                ended.store(true, SeqCst);
            });
            let (mut whole, mut gone) = (0, 0);
            // Where the writer had the processor for itself, the last reads come behind it.
            while !ended.load(SeqCst) || whole <= 5 {
                let through = committed.load(SeqCst);
                if through == 0 {
                    thread::yield_now();
                    continue;
                }
                // Sometimes what was released a while ago, and mostly what should be there.
                let first = through.saturating_sub(if gone < whole / 4 { 900 } else { 200 }).max(1);
                match read(&disk, temp.path(), first, (through, 1)) {
                    Ok(found) => {
                        let expected: Vec<Kept> = (first..=through).map(|index| in_term(1, index)).collect();
                        assert!(found == expected, "{first} to {through}");
                        whole += 1;
                    }
                    Err(LiveLogError::Gone { .. }) => gone += 1,
                    Err(error) => panic!("{first} to {through}: {error}"),
                }
            }
        });
        drop(open_on(disk.clone(), temp.path(), 16 << 10).expect("the log is whole"));
    }
}
