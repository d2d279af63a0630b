//! Data directories of ZooKeeper as they are found: whole, damaged, foreign and empty.

use std::fs;
use std::path::{Path, PathBuf};

use paddock_files::{LoadOptions, Loaded, ZooKeeperDirs, export, load};
use paddock_proto::{Acl, Id, Perms, SessionId, Zxid};
use paddock_tree::{Draft, Facts, Tree, ZnodeKind};

const ZXID: i64 = 0x2_0000_0010;

fn tree() -> Tree {
    let mut draft = Draft::new();
    draft.begin_session(SessionId(7), 4000);
    let kinds = [
        ("/a", ZnodeKind::Persistent),
        ("/a/e", ZnodeKind::Ephemeral(SessionId(7))),
        ("/c", ZnodeKind::Container),
        ("/t", ZnodeKind::Ttl { ms: 1000 }),
    ];
    for (path, kind) in kinds {
        let facts = Facts {
            data: (path != "/c").then_some(path.as_bytes()),
            czxid: 5,
            mzxid: 6,
            pzxid: 7,
            ctime_ms: 50,
            mtime_ms: 60,
            version: 3,
            cversion: 9,
            aversion: 1,
            kind,
        };
        let acl = vec![Acl { perms: Perms::READ, id: Id::new("digest", "a:x") }];
        draft.place_with(path, &facts, acl).unwrap();
    }
    draft.finish(Zxid(ZXID), 1).0
}

/// A data directory with the tree above; returns its snapshot.
fn exported(dir: &Path) -> PathBuf {
    export(&tree(), dir).unwrap().snapshot
}

fn read(dir: &Path) -> Result<Loaded, String> {
    let source = ZooKeeperDirs { data_dir: dir.to_owned(), log_dir: None };
    let options = LoadOptions { drop_ephemerals: false, ignore_digest: false, member: 1 };
    load(&source, options, &mut |_| {}).map_err(|error| error.to_string())
}

#[track_caller]
fn check_refused(dir: &Path, expected: &str) {
    let refusal = read(dir).expect_err("the directory is refused");
    assert!(refusal.contains(expected), "{refusal}");
    assert!(!refusal.contains('\n'), "{refusal}");
}

#[test]
fn a_round_trip_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    exported(dir.path());
    let loaded = read(dir.path()).unwrap();
    assert_eq!(loaded.tree.digest(), tree().digest());
    assert_eq!(loaded.report.digest, paddock_files::DigestCheck::Right);
    assert_eq!(read(&dir.path().join("version-2")).unwrap().tree.digest(), tree().digest());
    assert!(export(&tree(), dir.path()).unwrap_err().to_string().contains("nothing is written over"));
}

#[test]
fn ephemerals_may_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    exported(dir.path());
    let source = ZooKeeperDirs { data_dir: dir.path().to_owned(), log_dir: None };
    let options = LoadOptions { drop_ephemerals: true, ignore_digest: false, member: 1 };
    let loaded = load(&source, options, &mut |_| {}).unwrap();
    assert_eq!(loaded.report.dropped, ["/a/e"]);
    assert_eq!((loaded.tree.session_count(), loaded.tree.ephemeral_count()), (0, 0));
    assert_eq!(loaded.tree.stat("/a").unwrap().pzxid, Zxid(ZXID));
}

#[test]
fn every_flipped_bit_of_a_snapshot_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = exported(dir.path());
    let whole = fs::read(&snapshot).unwrap();
    for at in 0..whole.len() {
        // The number of the database, behind magic and version, means nothing; its checksum is wrong all the same.
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(&snapshot, bytes).unwrap();
        check_refused(dir.path(), "none of the 1 snapshots");
    }
    for end in 0..whole.len() {
        fs::write(&snapshot, &whole[..end]).unwrap();
        // A snapshot may end behind each of its seals, as those of earlier versions do.
        if let Ok(loaded) = read(dir.path()) {
            assert_eq!(loaded.tree.digest(), tree().digest(), "cut at {end}");
            assert!(whole[..end].ends_with(b"\0\0\0\x01/"), "cut at {end}");
        }
    }
}

#[test]
fn an_older_snapshot_takes_the_place_of_a_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = exported(dir.path());
    fs::write(snapshot.with_file_name("snapshot.200000011"), b"ZKSN").unwrap();
    let loaded = read(dir.path()).unwrap();
    assert_eq!(loaded.report.skipped.len(), 1);
    assert_eq!(loaded.report.snapshot, snapshot);
}

#[test]
fn what_is_no_data_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    check_refused(dir.path(), "no ZooKeeper data in");
    check_refused(&dir.path().join("nothing"), "read directory");
    let version = dir.path().join("version-2");
    fs::create_dir(&version).unwrap();
    check_refused(dir.path(), "no snapshot in");
    fs::write(version.join("snapshot.1"), b"SQLite format 3\0").unwrap();
    check_refused(dir.path(), "this is not a ZooKeeper snapshot");
    fs::write(version.join("snapshot.2.gz"), b"this is no gzip and long enough to tell").unwrap();
    check_refused(dir.path(), "compressed data cannot be read");
    fs::write(version.join("snapshot.3.snappy"), [0; 40]).unwrap();
    check_refused(dir.path(), "compressed data cannot be read");
}

/// The entry of a failed request: nothing but a zxid.
fn error_entry(zxid: i64) -> Vec<u8> {
    let parts: [&[u8]; 5] = [&[0; 12], &zxid.to_be_bytes(), &[0; 8], &(-1i32).to_be_bytes(), &[0; 4]];
    parts.concat()
}

fn write_log(path: &Path, zxids: &[i64]) {
    let mut bytes = b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0".to_vec();
    for &zxid in zxids {
        let entry = error_entry(zxid);
        bytes.extend_from_slice(&i64::from(simd_adler32::adler32(&&entry[..])).to_be_bytes());
        bytes.extend_from_slice(&(entry.len() as i32).to_be_bytes());
        bytes.extend_from_slice(&entry);
        bytes.push(b'B');
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn transactions_have_no_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let log = exported(dir.path()).with_file_name("log.200000001");
    write_log(&log, &[ZXID - 1, ZXID, ZXID + 1, ZXID + 2, 0x3_0000_0001]);
    let loaded = read(dir.path()).unwrap();
    assert_eq!((loaded.report.transactions, loaded.tree.zxid()), (3, Zxid(0x3_0000_0001)));
    write_log(&log, &[ZXID, ZXID + 3]);
    check_refused(dir.path(), "transactions 0x200000011 to 0x200000012 are missing before");
}

#[test]
fn a_log_that_begins_with_the_first_transaction_needs_no_snapshot() {
    for first in [1, 0x1_0000_0001] {
        let dir = tempfile::tempdir().unwrap();
        let version = dir.path().join("version-2");
        fs::create_dir(&version).unwrap();
        write_log(&version.join(format!("log.{first:x}")), &[first, first + 1]);
        write_log(&version.join(format!("log.{:x}", first + 2)), &[first + 2]);
        let loaded = read(dir.path()).unwrap();
        assert_eq!((loaded.report.transactions, loaded.tree.zxid()), (3, Zxid(first + 2)));
        assert!(loaded.tree.stat("/zookeeper/quota").is_some(), "the znodes of every server are there");
        write_log(&version.join(format!("log.{first:x}")), &[first + 1]);
        check_refused(dir.path(), "its transaction log does not begin with the first transaction");
    }
}

#[test]
fn a_log_that_was_reserved_and_never_begun_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = exported(dir.path());
    write_log(&snapshot.with_file_name("log.200000011"), &[ZXID + 1]);
    let last = snapshot.with_file_name("log.200000012");
    fs::write(&last, [0; 70_000]).unwrap();
    let loaded = read(dir.path()).unwrap();
    assert_eq!((loaded.report.transactions, loaded.tree.zxid()), (1, Zxid(ZXID + 1)));
    let mut bytes = vec![0; 70_000];
    bytes[69_999] = 1;
    fs::write(&last, bytes).unwrap();
    check_refused(dir.path(), "this is not a ZooKeeper transaction log");
}
