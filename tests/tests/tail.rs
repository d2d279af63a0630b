//! `paddock tail`, and the stream that it reads: everything that was applied, once and in order, whatever happens to the member or to the reader.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use paddock_client::{Client, CreateMode};
use paddock_tests::administered::{
    Administered, admin_settings, authorization, connect, identity_file, name_administrator, paddock,
    refusal, succeed,
};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::free_port;
use serde_json::Value;

/// A tail that runs.
struct RunningTail {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl RunningTail {
    fn start(hosts: &str, auth: &str, more: &[&str]) -> RunningTail {
        let mut command = paddock(&[&["tail", hosts, "--auth", auth, "--json"], more].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("run paddock tail");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        RunningTail { child, out }
    }

    /// The next change.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.out.read_line(&mut line).expect("read a change") > 0, "the tail has ended");
        serde_json::from_str(&line).expect("a line is JSON")
    }

    /// Paths of creates that came about, up to the last one that is named.
    fn created_until(&mut self, last: &str) -> Vec<String> {
        let mut paths = Vec::new();
        while paths.last().is_none_or(|path| path != last) {
            let change = self.next();
            if change["operation"] == "create" && change["is_ok"] == true {
                paths.push(change["path"].as_str().expect("a create names a path").to_owned());
            }
        }
        paths
    }
}

impl Drop for RunningTail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn zxid(change: &Value, field: &str) -> i64 {
    let text = change[field].as_str().and_then(|text| text.strip_prefix("0x")).expect("a zxid");
    i64::from_str_radix(text, 16).expect("a zxid")
}

async fn create(client: &Client, path: &str) {
    client.create(path, b"", CreateMode::Persistent).await.expect("create");
}

#[tokio::test]
async fn every_change_is_told_with_what_came_of_it() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let auth = identity_file(temp.path());
    let member = Administered::start(&[]).await;
    let client = member.client().await;
    client.create("/app", b"first", CreateMode::Persistent).await.expect("create");
    client.set_data("/app", &[0xff, 0], None).await.expect("set");
    client.create("/app/job-", b"", CreateMode::PersistentSequential).await.expect("create a child");
    client.create("/app", b"", CreateMode::Persistent).await.expect_err("it is there");
    client.create("/app/own", b"", CreateMode::Ephemeral).await.expect("create an ephemeral");
    create(&client, "/other").await;
    client.close().await.expect("close");

    let host = member.admin.to_string();
    let lines = |more: &[&str]| -> Vec<Value> {
        let printed =
            succeed(&[&["tail", &host, "--auth", &auth, "--from", "0", "--once", "--json"], more].concat());
        printed.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    };
    let all = lines(&[]);
    // No transaction is left out, and each says where the next one begins.
    for pair in all.windows(2) {
        assert_eq!(zxid(&pair[0], "next"), zxid(&pair[1], "zxid"), "{pair:?}");
    }
    assert_eq!(zxid(&all[0], "zxid"), 1);
    assert!(all.iter().all(|change| change.get("data").is_none()), "data are not told unasked");
    let words = |change: &Value| -> String {
        ["operation", "path", "detail", "outcome"]
            .map(|field| change[field].as_str().unwrap_or("-"))
            .join(" | ")
    };
    let app: Vec<String> = lines(&["--path", "/app", "--data"])
        .iter()
        .map(|change| format!("{} | {}", words(change), change["data"].as_str().unwrap_or("-")))
        .collect();
    let expected = [
        "create | /app | Persistent, 5 bytes | ok | Zmlyc3Q=",
        "setData | /app | 2 bytes | ok | /wA=",
        "create | /app/job- | PersistentSequential, 0 bytes | ok /app/job-0000000000 | ",
        "create | /app | Persistent, 0 bytes | NodeExists | ",
        "create | /app/own | Ephemeral, 0 bytes | ok | ",
        "closeSession | - |  | ok /app/own | -",
    ];
    assert_eq!(app, expected);
    let text = succeed(&["tail", &host, "--auth", &auth, "--from", "1", "--once", "--path", "/other"]);
    assert!(text.contains("create /other Persistent, 0 bytes → ok") && text.lines().count() == 1, "{text}");

    let told = refusal(&["tail", &host]);
    assert!(told.contains("show an identity with --auth"), "{told}");
    let told = refusal(&["tail", "127.0.0.1:1", "--auth", &auth]);
    assert!(told.contains("connect to 127.0.0.1:1"), "{told}");
}

#[tokio::test]
async fn a_tail_goes_on_when_the_member_returns() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let auth = identity_file(temp.path());
    let mut member = Administered::start(&[]).await;
    let mut tail = RunningTail::start(&member.admin.to_string(), &auth, &["--from", "1"]);
    let mut last = 0;
    for life in 0..3 {
        let client = member.client().await;
        create(&client, &format!("/life-{life}")).await;
        loop {
            let change = tail.next();
            assert_eq!(zxid(&change, "zxid"), last + 1, "{change}");
            last = zxid(&change, "zxid");
            if change["path"] == format!("/life-{life}") {
                break;
            }
        }
        match life {
            0 => member.server.kill(),
            _ => assert!(member.server.stop().success()),
        }
        member.server.restart();
    }
}

#[tokio::test]
async fn a_follower_tells_all_over_a_change_of_the_leader() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let auth = identity_file(temp.path());
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut ensemble =
        Ensemble::start_each(3, &server_lines(3), |number| admin_settings(ports[number - 1]).to_vec());
    let hosts = ensemble.hosts();
    name_administrator(&hosts).await;
    let leader = ensemble.leader();
    let follower = (0..3).find(|place| *place != leader).expect("two follow");
    let admin = SocketAddr::from(([127, 0, 0, 1], ports[follower]));
    let mut tail = RunningTail::start(&admin.to_string(), &auth, &["--from", "1"]);
    let client = connect(&hosts).await;
    let mut expected = Vec::new();
    for number in 0..20 {
        let path = format!("/before-{number}");
        create(&client, &path).await;
        expected.push(path);
    }
    ensemble.member(leader).kill();
    for number in 0..20 {
        let path = format!("/after-{number}");
        // What the old leader has not answered may have come about or not.
        while client.exists(&path).await.is_err() {
            let _ = client.create(&path, b"", CreateMode::Persistent).await;
        }
        expected.push(path);
    }
    assert_eq!(tail.created_until("/after-19"), expected);
}

/// A stream without a reader.
fn unread(admin: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(admin).expect("connect");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is connected");
    let authorization = authorization();
    write!(
        stream,
        "GET /api/v1/changes?from=1&data=true HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n"
    )
    .expect("ask");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("it answers");
    assert!(first.starts_with(b"HTTP/1.1 "), "{first:?}");
    stream
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_up_nobody() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let auth = identity_file(temp.path());
    let member = Administered::start(&[("admin.idleTimeout", "3000")]).await;
    let client = member.client().await;
    create(&client, "/large").await;
    let mut unread: Vec<TcpStream> = (0..8).map(|_| unread(member.admin)).collect();
    let host = member.admin.to_string();
    let told = refusal(&["tail", &host, "--auth", &auth, "--once"]);
    assert!(told.contains("8 streams are open at this member"), "{told}");
    // More than is kept, and much more than fits into what is on its way.
    for _ in 0..64 {
        client.set_data("/large", &[7; 1 << 20], None).await.expect("set");
    }
    // The member has closed them: what is read now ends before all of it was told.
    for stream in &mut unread {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 40 << 20, "{} bytes were sent", rest.len());
    }
    let told = refusal(&["tail", &host, "--auth", &auth, "--from", "1", "--once"]);
    assert!(told.contains("no longer has the changes that far back: the oldest is zxid 0x"), "{told}");
    let oldest =
        told.split("zxid ").nth(1).and_then(|rest| rest.split(';').next()).expect("it names the oldest");
    let lines = succeed(&["tail", &host, "--auth", &auth, "--from", oldest, "--once", "--json"]);
    assert!((5..=16).contains(&lines.lines().count()), "{lines}");
}
