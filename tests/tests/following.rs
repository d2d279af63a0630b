//! A running ensemble of Apache ZooKeeper is followed under load, and taken over from: the copy equals what ZooKeeper serves at every
//! pause, whoever was killed before, and clients go on with their sessions when Paddock stands in for all three.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Error, ErrorCode, Multi, SessionId};
use paddock_tests::ensemble::{Ensemble, MemberPlace};
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::{Release, Server, ServerKind, environment, free_port};
use tokio::sync::RwLock;
use tokio::task::JoinSet;

const WRITERS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const SESSION_TIMEOUT: Duration = Duration::from_secs(40);

/// `paddock import follow` as a process.
struct Follower {
    process: Child,
    log: PathBuf,
}

impl Follower {
    fn start(from: &str, to: &Path, arguments: &[&str]) -> Follower {
        let log = to.with_extension("log");
        let output = File::options().create(true).append(true).open(&log).expect("open the follower's log");
        let process = Command::new(environment("PADDOCK_BIN"))
            .args(["import", "follow", "--from", from, "--to"])
            .arg(to)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("share the log"))
            .stderr(output)
            .spawn()
            .expect("start paddock import follow");
        Follower { process, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("read the follower's log")
    }

    async fn says(&mut self, times: usize, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.log().matches(words).count() < times {
            let ended = self.process.try_wait().expect("ask for the exit status");
            assert!(ended.is_none(), "the follower ended: {}", self.log());
            assert!(Instant::now() < deadline, "{words} is not said {times} times: {}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }

    fn kill(&mut self) {
        self.process.kill().expect("kill the follower");
        self.process.wait().expect("wait for the follower");
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.process.try_wait().expect("ask for the exit status") {
                Some(status) => return status,
                None => assert!(Instant::now() < deadline, "the follower does not end: {}", self.log()),
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // One that has ended by itself is no longer there.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the follower said:\n{}", self.log());
        }
    }
}

/// A client with an ephemeral, and what it was told.
struct Writer {
    client: Client,
    root: String,
    session: SessionId,
    acknowledged: Vec<String>,
    /// Longest time between two acknowledged writes.
    pause: Duration,
    told: Instant,
}

impl Writer {
    async fn begin(servers: &str, number: usize) -> Writer {
        let options = ClientOptions { session_timeout: SESSION_TIMEOUT, ..ClientOptions::default() };
        let client = Client::connect(servers, options).await.expect("connect");
        let root = format!("/load-{number}");
        client.create(&root, b"", CreateMode::Persistent).await.expect("make the root");
        client
            .create(&format!("{root}/alive"), b"e", CreateMode::Ephemeral)
            .await
            .expect("make the ephemeral");
        let session = client.session();
        let (acknowledged, pause, told) = (Vec::new(), Duration::ZERO, Instant::now());
        Writer { client, root, session, acknowledged, pause, told }
    }

    /// Writes of every kind, over and over, one at a time while the gate is open; a lost connection is for the client to mend.
    async fn run(mut self, gate: Arc<RwLock<bool>>) -> Writer {
        for number in 0.. {
            let open = gate.read().await;
            if !*open {
                return self;
            }
            match self.write(number).await {
                Ok(()) => self.note(),
                Err(Error::ConnectionLost) => {}
                Err(Error::Refused { code: ErrorCode::NoNode | ErrorCode::NodeExists, .. }) => {}
                Err(error) => panic!("{}: {error:?}", self.root),
            }
        }
        self
    }

    fn note(&mut self) {
        let now = Instant::now();
        self.pause = self.pause.max(now - self.told);
        self.told = now;
    }

    async fn write(&mut self, number: usize) -> Result<(), Error> {
        let (client, root) = (&self.client, &self.root);
        let path = format!("{root}/n{number}");
        match number % 6 {
            0 => {
                client.create(&path, b"made", CreateMode::Persistent).await?;
                self.acknowledged.push(path);
            }
            1 => drop(client.set_data(root, number.to_string().as_bytes(), None).await?),
            2 => {
                let multi =
                    Multi::new().create(&path, b"multi", CreateMode::Persistent).set_data(root, b"m", None);
                client.multi(&multi).await?;
                self.acknowledged.push(path);
            }
            3 => client.delete(&format!("{root}/e{}", number.wrapping_sub(5)), None).await?,
            4 => {
                let mode = CreateMode::EphemeralSequential;
                client.create(&format!("{root}/s-"), b"", mode).await?;
            }
            _ => {
                let mode = CreateMode::PersistentWithTtl;
                client.create_ttl(&format!("{root}/e{number}"), b"t", &[Acl::open()], mode, 600_000).await?;
            }
        }
        Ok(())
    }

    /// Nothing that it was told is missing, and it is still the same session.
    async fn check(&self) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.client.sync("/").await {
            assert!(matches!(error, Error::ConnectionLost), "{error:?}");
            assert!(Instant::now() < deadline, "{} does not get to Paddock", self.root);
        }
        assert_eq!(self.client.session(), self.session, "the session goes on");
        let names = self.client.get_children(&self.root).await.expect("list the znodes");
        let there: std::collections::HashSet<String> =
            names.into_iter().map(|name| format!("{}/{name}", self.root)).collect();
        let lost: Vec<&String> = self.acknowledged.iter().filter(|path| !there.contains(*path)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let alive =
            self.client.exists(&format!("{}/alive", self.root)).await.expect("the ephemeral is there");
        assert_eq!(alive.ephemeral_owner, self.session);
    }
}

/// Account of all writers.
struct Totals {
    acknowledged: usize,
    pause: Duration,
}

/// Runs all writers on a thread of their own, whatever the test waits for, until the gate is shut for good; then checks that nothing
/// is missing.
async fn load(servers: &str, gate: Arc<RwLock<bool>>, ready: Sender<()>) -> Totals {
    let mut running = JoinSet::new();
    for number in 0..WRITERS {
        let writer = Writer::begin(servers, number).await;
        running.spawn(writer.run(gate.clone()));
    }
    ready.send(()).expect("the test waits for it");
    let mut totals = Totals { acknowledged: 0, pause: Duration::ZERO };
    for writer in running.join_all().await {
        writer.check().await;
        totals.acknowledged += writer.acknowledged.len();
        totals.pause = totals.pause.max(writer.pause);
    }
    totals
}

fn spawn_load(servers: String, gate: Arc<RwLock<bool>>) -> JoinHandle<Totals> {
    let (ready, began) = channel();
    let handle = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("make a runtime").block_on(load(&servers, gate, ready))
    });
    began.recv().expect("the writers begin");
    handle
}

/// A ZooKeeper ensemble under load, and what is to take its place.
struct Story {
    zookeeper: Ensemble,
    paddock: Server,
    from: String,
    gate: Arc<RwLock<bool>>,
    writers: Option<JoinHandle<Totals>>,
}

impl Story {
    fn begin(kind: ServerKind) -> Story {
        Story::begin_with(kind, &[])
    }

    /// The same with more lines in every `zoo.cfg`.
    fn begin_with(kind: ServerKind, lines: &[(&str, &str)]) -> Story {
        let places: Vec<MemberPlace> = (0..3).map(|_| MemberPlace::on_loopback()).collect();
        let quorum = |place: &MemberPlace| place.peers.rsplit_once(':').expect("host:port:port").0.to_owned();
        let from = places.iter().map(quorum).collect::<Vec<_>>().join(",");
        let settings = [&[("maxSessionTimeout", "120000"), ("tickTime", "1000")], lines].concat();
        let mut zookeeper = Ensemble::start_at(kind, &places, &settings);
        zookeeper.leader();
        let paddock = Server::prepare(ServerKind::Paddock, &[("maxSessionTimeout", "120000")]);
        let servers = format!("{},{}", zookeeper.hosts(), paddock.address());
        let gate = Arc::new(RwLock::new(true));
        let writers = Some(spawn_load(servers, gate.clone()));
        Story { zookeeper, paddock, from, gate, writers }
    }

    fn to(&self) -> PathBuf {
        self.paddock.data_directory()
    }

    /// Nobody writes until the copy is seen to equal what the leader serves.
    async fn compare(&mut self) {
        let _closed = self.gate.write().await;
        let leader = self.zookeeper.leader();
        let address = self.zookeeper.member(leader).address().to_string();
        let copy = format!("{}.following", self.to().display());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = Command::new(environment("PADDOCK_BIN"))
                .args([
                    "diff",
                    "--exclude",
                    "/zookeeper/config",
                    "--exclude",
                    "/zookeeper/quota",
                    &address,
                    &copy,
                ])
                .output()
                .expect("run paddock diff");
            let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            if output.status.success() {
                println!("{}", printed.lines().last().unwrap_or_default());
                return;
            }
            assert!(Instant::now() < deadline, "the copy differs: {printed}");
            tokio::time::sleep(POLL).await;
        }
    }

    async fn end_of_load(&mut self) -> Totals {
        *self.gate.write().await = false;
        self.writers.take().expect("the load has not ended").join().expect("the writers do not fail")
    }

    /// Waits for so many more acknowledged writes as one client sees them; a new epoch is many.
    async fn go_on(&self, writes: i64) {
        let options = ClientOptions { session_timeout: SESSION_TIMEOUT, ..ClientOptions::default() };
        let servers = format!("{},{}", self.zookeeper.hosts(), self.paddock.address());
        let client = Client::connect(&servers, options).await.expect("connect");
        let deadline = Instant::now() + PATIENCE;
        let mut first = None;
        loop {
            assert!(Instant::now() < deadline, "the load does not go on");
            if client.sync("/").await.is_ok() && client.exists("/").await.is_ok() {
                let now = client.last_zxid().0;
                if now - *first.get_or_insert(now) > writes {
                    break;
                }
            }
            tokio::time::sleep(POLL).await;
        }
        client.close().await.expect("close the session");
    }

    /// Stops the followers, then the leader once it has noticed.
    async fn stop_zookeeper(&mut self) {
        let leader = self.zookeeper.leader();
        for place in (0..3).filter(|place| *place != leader) {
            self.zookeeper.member(place).kill();
        }
        let deadline = Instant::now() + PATIENCE;
        while self.zookeeper.self_declared_leader().is_some() {
            assert!(Instant::now() < deadline, "the leader does not notice");
            tokio::time::sleep(POLL).await;
        }
        self.zookeeper.member(leader).kill();
    }
}

async fn an_ensemble_is_followed_and_taken_over_from(kind: ServerKind) {
    let mut story = Story::begin(kind);
    let mut follower = Follower::start(&story.from, &story.to(), &[]);
    follower.says(1, "following ").await;
    assert!(follower.log().contains("sent a snapshot"), "{}", follower.log());
    story.go_on(200).await;
    story.compare().await;

    let leader = story.zookeeper.leader();
    story.zookeeper.member(leader).kill();
    follower.says(2, "following ").await;
    story.zookeeper.member(leader).restart();
    story.go_on(100).await;
    story.compare().await;

    follower.kill();
    story.go_on(100).await;
    let config = story.paddock.config_path();
    let config = config.to_str().expect("paths of tests are text");
    let mut follower = Follower::start(&story.from, &story.to(), &["--cutover", "--config", config]);
    follower.says(2, " goes on behind zxid ").await;
    follower.says(1, "ready for the cut-over").await;
    assert_eq!(follower.log().matches("sent a snapshot").count(), 1, "{}", follower.log());
    story.compare().await;

    story.go_on(50).await;
    let began = Instant::now();
    story.stop_zookeeper().await;
    let stopping = began.elapsed();
    follower.says(1, "took over in ").await;
    story.go_on(100).await;
    let Totals { acknowledged, pause } = story.end_of_load().await;
    println!(
        "{acknowledged} creates acknowledged, none lost; stopping took {stopping:?}, longest pause {pause:?}"
    );
    let has_digest = kind != ServerKind::OldZooKeeper(Release::V3_5);
    let digest = if has_digest { "digest    as ZooKeeper wrote it" } else { "digest    not compared" };
    assert!(follower.log().contains(digest), "{}", follower.log());
}

#[tokio::test]
async fn a_running_ensemble_is_followed_and_taken_over_from() {
    an_ensemble_is_followed_and_taken_over_from(ServerKind::ZooKeeper).await;
}

/// The oldest release that says who its members are, which knows neither digests nor the ephemerals of a session that it closes.
#[tokio::test]
async fn an_ensemble_of_3_5_is_followed() {
    an_ensemble_is_followed_and_taken_over_from(ServerKind::OldZooKeeper(Release::V3_5)).await;
}

/// The releases between, when somebody asks: `PADDOCK_ALL_RELEASES=1`.
#[tokio::test]
async fn ensembles_of_the_releases_between_are_followed() {
    if std::env::var_os("PADDOCK_ALL_RELEASES").is_none() {
        println!("skipped: PADDOCK_ALL_RELEASES is not set");
        return;
    }
    for release in [Release::V3_6, Release::V3_8] {
        an_ensemble_is_followed_and_taken_over_from(ServerKind::OldZooKeeper(release)).await;
    }
}

#[tokio::test]
async fn an_ensemble_that_is_quiet_is_taken_over_from_while_it_runs() {
    let mut story = Story::begin(ServerKind::ZooKeeper);
    let mut follower = Follower::start(&story.from, &story.to(), &["--cutover", "--quiet-for", "1s"]);
    follower.says(1, "following ").await;
    story.go_on(200).await;
    let running = follower.process.try_wait().expect("ask for the exit status");
    assert!(running.is_none(), "somebody writes: {}", follower.log());
    {
        let _closed = story.gate.write().await;
        assert!(follower.ended().success(), "{}", follower.log());
        let leader = story.zookeeper.leader();
        let address = story.zookeeper.member(leader).address().to_string();
        let compared = Command::new(environment("PADDOCK_BIN"))
            .args(["diff", "--exclude", "/zookeeper/config", "--exclude", "/zookeeper/quota", &address])
            .arg(story.to())
            .output()
            .expect("run paddock diff");
        assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
    }
    story.end_of_load().await;
}

#[tokio::test]
async fn a_quorum_port_with_tls_is_called_with_tls() {
    let directory = tempfile::tempdir().expect("make a directory");
    // The host is the same for all, so that one certificate is enough.
    pem_stores(directory.path(), "an authority", 1);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (keys, trusted, zoo_cfg) = (path("1.pem"), path("trust.pem"), path("zoo.cfg"));
    let lines = [
        ("sslQuorum", "true"),
        ("ssl.quorum.keyStore.location", &keys[..]),
        ("ssl.quorum.trustStore.location", &trusted[..]),
    ];
    let text: String = lines.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    std::fs::write(&zoo_cfg, text).expect("write the settings");
    let mut story = Story::begin_with(ServerKind::ZooKeeper, &lines);

    let mut plain = Follower::start(&story.from, &story.to().with_extension("plain"), &[]);
    assert_eq!(plain.ended().code(), Some(1), "a port with TLS says nothing to others: {}", plain.log());

    let mut follower = Follower::start(&story.from, &story.to(), &["--tls", &zoo_cfg]);
    follower.says(1, "following ").await;
    story.go_on(100).await;
    story.compare().await;
    story.end_of_load().await;
}

/// A listener that says the same to everyone who greets it, and hangs up.
fn leader_that_says(words: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("listen");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            // An observer that hangs up first is none of its business.
            let _ = socket.read(&mut [0; 64]);
            let _ = socket.write_all(&words);
        }
    });
    address
}

fn packet(kind: i32, zxid: i64, data: &[u8]) -> Vec<u8> {
    let len = (data.len() as i32).to_be_bytes();
    [&kind.to_be_bytes()[..], &zxid.to_be_bytes(), &len, data, &(-1i32).to_be_bytes()].concat()
}

/// Follows a leader that cannot be believed; returns the only line that it is left with.
fn refused(directory: &Path, words: Vec<u8>) -> String {
    let address = leader_that_says(words);
    let to = directory.join(format!("paddock-{}", address.port()));
    let mut follower = Follower::start(&address.to_string(), &to, &["--cutover"]);
    assert_eq!(follower.ended().code(), Some(1), "{}", follower.log());
    assert!(!to.exists(), "nothing is made of it");
    let log = follower.log();
    let last = log.lines().last().expect("it says why");
    last.strip_prefix(&format!("error: {address}: ")).unwrap_or_else(|| panic!("{log}")).to_owned()
}

#[test]
fn a_source_that_cannot_be_believed_is_refused() {
    let directory = tempfile::tempdir().expect("make a directory");
    let refused = |words: Vec<u8>| refused(directory.path(), words);
    let greeting = packet(17, 2 << 32, &[0, 1, 0, 0]);
    assert!(refused(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).starts_with("this is not the quorum port"));
    // A snapshot of which there is only its count of sessions.
    let cut = [&greeting[..], &packet(15, 2 << 32 | 1, &[]), &[0; 4]].concat();
    assert!(refused(cut).starts_with("snapshot that the leader sends: "));
    let another_epoch = [&greeting[..], &packet(13, 1, &[]), &packet(10, 3 << 32, &[])].concat();
    assert_eq!(refused(another_epoch), "the leader's epoch is 3, but epoch 2 has been there already");
    let mut transaction = vec![0; 36];
    transaction[12..20].copy_from_slice(&(2i64 << 32 | 2).to_be_bytes());
    let gap = [&greeting[..], &packet(13, 1, &[]), &packet(8, 2 << 32 | 2, &transaction)].concat();
    assert_eq!(refused(gap), "the leader leaves transactions out: 0x0 is followed by 0x200000002");
}

#[test]
fn a_directory_with_other_things_is_left_alone() {
    let directory = tempfile::tempdir().expect("make a directory");
    let (to, copy) = (directory.path().join("new"), directory.path().join("new.following"));
    std::fs::create_dir(&copy).expect("make a directory");
    std::fs::write(copy.join("precious"), b"mine").expect("write a file");
    let from = format!("127.0.0.1:{}", free_port());
    let mut follower = Follower::start(&from, &to, &[]);
    assert_eq!(follower.ended().code(), Some(1));
    assert!(follower.log().contains("is not the working copy of an import"), "{}", follower.log());
    assert_eq!(std::fs::read(copy.join("precious")).expect("read the file"), b"mine");
}
