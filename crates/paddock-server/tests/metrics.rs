//! The port for metrics, over HTTP.

#[path = "shared/common.rs"]
mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use common::{PATIENCE, config, connect, shutdown};
use paddock_client::CreateMode;
use paddock_server::{Config, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn start() -> (Server, SocketAddr, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let listen = "127.0.0.1:0".parse().ok();
    let server = Server::start(Config { metrics_listen: listen, ..config(directory.path()) }).unwrap();
    let address = server.metrics_address().expect("metrics are served");
    (server, address, directory)
}

/// Status, head and body of the answer to these bytes.
async fn ask(address: SocketAddr, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it answers soon").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_owned(), body.to_owned())
}

async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: member\r\nConnection: close\r\n\r\n")).await
}

/// Values of a page whose form has been checked: each metric has its help and its type in front.
fn values(page: &str) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let mut announced = ("", "");
    let mut parts: &[&str] = &[];
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            announced.0 = help.split_once(' ').expect("a name and a help").0;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a name and a kind");
            assert!(name == announced.0, "{line}");
            announced.1 = name;
            parts = match kind {
                "counter" | "gauge" => &[""],
                "histogram" => &["_bucket", "_sum", "_count"],
                "summary" => &["", "_sum", "_count"],
                _ => panic!("{line}"),
            };
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            let metric = name.split('{').next().expect("there is a first part");
            let part = metric.strip_prefix(announced.1);
            assert!(part.is_some_and(|part| parts.contains(&part)), "{line}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(values.insert(name.to_owned(), value).is_none(), "{name} stands there twice");
        }
    }
    values
}

#[tokio::test]
async fn prometheus_gets_the_same_numbers_as_mntr() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.create("/a", b"12345", CreateMode::Ephemeral).await.unwrap();
    let (status, head, page) = get(address, "/metrics").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let values = values(&page);
    assert_eq!(values["ephemerals_count"], 1.0);
    assert_eq!(values["num_alive_connections"], 1.0);
    assert_eq!(values["global_sessions"], 1.0);
    assert_eq!(values["paddock_role{role=\"standalone\"}"], 1.0);
    assert_eq!(values["updatelatency_count"], 2.0, "the session and the znode");
    assert!(values["readlatency{quantile=\"0.99\"}"] >= values["readlatency{quantile=\"0.5\"}"]);
    assert!(values["paddock_log_last_entry"] >= values["paddock_log_applied_entry"]);
    assert!(values["process_resident_memory_bytes"] > 1e6 && values["paddock_log_bytes"] > 0.0);
    shutdown(server).await;
}

#[tokio::test]
async fn what_is_not_there_is_refused() {
    let (server, address, _directory) = start();
    assert_eq!(get(address, "/ready").await.0, 200);
    assert_eq!(get(address, "/alive").await.0, 200);
    assert_eq!(get(address, "/live").await.0, 200);
    assert_eq!(get(address, "/").await.0, 404);
    let (status, head, _) =
        ask(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .await;
    assert!(status == 405 && head.contains("allow: GET, HEAD"), "{head}");
    let (status, head, body) =
        ask(address, "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(status == 200 && body.is_empty() && head.contains("content-length: "), "{head}");
    assert_eq!(ask(address, "\x16\x03\x01 nothing of HTTP\r\n\r\n").await.0, 400);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    assert!([0, 414, 431].contains(&ask_rudely(address, &long).await), "a head without end");
    shutdown(server).await;
}

/// As `ask`, but the member may end the connection while the request is sent.
async fn ask_rudely(address: SocketAddr, request: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it ends soon");
    String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn connections_that_say_nothing_disturb_nobody_for_long() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    client.create("/a", b"", CreateMode::Persistent).await.unwrap();
    // The first ones have to make room before another client is served.
    let mut first = silent.remove(0);
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, first.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "a connection without a request is ended");
    drop(silent);
    assert_eq!(get(address, "/ready").await.0, 200);
    shutdown(server).await;
}
