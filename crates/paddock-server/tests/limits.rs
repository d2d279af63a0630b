//! Limits of all clients together, at a real member.

#[path = "shared/common.rs"]
mod common;

use std::time::Instant;

use common::{PATIENCE, Stranger, config, connect, request, shutdown, word};
use paddock_client::{AddWatchMode, Client, CreateMode, ErrorCode, Multi, OpCode};
use paddock_proto::{encode, jute::Writer as _};
use paddock_server::{ClientLimits, Config, MemoryMax, Server, WordList};

fn server(limits: ClientLimits, memory_max: MemoryMax, directory: &tempfile::TempDir) -> Server {
    let config = config(directory.path());
    Server::start(Config { client_limits: limits, memory_max, words: WordList::All, ..config }).unwrap()
}

fn metric(server: &Server, name: &str) -> u64 {
    let mntr = word(server.address(), "mntr");
    let line = mntr.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    line.unwrap_or_else(|| panic!("no {name} in {mntr}")).parse().expect("a number")
}

#[tokio::test]
async fn a_member_without_memory_lets_clients_read_and_delete() {
    let directory = tempfile::tempdir().unwrap();
    let before = server(ClientLimits::default(), MemoryMax::None, &directory);
    let client = connect(&before).await;
    client.create("/a", b"a", CreateMode::Persistent).await.unwrap();
    client.close().await.unwrap();
    shutdown(before).await;

    // Less than this process has.
    let server = server(ClientLimits::default(), MemoryMax::Bytes(1), &directory);
    let since = Instant::now();
    while metric(&server, "zk_memory_limit_exceeded") == 0 {
        assert!(since.elapsed() < PATIENCE, "memory is not looked at");
        tokio::task::yield_now().await;
    }
    let client = connect(&server).await;
    let refused = client.create("/b", b"", CreateMode::Persistent).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::ThrottledOp));
    let refused = client.set_data("/a", b"b", None).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::ThrottledOp));
    let refused = client.add_watch("/a", AddWatchMode::Persistent).await.err().and_then(|error| error.code());
    assert_eq!(refused, Some(ErrorCode::ThrottledOp));
    assert_eq!(client.get_data("/a").await.unwrap().bytes.as_deref(), Some(&b"a"[..]));
    client.delete("/a", None).await.unwrap();
    assert!(metric(&server, "zk_throttled_ops") >= 2);
    shutdown(server).await;
}

#[tokio::test]
async fn no_more_sessions_and_watches_are_made_than_there_may_be() {
    let directory = tempfile::tempdir().unwrap();
    let limits = ClientLimits { sessions_max: 1, watches_per_session_max: 2, ..ClientLimits::default() };
    let server = server(limits, MemoryMax::None, &directory);
    let mut client = Stranger::with_session(&server).await;
    let mut other = Stranger::connect(&server).await;
    other.send(&common::greeting()).await;
    assert_eq!(other.receive().await, None, "there is a session");

    let watch = |path: &str| request(1, OpCode::Exists.code(), |out| encode::path_and_watch(out, path, true));
    for (path, expected) in [("/a", -101), ("/b", -101), ("/c", -127), ("/b", -101)] {
        client.send(&watch(path)).await;
        assert_eq!(client.reply().await, Some((1, expected)), "{path}");
    }
    // Who brings too many with it is closed: it would wait for events in vain.
    let again = request(-8, OpCode::SetWatches.code(), |out| {
        out.put_i64(0);
        out.put_count(0);
        out.put_count(1);
        out.put_string("/d");
        out.put_count(0);
    });
    client.send(&again).await;
    while client.receive().await.is_some() {}
    assert!(metric(&server, "zk_throttled_ops") >= 2);
    shutdown(server).await;
}

/// Creates znodes below another one, with names of `name_bytes` bytes.
async fn make_children(client: &Client, parent: &str, count: usize, name_bytes: usize) {
    client.create(parent, b"", CreateMode::Persistent).await.unwrap();
    let numbers: Vec<usize> = (0..count).collect();
    for numbers in numbers.chunks(100) {
        let multi = numbers.iter().fold(Multi::new(), |multi, number| {
            multi.create(&format!("{parent}/{number:0name_bytes$}"), b"", CreateMode::Persistent)
        });
        client.multi(&multi).await.unwrap();
    }
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused_and_one_that_is_asked_for_again_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { client_buffers_max: 1 << 20, words: WordList::All, ..config(directory.path()) };
    let server = Server::start(config).unwrap();
    let client = connect(&server).await;
    // 1.2 MB of names.
    make_children(&client, "/long", 3000, 400).await;
    for _ in 0..2 {
        let refused = client.get_children("/long").await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::BadArguments));
    }
    assert_eq!(metric(&server, "zk_prepared_list_bytes"), 0);

    make_children(&client, "/short", 20, 40).await;
    assert_eq!(client.get_children("/short").await.unwrap().len(), 20);
    assert_eq!(metric(&server, "zk_prepared_list_bytes"), 0, "it was asked for once");
    assert_eq!(client.get_children("/short").await.unwrap().len(), 20);
    assert!((20 * 44..2000).contains(&metric(&server, "zk_prepared_list_bytes")));
    shutdown(server).await;
}
