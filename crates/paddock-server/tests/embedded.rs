//! A member in another program: its beginnings and ends.

#[path = "shared/common.rs"]
mod common;

use std::time::Instant;

use common::{
    PATIENCE, Stranger, config, connect, connect_with, get_data, request, set_data, shutdown, word,
};
use paddock_client::{Client, ClientOptions, CreateMode, Error, Event, OpCode};
use paddock_proto::jute::Writer;
use paddock_server::{Config, MemberSettings, Server, WordList};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

#[tokio::test]
async fn a_member_starts_again_and_again_with_what_it_had() {
    let directory = tempfile::tempdir().unwrap();
    for life in 0..4 {
        let server = Server::start(config(directory.path())).unwrap();
        let client = connect(&server).await;
        for earlier in 0..life {
            client.exists(&format!("/life-{earlier}")).await.expect("it was there before");
        }
        client.create(&format!("/life-{life}"), b"", CreateMode::Persistent).await.unwrap();
        shutdown(server).await;
    }
}

#[tokio::test]
async fn two_members_in_one_process_know_nothing_of_each_other() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, other] = directories.each_ref().map(|dir| Server::start(config(dir.path())).unwrap());
    assert_ne!(one.address(), other.address());
    let (client, other_client) = (connect(&one).await, connect(&other).await);
    client.create("/one", b"", CreateMode::Persistent).await.unwrap();
    other_client.exists("/one").await.unwrap_err();
    shutdown(one).await;
    other_client.create("/other", b"", CreateMode::Persistent).await.expect("the other goes on");
    shutdown(other).await;
}

#[tokio::test]
async fn a_directory_has_one_member() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let error = Server::start(config(directory.path())).expect_err("it is taken");
    assert!(error.to_string().contains("in use"), "{error}");
    shutdown(server).await;
    shutdown(Server::start(config(directory.path())).expect("it was given back")).await;
}

#[tokio::test]
async fn an_idle_client_does_not_hold_up_the_end_and_the_port_is_free_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let address = server.address();
    let (events, mut heard) = unbounded_channel();
    let options = ClientOptions { events: Some(events), ..ClientOptions::default() };
    let client = connect_with(&server, options).await;
    client.create("/alive", b"", CreateMode::Ephemeral).await.unwrap();
    let silent = TcpStream::connect(address).await.unwrap();

    shutdown(server).await;
    assert_eq!(timeout(PATIENCE, heard.recv()).await.unwrap(), Some(Event::Disconnected));
    let server =
        Server::start(Config { listen: address, ..config(directory.path()) }).expect("the port is free");
    assert_eq!(timeout(PATIENCE, heard.recv()).await.unwrap(), Some(Event::Reconnected));
    let alive = client.exists("/alive").await.expect("the session went on");
    assert_eq!(alive.ephemeral_owner, client.session());
    drop(silent);
    shutdown(server).await;
}

/// More than have their turns before the first of them is answered.
const READERS: usize = 100;

#[tokio::test]
async fn many_who_read_at_once_are_all_answered() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { connections_per_address_max: 0, ..config(directory.path()) };
    let server = Server::start(config).unwrap();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(Stranger::with_session(&server).await);
    }
    for round in 1..=20 {
        for reader in &mut readers {
            reader.send(&get_data(round, "/zookeeper")).await;
        }
        for reader in &mut readers {
            assert_eq!(reader.reply().await, Some((round, 0)));
        }
    }
    shutdown(server).await;
}

/// More than are taken before the end.
const WRITES: usize = 50_000;

#[tokio::test]
async fn what_was_answered_before_the_end_is_there_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let client = connect(&server).await;
    client.create("/busy", b"", CreateMode::Persistent).await.unwrap();
    let mut answers: Vec<_> = (0..WRITES).map(|number| write(&client, number)).collect();
    let untaken = answers.split_off(1);
    answers.pop().expect("there is one").await.expect("the first is answered");
    let stopping = tokio::spawn(shutdown(server));
    let mut answered = 1;
    for answer in untaken {
        match answer.await {
            Ok(_) => answered += 1,
            Err(Error::ConnectionLost) => break,
            Err(error) => panic!("write {answered}: {error:?}"),
        }
    }
    stopping.await.unwrap();

    let server = Server::start(config(directory.path())).unwrap();
    let children = connect(&server).await.get_children("/busy").await.unwrap();
    assert!(answered < WRITES, "all were answered before it ended: this shows nothing");
    // What was taken was answered, so there is nothing between the two.
    assert_eq!(children.len(), answered);
    shutdown(server).await;
}

fn write(client: &Client, number: usize) -> paddock_client::Pending<String> {
    client.create(&format!("/busy/{number:05}"), b"", CreateMode::Persistent)
}

#[tokio::test]
async fn a_member_whose_directory_is_gone_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let member_settings = MemberSettings { segment_bytes: 64 << 10, ..MemberSettings::default() };
    let server = Server::start(Config { member_settings, ..config(&data_dir) }).unwrap();
    let client = connect(&server).await;
    client.create("/a", b"", CreateMode::Persistent).await.unwrap();
    assert!(!server.has_failed());
    std::fs::remove_dir_all(&data_dir).unwrap();
    // The file it has open takes writes until the next one is needed.
    let deadline = Instant::now() + PATIENCE;
    while !server.has_failed() {
        assert!(Instant::now() < deadline, "it goes on without its directory");
        let _ =
            timeout(std::time::Duration::from_millis(100), client.set_data("/a", &[1; 10_000], None)).await;
    }
    let error = spawn_blocking(|| server.shutdown()).await.unwrap().expect_err("it failed");
    let cause = std::error::Error::source(&error).expect("it has a cause").to_string();
    assert!(cause.contains(&data_dir.display().to_string()), "{error}: {cause}");
}

/// A client alone has its writes carried out on its worker's thread, and on the engine's as soon as there are others.
#[tokio::test]
async fn order_holds_when_a_client_that_was_alone_gets_company() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(Config { workers: 1, ..config(directory.path()) }).unwrap();
    let client = connect(&server).await;
    for path in ["/first", "/second"] {
        client.create(path, b"", CreateMode::Persistent).await.unwrap();
    }
    client.close().await.unwrap();
    let mut first = Stranger::with_session(&server).await;
    for xid in 1..=200 {
        first.send(&set_data(xid, "/first", b"alone")).await;
        assert_eq!(first.reply().await, Some((xid, 0)));
    }
    let mut second = Stranger::with_session(&server).await;
    for round in 0..50 {
        let (set, get) = (1000 + 2 * round, 1001 + 2 * round);
        let data = format!("round {round}").into_bytes();
        for (stranger, path) in [(&mut first, "/first"), (&mut second, "/second")] {
            stranger.send(&[set_data(set, path, &data), get_data(get, path)].concat()).await;
        }
        for stranger in [&mut first, &mut second] {
            assert_eq!(stranger.reply().await, Some((set, 0)));
            let answer = stranger.receive().await.expect("an answer");
            let read = &answer[16..][..4 + data.len()];
            assert_eq!((&answer[..4], &read[4..]), (&get.to_be_bytes()[..], &data[..]));
        }
    }
    drop((first, second));
    shutdown(server).await;
}

#[test]
fn a_word_that_nobody_has_is_told_from_one_that_is_not_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let everything = Config { words: WordList::All, ..config(directory.path()) };
    let server = Server::start(everything).unwrap();
    let ask = |name| word(server.address(), name);
    assert_eq!(ask("ruok"), "imok");
    assert!(ask("dump").starts_with("SessionTracker dump:\n"));
    // ZooKeeper takes this for the length of a frame, which is too long.
    assert_eq!(ask("lsnp"), "");
    let first = ask("srvr").lines().next().unwrap_or_default().to_owned();
    let date = first.split_once(", built on ").expect("a version and a date").1;
    let digits: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(digits, "00/00/0000 00:00 UTC", "go-zookeeper reads no other form");
    server.shutdown().unwrap();

    let server = Server::start(config(directory.path())).unwrap();
    let refused = word(server.address(), "dump");
    assert_eq!(refused, "dump is not executed because it is not in the whitelist.\n");
    // Clients with read-only sessions cannot do without it.
    assert_eq!(word(server.address(), "isro"), "rw");
    server.shutdown().unwrap();
}

/// The answer to a word.
async fn ask(server: &Server, name: &'static str) -> String {
    let address = server.address();
    spawn_blocking(move || word(address, name)).await.unwrap()
}

/// The answer to `wchs`.
async fn told(server: &Server) -> String {
    ask(server, "wchs").await
}

#[tokio::test]
async fn statistics_are_reset_each_by_its_own_word() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(Config { words: WordList::All, ..config(directory.path()) }).unwrap();
    let mut stranger = Stranger::with_session(&server).await;
    for xid in 1..=100 {
        stranger.send(&set_data(xid, "/none", b"")).await;
        stranger.reply().await.expect("an answer");
    }
    let received = |text: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix("Received: "));
        line.expect("a line of packets").parse().expect("a number")
    };
    assert!(received(&ask(&server, "srvr").await) >= 100);
    assert_eq!(ask(&server, "srst").await, "Server stats reset.\n");
    assert!(received(&ask(&server, "srvr").await) < 10, "the words that asked are counted, and no more");
    let line = |text: String| text.lines().find(|line| line.contains("sid=")).expect("a session").to_owned();
    let before = line(ask(&server, "cons").await);
    assert!(before.contains("lop=SETD") && before.contains("lcxid=0x64"), "{before}");
    assert_eq!(ask(&server, "crst").await, "Connection stats reset.\n");
    let after = line(ask(&server, "cons").await);
    assert!(after.contains("recved=0,sent=0,sid=") && after.contains("lop=NA"), "{after}");
    assert!(
        !after.contains("lcxid=") && after.contains("lzxid=0xffffffffffffffff,lresp=0,llat=0"),
        "{after}"
    );
    shutdown(server).await;
}

#[tokio::test]
async fn who_is_gone_watches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(Config { words: WordList::All, ..config(directory.path()) }).unwrap();
    let mut watcher = Stranger::with_session(&server).await;
    for xid in 1..=3 {
        let exists = request(xid, OpCode::Exists.code(), |out| {
            out.put_string(&format!("/none-{xid}"));
            out.put_bool(true);
        });
        watcher.send(&exists).await;
        watcher.receive().await.expect("an answer");
    }
    let watches = told(&server).await;
    assert!(watches.contains("Total watches:3"), "{watches}");
    drop(watcher);
    let deadline = Instant::now() + PATIENCE;
    while !told(&server).await.contains("Total watches:0") {
        assert!(Instant::now() < deadline, "its watches stay");
    }
    shutdown(server).await;
}

/// Changes that a reader has to see, so that one of its reads waits for the writer's lock now and then.
const CHANGES_SEEN: usize = 50;
/// Writes that come together: they hold the lock for a while.
const WRITES_TOGETHER: i32 = 500;

/// Writes without a pause until it is dropped, `/watched` among much else.
async fn write_for_ever(mut writer: Stranger) {
    for round in 1.. {
        let data = format!("round {round:09}").into_bytes();
        let path = |number| if number == WRITES_TOGETHER / 2 { "/watched" } else { "/other" };
        let batch: Vec<u8> =
            (0..WRITES_TOGETHER).flat_map(|number| set_data(number, path(number), &data)).collect();
        writer.send(&batch).await;
        for _ in 0..WRITES_TOGETHER {
            writer.reply().await.expect("the writer is served");
        }
    }
}

#[tokio::test]
async fn no_read_passes_an_event_while_others_write() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(Config { workers: 2, ..config(directory.path()) }).unwrap();
    let client = connect(&server).await;
    for path in ["/watched", "/other"] {
        client.create(path, b"round 000000000", CreateMode::Persistent).await.unwrap();
    }
    client.close().await.unwrap();
    let (mut reader, writer) = (Stranger::with_session(&server).await, Stranger::with_session(&server).await);
    let writing = tokio::spawn(write_for_ever(writer));
    let read = request(1, OpCode::GetData.code(), |out| {
        out.put_string("/watched");
        out.put_bool(true);
    });
    let (mut shown, mut changes, mut was_told) = (None, 0, true);
    while changes < CHANGES_SEEN {
        reader.send(&read).await;
        let answer = loop {
            let frame = reader.receive().await.expect("the reader is served");
            match i32::from_be_bytes(frame[..4].try_into().unwrap()) {
                -1 => was_told = true,
                _ => break frame,
            }
        };
        let data = answer[20..][..15].to_vec();
        if shown.as_ref() != Some(&data) {
            assert!(was_told, "a read shows {:?} before its event came", String::from_utf8_lossy(&data));
            (shown, changes, was_told) = (Some(data), changes + 1, false);
        }
    }
    writing.abort();
    shutdown(server).await;
}
