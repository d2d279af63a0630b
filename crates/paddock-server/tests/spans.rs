//! Requests with a tracing context become spans that are posted to an OpenTelemetry collector.

#[path = "shared/common.rs"]
mod common;

use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use common::clickhouse::ClickHouse;
use common::collector::{Collector, attribute, spans_of, tracing_to};
use common::{PATIENCE, check_served, config, connect, shutdown};
use paddock_client::CreateMode;
use paddock_proto::{Extensions, OpCode, encode};
use paddock_server::{Server, Tracing, WordList};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const NO_TRACE: &[u8] = b"\0";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const SAMPLED: u8 = 1;
/// The version of a greeting that asks for tracing contexts.
const TRACING: i32 = 12;

fn start(tracing: Tracing) -> (Server, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let config = paddock_server::Config { member: 7, tracing: Some(tracing), words: WordList::All, ..config };
    (Server::start(config).unwrap(), directory)
}

async fn traced(server: &Server) -> ClickHouse {
    let extensions = Extensions { tracing: true, ..Extensions::default() };
    ClickHouse::connect(server, TRACING, extensions).await
}

/// A tracing context as ClickHouse writes it.
fn trace(span: u64, flags: u8) -> Vec<u8> {
    format!("\u{1}0af76519-16cd-43dd-8448-eb211c80319c\n{span}\nvendor=1\n{flags}\n").into_bytes()
}

fn create(path: &str) -> impl FnOnce(&mut Vec<u8>) {
    move |out| encode::create_open(out, path, None, CreateMode::Persistent)
}

fn get_data(path: &str) -> impl FnOnce(&mut Vec<u8>) {
    move |out| encode::path_and_watch(out, path, false)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// A number that `mntr` tells, if it does.
async fn fact(server: &Server, name: &str) -> Option<u64> {
    let asked = async {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"mntr").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = timeout(PATIENCE, asked).await.expect("a word is answered");
    answer.lines().find_map(|line| line.strip_prefix(&format!("zk_{name}\t"))?.parse().ok())
}

#[tokio::test]
async fn a_traced_request_becomes_a_span() {
    let mut collector = Collector::start(200);
    let (server, _directory) = start(collector.config());
    for (wide_xids, compression) in [(false, false), (true, false), (false, true), (true, true)] {
        let extensions = Extensions { wide_xids, compression, tracing: true };
        let mut clickhouse = ClickHouse::connect(&server, TRACING, extensions).await;
        let path = format!("/a-{wide_xids}-{compression}");
        let wide = if wide_xids { 5 << 32 } else { 0 };
        let before_ns = now_ns();
        // The read behind the writes goes to the engine with them; the ping overtakes them.
        let requests = [
            clickhouse.request(wide + 1, OpCode::Create.code(), &trace(1, SAMPLED), create(&path)),
            clickhouse.request(wide + 2, OpCode::Create.code(), &trace(2, SAMPLED), create(&path)),
            clickhouse.request(wide + 3, OpCode::GetData.code(), &trace(3, SAMPLED | 2), get_data(&path)),
            clickhouse.request(-2, OpCode::Ping.code(), &trace(4, SAMPLED), |_| {}),
        ];
        clickhouse.send(&requests.concat()).await;
        let mut zxids = Vec::new();
        for _ in 0..requests.len() {
            let packet = clickhouse.receive().await.expect("a reply");
            zxids.push((packet.xid, format!("{:#x}", packet.zxid)));
        }
        // A read alone is answered by the worker.
        let alone = clickhouse.request(4, OpCode::GetData.code(), &trace(u64::MAX, SAMPLED), get_data("/no"));
        clickhouse.send(&alone).await;
        let packet = clickhouse.receive().await.expect("a reply");
        zxids.push((packet.xid, format!("{:#x}", packet.zxid)));
        let after_ns = now_ns();

        let mut spans = collector.spans(5).await;
        spans.sort_by_key(|span| span["parentSpanId"].as_str().expect("a parent").to_owned());
        let session = clickhouse.session.to_string();
        for (span, (parent, name, xid, path, error)) in spans.iter().zip([
            ("0000000000000001", "create", wide + 1, Some(path.as_str()), None),
            ("0000000000000002", "create", wide + 2, Some(path.as_str()), Some(("NODEEXISTS", "-110"))),
            ("0000000000000003", "getData", wide + 3, Some(path.as_str()), None),
            ("0000000000000004", "ping", -2, None, None),
            ("ffffffffffffffff", "getData", 4, Some("/no"), Some(("NONODE", "-101"))),
        ]) {
            let texts =
                ["traceId", "parentSpanId", "traceState", "name"].map(|key| span[key].as_str().unwrap());
            assert_eq!(texts, [TRACE_ID, parent, "vendor=1", name], "{span}");
            assert_eq!((&span["kind"], &span["status"]), (&json!(2), &Value::Null), "{span}");
            assert_eq!(attribute(span, "zookeeper.operation"), Some(name));
            assert_eq!(attribute(span, "zookeeper.xid"), Some(xid.to_string().as_str()));
            assert_eq!(attribute(span, "zookeeper.path"), path);
            assert_eq!(attribute(span, "zookeeper.session"), Some(session.as_str()));
            assert_eq!(attribute(span, "client.address"), Some("127.0.0.1"));
            let zxid = zxids.iter().find(|(replied, _)| *replied == xid).map(|(_, zxid)| zxid.as_str());
            assert_eq!(attribute(span, "zookeeper.zxid"), zxid);
            let code = attribute(span, "zookeeper.error_code");
            assert_eq!(attribute(span, "error.type").zip(code), error);
            let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
            let (start_ns, end_ns) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
            assert!(before_ns <= start_ns && start_ns < end_ns && end_ns <= after_ns, "{span}");
        }
        let ids: std::collections::HashSet<_> = spans.iter().map(|span| span["spanId"].as_str()).collect();
        assert_eq!(ids.len(), spans.len(), "every span has an id of its own");
    }
    shutdown(server).await;
}

#[tokio::test]
async fn the_resource_says_which_member_it_was() {
    let mut collector = Collector::start(200);
    let tracing = Tracing { service_name: "coordination".into(), ..collector.config() };
    let (server, _directory) = start(tracing);
    let mut clickhouse = traced(&server).await;
    clickhouse.send(&clickhouse.request(1, 4, &trace(1, SAMPLED), get_data("/"))).await;
    clickhouse.receive().await.expect("a reply");
    let post = collector.post().await;
    let resource = &post["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), Some("coordination"));
    assert_eq!(attribute(resource, "service.version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(attribute(resource, "service.instance.id"), Some("7"));
    shutdown(server).await;
}

#[tokio::test]
async fn only_sampled_requests_become_spans() {
    let mut collector = Collector::start(200);
    let (server, _directory) = start(collector.config());
    let client = connect(&server).await;
    let mut clickhouse = traced(&server).await;
    let not_a_context = b"\x01one\ntwo\nthree\nfour\n";
    for unsampled in [NO_TRACE, &trace(1, 0), &trace(1, 2), not_a_context] {
        clickhouse.send(&clickhouse.request(1, 4, unsampled, get_data("/"))).await;
        assert_eq!(clickhouse.receive().await.expect("a reply").error, 0);
    }
    check_served(&server, &client, "without tracing contexts").await;
    // What is asked last is posted last.
    clickhouse.send(&clickhouse.request(2, 4, &trace(9, SAMPLED), get_data("/"))).await;
    clickhouse.receive().await.expect("a reply");
    shutdown(server).await;
    assert_eq!(collector.spans(1).await[0]["parentSpanId"], "0000000000000009");
    assert_eq!(collector.rest(), [] as [Value; 0]);
}

#[tokio::test]
async fn a_request_that_ends_its_connection_is_a_failure() {
    let mut collector = Collector::start(200);
    let (server, _directory) = start(collector.config());
    let secret = |scheme| move |out: &mut Vec<u8>| encode::auth(out, scheme, b"user:secret");
    for (body, kind, message) in [
        (None, "UNANSWERED", "the connection ended before the reply"),
        (Some(secret("no such scheme")), "AUTHFAILED", ""),
    ] {
        let mut clickhouse = traced(&server).await;
        let request = clickhouse.request(-4, OpCode::Auth.code(), &trace(1, SAMPLED), |out| {
            if let Some(body) = body {
                body(out);
            }
        });
        clickhouse.send(&request).await;
        while clickhouse.receive().await.is_some() {}
        let span = collector.spans(1).await.remove(0);
        assert_eq!((&span["name"], attribute(&span, "error.type")), (&json!("auth"), Some(kind)), "{span}");
        assert_eq!(span["status"]["message"].as_str().unwrap_or_default(), message, "{span}");
        assert!(!span.to_string().contains("secret"), "{span}");
    }
    shutdown(server).await;
}

#[tokio::test]
async fn a_member_that_stops_posts_its_last_spans() {
    let mut collector = Collector::start(200);
    let (server, _directory) = start(collector.config());
    let mut clickhouse = traced(&server).await;
    for span in 1..=1000 {
        clickhouse.send(&clickhouse.request(1, 4, &trace(span, SAMPLED), get_data("/"))).await;
        clickhouse.receive().await.expect("a reply");
    }
    shutdown(server).await;
    let posted: Vec<usize> = collector.rest().iter().map(|post| spans_of(post).len()).collect();
    assert_eq!(posted.iter().sum::<usize>(), 1000, "{posted:?}");
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_harms_nobody() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let (server, _directory) = start(tracing_to(address));
    let client = connect(&server).await;
    let mut clickhouse = traced(&server).await;
    for xid in 1..=100 {
        clickhouse.send(&clickhouse.request(xid, 4, &trace(1, SAMPLED), get_data("/"))).await;
        assert_eq!(clickhouse.receive().await.map(|packet| packet.xid), Some(xid));
    }
    check_served(&server, &client, "without an endpoint").await;
    assert_eq!(fact(&server, "spans_exported").await, Some(0));
    shutdown(server).await;
}

#[tokio::test]
async fn what_an_endpoint_does_not_take_now_it_is_given_again() {
    let mut collector = Collector::start(503);
    let (server, _directory) = start(collector.config());
    let mut clickhouse = traced(&server).await;
    clickhouse.send(&clickhouse.request(1, 4, &trace(1, SAMPLED), get_data("/"))).await;
    clickhouse.receive().await.expect("a reply");
    let refused = collector.post().await;
    assert_eq!(fact(&server, "spans_exported").await, Some(0));
    collector.answer_with(200);
    loop {
        let (status, post) = collector.answered().await;
        assert_eq!(post, refused);
        if status == 200 {
            break;
        }
    }

    // What it does not take at all is dropped. When the next batch is there, the one before it is counted.
    for (span, status, name) in [(2, 400, "spans_exported"), (3, 200, "spans_dropped")] {
        collector.answer_with(status);
        clickhouse.send(&clickhouse.request(2, 4, &trace(span, SAMPLED), get_data("/"))).await;
        clickhouse.receive().await.expect("a reply");
        assert_eq!(collector.spans(1).await[0]["parentSpanId"], format!("{span:016x}"));
        assert_eq!(fact(&server, name).await, Some(1), "{name}");
    }
    shutdown(server).await;
}

#[tokio::test]
async fn what_finds_the_queue_full_is_dropped_and_counted() {
    // The collector takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (server, _directory) = start(tracing_to(silent.local_addr().unwrap()));
    let mut clickhouse = traced(&server).await;
    let requests: Vec<u8> =
        (1..=6000).flat_map(|xid| clickhouse.request(xid, 4, &trace(1, SAMPLED), get_data("/"))).collect();
    clickhouse.send(&requests).await;
    for xid in 1..=6000 {
        assert_eq!(clickhouse.receive().await.map(|packet| (packet.xid, packet.error)), Some((xid, 0)));
    }
    // All but those that have their place in the queue, and in the batch that is under way.
    let dropped = fact(&server, "spans_dropped").await.expect("a number");
    assert!((6000 - 4096 - 512..=6000 - 4096).contains(&dropped), "{dropped} dropped");
    assert_eq!(fact(&server, "spans_exported").await, Some(0));
    shutdown(server).await;
}
