//! A server of a state that lives elsewhere, with a source in the test's own process.

#[path = "shared/common.rs"]
mod common;

use common::{PATIENCE, config, connect_with, shutdown};
use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode, Event, OpCode};
use paddock_proto::{SessionId, Zxid};
use paddock_server::{Mirror, MirrorMode, Server, SourceLink, SourceRequest};
use paddock_tree::{AppliedTransaction, Draft, Facts, Tree, ZnodeKind};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

/// A source that gives sessions, knows every one, and refuses everything else.
fn source(mirror: Mirror) -> SourceLink {
    let mut zxid = 0;
    Box::new(move |requests| {
        for request in requests {
            match request {
                SourceRequest::Write { session, xid, op, .. } => {
                    zxid += 1;
                    let is_new = op == OpCode::CreateSession;
                    mirror.show(AppliedTransaction {
                        zxid: Zxid(zxid),
                        asked: (session, xid),
                        answer: if is_new { Ok(Vec::new()) } else { Err(ErrorCode::NoAuth) },
                        began: is_new.then_some((session, 30_000)).into_iter().collect(),
                        znodes: Vec::new(),
                        ended: Vec::new(),
                    });
                }
                SourceRequest::Sync { .. } => mirror.caught_up(),
                SourceRequest::Revalidate { session, .. } => mirror.revalidated(session, true),
                SourceRequest::Touch { .. } => {}
            }
        }
    })
}

/// A tree with one znode and one session.
fn tree(session: SessionId, zxid: i64) -> Tree {
    let mut draft = Draft::new();
    let facts = Facts::of_new(Some(b"x"), ZnodeKind::Persistent, zxid, 0);
    let acl = draft.open_acl();
    draft.place("/new", &facts, acl).expect("it has a place");
    draft.begin_session(session, 30_000);
    draft.finish(Zxid(zxid), 1).0
}

async fn begin(server: &Server) -> (Client, UnboundedReceiver<Event>) {
    let (sender, events) = unbounded_channel();
    let client =
        connect_with(server, ClientOptions { events: Some(sender), ..ClientOptions::default() }).await;
    (client, events)
}

/// The watches that would have fired between the two states are unknown: clients come back, with their sessions, and set them again.
#[tokio::test]
async fn a_snapshot_of_the_source_arrives_while_clients_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let started = Server::start_mirror(config(directory.path()), Tree::new(), MirrorMode::Forwarding);
    let (server, mirror) = started.unwrap();
    mirror.begin_link(source(mirror.clone()));
    let (client, mut events) = begin(&server).await;
    let session = client.session();
    assert!(matches!(client.watch_exists("/new").await, Err(Error::Refused { code: ErrorCode::NoNode, .. })));
    let refused = client.create("/mine", b"", CreateMode::Persistent).await;
    assert!(matches!(refused, Err(Error::Refused { code: ErrorCode::NoAuth, .. })), "{refused:?}");

    mirror.replace(tree(session, 100));
    let mut next = async || timeout(PATIENCE, events.recv()).await.expect("it is told soon");
    assert!(matches!(next().await, Some(Event::Disconnected)));
    let told = [next().await, next().await];
    assert!(told.iter().any(|event| matches!(event, Some(Event::Reconnected))), "{told:?}");
    let fired = |event: &Option<Event>| matches!(event, Some(Event::Znode { path, .. }) if path == "/new");
    assert!(told.iter().any(fired), "the watch was set again: {told:?}");
    assert_eq!(client.session(), session);
    assert_eq!(client.get_data("/new").await.unwrap().bytes.as_deref(), Some(&b"x"[..]));
    shutdown(server).await;
}

/// A member goes on with what was asked meanwhile, on the same connection.
#[tokio::test]
async fn a_member_takes_over_with_a_client_that_waits() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let started = Server::start_mirror(config(&data_dir), Tree::new(), MirrorMode::Forwarding);
    let (server, mirror) = started.unwrap();
    mirror.begin_link(source(mirror.clone()));
    let (client, mut events) = begin(&server).await;
    client.watch_exists("/mine").await.unwrap_err();

    let held = mirror.hold();
    let held = tokio::task::spawn_blocking(move || held.recv_timeout(PATIENCE)).await.unwrap();
    assert_eq!(held.expect("nothing is under way").elsewhere, []);
    let waiting = client.create("/mine", b"", CreateMode::Persistent);
    let disk: std::sync::Arc<dyn paddock_storage::Disk> = std::sync::Arc::new(paddock_storage::OsDisk);
    let mut tree = tree(client.session(), 1 << 32);
    paddock_member::make_directory(&disk, &data_dir, 1, &mut tree).unwrap();
    let server = tokio::task::spawn_blocking(move || server.take_over()).await.unwrap().unwrap();
    assert_eq!(timeout(PATIENCE, waiting).await.expect("it is answered").unwrap(), "/mine");
    let event = timeout(PATIENCE, events.recv()).await.expect("the watch fires");
    assert!(matches!(&event, Some(Event::Znode { path, .. }) if path == "/mine"), "{event:?}");
    client.get_data("/new").await.expect("the member has what it was given");
    shutdown(server).await;
}
