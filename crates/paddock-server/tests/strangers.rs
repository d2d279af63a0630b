//! Clients that send what no client sends, too much, or nothing: each harms only itself.

#[path = "shared/common.rs"]
mod common;

use std::time::Duration;

use common::{
    PATIENCE, Stranger, check_served, config, connect, connect_with, get_data, request, set_data, shutdown,
};
use paddock_client::{Client, ClientOptions, CreateMode, ErrorCode, OpCode};
use paddock_proto::jute::Writer;
use paddock_server::{Config, Server};
use tokio::time::timeout;

const FRAME_BYTES_MAX: i32 = 1 << 20;

/// A member, a client of it that behaves, and the directory they need.
async fn member(frame_bytes_max: i32) -> (Server, Client, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(Config { frame_bytes_max, ..config(directory.path()) }).unwrap();
    let client = connect(&server).await;
    client.create("/a", b"a", CreateMode::Persistent).await.unwrap();
    (server, client, directory)
}

/// Bytes that look like chance and are the same in every run.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| byte()).collect()
}

#[tokio::test]
async fn who_does_not_greet_properly_is_sent_away() {
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let tls_hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &noise(500)].concat();
    let greetings: [(&str, &[u8]); 6] = [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("TLS", &tls_hello),
        ("noise", &noise(1 << 20)),
        ("a negative length", &[0xff; 4]),
        ("an empty frame", &[0; 4]),
        ("a greeting that is too long", &[0, 15, 255, 255, 0, 0, 0, 0]),
    ];
    for (what, bytes) in greetings {
        let mut stranger = Stranger::connect(&server).await;
        stranger.send(bytes).await;
        assert_eq!(stranger.receive().await, None, "{what}");
        check_served(&server, &client, what).await;
    }
    shutdown(server).await;
}

#[tokio::test]
async fn a_broken_frame_ends_its_own_connection() {
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let too_long = (FRAME_BYTES_MAX + 1).to_be_bytes();
    for (what, bytes) in [
        ("a negative length", &[0x80, 0, 0, 0][..]),
        ("a length above the limit", &too_long),
        ("a frame without a header", &[0, 0, 0, 3, 1, 2, 3]),
        ("noise", &[&[0xff], &noise(1 << 20)[..]].concat()),
    ] {
        let mut stranger = Stranger::with_session(&server).await;
        stranger.send(&[&get_data(1, "/a"), bytes].concat()).await;
        assert_eq!(stranger.reply().await, Some((1, 0)), "{what}: what came before is answered");
        assert_eq!(stranger.reply().await, None, "{what}");
        check_served(&server, &client, what).await;
    }
    shutdown(server).await;
}

#[tokio::test]
async fn a_frame_of_the_largest_size_is_taken() {
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let overhead = set_data(1, "/a", b"").len() - 4;
    let largest = vec![7; FRAME_BYTES_MAX as usize - overhead];
    let mut stranger = Stranger::with_session(&server).await;
    stranger.send(&set_data(1, "/a", &largest)).await;
    assert_eq!(stranger.reply().await, Some((1, 0)));
    assert_eq!(client.get_data("/a").await.unwrap().bytes, Some(largest.clone()));
    stranger.send(&set_data(2, "/a", &[largest, vec![7]].concat())).await;
    assert_eq!(stranger.reply().await, None);
    check_served(&server, &client, "one byte more").await;
    shutdown(server).await;
}

#[tokio::test]
async fn what_cannot_be_understood_is_answered_with_an_error() {
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let unknown_op = request(5, 4711, |_| {});
    let endless_string = request(5, OpCode::GetData.code(), |out| out.put_i32(i32::MAX));
    let endless_list = request(5, OpCode::SetWatches.code(), |out| {
        out.put_i64(0);
        out.put_i32(i32::MAX);
    });
    let nothing = request(5, OpCode::Create.code(), |_| {});
    for (what, bytes, code) in [
        ("an unknown operation", unknown_op, ErrorCode::Unimplemented),
        ("a string without an end", endless_string, ErrorCode::MarshallingError),
        ("a list without an end", endless_list, ErrorCode::MarshallingError),
        ("a request without a body", nothing, ErrorCode::MarshallingError),
    ] {
        let mut stranger = Stranger::with_session(&server).await;
        stranger.send(&bytes).await;
        assert_eq!(stranger.reply().await, Some((5, code.code())), "{what}");
        check_served(&server, &client, what).await;
    }
    shutdown(server).await;
}

#[tokio::test]
async fn half_a_frame_holds_up_nobody() {
    let (server, client, _directory) = member(i32::MAX).await;
    let whole = get_data(1, "/a");
    let (first, rest) = whole.split_at(whole.len() / 2);
    let mut half = Stranger::with_session(&server).await;
    half.send(first).await;
    // The length alone reserves nothing.
    let mut promising = Stranger::with_session(&server).await;
    promising.send(&(500_i32 << 20).to_be_bytes()).await;
    check_served(&server, &client, "half a frame").await;
    half.send(rest).await;
    assert_eq!(half.reply().await, Some((1, 0)), "the rest came later");
    shutdown(server).await;
}

/// A stranger that asks for megabytes again and again, and reads nothing.
async fn never_reading(server: &Server, client: &Client, requests: &[Vec<u8>]) -> Stranger {
    client.set_data("/a", &[1; 1 << 20], None).await.unwrap();
    let mut greedy = Stranger::deaf(server).await;
    // The member takes no more than it likes to hold.
    let _ = timeout(Duration::from_millis(500), greedy.send(&requests.concat())).await;
    greedy.answered().await;
    greedy
}

#[tokio::test]
async fn who_never_reads_holds_up_nobody() {
    let (server, client, _directory) = member(i32::MAX).await;
    let reads: Vec<Vec<u8>> = (1..1000).map(|xid| get_data(xid, "/a")).collect();
    // Behind a write, reads are answered by the engine.
    let behind_a_write = [&[set_data(0, "/a", &[2; 1 << 20])], &reads[..]].concat();
    for requests in [reads, behind_a_write] {
        let greedy = never_reading(&server, &client, &requests).await;
        for _ in 0..5 {
            check_served(&server, &client, "a client that never reads").await;
        }
        drop(greedy);
        check_served(&server, &client, "it is gone").await;
    }
    shutdown(server).await;
}

#[tokio::test]
async fn who_never_reads_does_not_hold_up_the_end_for_long() {
    let (server, client, _directory) = member(i32::MAX).await;
    let reads: Vec<Vec<u8>> = (0..200).map(|xid| get_data(xid, "/a")).collect();
    let _greedy = never_reading(&server, &client, &reads).await;
    shutdown(server).await;
}

#[tokio::test]
async fn connections_of_one_address_are_limited() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { connections_per_address_max: 3, ..config(directory.path()) };
    let server = Server::start(config).unwrap();
    let first = Stranger::with_session(&server).await;
    let _others = [Stranger::with_session(&server).await, Stranger::with_session(&server).await];
    let mut refused = Stranger::connect(&server).await;
    assert_eq!(refused.receive().await, None, "there are three already");
    drop(first);
    // The client tries again until the one that left was noticed.
    connect_with(&server, ClientOptions { connect_timeout: PATIENCE, ..ClientOptions::default() }).await;
    shutdown(server).await;
}

#[tokio::test]
async fn ten_thousand_requests_in_one_write_are_answered_in_order() {
    const REQUESTS: i32 = 10_000;
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let mut stranger = Stranger::with_session(&server).await;
    let mut bytes = Vec::new();
    for xid in 0..REQUESTS {
        match xid % 3 {
            0 => bytes.extend(set_data(xid, "/a", &xid.to_be_bytes())),
            1 => bytes.extend(get_data(xid, "/a")),
            _ => bytes.extend(get_data(xid, "/missing")),
        }
    }
    stranger.send(&bytes).await;
    for xid in 0..REQUESTS {
        let code = if xid % 3 == 2 { ErrorCode::NoNode.code() } else { 0 };
        assert_eq!(stranger.reply().await, Some((xid, code)));
    }
    check_served(&server, &client, "a long queue").await;
    shutdown(server).await;
}

#[tokio::test]
async fn a_client_reads_its_own_writes_however_many_are_under_way() {
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let other = connect(&server).await;
    let mut answers = Vec::new();
    for number in 1..=3000 {
        answers.push((number, client.set_data("/a", &i32::to_be_bytes(number), None), client.get_data("/a")));
        // Another client's reads and writes stand between them.
        drop((other.get_data("/a"), other.create(&format!("/o-{number}"), b"", CreateMode::Persistent)));
    }
    for (number, written, read) in answers {
        let (stat, data) = (written.await.unwrap(), read.await.unwrap());
        assert_eq!(stat.version, number);
        assert_eq!((data.bytes, data.stat), (Some(number.to_be_bytes().to_vec()), stat));
    }
    shutdown(server).await;
}

#[tokio::test]
async fn a_znode_of_fifty_megabytes_is_a_znode() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let client = connect(&server).await;
    let data = noise(50_000_000);
    let created = client.create("/large", &data, CreateMode::Persistent);
    timeout(Duration::from_secs(30), created).await.expect("in time").unwrap();
    check_served(&server, &client, "a large znode").await;
    assert!(client.get_data("/large").await.unwrap().bytes.as_ref() == Some(&data), "it reads back");
    shutdown(server).await;

    let server = Server::start(config(directory.path())).unwrap();
    let client = connect(&server).await;
    assert!(client.get_data("/large").await.unwrap().bytes.as_ref() == Some(&data), "after a restart, too");
    shutdown(server).await;
}

/// Issue 23: the worker read what came, and nothing else, until the time for that was over.
#[tokio::test]
async fn who_goes_on_sending_when_it_is_turned_away_holds_nobody_up() {
    let (server, client, _directory) = member(FRAME_BYTES_MAX).await;
    let address = server.address();
    let sender = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut stream = std::net::TcpStream::connect(address).expect("connect");
        stream.write_all(b"\x7f\xff\xff\xff").expect("the member takes a length");
        let bytes = vec![0; 1 << 20];
        while stream.write_all(&bytes).is_ok() {}
    });
    let mut longest = Duration::ZERO;
    while !sender.is_finished() {
        let since = std::time::Instant::now();
        client.get_data("/a").await.unwrap();
        longest = longest.max(since.elapsed());
    }
    sender.join().unwrap();
    assert!(longest < Duration::from_millis(700), "{longest:?}");
    shutdown(server).await;
}
