//! A member under Valgrind's memcheck, which sees each read of memory that was not written or is not there, and what is lost.
//!
//! `VALGRIND_BIN` names Valgrind. A member is some fifty times as slow under it, so one short conversation has to do: it should meet
//! what is not Rust (the C library's calls, the cryptography) and what uses memory in ways of its own.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, ErrorCode, Event};
use paddock_tests::server::{Server, ServerKind, environment};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

/// Exit code if there were errors.
const ERRORS: &str = "99";
const PATIENCE: Duration = Duration::from_secs(60);
/// More writes than a snapshot is taken after.
const WRITES: usize = 300;

#[tokio::test]
async fn a_short_conversation_has_no_error() {
    let reports = tempfile::tempdir().expect("a directory for reports");
    let mut server = Server::prepare(ServerKind::Paddock, &[("snapCount", "100"), ("preAllocSize", "64")]);
    let valgrind = environment("VALGRIND_BIN");
    let log_file = format!("--log-file={}/%p", reports.path().display());
    let exit_code = format!("--error-exitcode={ERRORS}");
    server.set_runner(&[
        &valgrind,
        "--tool=memcheck",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
        // Else a thread that computes keeps the others waiting: only one runs at a time.
        "--fair-sched=yes",
        &log_file,
        &exit_code,
    ]);
    server.restart();
    converse(&server).await;
    wait_for_snapshot(&server.data_directory().join("snapshots")).await;
    check_end(server.stop(), reports.path());

    server.restart();
    let client = connect(&server, ClientOptions::default()).await;
    let count = client.get_children("/parent").await.expect("list").len();
    assert_eq!(count, WRITES, "all is there after the restart");
    let gone = client.exists("/gone").await.expect_err("its session has ended");
    assert_eq!(gone.code(), Some(ErrorCode::NoNode));
    client.close().await.expect("close");
    check_end(server.stop(), reports.path());
}

async fn connect(server: &Server, options: ClientOptions) -> Client {
    let options = ClientOptions { connect_timeout: PATIENCE, ..options };
    Client::connect(&server.address().to_string(), options).await.expect("connect")
}

/// Writes, reads, a watch that is told, a session that ends with its ephemeral, words, and bytes that are no request.
async fn converse(server: &Server) {
    let (events, mut heard) = unbounded_channel();
    let watching = connect(server, ClientOptions { events: Some(events), ..ClientOptions::default() }).await;
    watching.create("/parent", b"", CreateMode::Persistent).await.expect("create");
    let other = connect(server, ClientOptions::default()).await;
    other.create("/gone", b"with its session", CreateMode::Ephemeral).await.expect("create");
    watching.watch_data("/gone").await.expect("watch");

    let created: Vec<_> = (0..WRITES)
        .map(|number| {
            watching.create(&format!("/parent/{number}"), &vec![7; number * 10], CreateMode::Persistent)
        })
        .collect();
    for answer in created {
        answer.await.expect("create");
    }
    watching.set_data("/parent", &[1; 100_000], None).await.expect("set");
    let refused = watching.set_data("/parent", b"", Some(7)).await.expect_err("another version");
    assert_eq!(refused.code(), Some(ErrorCode::BadVersion), "{refused:?}");
    assert_eq!(
        watching.get_data("/parent").await.expect("get").bytes.map(|bytes| bytes.len()),
        Some(100_000)
    );
    assert_eq!(watching.get_children("/parent").await.expect("list").len(), WRITES);

    other.close().await.expect("close");
    let event = timeout(PATIENCE, heard.recv()).await.expect("the watcher is told");
    assert!(matches!(&event, Some(Event::Znode { path, .. }) if path == "/gone"), "{event:?}");
    for word in ["srvr", "mntr", "cons", "dump", "wchs", "none"] {
        server.four_letter_word(word).expect("words are answered, or the connection is closed");
    }
    watching.close().await.expect("close");
}

async fn wait_for_snapshot(directory: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some()) {
        assert!(Instant::now() < deadline, "there is no snapshot");
        tokio::task::yield_now().await;
    }
}

/// The member ended in good order, and memcheck has seen nothing.
fn check_end(status: ExitStatus, reports: &Path) {
    let texts = fs::read_dir(reports).expect("list reports").map(|file| {
        let text = fs::read(file.expect("list reports").path()).expect("read a report");
        String::from_utf8_lossy(&text).into_owned()
    });
    let texts: Vec<String> = texts.collect();
    assert!(!texts.is_empty(), "Valgrind has reported nothing");
    for text in &texts {
        println!("{text}");
        assert!(text.contains("ERROR SUMMARY: 0 errors"), "{text}");
    }
    assert_eq!(status.code(), Some(0), "{texts:?}");
}
