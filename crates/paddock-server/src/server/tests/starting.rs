//! HTTP before there is a state.

use std::io::{Read, Write};
use std::net::TcpStream;

use paddock_statistics::server_metrics::StartStep;

use crate::server::*;

fn config(data_dir: &std::path::Path) -> Config {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        listen: any_port,
        admin_listen: Some(any_port),
        metrics_listen: Some(any_port),
        ..Config::new(data_dir.join("data"))
    }
}

/// The answer to a request on a connection that would go on.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(socket, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    // Ends though nobody asked for that: the next request may find the member ready.
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[track_caller]
fn check(address: SocketAddr, request: &str, status: u16, text: &str) {
    let answer = ask(address, request);
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text),
        "{request}: {answer}"
    );
}

#[test]
fn a_member_that_starts_lives_and_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let opening = Opening::open(config(dir.path())).unwrap();
    let HttpAddresses { metrics, admin } = opening.http_addresses();
    let (metrics, admin) = (metrics.unwrap(), admin.unwrap());
    for address in [metrics, admin] {
        check(address, "GET /live", 200, "ok");
        check(address, "GET /alive", 200, "ok");
        check(address, "GET /ready", 503, "\"reason\":\"replaying: the start has just begun\"");
        check(address, "GET /metrics", 503, "The member starts");
    }
    check(admin, "GET /commands/stat", 503, "The member starts");
    check(admin, "POST /api/v1/snapshot", 503, "The member starts");
    opening.metrics.start_progress.note(StartStep { work: "reading log", done: 8192, unit: "entries" });
    check(admin, "GET /ready", 503, "\"reason\":\"replaying: reading log (8192 entries)\"");
    check(
        admin,
        "GET /ready",
        503,
        "\"progress\":{\"done\":8192,\"unit\":\"entries\",\"work\":\"reading log\"}",
    );

    let server = Server::start_member(opening).unwrap();
    assert_eq!((server.metrics_address(), server.admin_address()), (Some(metrics), Some(admin)));
    for address in [metrics, admin] {
        let mut socket = TcpStream::connect(address).unwrap();
        write!(socket, "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    server.shutdown().unwrap();
}

#[test]
fn a_start_that_fails_lets_its_ports_go() {
    let dir = tempfile::tempdir().unwrap();
    let running = Server::start(config(dir.path())).unwrap();
    let opening = Opening::open(config(dir.path())).unwrap();
    let address = opening.http_addresses().admin.unwrap();
    check(address, "GET /live", 200, "ok");
    Server::start_member(opening).expect_err("another one has the directory");
    TcpStream::connect(address).expect_err("nobody listens there any more");
    running.shutdown().unwrap();
}
