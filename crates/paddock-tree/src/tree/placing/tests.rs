//! Commands of a session that meet a slot of another group.

use paddock_proto::jute::Writer as _;
use paddock_proto::{CreateMode, IdList, OpCode, encode};

use super::*;
use crate::SLOTS;
use crate::features::{FeatureLevel, RaisedLevel};
use crate::groups::GroupFounders;
use crate::session::Session;

const SESSION: SessionId = SessionId(7);

/// Encodes a command and lets `look` have it.
fn with_command<R>(session: SessionId, op: OpCode, body: &[u8], look: impl FnOnce(&Command<'_>) -> R) -> R {
    let mut bytes = Vec::new();
    Command::encode(session, 5, IdList::NONE, op, body, &mut bytes);
    look(&Command::decode(&bytes).unwrap().taken_by(1))
}

fn apply(tree: &mut Tree, session: SessionId, op: OpCode, body: &[u8]) -> Result<(), ErrorCode> {
    with_command(session, op, body, |command| tree.apply(command).result.map(drop))
}

fn between(tree: &mut Tree, session: SessionId, command: GroupsCommand<'_>) {
    let mut body = Vec::new();
    command.encode(&mut body);
    apply(tree, session, GroupsCommand::OP, &body).unwrap();
}

fn create(tree: &mut Tree, session: SessionId, path: &str) -> Result<(), ErrorCode> {
    let mut body = Vec::new();
    encode::create_open(&mut body, path, None, CreateMode::Persistent);
    apply(tree, session, OpCode::Create, &body)
}

/// A home group with a session, the split point `/a`, and some znodes at and below `/b`.
fn home() -> Tree {
    let mut home = Tree::new();
    home.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
    home.found_groups(2, GroupFounders { voters: vec![1], learners: vec![] });
    home.sessions.insert(SESSION, Session::new(1000, 1));
    for path in ["/a", "/b", "/b/1", "/b/2", "/b/3"] {
        create(&mut home, SessionId::NONE, path).unwrap();
    }
    between(&mut home, SessionId::NONE, GroupsCommand::Split { path: "/a" });
    home
}

/// Gives all slots but those of sequential names away.
fn give_away(home: &mut Tree) {
    let all = GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 1 };
    between(home, SessionId::NONE, all);
}

#[test]
fn a_session_ends_behind_what_it_has_asked_for_before() {
    let mut home = home();
    give_away(&mut home);
    assert_eq!(create(&mut home, SESSION, "/a/y"), Err(MISPLACED));
    assert_eq!(apply(&mut home, SESSION, OpCode::CloseSession, &[]), Err(MISPLACED));
    assert!(home.session_owner(SESSION).is_some(), "it is sent again, behind the write");
    between(&mut home, SESSION, GroupsCommand::GoOn);
    assert_eq!(apply(&mut home, SESSION, OpCode::CloseSession, &[]), Ok(()));
    assert!(home.session_owner(SESSION).is_none());
}

#[test]
fn a_session_that_waits_to_go_on_expires() {
    let mut home = home();
    give_away(&mut home);
    assert_eq!(create(&mut home, SESSION, "/a/y"), Err(MISPLACED));
    let mut body = Vec::new();
    body.put_i64(SESSION.0);
    assert_eq!(apply(&mut home, SessionId::NONE, OpCode::ExpireSession, &body), Ok(()));
    assert!(home.session_owner(SESSION).is_none() && !home.is_stalled(SESSION));
}

#[test]
fn a_long_removal_is_refused_whole() {
    let mut home = home();
    give_away(&mut home);
    assert_eq!(create(&mut home, SESSION, "/a/y"), Err(MISPLACED));
    let mut body = Vec::new();
    body.put_string("/b");
    body.put_i32(100);
    let is_long = |home: &Tree| {
        with_command(SESSION, OpCode::RemoveRecursive, &body, |command| {
            home.long_removal(command, 2).is_some()
        })
    };
    assert!(!is_long(&home), "the session has to go on first, whatever it asks for");
    between(&mut home, SESSION, GroupsCommand::GoOn);
    assert!(is_long(&home));
}
