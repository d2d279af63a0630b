use paddock_proto::{CreateMode, GroupsCommand, IdList, WriteReply, encode};

use super::*;
use crate::pair_of_groups::{GroupPair, SESSION, apply, between, create, name, put_end, put_operation};
use crate::{Command, SLOTS};

fn body_of_create(path: &str, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    encode::create_open(&mut body, path, Some(data), CreateMode::Persistent);
    body
}

fn try_relay(pair: &mut GroupPair, op: OpCode, request: &[u8]) -> Result<(), ErrorCode> {
    let mut body = Vec::new();
    GroupsCommand::Relay { op, request, enforces_quotas: false }.encode(&mut body);
    apply(&mut pair.home, SESSION, GroupsCommand::OP, &body)
}

/// Relays a write, and returns the zxid with which that was decided.
fn relay(pair: &mut GroupPair, op: OpCode, request: &[u8]) -> Zxid {
    assert_eq!(try_relay(pair, op, request), Ok(()));
    pair.home.zxid()
}

#[test]
fn relayed_writes_are_carried_out_in_their_order_with_identities_and_answers_of_their_own() {
    let (mut pair, path) = (GroupPair::new(), name(true, 0));
    let mut delete = Vec::new();
    encode::path_and_version(&mut delete, &path, 7);
    let decided = [
        relay(&mut pair, OpCode::Create, &body_of_create(&path, b"x")),
        relay(&mut pair, OpCode::Create, &body_of_create(&path, b"y")),
        relay(&mut pair, OpCode::Delete, &delete),
    ];
    assert!(pair.home.stat(&path).is_none() && pair.home.take_relayed_answers().is_empty());
    pair.send();
    let mut body = Vec::new();
    WriteReply::Created { path: path.as_str().into() }.encode(&mut body);
    let results = [Ok(body), Err(ErrorCode::NodeExists), Err(ErrorCode::BadVersion)];
    let answers = pair.other.take_relayed_answers();
    assert_eq!(answers.iter().map(|answer| answer.result.clone()).collect::<Vec<_>>(), results);
    assert!(answers.iter().zip(decided).all(|(answer, decided)| answer.decided == decided));
    assert!(answers.iter().all(|answer| answer.session == SESSION && answer.zxid > answer.decided));
    assert!(answers.is_sorted_by_key(|answer| answer.zxid) && pair.other.take_relayed_answers().is_empty());
    let (stat, znode) = (pair.other.stat(&path).unwrap(), pair.other.znode(&path).unwrap());
    assert_eq!((stat.czxid, znode.data.as_deref()), (answers[0].zxid, Some(&b"x"[..])));
    let applied = pair.other.take_applied_items();
    let last: Vec<Zxid> = applied.iter().rev().take(3).rev().map(|item| item.decided).collect();
    assert_eq!(last, decided, "each is a decision that changes znodes");
}

#[test]
fn a_group_hears_of_a_session_before_its_first_relayed_write() {
    let (mut pair, path) = (GroupPair::new(), name(true, 0));
    let other = SessionId(8);
    pair.home.sessions.insert(other, crate::session::Session::new(1000, 1));
    let mut create = Vec::new();
    encode::create_open(&mut create, &path, None, CreateMode::Ephemeral);
    let mut body = Vec::new();
    GroupsCommand::Relay { op: OpCode::Create, request: &create, enforces_quotas: false }.encode(&mut body);
    apply(&mut pair.home, other, GroupsCommand::OP, &body).unwrap();
    pair.send();
    assert_eq!(pair.other.stat(&path).unwrap().ephemeral_owner, other);
    apply(&mut pair.home, other, OpCode::CloseSession, &[]).unwrap();
    pair.send();
    assert!(pair.other.stat(&path).is_none());
}

#[test]
fn a_write_of_the_home_group_or_of_slots_on_their_way_is_to_be_sent_again_with_all_behind_it() {
    let (mut pair, at_home, in_other) = (GroupPair::new(), name(false, 0), name(true, 0));
    let (home, other) = (body_of_create(&at_home, b""), body_of_create(&in_other, b""));
    assert_eq!(try_relay(&mut pair, OpCode::Create, &home), Err(MISPLACED));
    assert_eq!(try_relay(&mut pair, OpCode::Create, &other), Err(MISPLACED), "the session has to go on");
    between(&mut pair.home, SESSION, GroupsCommand::GoOn);
    relay(&mut pair, OpCode::Create, &other);
    let back = GroupsCommand::Move { path: "/p", first: 0, last: SLOTS / 2 - 1, group: 0 };
    between(&mut pair.home, SessionId::NONE, back);
    assert_eq!(try_relay(&mut pair, OpCode::Create, &other), Err(MISPLACED));
    pair.send();
    let given = pair.other.given_portion("/p", 0, 0).unwrap();
    assert!(!given.znodes.is_empty(), "what was relayed before the slots left goes with them");
    assert_eq!(pair.other.take_relayed_answers().len(), 1);
}

#[test]
fn writes_of_several_groups_and_of_no_znodes_are_not_relayed() {
    let mut pair = GroupPair::new();
    let mut request = Vec::new();
    for path in [name(true, 0), name(false, 0)] {
        put_operation(OpCode::Create, &mut request);
        request.extend(body_of_create(&path, b""));
    }
    put_end(&mut request);
    assert_eq!(try_relay(&mut pair, OpCode::Multi, &request), Err(MISPLACED));
    between(&mut pair.home, SESSION, GroupsCommand::GoOn);
    assert_eq!(try_relay(&mut pair, OpCode::CloseSession, &[]), Err(ErrorCode::BadArguments));
    assert_eq!(try_relay(&mut pair, OpCode::SetData, b"?"), Err(ErrorCode::MarshallingError));
}

#[test]
fn nothing_is_relayed_that_an_open_multi_touches() {
    let (mut pair, at_home, in_other) = (GroupPair::new(), name(false, 0), name(true, 0));
    create(&mut pair.other, &in_other).unwrap();
    let below = format!("{in_other}/x");
    let multi = pair.ask(&[&at_home, &below]);
    let mut delete = Vec::new();
    encode::path_and_version(&mut delete, &in_other, -1);
    assert_eq!(try_relay(&mut pair, OpCode::Delete, &delete), Err(MISPLACED));
    between(&mut pair.home, SESSION, GroupsCommand::GoOn);
    // The split point itself is the parent of both.
    relay(&mut pair, OpCode::Create, &body_of_create(&name(true, 1), b""));
    pair.send();
    assert_eq!(pair.end(multi), &crate::MultiEnd::Done(vec![done(&at_home)]));
    assert!(pair.other.stat(&below).is_some() && pair.other.stat(&name(true, 1)).is_some());
    relay(&mut pair, OpCode::Delete, &delete);
    pair.send();
    assert_eq!(pair.other.take_relayed_answers().pop().unwrap().result, Err(ErrorCode::NotEmpty));
}

/// Result of a create that is the first operation of a multi.
fn done(path: &str) -> (u32, Vec<u8>) {
    let mut result = Vec::new();
    let reply = WriteReply::Created { path: path.into() };
    paddock_proto::MultiResult::Done(OpCode::Create, reply).encode(&mut result);
    (0, result)
}

#[test]
fn a_group_that_acknowledges_nothing_is_relayed_no_more_than_a_bound() {
    let (mut pair, path) = (GroupPair::new(), name(true, 0));
    let data = vec![0; 1 << 20];
    let relayed = (0..100)
        .take_while(|_| try_relay(&mut pair, OpCode::Create, &body_of_create(&path, &data)) == Ok(()));
    assert_eq!(relayed.count(), PENDING_BYTES_MAX / data.len());
    let stream = pair.home.streams().to_group(1).unwrap();
    let number = stream.last();
    between(&mut pair.home, SessionId::NONE, GroupsCommand::Acknowledge { group: 1, number });
    between(&mut pair.home, SESSION, GroupsCommand::GoOn);
    relay(&mut pair, OpCode::Create, &body_of_create(&path, &data));
}

#[test]
fn nothing_is_relayed_at_a_level_that_does_not_know_it() {
    let mut tree = Tree::new();
    tree.raise_level(&crate::RaisedLevel::known(FeatureLevel::HOSTS));
    tree.sessions.insert(SESSION, crate::session::Session::new(1000, 1));
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    GroupsCommand::Relay { op: OpCode::Create, request: &body_of_create("/a", b""), enforces_quotas: false }
        .encode(&mut body);
    Command::encode(SESSION, 5, IdList::NONE, GroupsCommand::OP, &body, &mut bytes);
    let command = Command::decode(&bytes).unwrap().taken_by(1);
    assert_eq!(tree.apply(&command).result, Err(ErrorCode::Unimplemented));
}
