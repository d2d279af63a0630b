//! Written data stays: through snapshots under load, an orderly end under load, and crashes in the middle of a
//! snapshot. What a client had besides znodes stays, too: its session, its watches, the next number of a sequence.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Error, ErrorCode, Event, EventKind, Id, Perms};
use paddock_tests::damage::files::{files, name};
use paddock_tests::damage::gate::Gate;
use paddock_tests::damage::load::{ZnodeLoad, check_acknowledged};
use paddock_tests::damage::tree::{Tree, check_same, read_tree};
use paddock_tests::server::{Server, ServerKind};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
/// A snapshot must not keep a client waiting for longer.
const LATENCY_MAX: Duration = Duration::from_secs(2);

async fn connect(server: &Server) -> Client {
    let options = ClientOptions { session_timeout: Duration::from_secs(40), ..ClientOptions::default() };
    Client::connect(&server.address().to_string(), options).await.expect("connect")
}

/// Returns when the session goes on behind a restart.
async fn resume(client: &Client) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = client.sync("/").await {
        assert!(matches!(error, Error::ConnectionLost), "{error:?}");
        assert!(Instant::now() < deadline, "the client does not get back to its server");
    }
}

fn snapshots(server: &Server) -> Vec<PathBuf> {
    files(&server.data_directory().join("snapshots"), "snapshot-")
}

/// Changes and reads one znode, one request after the other, until `snapshots` of them were taken. Returns the
/// longest that a request took.
async fn probe_during(server: &Server, client: &Client, count: usize) -> Duration {
    client.create("/probe", b"", CreateMode::Persistent).await.expect("create");
    let (mut seen, mut longest) = (BTreeSet::new(), Duration::ZERO);
    let deadline = Instant::now() + PATIENCE;
    while seen.len() < count {
        assert!(Instant::now() < deadline, "{} snapshots in {PATIENCE:?}", seen.len());
        let started = Instant::now();
        client.set_data("/probe", b"x", None).await.expect("change");
        longest = longest.max(started.elapsed());
        let started = Instant::now();
        client.get_data("/probe").await.expect("read");
        longest = longest.max(started.elapsed());
        seen.extend(snapshots(server));
    }
    longest
}

/// One of each kind of znode. What is removed by itself is below `/garbage`.
async fn make_all_kinds(client: &Client) {
    let everyone = [Acl { perms: Perms::ALL, id: Id::new("world", "anyone") }];
    let secret = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.add_auth("digest", b"alice:secret").await.expect("show an identity");
    client.create_with_acl("/secret", b"s", &secret, CreateMode::Persistent).await.expect("create");
    client.create("/ephemeral", b"e", CreateMode::Ephemeral).await.expect("create");
    client.create("/sequence", b"", CreateMode::Persistent).await.expect("create");
    for _ in 0..3 {
        client.create("/sequence/s-", b"", CreateMode::EphemeralSequential).await.expect("create");
    }
    client.delete("/sequence/s-0000000002", None).await.expect("delete");
    let hour = client.create_ttl("/hour", b"", &everyone, CreateMode::PersistentWithTtl, 3_600_000);
    hour.await.expect("create");
    client.create("/garbage", b"", CreateMode::Persistent).await.expect("create");
    client.create("/garbage/container", b"", CreateMode::Container).await.expect("create");
    client.create("/garbage/container/child", b"", CreateMode::Persistent).await.expect("create");
    let moment = client.create_ttl("/garbage/moment", b"", &everyone, CreateMode::PersistentWithTtl, 1000);
    moment.await.expect("create");
}

async fn read_without_garbage(client: &Client) -> Tree {
    let mut tree = read_tree(client).await;
    tree.retain(|path, _| !path.starts_with("/garbage"));
    tree
}

/// A virtual machine that is moved, a container that is paused, a process that was stopped: time in which the member heard no client counts for no session.
#[tokio::test]
async fn a_session_outlives_a_member_that_stands_still_for_longer_than_its_timeout() {
    let mut server = Server::start_with(ServerKind::Paddock, &[]);
    let options = ClientOptions { session_timeout: Duration::from_secs(4), ..ClientOptions::default() };
    let client = Client::connect(&server.address().to_string(), options).await.expect("connect");
    client.create("/alive", b"", CreateMode::Ephemeral).await.expect("create an ephemeral");
    let session = client.session();
    server.pause();
    tokio::time::sleep(Duration::from_secs(12)).await;
    server.resume();
    let deadline = Instant::now() + PATIENCE;
    let owner = loop {
        match client.exists("/alive").await {
            Ok(stat) => break stat.ephemeral_owner,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((owner, client.session()), (session, session));
}

/// Waits until the server has removed a znode by itself.
async fn wait_until_gone(client: &Client, path: &str) {
    let deadline = Instant::now() + PATIENCE;
    while let Ok(stat) = client.exists(path).await {
        assert!(Instant::now() < deadline, "{path} is still there: {stat:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn snapshots_under_load_lose_nothing_and_keep_nobody_waiting() {
    let settings =
        [("snapCount", "2000"), ("preAllocSize", "256"), ("znode.container.checkIntervalMs", "200")];
    let mut server = Server::start_with(ServerKind::Paddock, &settings);
    let client = connect(&server).await;
    make_all_kinds(&client).await;
    let load = ZnodeLoad::start(connect(&server).await, "/load", 1000, 200).await;
    let longest = probe_during(&server, &client, 8).await;
    println!("the longest request took {longest:?}");
    assert!(longest < LATENCY_MAX, "a request took {longest:?}");
    let acknowledged = load.stop().await;
    assert!(!acknowledged.is_empty(), "nothing was acknowledged: this shows nothing");
    wait_until_bounded(&server).await;

    let before = read_without_garbage(&client).await;
    check_acknowledged(&before, &acknowledged);
    let session = client.session();
    server.kill();
    server.restart();
    resume(&client).await;
    assert_eq!(client.session(), session);
    check_same(&read_without_garbage(&client).await, &before, "behind the crash");
    check_kinds_go_on(&client).await;
}

/// Three snapshots are left, and the log behind the oldest of them.
async fn wait_until_bounded(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let segments = files(&server.data_directory().join("log"), "log-");
        let newest = name(segments.last().expect("a log has segments"));
        let newest = usize::from_str_radix(&newest["log-".len()..], 16).expect("a segment has a number");
        // The load ran through eight snapshots at least.
        if snapshots(server).len() == 3 && segments.len() <= newest / 2 + 1 {
            let spares = files(&server.data_directory().join("log"), "spare-").len();
            assert!(spares <= 2, "{spares} spare segments");
            return;
        }
        assert!(Instant::now() < deadline, "{} of {newest} segments are still there", segments.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn check_kinds_go_on(client: &Client) {
    let next = client.create("/sequence/s-", b"", CreateMode::PersistentSequential).await.expect("create");
    assert_eq!(next, "/sequence/s-0000000003");
    wait_until_gone(client, "/garbage/moment").await;
    client.exists("/garbage/container").await.expect("it has a child");
    client.delete("/garbage/container/child", None).await.expect("delete");
    wait_until_gone(client, "/garbage/container").await;
    client.exists("/hour").await.expect("its hour has not passed");
}

#[tokio::test]
async fn an_orderly_end_under_load_keeps_what_was_answered() {
    let mut server = Server::start(ServerKind::Paddock);
    let client = connect(&server).await;
    client.create("/ephemeral", b"", CreateMode::Ephemeral).await.expect("create");
    let session = client.session();
    for round in 0..3 {
        let writer = connect(&server).await;
        let load = ZnodeLoad::start(writer.clone(), &format!("/load-{round}"), 100, 100).await;
        server = spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(200));
            let status = server.stop();
            assert_eq!(status.code(), Some(0));
            server.restart();
            server
        })
        .await
        .expect("the server comes back");
        let acknowledged = load.ended().await;
        assert!(!acknowledged.is_empty(), "nothing was acknowledged: this shows nothing");
        resume(&writer).await;
        resume(&client).await;
        check_acknowledged(&read_tree(&client).await, &acknowledged);
        let ephemeral = client.exists("/ephemeral").await.expect("the session goes on");
        assert_eq!((client.session(), ephemeral.ephemeral_owner), (session, session));
    }
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_snapshot_loses_nothing() {
    let mut server =
        Server::start_with(ServerKind::Paddock, &[("snapCount", "3000"), ("preAllocSize", "4096")]);
    let (mut crashes, mut checked) = (0, 0);
    for round in 0..10 {
        let client = connect(&server).await;
        // Bytes by chance: they take their time, because they do not compress.
        let load = ZnodeLoad::start(client.clone(), &format!("/load-{round}"), 1000, 4000).await;
        let (hit, crashed) = spawn_blocking(move || {
            let directory = server.data_directory().join("snapshots");
            wait_for_unfinished(&directory);
            server.kill();
            let left = unfinished(&directory);
            server.restart();
            // Another one may have been begun.
            assert!(left.as_ref().is_none_or(|left| !left.exists()), "what was not finished is removed");
            (left.is_some(), server)
        })
        .await
        .expect("the server comes back");
        server = crashed;
        crashes += usize::from(hit);
        let acknowledged = load.ended().await;
        resume(&client).await;
        check_acknowledged(&read_tree(&client).await, &acknowledged);
        checked += acknowledged.len();
        if crashes >= 3 && checked > 0 {
            return;
        }
    }
    panic!("{crashes} crashes came before their snapshot was finished, and {checked} znodes were checked");
}

fn unfinished(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).expect("list the snapshots");
    entries
        .map(|entry| entry.expect("list the snapshots").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "tmp"))
}

fn wait_for_unfinished(directory: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while unfinished(directory).is_none() {
        assert!(Instant::now() < deadline, "no snapshot was begun in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn watches_fire_for_what_happened_while_their_client_was_away() {
    let mut server = Server::start(ServerKind::Paddock);
    let gate = Gate::to(server.address()).await;
    let (sender, mut events) = mpsc::unbounded_channel();
    let options = ClientOptions {
        session_timeout: Duration::from_secs(40),
        events: Some(sender),
        ..ClientOptions::default()
    };
    let away = Client::connect(&gate.address().to_string(), options).await.expect("connect");
    for path in ["/changed", "/deleted", "/parent", "/untouched"] {
        away.create(path, b"", CreateMode::Persistent).await.expect("create");
        away.watch_data(path).await.expect("watch");
    }
    away.watch_children("/parent").await.expect("watch");
    assert_eq!(away.watch_exists("/created").await.unwrap_err().code(), Some(ErrorCode::NoNode));

    gate.shut();
    assert_eq!(next(&mut events).await, Event::Disconnected);
    server.kill();
    server.restart();
    let other = connect(&server).await;
    other.set_data("/changed", b"new", None).await.expect("change");
    other.delete("/deleted", None).await.expect("delete");
    other.create("/parent/child", b"", CreateMode::Persistent).await.expect("create");
    other.create("/created", b"", CreateMode::Persistent).await.expect("create");
    gate.open();

    assert_eq!(next(&mut events).await, Event::Reconnected);
    let mut fired = BTreeSet::new();
    for _ in 0..4 {
        let Event::Znode { kind, path, .. } = next(&mut events).await else { panic!("no watch event") };
        fired.insert(format!("{path} {kind:?}"));
    }
    let expected = [
        ("/changed", EventKind::NodeDataChanged),
        ("/created", EventKind::NodeCreated),
        ("/deleted", EventKind::NodeDeleted),
        ("/parent", EventKind::NodeChildrenChanged),
    ];
    assert_eq!(fired, expected.iter().map(|(path, kind)| format!("{path} {kind:?}")).collect());

    // The watches whose znodes were left alone go on.
    other.set_data("/untouched", b"new", None).await.expect("change");
    let Event::Znode { path, .. } = next(&mut events).await else { panic!("no watch event") };
    assert_eq!(path, "/untouched");
}

async fn next(events: &mut mpsc::UnboundedReceiver<Event>) -> Event {
    timeout(PATIENCE, events.recv()).await.expect("an event in time").expect("the client lives")
}
