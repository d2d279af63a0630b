//! Sessions that another client wants: one that may read their ids, who has heard their passwords, and their own clients.

#[path = "shared/common.rs"]
mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{PATIENCE, Stranger, config, connect_with, request, shutdown};
use paddock_client::{Client, ClientOptions, CreateMode, Event, Login};
use paddock_proto::{
    ConnectRequest, ConnectResponse, ErrorCode, Extensions, OpCode, Password, SessionId, Zxid,
};
use paddock_server::{Config, SaslUsers, Server};
use paddock_storage::OsDisk;
use paddock_tree::Draft;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

fn greeting(session: SessionId, password: Password) -> Vec<u8> {
    let mut bytes = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(0),
        timeout_ms: 10_000,
        session,
        password: Some(&password.0),
        read_only: Some(false),
    }
    .encode(&mut bytes);
    bytes
}

/// Greets for a session. Returns the session that was given; none if it has expired for this client.
async fn claim(server: &Server, session: SessionId, password: Password) -> (Stranger, SessionId) {
    let mut stranger = Stranger::connect(server).await;
    stranger.send(&greeting(session, password)).await;
    let answer = stranger.receive().await.expect("the greeting is answered");
    (stranger, ConnectResponse::decode(&answer).expect("it is an answer").session)
}

fn users() -> SaslUsers {
    let passwords = ["ann", "eve"].map(|user| (user.to_owned(), format!("{user}'s")));
    SaslUsers { passwords: BTreeMap::from(passwords), ..SaslUsers::default() }
}

/// A client with a lock, as a user of SASL or without a login.
async fn owner(server: &Server, user: Option<&str>) -> (Client, UnboundedReceiver<Event>) {
    let (events, heard) = unbounded_channel();
    let sasl = user.map(|user| Login { user: user.to_owned(), password: format!("{user}'s") });
    let options = ClientOptions { events: Some(events), sasl, ..ClientOptions::default() };
    let client = connect_with(server, options).await;
    client.create("/lock", b"", CreateMode::Ephemeral).await.expect("nobody has it");
    (client, heard)
}

/// The owner has its lock, and has noticed nothing.
async fn check_undisturbed(owner: &Client, heard: &mut UnboundedReceiver<Event>) {
    let lock = owner.exists("/lock").await.expect("the lock is there");
    assert_eq!(lock.ephemeral_owner, owner.session());
    assert!(heard.try_recv().is_err(), "the connection was never lost");
}

#[tokio::test]
async fn a_session_is_not_resumed_by_who_may_only_read_its_id() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(config(directory.path())).unwrap();
    let (owner, mut heard) = owner(&server, None).await;
    let reader = common::connect(&server).await;
    let session = reader.exists("/lock").await.unwrap().ephemeral_owner;
    let (_, given) = claim(&server, session, Password::of_zookeeper(session)).await;
    assert_eq!(given, SessionId::NONE);
    check_undisturbed(&owner, &mut heard).await;
    let (_, given) = claim(&server, session, owner.session_password()).await;
    assert_eq!(given, session, "its own client has the password");
    shutdown(server).await;
}

/// A thief has heard the password, and sends a close of the session right behind the greeting.
async fn check_thief(server: &Server, owner: &Client, heard: &mut UnboundedReceiver<Event>) {
    let (mut thief, given) = claim(server, owner.session(), owner.session_password()).await;
    assert_eq!(given, owner.session(), "it may show who it is");
    thief.send(&request(1, OpCode::CloseSession.code(), |_| {})).await;
    let refused = ErrorCode::SessionClosedRequireSaslAuth.code();
    assert_eq!(thief.reply().await, Some((1, refused)));
    assert_eq!(thief.reply().await, None);
    check_undisturbed(owner, heard).await;
}

#[tokio::test]
async fn a_session_of_sasl_is_not_cut_off_by_who_has_its_password() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(Config { sasl: Some(users()), ..config(directory.path()) }).unwrap();
    let (owner, mut heard) = owner(&server, Some("ann")).await;
    check_thief(&server, &owner, &mut heard).await;
    shutdown(server).await;
}

fn strict(directory: &Path) -> Config {
    Config { sasl: Some(users()), required_schemes: vec!["sasl".to_owned()], ..config(directory) }
}

/// Its own client comes back after a restart, and shows who it is behind the greeting.
#[tokio::test]
async fn required_schemes_keep_strangers_from_a_session_and_let_its_client_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(strict(directory.path())).unwrap();
    let (owner, mut heard) = owner(&server, Some("ann")).await;
    check_thief(&server, &owner, &mut heard).await;
    let listen = server.address();
    shutdown(server).await;

    let server = Server::start(Config { listen, ..strict(directory.path()) }).expect("the port is free");
    let mut next = async || timeout(PATIENCE, heard.recv()).await.expect("it is told soon");
    assert_eq!((next().await, next().await), (Some(Event::Disconnected), Some(Event::Reconnected)));
    let lock = owner.exists("/lock").await.expect("the session went on");
    assert_eq!(lock.ephemeral_owner, owner.session());
    owner.set_data("/lock", b"mine", None).await.expect("it is served");
    check_thief(&server, &owner, &mut heard).await;
    shutdown(server).await;
}

#[tokio::test]
async fn a_session_that_came_from_zookeeper_keeps_its_password() {
    const SESSION: SessionId = SessionId(0x1_0000_0001);
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let mut draft = Draft::new();
    draft.begin_session(SESSION, 30_000);
    let (mut tree, _) = draft.finish(Zxid(100), 1);
    let disk: Arc<dyn paddock_storage::Disk> = Arc::new(OsDisk);
    paddock_member::make_directory(&disk, &data_dir, 1, &mut tree).expect("it is written");
    let server = Server::start(config(&data_dir)).unwrap();
    let (_, given) = claim(&server, SESSION, Password::ZERO).await;
    assert_eq!(given, SessionId::NONE);
    let (_moved, given) = claim(&server, SESSION, Password::of_zookeeper(SESSION)).await;
    assert_eq!(given, SESSION);
    let new = common::connect(&server).await;
    assert_ne!(
        new.session_password(),
        Password::of_zookeeper(new.session()),
        "others get one of the ensemble's"
    );
    shutdown(server).await;
}
