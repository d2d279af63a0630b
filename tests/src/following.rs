//! `paddock import follow` as a process, and a story around it: an ensemble of Apache ZooKeeper under load that it follows.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Error, ErrorCode, Multi, SessionId};
use paddock_relay::Relay;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use crate::ensemble::{Ensemble, MemberPlace};
use crate::server::{Server, ServerKind, environment};

const WRITERS: usize = 4;
pub const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const SESSION_TIMEOUT: Duration = Duration::from_secs(40);

/// `paddock import follow` as a process.
#[derive(Debug)]
pub struct Follower {
    process: Child,
    log: PathBuf,
}

impl Follower {
    pub fn start(from: &str, to: &Path, arguments: &[&str]) -> Follower {
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

    /// Lines of all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("read the follower's log")
    }

    /// Waits until it has said these words `times` times.
    pub async fn says(&mut self, times: usize, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.log().matches(words).count() < times {
            let ended = self.process.try_wait().expect("ask for the exit status");
            assert!(ended.is_none(), "the follower ended: {}", self.log());
            assert!(Instant::now() < deadline, "{words} is not said {times} times: {}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Sends it SIGUSR1: the cut-over may come.
    pub fn order_cutover(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::USR1).expect("send the signal");
    }

    pub fn kill(&mut self) {
        self.process.kill().expect("kill the follower");
        self.process.wait().expect("wait for the follower");
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("ask for the exit status").is_none()
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
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
        // A process that has ended by itself is no longer there.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the follower said:\n{}", self.log());
        }
    }
}

/// A client with an ephemeral, and what it was told.
struct SourceWriter {
    client: Client,
    root: String,
    session: SessionId,
    acknowledged: Vec<String>,
    /// Longest time between two acknowledged writes.
    pause: Duration,
    told: Instant,
    /// Writes of which it was not told what became.
    lost: usize,
}

impl SourceWriter {
    async fn begin(servers: &str, number: usize) -> SourceWriter {
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
        SourceWriter { client, root, session, acknowledged, pause, told, lost: 0 }
    }

    /// Writes of every kind, over and over, one at a time while the gate is open; a lost connection is for the client to mend.
    async fn run(mut self, gate: Arc<RwLock<bool>>) -> SourceWriter {
        for number in 0.. {
            let open = gate.read().await;
            if !*open {
                return self;
            }
            // Its connection may have been cut while the gate was closed, which no write is to suffer from.
            if self.client.exists(&self.root).await.is_err() {
                continue;
            }
            match self.write(number).await {
                Ok(()) => self.note(),
                Err(Error::ConnectionLost) => self.lost += 1,
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
#[derive(Debug)]
pub struct Totals {
    /// Creates that were acknowledged.
    pub acknowledged: usize,
    /// Longest time between two acknowledged writes of one client.
    pub pause: Duration,
    /// Writes of which a client was not told what became.
    pub lost: usize,
}

/// Runs all writers on a thread of their own, whatever the test waits for, until the gate is shut for good; then checks that nothing
/// is missing.
async fn load(servers: &str, gate: Arc<RwLock<bool>>, ready: Sender<()>) -> Totals {
    let mut running = JoinSet::new();
    for number in 0..WRITERS {
        let writer = SourceWriter::begin(servers, number).await;
        running.spawn(writer.run(gate.clone()));
    }
    ready.send(()).expect("the test waits for it");
    let mut totals = Totals { acknowledged: 0, pause: Duration::ZERO, lost: 0 };
    for writer in running.join_all().await {
        writer.check().await;
        totals.lost += writer.lost;
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
#[derive(Debug)]
pub struct Story {
    pub zookeeper: Ensemble,
    /// Not started: its place and its settings.
    pub paddock: Server,
    /// Quorum ports of all members.
    pub from: String,
    /// Writers go on while it can be read and holds true.
    pub gate: Arc<RwLock<bool>>,
    writers: Option<JoinHandle<Totals>>,
}

impl Story {
    /// Three members, and clients that write to them.
    pub fn begin(kind: ServerKind) -> Story {
        Story::begin_with(kind, &[])
    }

    /// A story with more lines in every `zoo.cfg`.
    pub fn begin_with(kind: ServerKind, lines: &[(&str, &str)]) -> Story {
        Story::begin_for(kind, lines, |zookeeper, paddock| {
            format!("{},{}", zookeeper.hosts(), paddock.address())
        })
    }

    /// A story with clients that know a relay in front of each member, and nothing else.
    pub fn begin_behind_relays(kind: ServerKind) -> (Story, Vec<Relay>) {
        let mut relays = Vec::new();
        let story = Story::begin_for(kind, &[], |zookeeper, _| {
            relays.extend(
                (0..3).map(|place| Relay::start(zookeeper.at(place).address()).expect("start a relay")),
            );
            relays.iter().map(|relay| relay.address().to_string()).collect::<Vec<_>>().join(",")
        });
        (story, relays)
    }

    fn begin_for(
        kind: ServerKind,
        lines: &[(&str, &str)],
        servers_of: impl FnOnce(&Ensemble, &Server) -> String,
    ) -> Story {
        let places: Vec<MemberPlace> = (0..3).map(|_| MemberPlace::on_loopback()).collect();
        let from = quorum_ports(&places);
        let settings = [&[("maxSessionTimeout", "120000"), ("tickTime", "1000")], lines].concat();
        let mut zookeeper = Ensemble::start_at(kind, &places, &settings);
        zookeeper.leader();
        let paddock = Server::prepare(ServerKind::Paddock, &[("maxSessionTimeout", "120000")]);
        let servers = servers_of(&zookeeper, &paddock);
        let gate = Arc::new(RwLock::new(true));
        let writers = Some(spawn_load(servers, gate.clone()));
        Story { zookeeper, paddock, from, gate, writers }
    }

    /// Directory that Paddock is to serve from.
    pub fn to(&self) -> PathBuf {
        self.paddock.data_directory()
    }

    /// Writers pause until the copy is seen to equal what the leader serves.
    pub async fn compare(&mut self) {
        let _closed = self.gate.write().await;
        let leader = self.zookeeper.leader();
        let address = self.zookeeper.member(leader).address().to_string();
        let copy = format!("{}.following", self.to().display());
        compare_with_copy(&address, &copy).await;
    }

    /// Ends the load; every client looks for what it was told.
    pub async fn end_of_load(&mut self) -> Totals {
        *self.gate.write().await = false;
        self.writers.take().expect("the load has not ended").join().expect("the writers do not fail")
    }

    /// Waits for so many more acknowledged writes as one client sees them; a new epoch is many.
    pub async fn go_on(&self, writes: i64) {
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
    pub async fn stop_zookeeper(&mut self) {
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

/// `host:port` of every quorum port, with commas between.
pub fn quorum_ports(places: &[MemberPlace]) -> String {
    let quorum = |place: &MemberPlace| place.peers.rsplit_once(':').expect("host:port:port").0.to_owned();
    places.iter().map(quorum).collect::<Vec<_>>().join(",")
}

/// Waits until a working copy is seen to equal what a server serves.
pub async fn compare_with_copy(address: &str, copy: &str) {
    let left_out = ["--exclude", "/zookeeper/config", "--exclude", "/zookeeper/quota"];
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut diff = Command::new(environment("PADDOCK_BIN"));
        let output = diff.arg("diff").args(left_out).args([address, copy]).output();
        let output = output.expect("run paddock diff");
        let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.success() {
            println!("{}", printed.lines().last().unwrap_or_default());
            return;
        }
        assert!(Instant::now() < deadline, "the copy differs: {printed}");
        tokio::time::sleep(POLL).await;
    }
}
