//! Instructions that the log takes for 64 records: each in a batch of its own, and all in one.
//!
//! On a real disk, because what the system does for a write or a sync is not counted, while a disk in memory would be.
//! `cargo xtask instructions` counts; tests/README.md says what the figures depend on.

use std::sync::Arc;

use gungraun::prelude::*;
use paddock_storage::{GroupNumber, Log, LogOptions, OsDisk, Record, Term};
use tempfile::TempDir;

const RECORDS: u64 = 64;
const PAYLOAD: [u8; 100] = [7; 100];

/// A log with room for all, and with records in it, so that its buffers have grown.
struct Opened {
    log: Log,
    /// Removed when it is dropped, which is not measured.
    _dir: TempDir,
}

fn opened() -> Opened {
    let dir = tempfile::tempdir().expect("a directory for the log");
    let options = LogOptions { segment_bytes: 1 << 20, spares: 1, compresses: false };
    let log = Log::open(Arc::new(OsDisk), dir.path(), options, &mut |_: Record<'_>| {});
    let mut opened = Opened { log: log.expect("a new log opens"), _dir: dir };
    while opened.log.housekeeper().run().expect("the disk has room") {}
    append_and_sync(&mut opened.log, RECORDS);
    opened
}

fn append_and_sync(log: &mut Log, records: u64) {
    for _ in 0..records {
        let index = log.last_index(GroupNumber(0)).unwrap_or_default().next();
        log.append(Record::Entry { group: GroupNumber(0), term: Term(1), index, payload: &PAYLOAD });
    }
    log.sync().expect("the disk works");
}

#[library_benchmark]
#[bench::batches_of_1(opened(), 1)]
#[bench::batches_of_64(opened(), 64)]
fn append(mut opened: Opened, batch: u64) -> Opened {
    for _ in 0..RECORDS / batch {
        append_and_sync(&mut opened.log, batch);
    }
    opened
}

library_benchmark_group!(name = storage, benchmarks = append);

main!(library_benchmark_groups = storage);
