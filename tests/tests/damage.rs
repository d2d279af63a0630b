//! Damaged data directories: the promises of the log and of the snapshots, kept by the real
//! process on real files.
//!
//! "It starts" means that every acknowledged write is there, znode by znode and Stat by Stat, and that it goes on from
//! there. "It refuses" means exit code 1, a last line that names the place, and not one byte changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use paddock_client::CreateMode;
use paddock_tests::damage::files::{
    DataDir, RecordAt, files, flip, length, name, records, truncate, write_at,
};
use paddock_tests::damage::history::DamagedHistory;
use paddock_tests::damage::member;
use paddock_tests::damage::tree::{Tree, check_same, read_tree};
use paddock_tests::server::environment;

/// As the members that wrote the histories.
const SETTINGS: [(&str, &str); 2] = [("preAllocSize", "64"), ("snapCount", "1000")];

/// The member starts with this tree, takes a write, and has both after a crash. Returns the first log.
async fn check_starts(dir: &DataDir, expected: &Tree, what: &str) -> String {
    let member = member::start(&dir.path(), &SETTINGS).serves(what);
    let client = member.connect().await;
    check_same(&read_tree(&client).await, expected, what);
    client.create("/container/later", b"later", CreateMode::Persistent).await.expect("it takes a write");
    let later = read_tree(&client).await;
    let log = member.log();
    drop(member);

    let member = member::start(&dir.path(), &SETTINGS).serves(what);
    check_same(&read_tree(&member.connect().await).await, &later, what);
    log
}

/// The member refuses with a last line that has all these parts, and leaves the directory as it was.
#[track_caller]
fn check_refuses(dir: &DataDir, parts: &[&str], what: &str) {
    check_inspected(dir, parts, what);
    check_start_refused(dir, parts, what);
}

/// `paddock inspect state` says the same without a start, and leaves the directory as it was, too.
#[track_caller]
fn check_inspected(dir: &DataDir, parts: &[&str], what: &str) {
    let before = dir.contents();
    let mut command = Command::new(environment("PADDOCK_BIN"));
    let output = command.args(["inspect", "state"]).arg(dir.path()).output().expect("run paddock inspect");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{what}: {told}");
    let last = told.lines().last().unwrap_or_default();
    parts.iter().for_each(|part| assert!(last.contains(part), "{what}: {part:?} is not in {last:?}"));
    assert!(before == dir.contents(), "{what}: a look has changed it");
}

#[track_caller]
fn check_start_refused(dir: &DataDir, parts: &[&str], what: &str) {
    let before = dir.contents();
    let refusal = member::start(&dir.path(), &SETTINGS).refuses(what);
    assert_eq!(refusal.exit_code, Some(1), "{what}: {}", refusal.log);
    for part in parts {
        assert!(refusal.line().contains(part), "{what}: {part:?} is not in {:?}", refusal.line());
    }
    let after = dir.contents();
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{what}: its files");
    for (path, bytes) in before {
        assert!(after[&path] == bytes, "{what}: {} was changed", path.display());
    }
}

/// The last record, which holds the last write.
fn last_record(dir: &DataDir) -> RecordAt {
    let last = *records(&dir.last_segment()).last().expect("there are records");
    assert!(last.is_entry, "the member was not killed right behind its last write");
    last
}

fn at(offset: u64) -> String {
    format!("offset {offset}:")
}

#[tokio::test]
async fn an_undamaged_directory_has_everything() {
    for history in [DamagedHistory::without_snapshot(10).await, DamagedHistory::with_snapshots(2, 10).await] {
        let log = check_starts(&history.copy(), &history.tree, "nothing was done to it").await;
        assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
    }
}

#[tokio::test]
async fn a_record_that_was_cut_short_is_dropped_and_nothing_else() {
    let history = DamagedHistory::with_snapshots(1, 20).await;
    let RecordAt { start, end, .. } = last_record(&history.copy());
    for length in [start, start + 1, start + 15, start + 16, (start + end) / 2, end - 8, end - 1] {
        let dir = history.copy();
        truncate(&dir.last_segment(), length);
        check_starts(&dir, &history.tree_before_last, &format!("cut at {length} of {start}..{end}")).await;
    }
    let dir = history.copy();
    truncate(&dir.last_segment(), end);
    check_starts(&dir, &history.tree, "cut behind the last record").await;
}

#[tokio::test]
async fn a_flipped_byte_in_the_last_record_is_refused() {
    let history = DamagedHistory::without_snapshot(20).await;
    let RecordAt { start, end, .. } = last_record(&history.copy());
    let header = (start..start + 40).step_by(3);
    let payload = (start + 40..end).step_by(97);
    for offset in header.chain(payload).chain([end - 1]) {
        let dir = history.copy();
        flip(&dir.last_segment(), offset);
        let segment = name(&dir.last_segment());
        check_refuses(&dir, &[&segment, &at(start)], &format!("a flip at {offset} of {start}..{end}"));
    }
}

#[tokio::test]
async fn a_flipped_byte_before_the_last_record_is_refused() {
    let history = DamagedHistory::without_snapshot(120).await;
    let segments = history.copy().segments();
    assert!(segments.len() >= 3, "{} segments show nothing", segments.len());
    for (number, segment) in segments.iter().enumerate() {
        let records = records(&history.copy().segments()[number]);
        let inner = records[records.len() / 2];
        for (offset, reported) in [(20, 0), (inner.start + 3, inner.start), (inner.end - 20, inner.start)] {
            let dir = history.copy();
            flip(&dir.segments()[number], offset);
            let what = format!("a flip at {offset} of {}", name(segment));
            check_refuses(&dir, &[&name(segment), &at(reported)], &what);
        }
    }
}

#[tokio::test]
async fn a_segment_that_is_gone_or_short_is_refused() {
    let history = DamagedHistory::without_snapshot(120).await;
    let refuses = |damage: fn(&Path), number: usize, part: &str, what: &str| {
        let dir = history.copy();
        let segment = dir.segments()[number].clone();
        damage(&segment);
        check_refuses(&dir, &[part, &name(&segment)], what);
    };
    refuses(remove, 1, "is missing", "the second segment is gone");
    refuses(empty, 0, "offset 0:", "the first segment is empty");
    refuses(empty, 1, "offset 0:", "the second segment is empty");
    refuses(halve, 1, "offset", "the second segment lost its second half");

    let dir = history.copy();
    fs::remove_file(&dir.segments()[0]).expect("remove the first segment");
    let log_dir = dir.path().join("log").display().to_string();
    check_refuses(&dir, &[&log_dir, "begins at"], "the first segment is gone, and there is no snapshot");
}

#[tokio::test]
async fn a_log_that_ends_before_the_snapshot_is_refused() {
    let history = DamagedHistory::with_snapshots(2, 5).await;
    let snapshot = name(history.copy().snapshots().last().expect("there are snapshots"));
    for left in [0, 1] {
        let dir = history.copy();
        dir.segments().iter().skip(left).for_each(|segment| remove(segment));
        check_refuses(&dir, &["ends at entry", &snapshot], &format!("{left} segments are left"));
    }
}

#[tokio::test]
async fn a_snapshot_needs_no_segment_that_is_older_than_it() {
    let history = DamagedHistory::with_snapshots(1, 60).await;
    let dir = history.copy();
    remove(&dir.segments()[0]);
    check_starts(&dir, &history.tree, "the first segment is gone, and there is a snapshot").await;
}

#[tokio::test]
async fn garbage_behind_the_end_loses_nothing() {
    let history = DamagedHistory::with_snapshots(1, 20).await;
    let garbage: Vec<u8> = (1..=255).cycle().take(3000).collect();

    let dir = history.copy();
    let segment = dir.last_segment();
    write_at(&segment, length(&segment), &garbage);
    check_starts(&dir, &history.tree, "garbage behind the end of the file").await;

    let dir = history.copy();
    let segment = dir.last_segment();
    let end = last_record(&dir).end;
    write_at(&segment, end, &garbage);
    check_refuses(&dir, &[&name(&segment), &at(end)], "garbage where the next record would be");
}

#[tokio::test]
async fn a_damaged_snapshot_is_passed_over() {
    let history = DamagedHistory::with_snapshots(3, 20).await;
    let newest = history.copy().snapshots().pop().expect("there are snapshots");
    let bytes = length(&history.copy().snapshots()[2]);
    let flips = [0, 9, 13, 17, 25, 33, 41, 45, 49, bytes / 2, bytes - 37, bytes - 30, bytes - 1];
    let cuts = [0, 20, bytes / 2, bytes - 1];
    let harms = flips.map(|offset| (flip as fn(&Path, u64), "a flip", offset)).into_iter();
    for (harm, what, offset) in harms.chain(cuts.map(|length| (truncate as fn(&Path, u64), "cut", length))) {
        let what = format!("{what} at {offset} of {bytes}");
        let dir = history.copy();
        harm(&dir.snapshots()[2], offset);
        let log = check_starts(&dir, &history.tree, &what).await;
        let said = log.lines().any(|line| line.contains("ERROR") && line.contains(&name(&newest)));
        assert!(said, "{what}: nothing is said of {}: {log}", newest.display());
    }
}

#[tokio::test]
async fn without_a_whole_snapshot_the_log_has_to_reach_back() {
    for (snapshots, reaches_back) in [(1, true), (2, false), (5, false)] {
        let history = DamagedHistory::with_snapshots(snapshots, 20).await;
        let dir = history.copy();
        for snapshot in dir.snapshots() {
            flip(&snapshot, length(&snapshot) / 2);
        }
        let what = format!("all of {snapshots} snapshots are damaged");
        if reaches_back {
            drop(check_starts(&dir, &history.tree, &what).await)
        } else {
            check_refuses(&dir, &["begins at", &dir.path().display().to_string()], &what)
        }
    }
}

#[tokio::test]
async fn left_over_and_foreign_files_change_nothing() {
    let history = DamagedHistory::with_snapshots(2, 20).await;
    let dir = history.copy();
    let (log, snapshots) = (dir.path().join("log"), dir.path().join("snapshots"));
    let left_over = snapshots.join("snapshot-00000000000000ff.tmp");
    fs::write(&left_over, b"half a snapshot").expect("write a file");
    let last = name(&dir.last_segment());
    let number = u64::from_str_radix(&last["log-".len()..], 16).expect("a segment has a number");
    fs::write(log.join(format!("log-{:016x}", number + 1)), b"").expect("write a file");
    let foreign = [
        dir.path().join("notes.txt"),
        log.join("log-1"),
        log.join("log-000000000000000Z"),
        snapshots.join("snapshot-1"),
        snapshots.join("snapshot-00000000000000ff.old"),
    ];
    foreign.iter().for_each(|file| fs::write(file, b"somebody's").expect("write a file"));
    fs::create_dir(log.join("lost+found")).expect("make a directory");
    fs::write(dir.path().join("lock"), b"").expect("write a file");
    check_starts(&dir, &history.tree, "files that are nobody's business").await;
    assert!(!left_over.exists(), "the unfinished snapshot is removed");
    for file in foreign {
        assert_eq!(fs::read(&file).expect("it is still there"), b"somebody's", "{}", file.display());
    }
    assert_eq!(files(&snapshots, "snapshot-").len(), 3, "two snapshots and a foreign file");
}

#[tokio::test]
async fn another_members_directory_is_refused() {
    let history = DamagedHistory::with_snapshots(1, 20).await;
    let dir = history.copy();
    fs::write(dir.path().join("myid"), "7\n").expect("write myid");
    // The directory itself is whole.
    check_start_refused(&dir, &["member 1", "member 7", "myid"], "myid has changed");
}

#[tokio::test]
async fn a_directory_serves_one_process() {
    let history = DamagedHistory::without_snapshot(5).await;
    let dir = history.copy();
    let first = member::start(&dir.path(), &SETTINGS).serves("the first");
    let client = first.connect().await;
    let refusal = member::start(&dir.path(), &SETTINGS).refuses("the second");
    assert_eq!(refusal.exit_code, Some(1));
    let directory = dir.path().display().to_string();
    assert!(refusal.line().contains(&directory), "{}", refusal.line());
    assert!(refusal.line().contains("in use"), "{}", refusal.line());
    check_same(&read_tree(&client).await, &history.tree, "the first goes on");
}

fn remove(file: &Path) {
    fs::remove_file(file).expect("remove a file");
}

fn empty(file: &Path) {
    truncate(file, 0);
}

fn halve(file: &Path) {
    truncate(file, length(file) / 2);
}
