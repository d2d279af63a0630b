//! A running ensemble of Apache ZooKeeper is followed under load, and taken over from: the copy equals what ZooKeeper serves at every
//! pause, whichever server was killed before, and clients go on with their sessions when Paddock stands in for all three.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_proto::jute::Writer;
use paddock_proto::{
    ConnectResponse, ErrorCode, OpCode, Password, ReplyHeader, RequestHeader, SessionId, Xid, frame, jute,
};
use paddock_tests::following::{Follower, Story, Totals};
use paddock_tests::oracle::connection::{Incoming, RawConnection, greeting};
use paddock_tests::server::{Release, ServerKind, environment, free_port};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

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
    let Totals { acknowledged, pause, .. } = story.end_of_load().await;
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

/// The releases between, when the environment asks: `PADDOCK_ALL_RELEASES=1`.
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
    // Readers of the copy do not stand in its way.
    let arguments = ["--cutover", "--quiet-for", "1s", "--serve", "127.0.0.1:0", "--read-only"];
    let mut follower = Follower::start(&story.from, &story.to(), &arguments);
    follower.says(1, "serving reads at ").await;
    story.go_on(200).await;
    assert!(follower.is_running(), "somebody writes: {}", follower.log());
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

/// A session of a client that may only read.
struct Reader {
    connection: RawConnection,
    xid: i32,
}

impl Reader {
    /// `None` if the server hangs up.
    fn connect(address: SocketAddr, read_only: bool) -> Option<(Reader, ConnectResponse)> {
        let mut connection = RawConnection::open(address);
        connection.write(&greeting(SessionId::NONE, &Password::ZERO, 30_000, read_only));
        let Incoming::Frame(answer) = connection.read() else { return None };
        let response = ConnectResponse::decode(&answer).expect("an answer to a greeting");
        Some((Reader { connection, xid: 0 }, response))
    }

    fn send(&mut self, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
        self.xid += 1;
        let header = RequestHeader { xid: Xid(self.xid), op: op.code() };
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            header.encode(out);
            body(out);
        });
        self.connection.write(&bytes);
    }

    /// The next packet: its header, and what follows it.
    fn receive(&mut self) -> (ReplyHeader, Vec<u8>) {
        let Incoming::Frame(bytes) = self.connection.read() else { panic!("the server hung up") };
        let mut reader = jute::Reader::new(&bytes);
        let header = ReplyHeader::decode(&mut reader).expect("a reply");
        (header, reader.rest().to_vec())
    }

    /// Data of a znode, with a watch on it; `None` if it is not there.
    fn data(&mut self, path: &str) -> Option<Vec<u8>> {
        self.send(OpCode::GetData, |out| {
            out.put_string(path);
            out.put_bool(true);
        });
        let (header, body) = self.receive();
        if header.error.is_some() {
            return None;
        }
        let data = jute::Reader::new(&body).buffer().expect("data");
        Some(data.unwrap_or_default().to_vec())
    }

    /// Waits until a znode that may not have come yet is there.
    async fn data_of(&mut self, path: &str) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(data) = self.data(path) {
                return data;
            }
            assert!(Instant::now() < deadline, "{path} does not come");
            tokio::time::sleep(POLL).await;
        }
    }
}

#[tokio::test]
async fn the_copy_is_read_while_it_follows() {
    let mut story = Story::begin(ServerKind::ZooKeeper);
    let mut follower = Follower::start(&story.from, &story.to(), &["--serve", "127.0.0.1:0", "--read-only"]);
    follower.says(1, "serving reads at ").await;
    let log = follower.log();
    let address = log.lines().find_map(|line| line.strip_prefix("serving reads at ")).expect("it was said");
    let address: SocketAddr = address.parse().expect("an address");
    let client = connect_alone(&story).await;
    client.create("/read", b"first", CreateMode::Persistent).await.expect("create");

    let (mut reader, response) = Reader::connect(address, true).expect("whoever may only read is served");
    assert_eq!(response.read_only, Some(true));
    assert_eq!(reader.data_of("/read").await, b"first");
    client.set_data("/read", b"second", None).await.expect("set the data");
    let (event, _) = reader.receive();
    assert_eq!(event.xid, Xid(-1), "the watch fires");
    assert_eq!(reader.data("/read").as_deref(), Some(&b"second"[..]));
    reader.send(OpCode::Delete, |out| {
        out.put_string("/read");
        out.put_i32(-1);
    });
    assert_eq!(reader.receive().0.error, Some(ErrorCode::NotReadOnly));
    assert!(Reader::connect(address, false).is_none(), "a client that writes is sent away");

    // What goes with its session is seen to go; and everything else is what the leader has.
    let (owner, path) = (connect_alone(&story).await, "/ephemeral");
    owner.create(path, b"alive", CreateMode::Ephemeral).await.expect("create");
    assert_eq!(reader.data_of(path).await, b"alive");
    owner.close().await.expect("the session ends");
    let (event, _) = reader.receive();
    assert_eq!(event.xid, Xid(-1), "the watch fires");
    assert_eq!(reader.data(path), None);
    story.go_on(200).await;
    story.compare().await;
    story.end_of_load().await;
}

async fn connect_alone(story: &Story) -> Client {
    Client::connect(&story.zookeeper.hosts(), ClientOptions::default()).await.expect("connect")
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
