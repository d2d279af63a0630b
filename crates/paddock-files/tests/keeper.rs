//! ClickHouse Keeper's files become a tree. The files are written here, from their description: no Keeper can be installed for the tests.

mod keeper_files;

use std::fs;
use std::path::{Path, PathBuf};

use keeper_files::{
    Acl, Keeper, KeeperEntry, KeeperLog, KeeperNode, auth, create, multi, new_session, packed, path_and, set,
    set_acl, zstd,
};
use paddock_files::{DigestCheck, FileError, KeeperDirs, KeeperLoaded, LoadOptions, load_keeper};
use paddock_proto::{Id, Perms, SessionId, Zxid};
use paddock_tree::{Tree, Znode, ZnodeKind};
use tempfile::TempDir;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const SET: i32 = 5;
const SET_ACL: i32 = 7;
const CHECK: i32 = 13;
const MULTI: i32 = 14;
const AUTH: i32 = 100;
const CREATE_IF_NOT_EXISTS: i32 = 502;
const REMOVE_RECURSIVE: i32 = 503;
const TRY_REMOVE: i32 = 505;
const SESSION: i32 = 997;
const CLOSE: i32 = -11;
const OPEN: &[Acl] = &[(31, "world", "anyone")];
/// Identity of `owner:secret`.
const OWNER: &str = "owner:Vj++wdU3sMAbt+g9TyKj1BT+usI=";

struct Dirs {
    dir: TempDir,
    source: KeeperDirs,
}

impl Dirs {
    fn new() -> Dirs {
        let dir = tempfile::tempdir().unwrap();
        let [snapshots, log] = ["snapshots", "logs"].map(|name| dir.path().join(name));
        fs::create_dir(&snapshots).unwrap();
        fs::create_dir(&log).unwrap();
        Dirs { dir, source: KeeperDirs { snapshots, log } }
    }

    fn write_log(&self, name: &str, log: &KeeperLog) {
        let is_zstd = Path::new(name).extension().is_some_and(|end| end == "zstd");
        let bytes = if is_zstd { zstd(&log.bytes) } else { log.bytes.clone() };
        fs::write(self.source.log.join(name), bytes).unwrap();
    }

    fn load(&self) -> KeeperLoaded {
        self.try_load(options()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_load(&self, options: LoadOptions) -> Result<KeeperLoaded, FileError> {
        load_keeper(&self.source, options, &mut |_| {})
    }

    /// Checks that the files are refused, with these words in one line.
    #[track_caller]
    fn refuse(&self, words: &str) {
        let refusal = self.try_load(options()).map(|_| ()).unwrap_err().to_string();
        assert!(refusal.contains(words), "{words:?} is not in {refusal:?}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
}

fn options() -> LoadOptions {
    LoadOptions { drop_ephemerals: false, ignore_digest: false, member: 1 }
}

/// A Keeper with a znode of every kind. One parent comes behind its child, as in a snapshot that was taken under load.
fn keeper() -> Keeper {
    let node = |path, data, zxid| KeeperNode {
        path,
        data,
        czxid: zxid,
        mzxid: zxid,
        pzxid: zxid,
        ctime: 1000 + zxid,
        mtime: 1000 + zxid,
        ..KeeperNode::default()
    };
    let root =
        KeeperNode { path: "/", cversion: 6, children: 4, sequence: 4, pzxid: 40, ..KeeperNode::default() };
    let queue = KeeperNode { cversion: 9, children: 1, sequence: 5, pzxid: 30, ..node("/queue", "", 10) };
    Keeper {
        index: 60,
        zxid: 50,
        next_session: 9,
        acls: vec![(1, vec![(31, "digest", OWNER), (1, "world", "anyone")])],
        nodes: vec![
            root,
            KeeperNode { path: "/keeper", ..KeeperNode::default() },
            node("/queue/n-0000000004", "last", 30),
            queue,
            KeeperNode { acl: 1, version: 2, mzxid: 12, aversion: 1, ..node("/secret", "s", 11) },
            KeeperNode { owner: 7, ..node("/alive", "here", 40) },
        ],
        sessions: vec![(7, 30_000, vec![("digest", OWNER)]), (8, 10_000, vec![])],
    }
}

#[track_caller]
fn znode(tree: &Tree, path: &str) -> Znode {
    tree.znode(path).unwrap_or_else(|| panic!("{path} is missing"))
}

#[test]
fn every_version_of_a_snapshot_is_read() {
    for (version, is_zstd) in (0..=7).flat_map(|version| [(version, false), (version, true)]) {
        let dirs = Dirs::new();
        keeper().write_snapshot(&dirs.source.snapshots, version, is_zstd);
        let KeeperLoaded { tree, report } = dirs.load();
        let has_digest = version >= 5;
        let digest = if has_digest { DigestCheck::Right } else { DigestCheck::Absent };
        assert_eq!((report.report.digest, report.index, report.report.znodes), (digest, 60, 6));
        // Before version 5 Keeper took the index of the log for the zxid.
        assert_eq!(tree.zxid(), Zxid(if has_digest { 50 } else { 60 }));

        let secret = znode(&tree, "/secret");
        assert_eq!(secret.data.as_deref(), Some(&b"s"[..]));
        assert_eq!((secret.czxid, secret.mzxid, secret.pzxid), (11, 12, 11));
        assert_eq!((secret.ctime_ms, secret.mtime_ms), (1011, 1011));
        assert_eq!((secret.version, secret.aversion), (2, 1));
        assert_eq!(secret.acl.len(), 2);
        assert_eq!(secret.acl[0].id, Id::new("digest", OWNER));
        assert_eq!(secret.acl[1].perms, Perms::READ);
        assert_eq!(znode(&tree, "/alive").kind, ZnodeKind::Ephemeral(SessionId(7)));
        assert_eq!(znode(&tree, "/queue/n-0000000004").data.as_deref(), Some(&b"last"[..]));
        assert!(tree.znode("/keeper").is_none(), "a member computes it");
        assert_eq!(tree.session_timeout_ms(SessionId(7)), Some(30_000));
        assert_eq!(tree.session_timeout_ms(SessionId(8)), Some(10_000));
        // The next sequential child gets the number that Keeper would have given, and the counter does not go back.
        assert_eq!(znode(&tree, "/queue").children_created, 5);
        assert_eq!(tree.stat("/queue").unwrap().cversion, 9);
    }
}

#[test]
fn sessions_can_be_left_out() {
    let dirs = Dirs::new();
    keeper().write_snapshot(&dirs.source.snapshots, 6, true);
    let loaded = dirs.try_load(LoadOptions { drop_ephemerals: true, ..options() }).unwrap();
    assert_eq!(loaded.report.report.dropped, ["/alive"]);
    assert_eq!(loaded.report.report.dropped_sessions, 2);
    assert!(loaded.tree.znode("/alive").is_none());
}

/// A Keeper and the log that it writes: each request comes with the digest of the state after it, which the test knows.
struct Logged {
    keeper: Keeper,
    log: KeeperLog,
    index: u64,
    version: u8,
    /// The requests alone, each behind its length, for the fuzzer.
    entries: Vec<u8>,
}

impl Logged {
    fn new(version: u8) -> Logged {
        Logged { keeper: keeper(), log: KeeperLog::default(), index: 60, version, entries: Vec::new() }
    }

    fn zxid(&self) -> i64 {
        self.keeper.zxid
    }

    /// Logs a request, and what `change` makes of the znodes.
    fn log(&mut self, session: i64, op: i32, body: Vec<u8>, change: impl FnOnce(&mut Keeper, i64)) {
        self.index += 1;
        self.keeper.zxid += 1;
        let zxid = self.zxid();
        change(&mut self.keeper, zxid);
        let digest = (self.version, self.keeper.digest(self.version));
        let entry = KeeperEntry { session, op, body, time: 5000 + zxid, zxid, digest };
        self.log.request(self.index, &entry);
        let encoded = entry.encoded();
        self.entries.extend((encoded.len() as u16).to_le_bytes());
        self.entries.extend(encoded);
    }

    fn refused(&mut self, session: i64, op: i32, body: Vec<u8>) {
        self.log(session, op, body, |_, _| {});
    }
}

fn made(path: &'static str, data: &'static str, zxid: i64) -> KeeperNode {
    let time = 5000 + zxid;
    KeeperNode {
        path,
        data,
        czxid: zxid,
        mzxid: zxid,
        pzxid: zxid,
        ctime: time,
        mtime: time,
        ..KeeperNode::default()
    }
}

/// Counts a child that was created.
fn count(keeper: &mut Keeper, parent: &str, zxid: i64) {
    let parent = keeper.node(parent);
    (parent.cversion, parent.children) = (parent.cversion + 1, parent.children + 1);
    (parent.sequence, parent.pzxid) = (parent.sequence + 1, zxid);
}

/// Takes a znode away. Keeper leaves the pzxid of the parent as it is.
fn uncount(keeper: &mut Keeper, path: &str, parent: &str) {
    keeper.nodes.retain(|node| node.path != path);
    let parent = keeper.node(parent);
    (parent.cversion, parent.children) = (parent.cversion + 1, parent.children - 1);
}

fn every_kind_of_request(version: u8) -> Logged {
    let mut logged = Logged::new(version);
    logged.log(8, CREATE, create("/a", "1", OPEN, 0), |keeper, zxid| {
        keeper.nodes.push(made("/a", "1", zxid));
        count(keeper, "/", zxid);
    });
    logged.refused(8, CREATE, create("/a", "again", OPEN, 0));
    logged.refused(8, CREATE, create("/no/where", "", OPEN, 0));
    logged.refused(8, CREATE, create("/keeper/mine", "", OPEN, 0));
    logged.refused(8, CREATE_IF_NOT_EXISTS, create("/a", "again", OPEN, 0));
    logged.log(8, CREATE, create("/queue/n-", "", OPEN, 3), |keeper, zxid| {
        keeper.nodes.push(KeeperNode { owner: 8, ..made("/queue/n-0000000005", "", zxid) });
        count(keeper, "/queue", zxid);
    });
    logged.refused(8, CREATE, create("/alive/below", "", OPEN, 0));
    logged.log(8, SET, set("/a", "22", 0), |keeper, zxid| {
        let node = keeper.node("/a");
        (node.data, node.version, node.mzxid, node.mtime) = ("22", 1, zxid, 5000 + zxid);
        keeper.node("/").cversion += 1;
    });
    logged.refused(8, SET, set("/a", "3", 0));
    logged.refused(8, SET, set("/secret", "mine", -1));
    logged.log(7, SET, set("/secret", "ours", -1), |keeper, zxid| {
        let node = keeper.node("/secret");
        (node.data, node.version, node.mzxid, node.mtime) = ("ours", 3, zxid, 5000 + zxid);
        keeper.node("/").cversion += 1;
    });
    // A multi is carried out whole, or not at all.
    logged.refused(
        8,
        MULTI,
        multi(&[
            (CREATE, create("/a/b", "", OPEN, 0)),
            (SET, set("/a", "multi", 1)),
            (DELETE, path_and("/queue/n-0000000004", -1)),
            (CHECK, path_and("/a", 77)),
        ]),
    );
    logged.log(
        8,
        MULTI,
        multi(&[
            (CHECK, path_and("/a", 1)),
            (CREATE, create("/a/b", "", OPEN, 0)),
            (DELETE, path_and("/queue/n-0000000004", 0)),
            (TRY_REMOVE, path_and("/queue/gone", -1)),
        ]),
        |keeper, zxid| {
            keeper.nodes.push(made("/a/b", "", zxid));
            count(keeper, "/a", zxid);
            uncount(keeper, "/queue/n-0000000004", "/queue");
        },
    );
    logged.refused(8, AUTH, auth("owner:secret"));
    logged.log(8, SET_ACL, set_acl("/a", &[(31, "auth", "")]), |keeper, _| keeper.node("/a").aversion = 1);
    logged.refused(9, DELETE, path_and("/a/b", -1));
    logged.refused(8, REMOVE_RECURSIVE, path_and("/a", 1));
    logged.log(8, CREATE, create("/a/b/c", "", OPEN, 0), |keeper, zxid| {
        keeper.nodes.push(made("/a/b/c", "", zxid));
        count(keeper, "/a/b", zxid);
    });
    logged.refused(8, MULTI, multi(&[(REMOVE_RECURSIVE, path_and("/a/b", 5)), (CHECK, path_and("/no", -1))]));
    logged.log(8, REMOVE_RECURSIVE, path_and("/a/b", 2), |keeper, _| {
        keeper.nodes.retain(|node| node.path != "/a/b/c");
        uncount(keeper, "/a/b", "/a");
    });
    // The empty string is not the root's name here, as it is in ZooKeeper.
    logged.refused(8, SET, set("", "root", -1));
    logged.refused(8, SET_ACL, set_acl("", &[(1, "world", "anyone")]));
    logged.refused(8, DELETE, path_and("", -1));
    logged.refused(8, REMOVE_RECURSIVE, path_and("", 1000));
    logged.refused(8, SESSION, new_session(15_000));
    logged.log(9, CREATE, create("/of-nine", "", OPEN, 1), |keeper, zxid| {
        keeper.nodes.push(KeeperNode { owner: 9, ..made("/of-nine", "", zxid) });
        count(keeper, "/", zxid);
    });
    logged.log(7, CLOSE, Vec::new(), |keeper, _| uncount(keeper, "/alive", "/"));
    // Reads are logged, too, when they are to be answered by a quorum.
    logged.refused(8, 4, path_and("/a", 0)[..6].to_vec());
    logged
}

#[test]
fn requests_are_carried_out_as_keeper_does() {
    for version in [4, 5] {
        let dirs = Dirs::new();
        keeper().write_snapshot(&dirs.source.snapshots, 6, true);
        let logged = every_kind_of_request(version);
        dirs.write_log("changelog_61_160.bin.zstd", &logged.log);
        let KeeperLoaded { tree, report } = dirs.load();
        assert_eq!(report.report.digest, DigestCheck::Right);
        assert_eq!((report.index, tree.zxid()), (logged.index, Zxid(logged.zxid())));
        let a = znode(&tree, "/a");
        assert_eq!((a.data.as_deref(), a.version, a.aversion), (Some(&b"22"[..]), 1, 1));
        assert_eq!(a.acl[0].id, Id::new("digest", OWNER));
        assert_eq!(znode(&tree, "/of-nine").kind, ZnodeKind::Ephemeral(SessionId(9)));
        assert_eq!(tree.session_timeout_ms(SessionId(9)), Some(15_000));
        assert_eq!(tree.session_timeout_ms(SessionId(7)), None);
        assert!(tree.znode("/alive").is_none());
        assert_eq!(znode(&tree, "/queue").children_created, 6);
        // Changes of data count in Keeper's cversion, and ours is not below: four creates and two deletes were there, then three of
        // them, one delete and two changes. (`/keeper` is one of Keeper's children.)
        let cversion = tree.stat("/").unwrap().cversion;
        assert!((11..=12).contains(&cversion), "{cversion}");
        assert_eq!(report.raised, 1);
    }
}

#[test]
fn a_log_without_a_snapshot_begins_with_the_first_entry() {
    let dirs = Dirs::new();
    let mut log = KeeperLog::default();
    let entry = |zxid, op, body| KeeperEntry { session: 1, op, body, time: 5000, zxid, digest: (0, 0) };
    log.record(1, 1, 2, b"members");
    log.request(2, &entry(0, SESSION, new_session(9000)));
    log.request(3, &entry(0, CREATE, create("/a", "", OPEN, 1)));
    dirs.write_log("changelog_1_100.bin", &log);
    let KeeperLoaded { tree, report } = dirs.load();
    assert_eq!((report.index, tree.zxid(), report.report.transactions), (3, Zxid(3), 2));
    assert_eq!(znode(&tree, "/a").kind, ZnodeKind::Ephemeral(SessionId(1)));
}

#[test]
fn entries_that_a_later_leader_replaced_do_not_count() {
    let dirs = Dirs::new();
    keeper().write_snapshot(&dirs.source.snapshots, 6, true);
    let entry = |zxid, path| KeeperEntry {
        op: CREATE,
        body: create(path, "", OPEN, 0),
        time: 1,
        zxid,
        ..KeeperEntry::default()
    };
    let mut first = KeeperLog::default();
    first.request(60, &entry(50, "/in-the-snapshot"));
    first.request(61, &entry(51, "/kept"));
    first.request(62, &entry(52, "/lost"));
    first.request(63, &entry(53, "/lost/too"));
    first.request(62, &entry(52, "/instead"));
    // A record that was never finished, and a later file that goes on in its place.
    let whole = first.bytes.len();
    first.request(63, &entry(53, "/torn"));
    first.bytes.truncate(whole + 40);
    dirs.write_log("changelog_60_159.bin", &first);
    let mut second = KeeperLog::default();
    second.request(63, &entry(53, "/after"));
    dirs.write_log("changelog_63_162.bin.zstd", &second);
    let KeeperLoaded { tree, report } = dirs.load();
    assert_eq!((report.replaced, report.index), (2, 63));
    assert_eq!(report.report.logs[0].torn, Some(whole as u64));
    for (path, is_there) in
        [("/kept", true), ("/instead", true), ("/after", true), ("/lost", false), ("/in-the-snapshot", false)]
    {
        assert_eq!(tree.znode(path).is_some(), is_there, "{path}");
    }
}

#[test]
fn the_end_of_a_killed_keepers_log_is_read_as_far_as_it_goes() {
    let dirs = Dirs::new();
    keeper().write_snapshot(&dirs.source.snapshots, 6, true);
    let logged = every_kind_of_request(4);
    let path = dirs.source.log.join("changelog_61_160.bin.zstd");
    fs::write(&path, keeper_files::unfinished_zstd(&logged.log.bytes)).unwrap();
    let loaded = dirs.load();
    assert_eq!((loaded.report.index, loaded.report.report.logs[0].torn), (logged.index, None));
    let cut = logged.log.bytes.len() - 5;
    fs::write(&path, keeper_files::unfinished_zstd(&logged.log.bytes[..cut])).unwrap();
    let loaded = dirs.load();
    assert_eq!(loaded.report.index, logged.index - 1);
    assert!(loaded.report.report.logs[0].torn.is_some());
}

#[test]
fn an_older_snapshot_and_the_log_will_do() {
    let dirs = Dirs::new();
    keeper().write_snapshot(&dirs.source.snapshots, 6, true);
    let logged = every_kind_of_request(4);
    dirs.write_log("changelog_61_160.bin", &logged.log);
    // Another one whose writing was not finished.
    fs::write(dirs.source.snapshots.join("snapshot_90.bin.zstd"), b"half").unwrap();
    fs::write(dirs.source.snapshots.join("tmp_snapshot_90.bin.zstd"), b"").unwrap();
    // And a damaged one, of a state to which the log leads.
    fs::write(dirs.source.snapshots.join("snapshot_70.bin.zstd"), zstd(b"\x06x")).unwrap();
    let loaded = dirs.load();
    assert_eq!(loaded.report.report.skipped.len(), 1);
    assert_eq!(loaded.report.index, logged.index);
    fs::remove_file(dirs.source.log.join("changelog_61_160.bin")).unwrap();
    dirs.refuse("end at index 60, before the snapshot 70 that cannot be read");
}

fn snapshot_path(dirs: &Dirs, version: u8) -> PathBuf {
    dirs.source.snapshots.join(keeper().write_snapshot(&dirs.source.snapshots, version, false))
}

#[test]
fn what_is_no_snapshot_of_a_keeper_is_refused() {
    let dirs = Dirs::new();
    dirs.refuse("no data of a ClickHouse Keeper");
    fs::remove_dir(&dirs.source.snapshots).unwrap();
    dirs.refuse("read directory");

    let dirs = Dirs::new();
    let path = snapshot_path(&dirs, 6);
    let whole = fs::read(&path).unwrap();
    let write = |bytes: &[u8], words: &str| {
        fs::write(&path, bytes).unwrap();
        dirs.refuse(words);
    };
    write(b"", "ends before its last field");
    write(&whole[..whole.len() - 1], "ends before its last field");
    write(b"ZKSN and something of ZooKeeper's", "compressed data cannot be read");
    write(b"CKFS in chunks", "snapshot format version 8 is unknown (known: 0 to 7)");
    write(&packed(&[9]), "snapshot format version 9 is unknown");
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    write(&damaged, "checksum of a compressed block is wrong");
    write(&packed(&Keeper { index: 59, ..keeper() }.snapshot(6)), "of log index 59, and its name says 60");
    write(&packed(&[&keeper().snapshot(6)[..], b"more"].concat()), "data behind the end");
    let mut orphan = keeper();
    orphan.node("/queue").path = "/other";
    write(&packed(&orphan.snapshot(6)), "znode /queue/n-0000000004: its parent is missing");
    let mut counter = keeper();
    counter.node("/queue").sequence = 3_000_000_000;
    write(&packed(&counter.snapshot(7)), "znode /queue: 3000000000 children were ever created");
    let mut acl = keeper();
    acl.node("/queue").acl = 5;
    write(&packed(&acl.snapshot(7)), "ACL 5 of a znode is not in the snapshot");
}

#[test]
fn a_wrong_digest_is_refused_unless_it_is_to_be_ignored() {
    let dirs = Dirs::new();
    let path = snapshot_path(&dirs, 6);
    let mut content = keeper().snapshot(6);
    let at = content.windows(4).position(|four| four == b"here").unwrap();
    content[at] = b'H';
    fs::write(&path, packed(&content)).unwrap();
    dirs.refuse("do not have the digest that ClickHouse Keeper wrote down at log index 60");
    let loaded = dirs.try_load(LoadOptions { ignore_digest: true, ..options() }).unwrap();
    assert_eq!(loaded.report.report.digest, DigestCheck::Ignored);

    // A request that Keeper carried out in another way.
    keeper().write_snapshot(&dirs.source.snapshots, 6, false);
    let mut logged = Logged::new(4);
    logged.refused(8, CREATE, create("/a", "", OPEN, 0));
    dirs.write_log("changelog_61_160.bin", &logged.log);
    dirs.refuse("at log index 61");
}

#[test]
fn what_is_no_log_of_a_keeper_is_refused() {
    let dirs = Dirs::new();
    keeper().write_snapshot(&dirs.source.snapshots, 6, true);
    let entry = |op, body| KeeperEntry { session: 8, op, body, time: 1, zxid: 51, ..KeeperEntry::default() };
    let refuse = |records: &dyn Fn(&mut KeeperLog), words: &str| {
        let mut log = KeeperLog::default();
        records(&mut log);
        dirs.write_log("changelog_61_160.bin", &log);
        dirs.refuse(words);
    };
    let request = entry(CREATE, create("/a", "", OPEN, 0));
    refuse(&|log| log.request(63, &request), "log entries 61 to 62 are missing");
    refuse(&|log| log.record(61, 3, 1, &request.encoded()), "changelog format version 3 is unknown");
    refuse(&|log| log.record(61, 2, 4, b"pack"), "unknown kind 4");
    refuse(
        &|log| log.request(61, &entry(666, Vec::new())),
        "log index 61: request has the unknown operation 666",
    );
    refuse(
        &|log| log.request(61, &entry(CREATE, b"no".to_vec())),
        "log index 61: transaction cannot be read",
    );
    refuse(
        &|log| log.request(61, &KeeperEntry { zxid: 50, ..request.clone() }),
        "zxid 0x32 comes after 0x32",
    );
    let collector = KeeperEntry { session: -2, ..request.clone() };
    refuse(&|log| log.request(61, &collector), "log index 61: request of Keeper's collector");
    let long = request.encoded().len() - 25;
    refuse(&|log| log.record(61, 2, 1, &request.encoded()[..long]), "without its time");
    refuse(
        &|log| {
            log.request(61, &request);
            log.bytes[60] ^= 1;
        },
        "checksum is wrong",
    );
    let file = dirs.source.log.join("changelog_61_160.bin");
    fs::remove_file(&file).unwrap();
    fs::write(file.with_extension("bin.zstd"), b"no zstd at all").unwrap();
    dirs.refuse("compressed data cannot be read");
    fs::remove_file(file.with_extension("bin.zstd")).unwrap();
    fs::create_dir(&file).unwrap();
    dirs.refuse("directory");
    drop(dirs.dir);
}

/// `UPDATE_SCRIPTS=1` writes the seeds anew.
#[test]
fn seeds_of_the_fuzzer_are_files_as_they_are_written_here() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let seed = |target: &str, name: &str, form: u8, bytes: &[u8]| {
        let (file, seed) = (corpus.join(target).join(name), [&[form], bytes].concat());
        if std::env::var_os("UPDATE_SCRIPTS").is_some() {
            fs::create_dir_all(file.parent().expect("it lies in the corpus of its target")).unwrap();
            fs::write(&file, &seed).unwrap();
        }
        let stored = fs::read(&file).unwrap_or_else(|error| panic!("read {}: {error}", file.display()));
        assert!(stored == seed, "{} is not what is written here: UPDATE_SCRIPTS=1", file.display());
    };
    for version in [0, 1, 4, 6, 7] {
        seed("keeper_snapshot", &format!("content-{version}"), 1, &keeper().snapshot(version));
    }
    seed("keeper_snapshot", "blocks", 0, &packed(&keeper().snapshot(6)));
    seed("keeper_snapshot", "zstd", 0, &zstd(&keeper().snapshot(6)));
    let logged = every_kind_of_request(4);
    seed("keeper_log", "records", 0, &logged.log.bytes);
    seed("keeper_log", "requests", 1, &logged.entries);
}
