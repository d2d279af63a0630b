//! ClickHouse Keeper's dialect, packet by packet, and packets that a client should not send.

#[path = "shared/common.rs"]
mod common;

use common::clickhouse::{ClickHouse, Packet, block, pack};
use common::{Stranger, check_served, config, connect, get_data, request, shutdown};
use paddock_client::{Client, CreateMode, OpCode};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Extensions, Stat, encode};
use paddock_server::Server;

const NO_TRACE: &[u8] = b"\0";
const TRACE: &[u8] = b"\x0100000000-0000-0000-0000-000000000001\n77\nstate\\n\n1\n";
const NO_NODE: i32 = -101;

fn ask(wide_xids: bool, compression: bool, tracing: bool) -> Extensions {
    Extensions { wide_xids, compression, tracing }
}

/// Every greeting that ClickHouse can send with what is its own.
fn greetings() -> [(i32, Extensions); 7] {
    [
        (10, ask(false, true, false)),
        (11, ask(true, false, false)),
        (11, ask(true, true, false)),
        (12, ask(false, false, true)),
        (12, ask(true, false, true)),
        (12, ask(false, true, true)),
        (12, ask(true, true, true)),
    ]
}

async fn member() -> (Server, Client, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let client = connect(&server).await;
    client.create("/a", b"a", CreateMode::Persistent).await.unwrap();
    (server, client, directory)
}

fn path_and_watch(path: &str, watch: bool) -> impl FnOnce(&mut Vec<u8>) {
    move |out| encode::path_and_watch(out, path, watch)
}

#[tokio::test]
async fn every_greeting_is_answered_in_its_own_form() {
    let (server, client, _directory) = member().await;
    for (version, extensions) in greetings() {
        let what = format!("{version} {extensions:?}");
        let mut clickhouse = ClickHouse::connect(&server, version, extensions).await;
        assert_eq!(clickhouse.greeting.len(), 36, "{what}: without the byte for read-only");
        assert_eq!(clickhouse.greeting[..4], version.to_be_bytes(), "{what}");

        // All at once, over the edges of blocks, with the ping answered whenever it is.
        let wide = if extensions.wide_xids { 5 << 32 } else { 0 };
        let requests = [
            clickhouse.request(1, 4, TRACE, path_and_watch("/a", true)),
            clickhouse.request(wide + 2, 4, NO_TRACE, path_and_watch("/none", false)),
            clickhouse.request(-2, 11, NO_TRACE, |_| {}),
            clickhouse.request(wide + 3, 5, TRACE, |out| encode::set_data(out, "/a", Some(b"a"), -1)),
        ];
        let requests = requests.concat();
        for half in requests.chunks(requests.len() / 2 + 1) {
            clickhouse.send(half).await;
        }
        let mut packets = Vec::new();
        while packets.len() < 5 {
            packets.push(clickhouse.receive().await.expect("a packet"));
        }
        let ping = packets.iter().position(|packet| packet.xid == -2).expect("the ping is answered");
        packets.remove(ping);
        let seen: Vec<_> = packets.iter().map(|packet| (packet.xid, packet.error)).collect();
        assert_eq!(seen, [(1, 0), (wide + 2, NO_NODE), (-1, 0), (wide + 3, 0)], "{what}");
        assert_eq!(packets[2].zxid, -1, "{what}: an event has no zxid");

        let farewell = if extensions.wide_xids { i64::MAX } else { i32::MAX.into() };
        clickhouse.send(&clickhouse.request(farewell, -11, NO_TRACE, |_| {})).await;
        assert_eq!(clickhouse.receive().await, None, "{what}: a close has no answer");
        check_served(&server, &client, &what).await;
    }
    shutdown(server).await;
}

#[tokio::test]
async fn a_clickhouse_session_goes_on_in_another_connection() {
    let (server, client, _directory) = member().await;
    for (version, extensions) in greetings() {
        let mut first = ClickHouse::connect(&server, version, extensions).await;
        let create = |out: &mut Vec<u8>| encode::create_open(out, "/mine", None, CreateMode::Ephemeral);
        first.send(&first.request(1, 1, NO_TRACE, create)).await;
        assert_eq!(first.receive().await.expect("a reply").error, 0);

        let mut second = ClickHouse::resume(&server, version, extensions, &first).await;
        assert_eq!((second.session, first.receive().await), (first.session, None));
        let owner = client.exists("/mine").await.unwrap().ephemeral_owner;
        assert_eq!(owner, second.session);
        // The xid of an ordinary request: this one is answered.
        second.send(&second.request(9, -11, NO_TRACE, |_| {})).await;
        assert_eq!(second.receive().await.map(|packet| packet.xid), Some(9));
        assert!(client.exists("/mine").await.is_err());
    }
    shutdown(server).await;
}

/// getData of /none, and a watched one of /a.
fn two_reads(out: &mut Vec<u8>) {
    for (path, watch) in [("/none", false), ("/a", true)] {
        encode::multi_operation(out, OpCode::GetData);
        encode::path_and_watch(out, path, watch);
    }
    encode::multi_end(out);
}

fn multi_header(reader: &mut Reader<'_>) -> (i32, bool, i32) {
    (reader.i32().unwrap(), reader.bool().unwrap(), reader.i32().unwrap())
}

#[tokio::test]
async fn a_failed_read_of_many_has_the_form_of_the_dialect() {
    let (server, client, _directory) = member().await;
    let mut stranger = Stranger::with_session(&server).await;
    stranger.send(&request(1, 22, two_reads)).await;
    let reply = stranger.receive().await.unwrap();
    let mut reader = Reader::new(&reply[16..]);
    assert_eq!(multi_header(&mut reader), (-1, false, NO_NODE));
    assert_eq!(reader.i32(), Ok(NO_NODE));
    assert_eq!(multi_header(&mut reader), (4, false, 0));
    // ZooKeeper forgets the watch, and knows no other reads here.
    client.set_data("/a", b"b", None).await.unwrap();
    stranger
        .send(&request(2, 22, |out| {
            encode::multi_operation(out, OpCode::Exists);
            encode::path_and_watch(out, "/a", false);
            encode::multi_end(out);
        }))
        .await;
    assert_eq!(stranger.reply().await, Some((2, -5)));

    // What it asks shows what it is.
    stranger.send(&get_data(3, "/keeper/feature_flags")).await;
    let flags = stranger.receive().await.unwrap();
    assert_eq!(flags[16..22], [0, 0, 0, 2, 0xff, 0xfc]);
    stranger.send(&request(4, 22, two_reads)).await;
    let reply = stranger.receive().await.unwrap();
    let mut reader = Reader::new(&reply[16..]);
    assert_eq!(multi_header(&mut reader), (4, false, NO_NODE), "the operation's own number, and no body");
    assert_eq!(multi_header(&mut reader), (4, false, 0));
    assert_eq!(reader.buffer(), Ok(Some(&b"b"[..])));
    Stat::decode(&mut reader).unwrap();
    assert_eq!((multi_header(&mut reader), reader.is_empty()), ((-1, true, -1), true));
    client.set_data("/a", b"c", None).await.unwrap();
    let event = stranger.receive().await.unwrap();
    assert_eq!(event[..12], [0xff; 12], "a notification without a zxid");

    stranger.send(&request(i32::MAX, -11, |_| {})).await;
    assert_eq!(stranger.receive().await, None, "a close has no answer");
    shutdown(server).await;
}

#[tokio::test]
async fn who_uses_an_operation_of_clickhouse_speaks_its_dialect() {
    let (server, client, _directory) = member().await;
    let mut stranger = Stranger::with_session(&server).await;
    // A filtered list sets a watch on the children.
    stranger
        .send(&request(1, 500, |out| {
            encode::path_and_watch(out, "/", true);
            out.push(2);
        }))
        .await;
    let reply = stranger.receive().await.unwrap();
    assert_eq!((&reply[16..20], reply.len()), (&[0; 4][..], 16 + 4 + 68), "there are no ephemerals");
    client.create("/b", b"", CreateMode::Persistent).await.unwrap();
    assert_eq!(stranger.receive().await.unwrap()[..12], [0xff; 12]);

    stranger
        .send(&request(2, 500, |out| {
            encode::path_and_watch(out, "/", false);
            out.push(3);
        }))
        .await;
    assert_eq!(stranger.reply().await, Some((2, -5)), "there is no such filter");
    stranger.send(&request(3, 503, |out| encode::path_and_version(out, "/b", 1))).await;
    assert_eq!(stranger.reply().await, Some((3, 0)));
    assert!(client.exists("/b").await.is_err());
    // Its errors end where the array ends in which ClickHouse counts them: -123 would be beyond.
    stranger
        .send(&request(4, 16, |out| {
            (0..3).for_each(|_| out.put_buffer(None));
            out.put_i64(-1);
        }))
        .await;
    assert_eq!(stranger.reply().await, Some((4, -6)));
    stranger.send(&request(5, 508, |_| {})).await;
    assert_eq!((stranger.reply().await, stranger.reply().await), (Some((5, -6)), None));
    shutdown(server).await;
}

#[tokio::test]
async fn what_is_computed_is_seen_by_who_asks_for_it_only() {
    let (server, client, _directory) = member().await;
    let read = async |path: &str| client.get_data(path).await.map(|data| data.bytes.unwrap_or_default());
    assert_eq!(read("/keeper/api_version").await.unwrap(), b"2");
    assert_eq!(read("/keeper/feature_flags").await.unwrap(), [0xff, 0xfc]);
    assert_eq!(read("/keeper/config").await.unwrap(), b"", "a member alone has no ensemble");
    // The largest request of a member alone.
    assert_eq!(read("/keeper/max_request_size").await.unwrap(), b"536870912");
    assert!(read("/keeper/other").await.is_err());
    assert!(read("/keepers").await.is_err());

    let mut children = client.get_children("/keeper").await.unwrap();
    children.sort();
    assert_eq!(children, ["api_version", "config", "feature_flags", "max_request_size"]);
    let mut children = client.get_children("/").await.unwrap();
    children.sort();
    assert_eq!(children, ["a", "zookeeper"]);
    for path in ["/keeper", "/keeper/mine"] {
        assert!(client.create(path, b"", CreateMode::Persistent).await.is_err(), "{path}");
    }
    shutdown(server).await;
}

#[tokio::test]
async fn bad_blocks_end_their_own_connection() {
    let (server, client, _directory) = member().await;
    let (version, extensions) = (10, ask(false, true, false));
    let good = pack(&get_data(1, "/a"));
    let mut wrong_checksum = good.clone();
    wrong_checksum[0] ^= 1;
    let mut wrong_content = good.clone();
    *wrong_content.last_mut().unwrap() ^= 1;
    let mut wrong_method = good.clone();
    wrong_method[16] = 0x90;
    let mut endless = good.clone();
    endless[17..21].copy_from_slice(&2_000_000_000u32.to_le_bytes());
    for (what, bytes) in [
        ("a wrong checksum", wrong_checksum),
        ("content that was changed", wrong_content),
        ("a method that is not LZ4", wrong_method),
        ("a block of 2 GB", endless),
        ("content of 2 GB", block(&get_data(1, "/a"), 2_000_000_000)),
        ("content that is shorter than it claims", block(&get_data(1, "/a"), 1000)),
        ("no block at all", get_data(1, "/a").repeat(3)),
        ("a frame with a negative length", pack(&[0xff; 4])),
    ] {
        let mut clickhouse = ClickHouse::connect(&server, version, extensions).await;
        clickhouse.send_bytes(&bytes).await;
        assert_eq!(clickhouse.receive().await, None, "{what}");
        check_served(&server, &client, what).await;
    }

    // Before a bad one, good ones are answered.
    let mut clickhouse = ClickHouse::connect(&server, version, extensions).await;
    clickhouse.send_bytes(&good).await;
    assert!(matches!(clickhouse.receive().await, Some(Packet { xid: 1, error: 0, .. })));
    clickhouse.send_bytes(&[0xee; 100]).await;
    assert_eq!(clickhouse.receive().await, None);
    shutdown(server).await;
}

#[tokio::test]
async fn a_bad_trace_ends_its_own_connection() {
    let (server, client, _directory) = member().await;
    for (what, trace) in [("an unknown form", vec![2]), ("one without an end", vec![1; 5000])] {
        let mut clickhouse = ClickHouse::connect(&server, 12, ask(false, false, true)).await;
        clickhouse.send(&clickhouse.request(1, 4, &trace, path_and_watch("/a", false))).await;
        assert_eq!(clickhouse.receive().await, None, "{what}");
        check_served(&server, &client, what).await;
    }
    shutdown(server).await;
}
