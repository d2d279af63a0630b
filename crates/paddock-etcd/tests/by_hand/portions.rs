//! A session with more ephemerals than one transaction removes: what happens between the portions.

use paddock_etcd::{CallError, Input, Keys, Operation};
use paddock_proto::{OpCode, SetWatches, Zxid, encode};
use paddock_state::{ClientInput, ConnId, Resumption};

use crate::front::{EPHEMERAL, Front, SESSION_TIMEOUT_MS};

/// More than one transaction of 128 operations removes.
const EPHEMERALS: usize = 100 + 3 * 42;
/// A second connection.
fn other() -> ConnId {
    ConnId::new(0, 2)
}

fn path(number: usize) -> String {
    format!("/e{number:03}")
}

/// A client with ephemerals, and another one. All is carried out.
fn front_with_ephemerals() -> Front {
    let mut front = Front::new();
    front.connect(other());
    for number in 0..EPHEMERALS {
        front.create_as(&path(number), EPHEMERAL);
        let create = front.sent().expect("a create is sent");
        front.carry_out(create);
    }
    front.replies = 0;
    front
}

fn left(front: &Front) -> usize {
    front.state.tree().ephemerals().map(|(_, paths)| paths.len()).sum()
}

#[test]
fn a_close_in_portions_ends_the_session_first_and_is_answered_last() {
    let mut front = front_with_ephemerals();
    front.write(OpCode::CloseSession, b"");
    front.pass(50);
    let first = front.sent().expect("the first portion is sent");
    let key = Keys::new("/p").session(front.session);
    assert_eq!(
        first.1.operations,
        [Operation::Delete { key }],
        "something of the session could come between"
    );
    front.carry_out(first);
    let mut portions = 0;
    while left(&front) > 0 {
        assert_eq!((front.replies, front.is_closed), (0, false), "answered with {} left", left(&front));
        front.pass(50);
        let before = left(&front);
        let portion = front.sent().expect("a portion is sent");
        // A portion that gets no answer is sent again.
        front.fail(portion.0, CallError::Lost("by the test".to_owned()));
        front.pass(50);
        let again = front.sent().expect("it is sent again");
        assert_eq!(again.1, portion.1);
        front.carry_out(again);
        assert!(left(&front) < before);
        portions += 1;
    }
    assert!(portions > 1);
    assert_eq!((front.replies, front.is_closed), (1, true));
}

#[test]
fn watches_that_are_set_between_portions_miss_nothing() {
    let mut front = front_with_ephemerals();
    let before = front.revision;
    front.write(OpCode::CloseSession, b"");
    for _ in 0..2 {
        front.pass(50);
        let portion = front.sent().expect("a portion is sent");
        front.carry_out(portion);
    }
    let is_there = |front: &Front, number| front.state.tree().znode(&path(number)).is_some();
    let gone = (0..EPHEMERALS).find(|number| !is_there(&front, *number)).expect("some are gone");
    let stays = (0..EPHEMERALS).find(|number| is_there(&front, *number)).expect("some are there");
    // A read shows what is so now, and its watch is told when that changes.
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, &path(stays), true);
    front.read_of(other(), OpCode::Exists, body);
    assert_eq!((front.replies, front.told.len()), (1, 0));
    // A client that had seen all of them comes back between the portions.
    let (gone_path, root) = (path(gone), "/".to_owned());
    let watches = SetWatches {
        relative_zxid: Zxid(before),
        data: vec![&gone_path],
        exist: Vec::new(),
        child: vec![&root],
        persistent: Vec::new(),
        persistent_recursive: Vec::new(),
    };
    let mut body = Vec::new();
    encode::set_watches(&mut body, &watches);
    front.read_of(other(), OpCode::SetWatches, body);
    let mut told = std::mem::take(&mut front.told);
    told.sort_unstable();
    assert_eq!(told, [root.clone(), gone_path]);
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, "/", true);
    front.read_of(other(), OpCode::GetChildren, body);

    while left(&front) > 0 {
        front.pass(50);
        let portion = front.sent().expect("a portion is sent");
        front.carry_out(portion);
    }
    let mut told = std::mem::take(&mut front.told);
    told.sort_unstable();
    assert_eq!(told, [root, path(stays)]);
}

/// The session's key is gone, and some of its znodes are there still.
#[test]
fn a_session_that_is_resumed_between_portions_has_expired() {
    for timeout_ms in [SESSION_TIMEOUT_MS, 2 * SESSION_TIMEOUT_MS] {
        let mut front = front_with_ephemerals();
        let session = front.session;
        front.write(OpCode::CloseSession, b"");
        for _ in 0..2 {
            front.pass(50);
            let portion = front.sent().expect("a portion is sent");
            front.carry_out(portion);
        }
        let conn = ConnId::new(0, 3);
        front.input(Input::Client(ClientInput::Resume {
            conn,
            resumption: Resumption::keyed(session, timeout_ms),
            may_only_read: false,
        }));
        for _ in 0..20 {
            front.pass(50);
            while let Some(sent) = front.sent_next() {
                assert!(
                    !sent
                        .1
                        .operations
                        .iter()
                        .any(|operation| matches!(operation, Operation::Put { lease: Some(_), .. })),
                    "the session is written again"
                );
                front.carry_out(sent);
            }
        }
        assert_eq!((front.expired.clone(), left(&front)), (vec![conn], 0));
    }
}
