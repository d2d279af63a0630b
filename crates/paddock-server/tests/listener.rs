//! The clients' listener by its configuration: its dialect, and what `/keeper` tells of the member.

#[path = "shared/common.rs"]
mod common;

use std::net::{Ipv4Addr, TcpListener};

use common::clickhouse::{ClickHouse, greeting};
use common::{Stranger, config, connect, get_data, request, shutdown};
use paddock_client::CreateMode;
use paddock_os::free_port;
use paddock_proto::{Extensions, Password, SessionId, encode};
use paddock_server::{Config, Dialect, Ensemble, EnsembleMember, Role, Server};

const COMPRESSED: Extensions = Extensions { wide_xids: false, compression: true, tracing: false };
const NO_LEADER: i32 = 42;

fn start(set: impl FnOnce(&mut Config)) -> (Server, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    set(&mut config);
    (Server::start(config).unwrap(), directory)
}

/// The version, and how long a session may be silent, as the answer to a greeting has them.
fn granted(greeting: &[u8]) -> (i32, i32) {
    let number = |at: usize| i32::from_be_bytes(greeting[at..at + 4].try_into().unwrap());
    (number(0), number(4))
}

#[tokio::test]
async fn a_listener_for_clickhouse_takes_everybody_for_clickhouse() {
    let (server, _directory) = start(|config| config.dialect = Some(Dialect::ClickHouse));
    let client = connect(&server).await;
    client.create("/a", b"", CreateMode::Persistent).await.unwrap();

    // A greeting that ZooKeeper's clients send too is answered without the byte for read-only.
    let mut plain = ClickHouse::connect(&server, 0, Extensions::default()).await;
    assert_eq!((plain.greeting.len(), granted(&plain.greeting).0), (36, 0));
    plain.send(&plain.request(1, 4, b"", |out| encode::path_and_watch(out, "/a", true))).await;
    assert_eq!(plain.receive().await.expect("a reply").error, 0);
    client.set_data("/a", b"b", None).await.unwrap();
    let event = plain.receive().await.expect("an event");
    assert_eq!((event.xid, event.zxid), (-1, -1));
    shutdown(server).await;
}

#[tokio::test]
async fn a_listener_for_zookeeper_knows_nothing_of_clickhouse() {
    let (server, _directory) = start(|config| config.dialect = Some(Dialect::ZooKeeper));
    let client = connect(&server).await;
    let mut stranger = Stranger::connect(&server).await;
    stranger.send(&greeting(10, COMPRESSED, (SessionId::NONE, &Password::ZERO), 0)).await;
    assert_eq!(stranger.receive().await, None, "closed without an answer");

    let mut stranger = Stranger::with_session(&server).await;
    stranger.send(&get_data(1, "/keeper/feature_flags")).await;
    assert_eq!(stranger.reply().await, Some((1, 0)));
    stranger.send(&request(2, 4, |out| encode::path_and_watch(out, "/", true))).await;
    assert_eq!(stranger.reply().await, Some((2, 0)));
    client.set_data("/", b"b", None).await.unwrap();
    let event = stranger.receive().await.expect("an event");
    assert_eq!(event[..4], [0xff; 4]);
    assert_ne!(event[4..12], [0xff; 8], "an event with a zxid, as ZooKeeper's clients have them");
    stranger.send(&request(3, 502, |_| {})).await;
    assert_eq!((stranger.reply().await, stranger.reply().await), (Some((3, -6)), None));
    shutdown(server).await;
}

#[tokio::test]
async fn who_asks_for_no_timeout_gets_what_its_dialect_gives() {
    let (server, _directory) = start(|_| {});
    for (version, extensions, timeout_ms) in [(10, COMPRESSED, 30_000), (0, Extensions::default(), 4000)] {
        let client = ClickHouse::greet(&server, version, extensions, None, 0).await;
        assert_eq!(granted(&client.greeting), (version, timeout_ms));
    }
    shutdown(server).await;
}

#[tokio::test]
async fn keeper_tells_where_the_member_stands() {
    let (server, _directory) = start(|config| {
        config.availability_zone = Some("eu-1a".to_owned());
        config.frame_bytes_max = 100_000;
    });
    let client = connect(&server).await;
    for (name, expected) in [("availability_zone", "eu-1a"), ("max_request_size", "100000")] {
        let data = client.get_data(&format!("/keeper/{name}")).await.unwrap();
        assert_eq!(data.bytes.as_deref(), Some(expected.as_bytes()), "{name}");
    }
    let children = client.get_children("/keeper").await.unwrap();
    assert!(children.contains(&"availability_zone".to_owned()), "{children:?}");
    shutdown(server).await;
}

#[tokio::test]
async fn without_a_leader_clickhouse_is_told_to_go_elsewhere() {
    // The other two take calls, and say nothing.
    let others: [TcpListener; 2] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let mut ports = vec![free_port(Ipv4Addr::LOCALHOST.into(), 16_000..20_000).unwrap()];
    ports.extend(others.iter().map(|socket| socket.local_addr().unwrap().port()));
    let members = ports.into_iter().zip(1..).map(|(quorum_port, id)| EnsembleMember {
        id,
        host: "127.0.0.1".to_owned(),
        quorum_port,
        election_port: 1,
        role: Role::Participant,
        client: None,
    });
    let ensemble = Ensemble { members: members.collect(), ..Ensemble::default() };
    let (server, _directory) = start(|config| config.ensemble = Some(ensemble));
    let client = ClickHouse::connect(&server, 10, COMPRESSED).await;
    assert_eq!((client.greeting.len(), granted(&client.greeting)), (36, (NO_LEADER, 0)));

    // The answer is one that a client of ZooKeeper would take for a session's: it gets none.
    let mut stranger = Stranger::connect(&server).await;
    stranger.send(&greeting(0, Extensions::default(), (SessionId::NONE, &Password::ZERO), 30_000)).await;
    assert_eq!(stranger.receive().await, None);
    shutdown(server).await;
}
