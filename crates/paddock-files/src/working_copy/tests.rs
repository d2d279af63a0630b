//! A working copy over crashes: what a new process finds of it.

use paddock_proto::jute::Writer;
use paddock_proto::{Acl, SessionId};
use paddock_tree::Znode;

use super::*;

const SESSION: SessionId = SessionId(7);

fn zxid(epoch: i64, counter: i64) -> Zxid {
    Zxid(epoch << EPOCH_SHIFT | counter)
}

fn open(dir: &Path) -> WorkingCopy {
    WorkingCopy::open(dir, &mut |_| {}).expect("open the working copy")
}

/// A root, and a session.
fn received() -> ReceivedSnapshot {
    let mut draft = Draft::new();
    draft.begin_session(SESSION, 4000);
    ReceivedSnapshot(Snapshot { draft, znodes: 1, digest: None })
}

/// A transaction that makes a znode.
fn create(path: &str, zxid: Zxid) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i64(SESSION.0);
    out.put_i32(1);
    out.put_i64(zxid.0);
    out.put_i64(99);
    out.put_i32(1);
    out.put_string(path);
    out.put_buffer(Some(b"data"));
    out.put_count(1);
    Acl::open().encode(&mut out);
    out.put_bool(false);
    out.put_i32(1);
    out
}

/// Writer of what a transaction says behind its header.
type Body = Box<dyn FnOnce(&mut Vec<u8>)>;

/// A transaction of any kind.
fn transaction(zxid: Zxid, session: SessionId, kind: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i64(session.0);
    out.put_i32(1);
    out.put_i64(zxid.0);
    out.put_i64(99);
    out.put_i32(kind);
    body(&mut out);
    out
}

/// Body of a transaction that makes a znode; the parent's counter follows from it.
fn created(path: &'static str, is_ephemeral: bool, count: i32) -> impl FnOnce(&mut Vec<u8>) {
    move |out| {
        out.put_string(path);
        out.put_buffer(Some(b"data"));
        out.put_count(1);
        Acl::open().encode(out);
        out.put_bool(is_ephemeral);
        out.put_i32(count);
    }
}

/// All znodes of a tree and its sessions.
#[derive(Debug, PartialEq)]
struct Content {
    znodes: Vec<(String, Znode)>,
    sessions: Vec<(SessionId, i32)>,
}

fn content(tree: &Tree) -> Content {
    let mut all = Vec::new();
    let mut znodes = tree.znodes();
    while let Some((path, _)) = znodes.next_znode() {
        all.push((path.to_owned(), tree.znode(path).expect("the walk has found it")));
    }
    Content { znodes: all, sessions: tree.sessions().collect() }
}

/// Paths of all znodes.
fn paths(copy: &WorkingCopy) -> Vec<String> {
    let mut znodes = copy.state.draft.znodes();
    let mut paths = Vec::new();
    while let Some((path, _)) = znodes.next_znode() {
        paths.push(path.to_owned());
    }
    paths
}

/// Names of the snapshots and logs.
fn names(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir.join(VERSION_DIR)).expect("list the files");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("names are text"));
    let mut names: Vec<String> = names.filter(|name| name != EPOCH).collect();
    names.sort_unstable();
    names
}

fn cut(dir: &Path, name: &str, bytes: u64) {
    let path = dir.join(VERSION_DIR).join(name);
    let file = File::options().write(true).open(path).expect("open the log");
    file.set_len(bytes).expect("cut the log");
}

fn len(dir: &Path, name: &str) -> u64 {
    fs::metadata(dir.join(VERSION_DIR).join(name)).expect("the log is there").len()
}

#[test]
fn a_transaction_that_was_not_finished_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = open(dir.path());
    copy.replace(received(), zxid(2, 2)).unwrap();
    copy.apply(&create("/a", zxid(2, 3))).unwrap();
    copy.apply(&create("/b", zxid(2, 4))).unwrap();
    copy.sync().unwrap();
    drop(copy);
    cut(dir.path(), "log.200000003", len(dir.path(), "log.200000003") - 5);

    let mut copy = open(dir.path());
    assert_eq!((copy.zxid(), copy.session_count()), (zxid(2, 3), 1));
    assert_eq!(paths(&copy), ["/", "/a"]);
    copy.apply(&create("/b", zxid(2, 4))).unwrap();
    copy.sync().unwrap();
    drop(copy);
    assert_eq!(names(dir.path()), ["log.200000003", "log.200000004", "snapshot.200000002"]);
    assert_eq!(paths(&open(dir.path())), ["/", "/a", "/b"]);

    // The first transaction of a file: the next one takes its name.
    cut(dir.path(), "log.200000004", 20);
    let mut copy = open(dir.path());
    assert_eq!(copy.zxid(), zxid(2, 3));
    copy.apply(&create("/c", zxid(2, 4))).unwrap();
    copy.sync().unwrap();
    drop(copy);
    assert_eq!(paths(&open(dir.path())), ["/", "/a", "/c"]);
}

#[test]
fn a_rollback_forgets_nothing_on_disk_until_a_snapshot_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = open(dir.path());
    copy.replace(received(), zxid(2, 2)).unwrap();
    copy.apply(&create("/a", zxid(2, 3))).unwrap();
    copy.forget();
    assert_eq!((copy.zxid(), copy.session_count()), (Zxid(0), 0));
    drop(copy);
    assert_eq!(open(dir.path()).zxid(), zxid(2, 3), "a crash before the snapshot loses nothing");

    let mut copy = open(dir.path());
    copy.forget();
    copy.replace(received(), zxid(2, 1)).unwrap();
    copy.apply(&create("/b", zxid(2, 2))).unwrap();
    copy.sync().unwrap();
    drop(copy);
    assert_eq!(names(dir.path()), ["log.200000002", "snapshot.200000001"]);
    let copy = open(dir.path());
    assert_eq!((copy.zxid(), paths(&copy)), (zxid(2, 2), vec!["/".to_owned(), "/b".to_owned()]));
}

#[test]
fn a_long_log_becomes_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = open(dir.path());
    copy.log_bytes_max = 1000;
    copy.begin().unwrap();
    for number in 1..=100 {
        copy.apply(&create(&format!("/{number:03}"), zxid(1, number))).unwrap();
    }
    copy.sync().unwrap();
    let expected = paths(&copy);
    drop(copy);
    let names = names(dir.path());
    let [log, snapshot] = &names[..] else { panic!("one snapshot and the log behind it, not {names:?}") };
    assert!(log.starts_with("log.1000000") && snapshot.starts_with("snapshot.1000000"), "{names:?}");
    assert!(len(dir.path(), log) <= 1000);
    let copy = open(dir.path());
    assert_eq!((copy.zxid(), expected.len()), (zxid(1, 100), 101));
    assert_eq!(paths(&copy), expected);
}

#[test]
fn the_epoch_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = open(dir.path());
    copy.replace(received(), zxid(2, 2)).unwrap();
    assert_eq!(copy.epoch(), 0, "no leader has told it");
    copy.set_epoch(5).unwrap();
    drop(copy);
    let copy = open(dir.path());
    assert_eq!((copy.epoch(), copy.zxid()), (5, zxid(2, 2)));
    let options = LoadOptions { drop_ephemerals: false, ignore_digest: false, member: 1 };
    assert_eq!(copy.finish(options).unwrap().tree.zxid(), zxid(6, 0), "zxids go on behind every epoch");
}

#[test]
fn data_behind_which_there_are_no_zxids_are_refused() {
    let options = LoadOptions { drop_ephemerals: false, ignore_digest: false, member: 1 };
    for (last, epoch) in
        [(Zxid((1 << 62) + 1), 0), (Zxid(i64::MAX), 0), (zxid(2, 2), 1 << 30), (zxid(2, 2), i64::MAX)]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut copy = open(dir.path());
        copy.replace(received(), last).unwrap();
        copy.set_epoch(epoch).unwrap();
        let refused = copy.finish(options);
        assert!(matches!(refused, Err(FileError::LastZxid { .. })), "{last} in epoch {epoch}");
    }
}

#[test]
fn a_copy_belongs_to_one_process_and_other_directories_to_none() {
    let dir = tempfile::tempdir().unwrap();
    let copy = open(dir.path());
    let second = WorkingCopy::open(dir.path(), &mut |_| {});
    assert!(matches!(second, Err(FileError::InUse { .. })), "{second:?}");
    drop(copy);
    open(dir.path());
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("myid"), "1").unwrap();
    let refused = WorkingCopy::open(foreign.path(), &mut |_| {});
    assert!(matches!(refused, Err(FileError::NotACopy { .. })), "{refused:?}");
}

#[test]
fn accounts_of_transactions_make_the_same_tree() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = open(dir.path());
    copy.replace(received(), zxid(2, 2)).unwrap();
    let mut shown = copy.tree();
    let other = SessionId(8);
    let mut counter = 2;
    let mut check = |session, kind, body: Body| {
        counter += 1;
        let applied = copy.apply_and_tell(&transaction(zxid(2, counter), session, kind, body)).unwrap();
        for (session, timeout_ms) in applied.began {
            shown.install_session(session, timeout_ms, 1);
        }
        let znodes: Vec<(&str, Option<Znode>)> =
            applied.znodes.iter().map(|(path, znode)| (path.as_str(), znode.clone())).collect();
        shown.install(applied.zxid, &znodes).unwrap();
        for session in applied.ended {
            assert!(shown.uninstall_session(session), "its ephemerals have gone");
        }
        assert_eq!(content(&shown), content(&copy.tree()), "after transaction {counter}");
        assert_eq!(shown.zxid(), zxid(2, counter));
    };
    check(SESSION, 1, Box::new(created("/a", false, 1)));
    check(SESSION, 1, Box::new(created("/a/b", false, 1)));
    check(other, -10, Box::new(|out| out.put_i32(9000)));
    check(other, 1, Box::new(created("/a/alive", true, 2)));
    check(
        SESSION,
        5,
        Box::new(|out| {
            out.put_string("/a");
            out.put_buffer(Some(b"newer"));
            out.put_i32(1);
        }),
    );
    check(
        SESSION,
        7,
        Box::new(|out| {
            out.put_string("/a/b");
            out.put_count(0);
            out.put_i32(1);
        }),
    );
    check(SESSION, -1, Box::new(|out| out.put_i32(-101)));
    check(other, -11, Box::new(|_| {}));
    check(SESSION, 2, Box::new(|out| out.put_string("/a/b")));
    check(SESSION, 1, Box::new(created("/a/b", false, 3)));
}
