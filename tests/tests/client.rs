//! The client library against a running server. `CLIENT_AGAINST=zookeeper` runs the same against ZooKeeper.

use std::env;
use std::time::Duration;

use paddock_client::{
    Acl, AddWatchMode, Client, ClientOptions, CreateMode, Error, ErrorCode, Event, EventKind, Id, Multi,
    MultiRead, OpCode, Perms, ReadReply, SessionId, Tls, TlsFiles, WatcherKind, WriteReply,
};
use paddock_proto::{ConnectResponse, Password};
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::{Server, ServerKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Nothing here takes longer unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

fn kind() -> ServerKind {
    match env::var("CLIENT_AGAINST").as_deref() {
        Ok("zookeeper") => ServerKind::ZooKeeper,
        _ => ServerKind::Paddock,
    }
}

fn server() -> Server {
    Server::start(kind())
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect")
}

async fn connect_with_events(server: &Server) -> (Client, mpsc::UnboundedReceiver<Event>) {
    let (sender, events) = mpsc::unbounded_channel();
    let options = ClientOptions { events: Some(sender), ..ClientOptions::default() };
    let client = Client::connect(&server.address().to_string(), options).await.expect("connect");
    (client, events)
}

async fn next(events: &mut mpsc::UnboundedReceiver<Event>) -> Event {
    timeout(PATIENCE, events.recv()).await.expect("an event in time").expect("the client lives")
}

/// The next event of a znode, as its kind and path.
async fn next_change(events: &mut mpsc::UnboundedReceiver<Event>) -> (EventKind, String) {
    match next(events).await {
        Event::Znode { kind, path, .. } => (kind, path),
        other => panic!("not about a znode: {other:?}"),
    }
}

#[tokio::test]
async fn every_operation_works() {
    let server = server();
    let client = connect(&server).await;

    assert_eq!(client.create("/a", b"one", CreateMode::Persistent).await.unwrap(), "/a");
    let created = client.create2("/a/c", b"", &[Acl::open()], CreateMode::Ephemeral).await.unwrap();
    assert_eq!((created.path.as_str(), created.stat.ephemeral_owner), ("/a/c", client.session()));
    client.create("/a/box", b"", CreateMode::Container).await.unwrap();
    let sequential = client.create("/a/s-", b"", CreateMode::PersistentSequential).await.unwrap();
    assert_eq!(sequential, "/a/s-0000000002");

    let stat = client.set_data("/a", b"two", Some(0)).await.unwrap();
    assert_eq!(client.exists("/a").await.unwrap(), stat);
    assert_eq!(client.get_data("/a").await.unwrap().bytes.as_deref(), Some(&b"two"[..]));
    let mut names = client.get_children("/a").await.unwrap();
    names.sort();
    assert_eq!(names, ["box", "c", "s-0000000002"]);
    assert_eq!(client.get_children2("/a").await.unwrap().stat, stat);
    assert_eq!(client.get_all_children_number("/a").await.unwrap(), 3);
    assert_eq!(client.get_ephemerals("/a").await.unwrap(), ["/a/c"]);
    assert_eq!(client.sync("/a").await.unwrap(), "/a");

    client.add_auth("digest", b"alice:secret").await.unwrap();
    let mine = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    let stat = client.set_acl("/a/box", &mine, None).await.unwrap();
    let (acl, read) = client.get_acl("/a/box").await.unwrap();
    assert_eq!((acl[0].id.scheme.as_str(), read), ("digest", stat));
    assert!(client.who_am_i().await.unwrap().contains(&Id::new("digest", "alice")));

    client.delete("/a/c", None).await.unwrap();
    assert_eq!(client.exists("/a/c").await.unwrap_err().code(), Some(ErrorCode::NoNode));
    let refusal = client.delete("/a", Some(7)).await.unwrap_err();
    assert!(matches!(refusal, Error::Refused { op: OpCode::Delete, code: ErrorCode::BadVersion }));

    client.close().await.unwrap();
    assert!(matches!(client.exists("/a").await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_multi_is_all_or_nothing() {
    let server = server();
    let client = connect(&server).await;
    let multi = Multi::new()
        .create("/m", b"", CreateMode::Persistent)
        .create("/m/s", b"x", CreateMode::PersistentSequential)
        .set_data("/m", b"y", Some(0))
        .check("/m", Some(1))
        .delete("/m/s0000000000", None);
    let results = client.multi(&multi).await.unwrap();
    assert_eq!(results.len(), 5);
    assert_eq!(results[1], WriteReply::Created { path: "/m/s0000000000".into() });

    let failing = Multi::new().set_data("/m", b"z", None).delete("/nothing", None).check("/m", None);
    let error = client.multi(&failing).await.unwrap_err();
    assert!(matches!(error, Error::MultiFailed { index: 1, code: ErrorCode::NoNode }), "{error:?}");

    let reads = MultiRead::new().get_data("/m").get_children("/m").get_data("/nothing");
    let replies = client.multi_read(&reads).await.unwrap();
    assert!(matches!(&replies[0], ReadReply::Data(data) if data.bytes.as_deref() == Some(b"y")));
    assert_eq!(replies[1..], [ReadReply::Children(vec![]), ReadReply::Refused(ErrorCode::NoNode)]);
}

#[tokio::test]
async fn thousands_of_requests_are_answered_in_order() {
    let server = server();
    let client = connect(&server).await;
    let mut pending = Vec::new();
    for number in 0..5000 {
        pending.push(client.create("/q-", format!("{number}").as_bytes(), CreateMode::PersistentSequential));
    }
    let first = pending.remove(0).await.unwrap();
    let first: i32 = first["/q-".len()..].parse().unwrap();
    for (number, answer) in (first + 1..).zip(pending) {
        assert_eq!(answer.await.unwrap(), format!("/q-{number:010}"));
    }
}

#[tokio::test]
async fn the_session_survives_a_crash_of_the_server_with_its_watches_and_identities() {
    let mut server = server();
    let (client, mut events) = connect_with_events(&server).await;
    client.add_auth("digest", b"alice:secret").await.unwrap();
    let session = client.session();
    client.create("/e", b"", CreateMode::Ephemeral).await.unwrap();
    client.create("/d", b"", CreateMode::Persistent).await.unwrap();
    client.watch_data("/d").await.unwrap();
    client.watch_exists("/later").await.unwrap_err();
    client.add_watch("/e", AddWatchMode::Persistent).await.unwrap();
    client.watch_children("/d").await.unwrap();
    client.remove_watches("/d", WatcherKind::Children).await.unwrap();

    server.kill();
    assert_eq!(next(&mut events).await, Event::Disconnected);
    server.restart();
    assert_eq!(next(&mut events).await, Event::Reconnected);
    assert_eq!(client.session(), session);
    assert_eq!(client.exists("/e").await.unwrap().ephemeral_owner, session);
    assert!(client.who_am_i().await.unwrap().contains(&Id::new("digest", "alice")));
    client.check_watches("/d", WatcherKind::Children).await.unwrap_err();

    let other = connect(&server).await;
    other.create("/later", b"", CreateMode::Persistent).await.unwrap();
    other.create("/d/child", b"", CreateMode::Persistent).await.unwrap();
    other.set_data("/d", b"new", None).await.unwrap();
    other.set_data("/e", b"new", None).await.unwrap();
    other.delete("/e", None).await.unwrap();
    assert_eq!(next_change(&mut events).await, (EventKind::NodeCreated, "/later".into()));
    assert_eq!(next_change(&mut events).await, (EventKind::NodeDataChanged, "/d".into()));
    assert_eq!(next_change(&mut events).await, (EventKind::NodeDataChanged, "/e".into()));
    assert_eq!(next_change(&mut events).await, (EventKind::NodeDeleted, "/e".into()));
}

#[tokio::test]
async fn an_expired_session_says_so() {
    let server = server();
    let (client, mut events) = connect_with_events(&server).await;
    // Another connection of the same session ends it, as its timeout would.
    let thief = paddock_tests::oracle::connection::RawConnection::open(server.address());
    close_session_of(&client, thief);
    assert_eq!(next(&mut events).await, Event::Disconnected);
    assert_eq!(next(&mut events).await, Event::SessionExpired);
    assert!(matches!(client.exists("/").await, Err(Error::SessionExpired)));
}

fn close_session_of(client: &Client, mut connection: paddock_tests::oracle::connection::RawConnection) {
    use paddock_proto::{RequestHeader, Xid, frame};
    let (session, password) = (client.session(), client.session_password());
    let mut bytes = paddock_tests::oracle::connection::greeting(session, &password, 30_000, false);
    let close = RequestHeader { xid: Xid(1), op: OpCode::CloseSession.code() };
    frame::write(&mut bytes, |out| close.encode(out));
    connection.write(&bytes);
    while let paddock_tests::oracle::connection::Incoming::Frame(_) = connection.read() {}
}

#[tokio::test]
async fn no_server_is_a_clear_error() {
    let options = ClientOptions { connect_timeout: Duration::from_millis(300), ..ClientOptions::default() };
    let error = Client::connect("127.0.0.1:1", options.clone()).await.unwrap_err();
    assert!(matches!(&error, Error::Connect { servers, .. } if servers == "127.0.0.1:1"), "{error:?}");
    let error = Client::connect(" , ", options).await.unwrap_err();
    assert!(matches!(error, Error::NoServers(_)));
}

/// A session over TLS: values longer than a record both ways, events, and another connection when the first one breaks.
#[tokio::test]
async fn a_session_over_tls_goes_on_with_another_connection() {
    let dir = tempfile::tempdir().expect("make a directory");
    pem_stores(dir.path(), "ours", 2);
    let path = |name: &str| dir.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    let lines = [
        ("client.portUnification", "true".to_owned()),
        ("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned()),
        ("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider".to_owned()),
        ("ssl.keyStore.location", text("1.pem")),
        ("ssl.trustStore.location", text("trust.pem")),
    ];
    let mut server = Server::start_with(kind(), &lines.each_ref().map(|(key, value)| (*key, value.as_str())));
    let files = TlsFiles {
        authorities: Some(path("trust.pem")),
        certificate: Some(path("2.pem")),
        ..TlsFiles::default()
    };
    let (sender, mut events) = mpsc::unbounded_channel();
    let options = ClientOptions {
        tls: Some(Tls::load(&files).expect("the files are good")),
        events: Some(sender),
        ..ClientOptions::default()
    };
    let client = Client::connect(&server.address().to_string(), options).await.expect("connect");
    let identities = client.who_am_i().await.expect("ask who this is");
    assert!(identities.iter().any(|id| id.scheme == "x509"), "{identities:?}");
    let value = vec![7; 700_000];
    client.create("/a", &value, CreateMode::Persistent).await.expect("create");
    let reads: Vec<_> = (0..20).map(|_| client.get_data("/a")).collect();
    for read in reads {
        assert_eq!(read.await.expect("read").bytes.as_deref(), Some(&value[..]));
    }
    client.add_watch("/a", AddWatchMode::Persistent).await.expect("watch");
    server.kill();
    server.restart();
    assert!(matches!(next(&mut events).await, Event::Disconnected));
    assert!(matches!(next(&mut events).await, Event::Reconnected));
    client.set_data("/a", b"", None).await.expect("set");
    assert_eq!(next_change(&mut events).await, (EventKind::NodeDataChanged, "/a".to_owned()));
    client.close().await.expect("close");
}

/// A server that has no quorum, as far as a client can see: it grants a read-only session, answers `isro`, and nothing else.
async fn serve_without_quorum(listener: TcpListener) {
    while let Ok((mut socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut head = [0; 4];
            socket.read_exact(&mut head).await?;
            if head == *b"isro" {
                return socket.write_all(b"ro").await;
            }
            let mut request = vec![0; i32::from_be_bytes(head) as usize];
            socket.read_exact(&mut request).await?;
            let mut response = Vec::new();
            ConnectResponse {
                protocol_version: 0,
                timeout_ms: 30_000,
                session: SessionId(7),
                password: Password([7; 16]),
                read_only: Some(true),
            }
            .encode(&mut response);
            socket.write_all(&response).await?;
            // The connection stays for as long as the client wants it.
            while socket.read(&mut head).await? > 0 {}
            Ok(())
        });
    }
}

#[tokio::test]
async fn a_read_only_session_gives_way_to_one_at_a_server_that_takes_writes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen");
    let lonely = listener.local_addr().expect("it listens");
    tokio::spawn(serve_without_quorum(listener));
    let mut server = Server::prepare(kind(), &[]);
    let hosts = format!("{lonely},{}", server.address());
    let (sender, mut events) = mpsc::unbounded_channel();
    let options = ClientOptions { allow_read_only: true, events: Some(sender), ..ClientOptions::default() };
    let client = Client::connect(&hosts, options.clone()).await.expect("connect");
    assert!(client.is_read_only());
    assert_eq!(client.session(), SessionId(7));
    // The runtime goes on meanwhile, on this thread.
    let server = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    assert_eq!(next(&mut events).await, Event::Disconnected);
    assert_eq!(next(&mut events).await, Event::Reconnected);
    assert!(!client.is_read_only());
    assert_ne!(client.session(), SessionId(7));
    client.create("/a", b"", CreateMode::Ephemeral).await.expect("the server takes writes");
    // Where one server has a quorum, it is taken at once, whichever stands first.
    let second = Client::connect(&hosts, options).await.expect("connect");
    assert!(!second.is_read_only());
    drop(server.await.expect("it started"));
}
