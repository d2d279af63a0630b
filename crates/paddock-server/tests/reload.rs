//! Settings that change while a member runs.

#[path = "shared/common.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{PATIENCE, Stranger, config, connect, connect_with, request, shutdown, word};
use paddock_client::{ClientOptions, CreateMode, ErrorCode, OpCode};
use paddock_proto::encode;
use paddock_server::{ClientLimits, Config, MemoryMax, Server, WordList};

fn exists(path: &str, watch: bool) -> Vec<u8> {
    request(1, OpCode::Exists.code(), |out| encode::path_and_watch(out, path, watch))
}

fn reload(server: &Server, change: impl FnOnce(&mut Config)) -> Vec<&'static str> {
    let mut wanted = server.settings();
    change(&mut wanted);
    let changes = server.reload(&wanted).unwrap();
    assert_eq!(server.settings(), wanted, "all of it can change");
    changes.taken
}

/// Asks for a session until the timeout that is granted is this one: each worker takes other settings when it next has a moment.
async fn granted(server: &Server, expected_ms: u64) {
    let since = Instant::now();
    loop {
        let options = ClientOptions { session_timeout: Duration::from_secs(20), ..ClientOptions::default() };
        let client = connect_with(server, options).await;
        let timeout = client.session_timeout();
        client.close().await.unwrap();
        if timeout == Duration::from_millis(expected_ms) {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{timeout:?} is granted");
    }
}

#[tokio::test]
async fn limits_and_words_count_at_once_for_clients_that_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let mut client = Stranger::with_session(&server).await;
    client.send(&exists("/a", true)).await;
    assert_eq!(client.reply().await, Some((1, -101)));

    let taken = reload(&server, |wanted| {
        wanted.words = WordList::All;
        wanted.client_limits = ClientLimits { watches_max: 1, outstanding_max: 1, ..ClientLimits::default() };
        wanted.client_buffers_max = 1 << 20;
        wanted.session_timeout_ms_max = 5000;
    });
    let expected =
        ["session_timeout_ms_max", "client_buffers_max", "words", "watches_max", "outstanding_max"];
    assert_eq!(taken, expected);
    assert_eq!(word(server.address(), "ruok"), "imok");
    client.send(&exists("/b", true)).await;
    assert_eq!(client.reply().await, Some((1, ErrorCode::ThrottledOp.code())), "there is a watch already");
    granted(&server, 5000).await;
    let mntr = word(server.address(), "conf");
    assert!(mntr.contains("maxSessionTimeout=5000\n"), "{mntr}");

    // Requests that were under way when the limit came and went are counted neither twice nor too little.
    let writer = connect(&server).await;
    for round in 0..20 {
        reload(&server, |wanted| wanted.client_limits.outstanding_max = 2 - round % 2 * 2);
        writer.create("/n-", b"", CreateMode::PersistentSequential).await.unwrap();
    }
    reload(&server, |wanted| {
        wanted.client_limits = ClientLimits::default();
        wanted.connections_max = 2;
    });
    client.send(&exists("/b", true)).await;
    assert_eq!(client.reply().await, Some((1, -101)));
    let mut third = Stranger::connect(&server).await;
    assert_eq!(third.receive().await, None, "two are there");
    shutdown(server).await;
}

#[tokio::test]
async fn a_limit_of_memory_may_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let started = Config { memory_max: MemoryMax::None, ..config(directory.path()) };
    let server = Server::start(started).unwrap();
    let client = connect(&server).await;
    for (memory_max, expected) in
        [(MemoryMax::Bytes(1), Some(ErrorCode::ThrottledOp)), (MemoryMax::Percent(90), None)]
    {
        reload(&server, |wanted| wanted.memory_max = memory_max);
        let since = Instant::now();
        loop {
            let created = client.create("/a-", b"", CreateMode::PersistentSequential).await;
            if created.err().and_then(|error| error.code()) == expected {
                break;
            }
            assert!(since.elapsed() < PATIENCE, "the limit has not changed");
        }
    }
    shutdown(server).await;
}

#[tokio::test]
async fn what_needs_a_restart_is_named_and_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let before = server.settings();
    let wanted = Config { tick_ms: 1, connections_max: 9, workers: 3, ..before.clone() };
    let changes = server.reload(&wanted).unwrap();
    assert_eq!((changes.taken, changes.need_restart), (vec!["connections_max"], vec!["tick_ms", "workers"]));
    assert_eq!(server.settings(), Config { connections_max: 9, ..before });
    shutdown(server).await;
}
