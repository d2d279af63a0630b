//! `paddock import live`: a server is copied over the client protocol while others write to it, and in the end the copy has the data,
//! the ACLs and the counters of all that its sessions do not own. Both sides are read here by another client than the one under test.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{
    Acl, Client, ClientOptions, CreateMode, Error, ErrorCode, Id, Multi, Perms, SessionId, Tls, TlsFiles,
};
use paddock_tests::etcd::EtcdCluster;
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::{Release, Server, ServerKind, environment};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

const WRITERS: usize = 4;
/// Writes that have to be acknowledged between two steps of a story.
const WRITES: u64 = 300;
/// Time between two writes of a writer: the tree is to stay so small that a story is short.
const PACE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(90);
/// Time between two walks if the source tells of changes.
const WALK_EVERY: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const IDENTITY: &str = "digest:owner:secret";
const SHOWN: [&str; 4] = ["--from-auth", IDENTITY, "--to-auth", IDENTITY];

/// `paddock import live` as a process.
struct Copier {
    process: Child,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Copier {
    fn start(from: &Server, to: &Server, arguments: &[&str]) -> Copier {
        let directory = tempfile::tempdir().expect("make a directory");
        let log = directory.path().join("log");
        let output = File::create(&log).expect("make the log");
        let process = command(from, to)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("share the log"))
            .stderr(output)
            .spawn()
            .expect("start paddock import live");
        Copier { process, log, _directory: directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("read the log")
    }

    async fn says(&mut self, times: usize, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.log().matches(words).count() < times {
            let ended = self.process.try_wait().expect("ask for the exit status");
            assert!(ended.is_none(), "it ended: {}", self.log());
            assert!(Instant::now() < deadline, "{words} is not said {times} times: {}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }

    fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "send it an interrupt");
    }

    async fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().expect("ask for the exit status") {
                println!("{}", self.log());
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        // A process that has ended by itself is no longer there.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("paddock import live said:\n{}", self.log());
        }
    }
}

fn command(from: &Server, to: &Server) -> Command {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(["import", "live", "--from", &from.address().to_string()]);
    command.args(["--to", &to.address().to_string()]);
    command
}

/// Runs it to its end; its exit code, and what it printed.
fn run(from: &Server, to: &Server, arguments: &[&str]) -> (Option<i32>, String) {
    let output: Output = command(from, to).args(arguments).output().expect("run paddock import live");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).expect("it prints text"))
}

async fn connect(address: SocketAddr) -> Client {
    let client = Client::connect(&address.to_string(), ClientOptions::default()).await.expect("connect");
    client.add_auth("digest", b"owner:secret").await.expect("authenticate");
    client
}

fn secret() -> Vec<Acl> {
    vec![Acl { perms: Perms::ALL, id: Id::new("auth", "") }]
}

/// Znodes that rest: data that is empty and large, ACLs, a counter that is ahead of the children, an ephemeral.
async fn write_some_of_all(client: &Client) {
    let persistent = CreateMode::Persistent;
    client.create("/plain", b"data", persistent).await.unwrap();
    client.create("/empty", b"", persistent).await.unwrap();
    client.create("/large", &vec![7; 500_000], persistent).await.unwrap();
    client.create_with_acl("/secret", b"s", &secret(), persistent).await.unwrap();
    client.create_with_acl("/secret/below", b"t", &secret(), persistent).await.unwrap();
    client.create("/queue", b"", persistent).await.unwrap();
    for _ in 0..300 {
        client.create("/queue/n-", b"", CreateMode::PersistentSequential).await.unwrap();
    }
    for number in 1..300 {
        client.delete(&format!("/queue/n-{number:010}"), None).await.unwrap();
    }
    client.create("/owned", b"", CreateMode::Ephemeral).await.unwrap();
}

/// Writers that go on through lost connections until they are told to stop.
struct LiveLoad {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    writers: JoinSet<()>,
}

impl LiveLoad {
    async fn start(server: &Server) -> LiveLoad {
        let (stop, acknowledged) = (Arc::default(), Arc::default());
        let mut load = LiveLoad { stop, acknowledged, writers: JoinSet::new() };
        for number in 0..WRITERS {
            let client = connect(server.address()).await;
            let (stop, acknowledged) = (load.stop.clone(), load.acknowledged.clone());
            load.writers.spawn(write_on(client, number, stop, acknowledged));
        }
        load
    }

    async fn more(&self) {
        let (deadline, before) = (Instant::now() + PATIENCE, self.acknowledged.load(Ordering::Relaxed));
        while self.acknowledged.load(Ordering::Relaxed) < before + WRITES {
            assert!(Instant::now() < deadline, "the load does not go on");
            tokio::time::sleep(POLL).await;
        }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.writers.join_all().await;
    }
}

async fn write_on(client: Client, writer: usize, stop: Arc<AtomicBool>, acknowledged: Arc<AtomicU64>) {
    let root = format!("/load-{writer}");
    let mut pace = tokio::time::interval(PACE);
    // A writer that could not write does not make up for it.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0.. {
        pace.tick().await;
        if stop.load(Ordering::Relaxed) {
            return client.close().await.expect("close the session");
        }
        match write(&client, &root, number).await {
            Ok(()) => drop(acknowledged.fetch_add(1, Ordering::Relaxed)),
            Err(Error::ConnectionLost) => {}
            Err(Error::Refused { code: ErrorCode::NoNode | ErrorCode::NodeExists, .. }) => {}
            Err(Error::MultiFailed { code: ErrorCode::NoNode | ErrorCode::NodeExists, .. }) => {}
            Err(error) => panic!("{root}: {error:?}"),
        }
    }
}

async fn write(client: &Client, root: &str, number: usize) -> Result<(), Error> {
    let path = format!("{root}/{}", number % 31);
    match number % 8 {
        0 if number == 0 => client.create(root, b"", CreateMode::Persistent).await.map(drop),
        0 | 1 => client.create(&path, b"made", CreateMode::Persistent).await.map(drop),
        2 => client.set_data(&path, number.to_string().as_bytes(), None).await.map(drop),
        3 => {
            let multi = Multi::new()
                .create(&format!("{root}/m{number}"), b"multi", CreateMode::Persistent)
                .create(&format!("{root}/m{number}/below"), b"", CreateMode::Persistent)
                .set_data(root, b"multi", None);
            client.multi(&multi).await.map(drop)
        }
        4 => client.delete(&path, None).await,
        5 => client.set_acl(&path, &secret(), None).await.map(drop),
        6 => client.create(&format!("{root}/s-"), b"", CreateMode::PersistentSequential).await.map(drop),
        _ => client.create(&format!("{root}/e-"), b"", CreateMode::EphemeralSequential).await.map(drop),
    }
}

type Copied = BTreeMap<String, (Option<Vec<u8>>, Vec<Acl>)>;

/// Data and ACL of everything that no session owns and that is not the server's own.
async fn dump(client: &Client) -> Copied {
    let mut waiting = vec!["/".to_owned()];
    let mut znodes = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        let data = client.get_data(&path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        if data.stat.ephemeral_owner != SessionId::NONE {
            continue;
        }
        let (acl, _) = client.get_acl(&path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        let children = client.get_children(&path).await.expect("list children");
        let parent = if path == "/" { "" } else { &path };
        let children = children.into_iter().map(|name| format!("{parent}/{name}"));
        waiting.extend(children.filter(|path| path != "/zookeeper"));
        znodes.insert(path, (data.bytes, acl));
    }
    znodes
}

/// Both servers hold the same, and name the next sequential child of each znode alike.
async fn check_equal(source: &Server, target: &Server) {
    let (source, target) = (connect(source.address()).await, connect(target.address()).await);
    let (theirs, ours) = (dump(&source).await, dump(&target).await);
    for (path, znode) in &theirs {
        assert_eq!(Some(znode), ours.get(path), "{path}");
    }
    for path in ours.keys() {
        assert!(theirs.contains_key(path), "{path} is only in the copy");
    }
    assert!(theirs.len() >= 8, "there is something to compare");
    let mut compared = JoinSet::new();
    for path in theirs.keys().filter(|path| *path != "/") {
        let path = format!("{path}/next-");
        let (source, target) = (source.clone(), target.clone());
        compared.spawn(async move {
            let next = |client: Client| {
                let path = path.clone();
                async move { client.create(&path, b"", CreateMode::PersistentSequential).await.unwrap() }
            };
            assert_eq!(next(source).await, next(target).await);
        });
    }
    compared.join_all().await;
}

fn settings() -> [(&'static str, &'static str); 1] {
    [("maxSessionTimeout", "120000")]
}

/// Under load: the copier is ended and started again, and each server is restarted once.
async fn copied_under_load(from: ServerKind, to: ServerKind, way: &str) {
    copied_from_a_server_under_load(Server::start_with(from, &settings()), to, way).await;
}

async fn copied_from_a_server_under_load(mut source: Server, to: ServerKind, way: &str) {
    let mut target = Server::start_with(to, &settings());
    let client = connect(source.address()).await;
    write_some_of_all(&client).await;
    let load = LiveLoad::start(&source).await;
    load.more().await;
    let mut copier = Copier::start(&source, &target, &SHOWN);
    copier.says(1, way).await;
    load.more().await;

    target.kill();
    target.restart();
    load.more().await;

    let copies = copier.log().matches(way).count();
    source.kill();
    source.restart();
    copier.says(copies + 1, way).await;
    load.more().await;
    copier.process.kill().expect("kill the copier");
    drop(copier);

    load.more().await;
    let quiet = [&SHOWN[..], &["--overwrite", "--until-quiet", "2s"]].concat();
    let mut copier = Copier::start(&source, &target, &quiet);
    copier.says(1, way).await;
    load.more().await;
    load.stop().await;
    assert!(copier.ended().await.success(), "{}", copier.log());
    check_equal(&source, &target).await;
    drop(client);
}

#[tokio::test]
async fn by_watches() {
    copied_under_load(ServerKind::ZooKeeper, ServerKind::Paddock, "by its watches").await;
}

#[tokio::test]
async fn by_comparing() {
    // ZooKeeper 3.5 does not know persistent watches.
    let source = ServerKind::OldZooKeeper(Release::V3_5);
    copied_under_load(source, ServerKind::Paddock, "by comparing").await;
}

#[tokio::test]
async fn back_to_zookeeper() {
    copied_under_load(ServerKind::Paddock, ServerKind::ZooKeeper, "by its watches").await;
}

#[tokio::test]
async fn a_front_end_on_etcd_is_copied() {
    let etcd = EtcdCluster::start(1);
    let mut front = etcd.front_end_with(0, &settings(), &[]);
    front.restart();
    copied_from_a_server_under_load(front, ServerKind::Paddock, "by its watches").await;
}

/// Waits until the copy of `/told` has this data, or is gone. A walk would come too late.
async fn told(target: &Client, expected: Option<&[u8]>) {
    let deadline = Instant::now() + WALK_EVERY / 2;
    loop {
        let found = match target.get_data("/told").await {
            Ok(data) => data.bytes,
            Err(Error::Refused { code: ErrorCode::NoNode, .. }) => None,
            Err(error) => panic!("{error:?}"),
        };
        if found.as_deref() == expected {
            return;
        }
        assert!(Instant::now() < deadline, "no event brought {expected:?}, it is {found:?}");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn an_interrupt_ends_it_with_a_comparison() {
    let source = Server::start_with(ServerKind::Paddock, &settings());
    let target = Server::start_with(ServerKind::Paddock, &settings());
    let client = connect(source.address()).await;
    write_some_of_all(&client).await;
    let mut copier = Copier::start(&source, &target, &SHOWN);
    copier.says(1, "by its watches").await;
    let target_client = connect(target.address()).await;
    client.create("/told", b"1", CreateMode::Persistent).await.unwrap();
    told(&target_client, Some(b"1")).await;
    client.set_data("/told", b"2", None).await.unwrap();
    told(&target_client, Some(b"2")).await;
    client.delete("/told", None).await.unwrap();
    told(&target_client, None).await;
    // No watch tells of an ACL.
    client.set_acl("/plain", &secret(), None).await.unwrap();
    copier.interrupt();
    assert!(copier.ended().await.success(), "{}", copier.log());
    let log = copier.log();
    assert!(log.contains("written   8 created, 2 changed, 1 deleted, 2 counters raised"), "{log}");
    assert!(log.contains("left out  1 ephemeral znodes"), "{log}");
    assert!(log.contains("equal     8 znodes"), "{log}");
    check_equal(&source, &target).await;

    // Another client writes to the copy, and the operator wants it anew.
    let stranger = connect(target.address()).await;
    stranger.create("/stranger", b"", CreateMode::Persistent).await.unwrap();
    stranger.create("/stranger/below", b"", CreateMode::Persistent).await.unwrap();
    let (code, printed) = run(&source, &target, &[&SHOWN[..], &["--once"]].concat());
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("holds znodes already") && printed.contains("--overwrite"), "{printed}");
    let (code, printed) = run(&source, &target, &[&SHOWN[..], &["--once", "--overwrite"]].concat());
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("0 created, 0 changed, 2 deleted"), "{printed}");
    check_equal(&source, &target).await;
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let source = Server::start_with(ServerKind::Paddock, &settings());
    let target = Server::start_with(ServerKind::Paddock, &settings());
    let client = connect(source.address()).await;
    client.create_with_acl("/secret", b"s", &secret(), CreateMode::Persistent).await.unwrap();
    let says = |arguments: &[&str], words: &str| {
        let (code, printed) = run(&source, &target, &[&["--once"], arguments].concat());
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(words), "{words} is not in {printed}");
    };
    says(&[], "does not let /secret be read; show an identity with --from-auth");
    says(
        &["--from-auth", IDENTITY],
        "does not let /secret be read; show an identity with --from-auth or --to-auth",
    );

    let readable = [Acl { perms: Perms::READ, id: Id::new("world", "anyone") }, secret().remove(0)];
    client.set_acl("/secret", &readable, None).await.unwrap();
    says(&["--overwrite", "--to-auth", IDENTITY], "the ACL of /secret is hidden");
    let (code, printed) = run(&source, &target, &["--once", "--overwrite", "--exclude", "/secret"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("equal     1 znodes"), "{printed}");
    let same = run(&source, &source, &["--once"]);
    assert_eq!(same.0, Some(1), "{}", same.1);
    assert!(same.1.contains("is named as the source and as the target"), "{}", same.1);
}

/// A znode that only the owner of a certificate may read is copied over TLS, with the certificate shown to both.
#[tokio::test]
async fn over_tls() {
    let directory = tempfile::tempdir().expect("make a directory");
    pem_stores(directory.path(), "ours", 2);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (own, trust, shown) = (path("1.pem"), path("trust.pem"), path("2.pem"));
    let lines = [
        ("client.portUnification", "true"),
        ("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
        ("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider"),
        ("ssl.keyStore.location", &own),
        ("ssl.trustStore.location", &trust),
    ];
    let source = Server::start_with(ServerKind::Paddock, &lines);
    let target = Server::start_with(ServerKind::Paddock, &lines);
    let files = TlsFiles {
        authorities: Some(trust.clone().into()),
        certificate: Some(shown.clone().into()),
        ..TlsFiles::default()
    };
    let tls = Some(Tls::load(&files).expect("the files are good"));
    let options = ClientOptions { tls, ..ClientOptions::default() };
    let address = source.address().to_string();
    let client = Client::connect(&address, options.clone()).await.expect("connect with TLS");
    client.create_with_acl("/secret", b"s", &secret(), CreateMode::Persistent).await.unwrap();

    let (code, printed) = run(&source, &target, &["--once"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("does not let /secret be read"), "{printed}");
    let arguments = [
        ["--from-tls-ca", &trust, "--from-tls-cert", &shown],
        ["--to-tls-ca", &trust, "--to-tls-cert", &shown],
    ];
    let (code, printed) = run(&source, &target, &[&["--once"], arguments.as_flattened()].concat());
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("equal     2 znodes"), "{printed}");
    let target = Client::connect(&target.address().to_string(), options).await.expect("connect with TLS");
    assert_eq!(target.get_data("/secret").await.unwrap().bytes.as_deref(), Some(&b"s"[..]));
}
