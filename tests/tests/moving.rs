//! Moving in from Apache ZooKeeper, and out again: what it wrote under load is imported, and what it serves itself when it is started
//! from the same files is compared with what Paddock serves, znode by znode.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use paddock_client::{
    Acl, Client, ClientOptions, CreateMode, Error, ErrorCode, Id, Multi, Perms, SessionId, Stat,
};
use paddock_tests::keeper_directories::keeper_directories;
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::{Release, Server, ServerKind, environment, free_port};

const WRITERS: usize = 4;
/// Acknowledged writes of each writer before the server is killed.
const WRITES: i32 = 400;
const PATIENCE: Duration = Duration::from_secs(60);
const AUTH: &[u8] = b"owner:secret";

/// Everything that a client can see of a znode.
type MovedZnode = (Option<Vec<u8>>, Vec<Acl>, Stat);

/// Snapshots are taken often, so that they are taken while others write.
fn settings(compression: &str) -> Vec<(&str, &str)> {
    let mut settings = vec![("snapCount", "100"), ("maxSessionTimeout", "120000")];
    if !compression.is_empty() {
        settings.push(("snapshot.compression.method", compression));
    }
    settings
}

fn options() -> ClientOptions {
    ClientOptions { session_timeout: Duration::from_secs(100), ..ClientOptions::default() }
}

async fn connect(servers: &str) -> Client {
    let client = Client::connect(servers, options()).await.expect("connect");
    client.add_auth("digest", AUTH).await.expect("authenticate");
    client
}

fn acl(perms: Perms, scheme: &str, id: &str) -> Acl {
    Acl { perms, id: Id::new(scheme, id) }
}

/// One znode of every kind, with ACLs, versions, quotas, and a counter that has gone on.
async fn write_every_kind(client: &Client) {
    let persistent = CreateMode::Persistent;
    let open = [Acl::open()];
    client.create("/plain", b"data", persistent).await.unwrap();
    client.set_data("/plain", b"newer", None).await.unwrap();
    client.create("/empty", b"", persistent).await.unwrap();
    client.create2("/container", b"c", &open, CreateMode::Container).await.unwrap();
    client.create("/container/child", b"", persistent).await.unwrap();
    client.create_ttl("/ttl", b"t", &open, CreateMode::PersistentWithTtl, 3_600_000).await.unwrap();
    let secret = [acl(Perms::ALL, "auth", "")];
    client.create_with_acl("/secret", b"s", &secret, persistent).await.unwrap();
    let mixed = [acl(Perms::READ, "world", "anyone"), acl(Perms::ALL, "ip", "127.0.0.1")];
    client.set_acl("/plain", &mixed, None).await.unwrap();
    client.create("/queue", b"", persistent).await.unwrap();
    for _ in 0..5 {
        client.create("/queue/n-", b"", CreateMode::PersistentSequential).await.unwrap();
    }
    client.delete("/queue/n-0000000004", None).await.unwrap();
    for (path, data) in [
        ("/zookeeper/quota/plain", ""),
        ("/zookeeper/quota/plain/zookeeper_limits", "count=100,bytes=1000"),
        ("/zookeeper/quota/plain/zookeeper_stats", "count=0,bytes=0"),
    ] {
        client.create(path, data.as_bytes(), persistent).await.unwrap();
    }
    client.create("/plain/counted", b"12345", persistent).await.unwrap();
    client.create("/ephemeral", b"alive", CreateMode::Ephemeral).await.unwrap();
}

/// Writes until the server is gone, or for ever: a request without a connection waits for the next one.
async fn load(client: Client, writer: usize) {
    let root = format!("/load-{writer}");
    client.create(&root, b"", CreateMode::Persistent).await.expect("make the writer's root");
    for number in 0.. {
        match write(&client, &root, number).await {
            Ok(()) => {}
            Err(Error::ConnectionLost) => return,
            Err(error) => panic!("{root}: {error:?}"),
        }
    }
}

async fn write(client: &Client, root: &str, number: i32) -> Result<(), Error> {
    let path = format!("{root}/{}", number % 17);
    let refused = |error: Error| match error {
        Error::Refused { code: ErrorCode::NodeExists | ErrorCode::NoNode | ErrorCode::NotEmpty, .. } => {
            Ok(())
        }
        other => Err(other),
    };
    match number % 5 {
        0 => client.create(&path, b"made", CreateMode::Persistent).await.map(drop).or_else(refused),
        1 => client.set_data(root, number.to_string().as_bytes(), None).await.map(drop),
        2 => {
            let multi = Multi::new()
                .create(&format!("{root}/m{number}"), b"multi", CreateMode::Persistent)
                .set_data(root, b"multi", None);
            client.multi(&multi).await.map(drop)
        }
        3 => client.delete(&path, None).await.or_else(refused),
        _ => client.create(&format!("{root}/e-"), b"", CreateMode::EphemeralSequential).await.map(drop),
    }
}

/// Everything that the server serves, but for sessions.
async fn dump(address: SocketAddr) -> BTreeMap<String, MovedZnode> {
    let client = connect(&address.to_string()).await;
    let mut waiting = vec!["/".to_owned()];
    let mut znodes = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        let data = client.get_data(&path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        let (acl, stat) = client.get_acl(&path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        assert_eq!(data.stat, stat, "nobody writes to {path}");
        let children = client.get_children(&path).await.expect("list children");
        let parent = if path == "/" { "" } else { &path };
        waiting.extend(children.into_iter().map(|name| format!("{parent}/{name}")));
        znodes.insert(path, (data.bytes, acl, stat));
    }
    client.close().await.expect("close the session");
    znodes
}

fn check_same(left: &BTreeMap<String, MovedZnode>, right: &BTreeMap<String, MovedZnode>) {
    for (path, znode) in left {
        assert_eq!(Some(znode), right.get(path), "{path}");
    }
    for path in right.keys() {
        assert!(left.contains_key(path), "{path} is only in one of them");
    }
}

fn paddock(arguments: &[&str]) -> Output {
    Command::new(environment("PADDOCK_BIN")).args(arguments).output().expect("run paddock")
}

/// Runs to the end and returns what it printed.
fn run(arguments: &[&str]) -> String {
    let output = paddock(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "paddock {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("the report is text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// A ZooKeeper that was killed under load, a Paddock that has what it wrote, and a client that lived through both.
struct Moved {
    zookeeper: Server,
    paddock: Server,
    client: Client,
    session: SessionId,
    report: String,
}

async fn move_in(kind: ServerKind, compression: &str) -> Moved {
    let mut zookeeper = Server::start_with(kind, &settings(compression));
    let mut paddock = Server::prepare(ServerKind::Paddock, &[("maxSessionTimeout", "120000")]);
    // The client goes to Paddock when ZooKeeper is gone.
    let client = connect(&format!("{},{}", zookeeper.address(), paddock.address())).await;
    write_every_kind(&client).await;
    let session = client.session();
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let client = connect(&zookeeper.address().to_string()).await;
        writers.push(tokio::spawn(load(client, writer)));
    }
    let deadline = Instant::now() + PATIENCE;
    while client.last_zxid().0 < i64::from(WRITES) * WRITERS as i64 {
        assert!(Instant::now() < deadline, "the load does not go on");
        client.sync("/").await.expect("ZooKeeper answers");
    }
    zookeeper.kill();
    for writer in writers {
        writer.abort();
        let ended = writer.await;
        assert!(ended.as_ref().is_err_and(|error| error.is_cancelled()) || ended.is_ok(), "{ended:?}");
    }
    let (from, to) = (zookeeper.data_directory(), paddock.data_directory());
    let report = run(&["import", "zookeeper", "--data-dir", text(&from), "--to", text(&to)]);
    println!("{report}");
    paddock.restart();
    Moved { zookeeper, paddock, client, session, report }
}

/// The client goes on with its old session, and its ephemeral is there until it closes it.
async fn check_session(moved: &Moved) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = moved.client.sync("/").await {
        assert!(matches!(error, Error::ConnectionLost), "{error:?}");
        assert!(Instant::now() < deadline, "the client does not get to Paddock");
    }
    assert_eq!(moved.client.session(), moved.session);
    let ephemeral = moved.client.exists("/ephemeral").await.expect("the ephemeral is there");
    assert_eq!(ephemeral.ephemeral_owner, moved.session);
}

async fn what_zookeeper_wrote_is_what_paddock_serves(kind: ServerKind, compression: &str) {
    let mut moved = move_in(kind, compression).await;
    let has_digest = kind != ServerKind::OldZooKeeper(Release::V3_5);
    let digest = if has_digest { "digest    as ZooKeeper wrote it" } else { "digest    not compared" };
    assert!(moved.report.contains(digest), "{}", moved.report);
    check_session(&moved).await;
    let ours = dump(moved.paddock.address()).await;
    moved.zookeeper.restart();
    let theirs = dump(moved.zookeeper.address()).await;
    check_same(&theirs, &ours);
    assert!(ours.len() > WRITERS * 20, "the load left something to compare");

    let next = moved.client.create("/queue/n-", b"", CreateMode::PersistentSequential).await.unwrap();
    assert_eq!(next, "/queue/n-0000000005", "the counter goes on");
    moved.client.close().await.expect("the session ends");
    let client = connect(&moved.paddock.address().to_string()).await;
    let gone = client.exists("/ephemeral").await;
    assert!(matches!(gone, Err(Error::Refused { code: ErrorCode::NoNode, .. })), "{gone:?}");
}

#[tokio::test]
async fn plain_snapshots() {
    what_zookeeper_wrote_is_what_paddock_serves(ServerKind::ZooKeeper, "").await;
}

#[tokio::test]
async fn gzip_snapshots() {
    what_zookeeper_wrote_is_what_paddock_serves(ServerKind::ZooKeeper, "gz").await;
}

#[tokio::test]
async fn snappy_snapshots() {
    what_zookeeper_wrote_is_what_paddock_serves(ServerKind::ZooKeeper, "snappy").await;
}

#[tokio::test]
async fn files_of_3_8() {
    what_zookeeper_wrote_is_what_paddock_serves(ServerKind::OldZooKeeper(Release::V3_8), "").await;
}

#[tokio::test]
async fn files_of_3_6() {
    what_zookeeper_wrote_is_what_paddock_serves(ServerKind::OldZooKeeper(Release::V3_6), "gz").await;
}

#[tokio::test]
async fn files_of_3_5() {
    what_zookeeper_wrote_is_what_paddock_serves(ServerKind::OldZooKeeper(Release::V3_5), "").await;
}

#[tokio::test]
async fn back_to_zookeeper() {
    let mut moved = move_in(ServerKind::ZooKeeper, "").await;
    check_session(&moved).await;
    moved.client.create("/of-paddock", b"new", CreateMode::Persistent).await.unwrap();
    moved.client.create("/queue/n-", b"", CreateMode::PersistentSequential).await.unwrap();
    moved.client.create("/ephemeral-of-paddock", b"", CreateMode::Ephemeral).await.unwrap();
    let ours = dump(moved.paddock.address()).await;
    assert!(moved.paddock.stop().success());

    let mut back = Server::prepare(ServerKind::ZooKeeper, &[("maxSessionTimeout", "120000")]);
    let (from, to) = (moved.paddock.data_directory(), back.data_directory());
    println!("{}", run(&["export", "zookeeper", "--data-dir", text(&from), "--to", text(&to)]));
    back.restart();
    let theirs = dump(back.address()).await;
    check_same(&ours, &theirs);
    assert!(theirs.contains_key("/ephemeral-of-paddock"), "the session went with it");
    let refused = paddock(&["export", "zookeeper", "--data-dir", text(&from), "--to", text(&to)]);
    assert_eq!(refused.status.code(), Some(1), "nothing is written over");
}

#[tokio::test]
async fn back_from_a_member_that_runs() {
    let (port, secure_port) = (free_port().to_string(), free_port().to_string());
    let stores = tempfile::tempdir().unwrap();
    pem_stores(stores.path(), "an authority", 1);
    let (keys, trusted) = (stores.path().join("1.pem"), stores.path().join("trust.pem"));
    let lines = [
        ("admin.enableServer", "true"),
        ("admin.serverPort", &port),
        ("admin.portUnification", "true"),
        // Its keys are those of a port for clients.
        ("secureClientPort", &secure_port),
        ("ssl.keyStore.location", text(&keys)),
        ("ssl.trustStore.location", text(&trusted)),
        ("maxSessionTimeout", "120000"),
    ];
    let paddock_server = Server::start_with(ServerKind::Paddock, &lines);
    let client = connect(&paddock_server.address().to_string()).await;
    write_every_kind(&client).await;
    let root = [acl(Perms::READ, "world", "anyone"), acl(Perms::ALL, "auth", "")];
    client.set_acl("/", &root, None).await.unwrap();
    let ours = dump(paddock_server.address()).await;

    let mut back = Server::prepare(ServerKind::ZooKeeper, &[("maxSessionTimeout", "120000")]);
    let to = back.data_directory();
    let url = format!("http://127.0.0.1:{port}");
    // Behind --auth itself a secret would be warned of.
    let identity = |password: &str| {
        let file = stores.path().join(password);
        fs::write(&file, format!("digest:owner:{password}")).expect("write an identity");
        format!("@{}", text(&file))
    };
    let (owner, stranger) = (identity("secret"), identity("wrong"));
    let export = |source: &[&str]| {
        let output = paddock(&[&["export", "zookeeper", "--to", text(&to)], source].concat());
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let refused = |source: &[&str], words: &str| {
        let (code, printed) = export(source);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(words) && printed.lines().count() == 1, "{words} is not in {printed}");
    };
    refused(&["--from", &url], "show an identity with --auth that the ACL of / names");
    refused(&["--from", &url, "--auth", &stranger], "is no administrator");
    refused(&["--from", &format!("http://{}", paddock_server.address())], "for a snapshot");
    refused(&["--from", "127.0.0.1:1"], "expected http://host:port");
    let secure = url.replace("http:", "https:");
    refused(&["--from", &secure], "with --tls-ca");
    refused(&["--from", &secure, "--tls-ca", text(&trusted)], "show an identity with --auth");
    pem_stores(&stores.path().join("others"), "another authority", 1);
    let others = stores.path().join("others/trust.pem");
    refused(&["--from", &secure, "--tls-ca", text(&others)], "connect to 127.0.0.1");

    let (code, printed) = export(&["--from", &secure, "--tls-ca", text(&trusted), "--auth", &owner]);
    assert_eq!(code, Some(0), "{printed}");
    back.restart();
    let theirs = dump(back.address()).await;
    check_same(&ours, &theirs);
    assert!(theirs.contains_key("/ephemeral"), "the session is in it");
    back.kill();
    refused(&["--from", &url, "--auth", &owner], "not empty");

    // The file that the member took for it.
    let directory =
        fs::read_dir(paddock_server.data_directory().join("snapshots")).expect("list the snapshots");
    let snapshot = directory.map(|file| file.unwrap().path()).max().expect("there is one");
    let other = tempfile::tempdir().unwrap();
    let again = other.path().join("again");
    run(&["export", "zookeeper", "--snapshot", text(&snapshot), "--to", text(&again)]);
    let (code, printed) = diff(&[text(&to), text(&again)]);
    assert_eq!(code, Some(0), "{printed}");
    let elsewhere = other.path().join("elsewhere");
    let soon = ["export", "zookeeper", "--from", &url, "--auth", &owner, "--to", text(&elsewhere)];
    let soon = String::from_utf8(paddock(&soon).stderr).unwrap();
    assert!(soon.contains("try again later"), "{soon}");
    assert!(!elsewhere.with_extension("snapshot").exists(), "nothing is left behind");
}

/// The lines of `zoo.cfg` that name three members.
fn member_lines() -> Vec<(String, String)> {
    let line = |id| (format!("server.{id}"), format!("127.0.0.1:{}:{}", free_port(), free_port()));
    (1..=3).map(line).collect()
}

#[tokio::test]
async fn an_ensemble_grows_from_what_was_imported() {
    let mut zookeeper = Server::start_with(ServerKind::ZooKeeper, &[]);
    let client = connect(&zookeeper.address().to_string()).await;
    write_every_kind(&client).await;
    zookeeper.kill();

    let lines = member_lines();
    let settings: Vec<(&str, &str)> = lines.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let mut members: Vec<Server> = (0..3).map(|_| Server::prepare(ServerKind::Paddock, &settings)).collect();
    let (from, to) = (zookeeper.data_directory(), members[0].data_directory());
    run(&["import", "zookeeper", "--data-dir", text(&from), "--to", text(&to)]);
    for (number, member) in members.iter().enumerate() {
        fs::write(member.data_directory().join("myid"), (number + 1).to_string()).expect("write myid");
    }
    members[0].restart();
    // Both at once: two members without data may each have begun a log before they hear of the first one.
    members[1..].iter_mut().for_each(Server::spawn);
    // A member that joins begins with nothing, and must be given all that was imported before it counts.
    let leader = dump(members[0].address()).await;
    assert!(leader.contains_key("/ephemeral"), "the session goes on");
    for member in &members[1..] {
        let joined = connect(&member.address().to_string()).await;
        joined.sync("/").await.expect("the member serves");
        let mut theirs = dump(member.address()).await;
        let mut ours = leader.clone();
        // Each change of members is written there.
        ours.remove("/zookeeper/config");
        theirs.remove("/zookeeper/config");
        check_same(&ours, &theirs);
    }
}

const SHOWN: [&str; 2] = ["--auth", "digest:owner:secret"];

/// Runs `paddock diff`; returns its exit code and what it printed.
fn diff(arguments: &[&str]) -> (Option<i32>, String) {
    let output = paddock(&[&["diff"], arguments].concat());
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).expect("the differences are text"))
}

#[tokio::test]
async fn trees_are_compared_wherever_they_are() {
    let zookeeper = Server::start_with(ServerKind::ZooKeeper, &settings(""));
    let address = zookeeper.address().to_string();
    let client = connect(&address).await;
    write_every_kind(&client).await;
    // Names between which "/" stands in the order of bytes.
    for path in ["/plain-", "/plain0", "/plain-/x"] {
        client.create(path, b"", CreateMode::Persistent).await.unwrap();
    }
    let paddock = Server::prepare(ServerKind::Paddock, &[]);
    let (from, to) = (zookeeper.data_directory(), paddock.data_directory());
    run(&["import", "zookeeper", "--data-dir", text(&from), "--to", text(&to)]);
    let equal = |a: &str, b: &str| {
        let (code, printed) = diff(&[&SHOWN[..], &["--exclude", "/zookeeper/quota", a, b]].concat());
        assert_eq!(code, Some(0), "{a} and {b}: {printed}");
        assert!(printed.contains("19 znodes equal, 0 different, 0 only in A, 0 only in B"), "{printed}");
    };
    equal(&address, text(&to));
    equal(text(&from), &address);
    equal(text(&from), text(&to));
    equal(&format!("{0},{0}", text(&from)), &address);

    client.set_data("/plain", b"changed", None).await.unwrap();
    client.delete("/plain-/x", None).await.unwrap();
    client.create("/queue/a", b"", CreateMode::Persistent).await.unwrap();
    let (code, printed) = diff(&[&SHOWN[..], &["--exclude", "/zookeeper", &address, text(&to)]].concat());
    assert_eq!(code, Some(1), "{printed}");
    for line in [
        "different  /plain: data (7 bytes and 5 bytes), mzxid (",
        "different  /plain-: pzxid (",
        "different  /queue: pzxid (",
        "only in A  /queue/a\n",
        "only in B  /plain-/x\n",
        "3 different, 1 only in A, 1 only in B\n",
    ] {
        assert!(printed.contains(line), "{line} is not in {printed}");
    }

    let (code, printed) = diff(&[&address, text(&to)]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("does not let /secret be read; show an identity with --auth"), "{printed}");
    let (code, printed) = diff(&["/not/there", text(&to)]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("/not/there is neither a server"), "{printed}");
}

#[tokio::test]
async fn files_of_a_clickhouse_keeper() {
    let root = tempfile::tempdir().unwrap();
    let [snapshots, log] = keeper_directories(root.path());
    let mut server = Server::prepare(ServerKind::Paddock, &[("maxSessionTimeout", "120000")]);
    let to = server.data_directory();
    let from = ["import", "keeper", "--snapshots", text(&snapshots), "--log", text(&log)];
    let report = run(&[&from[..], &["--dry-run"]].concat());
    assert!(
        report.contains("digest    as Keeper wrote it") && report.contains("written   nothing"),
        "{report}"
    );
    let import = [&from[..], &["--to", text(&to)]].concat();
    println!("{}", run(&import));
    let again = paddock(&import);
    assert_eq!(again.status.code(), Some(1), "nothing is written over");

    server.restart();
    let client = connect(&server.address().to_string()).await;
    let data = client.get_data("/a").await.expect("the owner may read it");
    assert_eq!((data.bytes.as_deref(), data.stat.version, data.stat.aversion), (Some(&b"22"[..]), 1, 1));
    let next = client.create("/queue/n-", b"", CreateMode::PersistentSequential).await.unwrap();
    assert_eq!(next, "/queue/n-0000000006", "the counter goes on");
    let ephemeral = client.exists("/of-nine").await.expect("its session has not timed out");
    assert_eq!(ephemeral.ephemeral_owner, SessionId(9));
    client.close().await.expect("the session ends");

    // One line and nothing written, where the log does not go on behind the snapshot.
    fs::rename(log.join("changelog_61_160.bin"), log.join("changelog_61_160.bin.zstd")).unwrap();
    let elsewhere = root.path().join("elsewhere");
    let refused = paddock(&[&from[..], &["--to", text(&elsewhere)]].concat());
    let printed = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(printed.contains("changelog_61_160.bin.zstd") && printed.lines().count() == 1, "{printed}");
    assert!(!elsewhere.exists());
}
