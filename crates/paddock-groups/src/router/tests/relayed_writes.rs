//! Writes of one session that go from group to group, and that the home group relays.

use paddock_proto::{CreateMode, GroupsCommand, OpCode, SessionId, Zxid, encode};
use paddock_state::{ClientInput, ConnId, Resumption};

use super::super::Order;
use super::handed_writes::{asked_of, attached, create};
use super::placement::hosted;
use super::routed_pair::{ORIGIN, RoutedPair, SESSION, ToldClient};

/// Asks for creates of these znodes, and lets the router hand over what it can.
fn ask(pair: &mut RoutedPair, paths: &[&str]) {
    paths.iter().for_each(|path| create(pair, path));
    pair.work();
}

/// Number of writes that the home group, or the other one, was handed in the last turn.
fn handed(pair: &RoutedPair, group: u32) -> usize {
    asked_of(pair, group).iter().filter(|asked| asked.is_none()).count()
}

#[test]
fn writes_that_go_from_group_to_group_are_under_way_together_and_answered_in_their_order() {
    let mut pair = attached();
    ask(&mut pair, &["/h-1", "/b/x", "/h-2", "/b/y", "/b/x"]);
    assert_eq!((handed(&pair, 0), handed(&pair, 1)), (5, 0));
    let mail = pair.carry_out_at_home(100);
    pair.hear_home(mail);
    assert_eq!(pair.work(), [ToldClient::Answer], "the next one is carried out in the other group");
    assert!(pair.home.tree().stat("/h-2").is_some() && pair.other.tree().stat("/b/x").is_none());
    pair.send_items(200);
    assert_eq!(pair.work().len(), 4);
    assert!(pair.answered.is_empty(), "the last one is refused");
    assert!(pair.other.tree().stat("/b/x").unwrap().czxid >= Zxid(200));
    // Nothing is under way any more, and what is for one group goes there.
    ask(&mut pair, &["/b/x/1", "/b/x/2"]);
    assert_eq!((handed(&pair, 0), handed(&pair, 1)), (0, 2));
}

#[test]
fn an_answer_that_comes_before_the_home_groups_word_is_kept() {
    let mut pair = attached();
    ask(&mut pair, &["/b/x", "/h-1", "/b/y"]);
    let mail = pair.carry_out_at_home(100);
    pair.send_items(200);
    assert_eq!(pair.work(), []);
    pair.hear_home(mail);
    assert_eq!(pair.work().len(), 3);
}

#[test]
fn a_read_waits_for_what_is_relayed_before_it_and_another_write_does_not() {
    let mut pair = attached();
    ask(&mut pair, &["/b/x", "/h-1", "/b/y"]);
    ask(&mut pair, &["/b/z"]);
    assert_eq!((handed(&pair, 0), handed(&pair, 1)), (1, 0));
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, "/b/x", false);
    pair.hand_in(OpCode::Exists, body);
    pair.work();
    assert!(pair.orders.is_empty());
}

/// A pair whose other group a host has, and a session whose writes go from group to group and were handed to the home group.
fn relaying_through_host() -> RoutedPair {
    let mut pair = hosted();
    ask(&mut pair, &["/b/x", "/h-1", "/b/y"]);
    // The host says first that the session comes through it.
    let are_handed = |pair: &mut RoutedPair| {
        pair.work();
        handed(pair, 0) == 3
    };
    assert!((0..3).any(|_| are_handed(&mut pair)));
    pair
}

#[test]
fn what_a_host_carries_out_it_tells() {
    let mut pair = relaying_through_host();
    let mail = pair.carry_out_at_home(100);
    pair.hear_home(mail);
    pair.send_items(200);
    let told: Vec<_> = (0..3).flat_map(|_| pair.work()).collect();
    assert_eq!(told, [ToldClient::Answer, ToldClient::Answer, ToldClient::Answer]);
}

#[test]
fn a_client_that_may_not_be_told_what_its_write_came_to_is_closed() {
    let mut pair = relaying_through_host();
    let mail = pair.carry_out_at_home(100);
    pair.hear_home(mail);
    pair.replace_host_state();
    assert_eq!((0..3).flat_map(|_| pair.work()).collect::<Vec<_>>(), [ToldClient::Close]);
}

/// A client that watches in both groups has closed its session, and the other group has yet to end it: so the answer waits.
fn closing_session() -> RoutedPair {
    let mut pair = attached();
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, "/b", true);
    pair.hand_in(OpCode::GetChildren, body.clone());
    body.clear();
    encode::path_and_watch(&mut body, "/h", true);
    pair.hand_in(OpCode::GetData, body);
    pair.send_items(100);
    pair.between(1, 110, &GroupsCommand::Mark { at_least: Zxid(110) });
    pair.between(0, 110, &GroupsCommand::Mark { at_least: Zxid(110) });
    assert_eq!(pair.work().len(), 2);
    pair.hand_in_write(OpCode::CloseSession, &[]);
    pair.work();
    assert_eq!(handed(&pair, 0), 1);
    let mut set = Vec::new();
    encode::set_data(&mut set, "/h", None, -1);
    pair.write(0, 120, SessionId::NONE, OpCode::SetData, &set);
    let mut mail = pair.carry_out_at_home(130);
    mail.close(pair.conn);
    pair.hear_home(mail);
    assert_eq!(pair.work(), []);
    pair
}

/// The connection keeps its watches until all is answered: what it is told is whole.
#[test]
fn who_closes_its_session_is_told_in_front_of_the_answers_what_was_changed_before() {
    let mut pair = closing_session();
    pair.send_items(140);
    pair.between(0, 140, &GroupsCommand::Mark { at_least: Zxid(140) });
    assert_eq!(pair.work(), [ToldClient::Event(Some(Zxid(120))), ToldClient::Answer, ToldClient::Close]);
}

/// The home group has closed the connection already, behind the answer that waits.
#[test]
fn the_connection_of_a_session_that_has_ended_is_closed_when_its_client_comes_back_on_another() {
    let mut pair = closing_session();
    let (conn, resumption) = (ConnId::new(0, 2), Resumption::keyed(SESSION, 1000));
    pair.router.take(ClientInput::Resume { conn, resumption, may_only_read: false });
    assert_eq!(pair.work(), [ToldClient::Close]);
}

/// The other group may never say what the answer waits for.
#[test]
fn the_connection_of_a_session_that_has_ended_is_closed_when_nothing_can_be_written() {
    let mut pair = closing_session();
    pair.router.follow_mode(false);
    assert_eq!(pair.work(), []);
    pair.router.follow_mode(true);
    assert_eq!(pair.work(), [ToldClient::Close]);
}

#[test]
fn a_client_that_wants_its_session_back_is_answered_when_nothing_can_be_written() {
    let mut pair = attached();
    ask(&mut pair, &["/h-1"]);
    pair.router.handed(SESSION, 0, (ORIGIN, 1000));
    let (conn, resumption) = (ConnId::new(0, 2), Resumption::keyed(SESSION, 1000));
    let resume = ClientInput::Resume { conn, resumption, may_only_read: true };
    assert!(pair.router.take(resume).is_none(), "a write of the session is under way");
    pair.work();
    assert!(pair.orders.is_empty());
    pair.router.follow_mode(true);
    pair.work();
    assert!(
        matches!(pair.orders[..], [Order::Hand { group: 0, input: ClientInput::Resume { .. }, .. }]),
        "{:?}",
        pair.orders
    );
}

#[test]
fn a_large_write_goes_to_its_own_group_and_others_wait_for_it() {
    let mut pair = attached();
    create(&mut pair, "/h-1");
    let mut body = Vec::new();
    encode::create_open(&mut body, "/b/x", Some(&vec![0; 70_000]), CreateMode::Persistent);
    pair.hand_in_write(OpCode::Create, &body);
    ask(&mut pair, &["/h-2", "/b/y", "/h-3"]);
    assert_eq!((handed(&pair, 0), handed(&pair, 1)), (1, 0));
    let mail = pair.carry_out_at_home(100);
    pair.hear_home(mail);
    assert_eq!(pair.work(), [ToldClient::Answer]);
    assert_eq!((handed(&pair, 0), handed(&pair, 1)), (0, 1));
}

#[test]
fn writes_to_a_group_that_acknowledges_nothing_wait_and_are_not_asked_for_again_and_again() {
    let mut pair = attached();
    let mut body = Vec::new();
    encode::create_open(&mut body, "/b/x", Some(&vec![0; 60_000]), CreateMode::Persistent);
    let mut relayed = 0;
    for _ in 0..100 {
        create(&mut pair, "/h");
        pair.hand_in_write(OpCode::Create, &body);
        create(&mut pair, "/h");
        pair.work();
        relayed += handed(&pair, 0);
        let mail = pair.carry_out_at_home(100);
        pair.hear_home(mail);
        pair.router.tick();
    }
    assert!((100..250).contains(&relayed), "{relayed} of 300");
    pair.work();
    assert!(pair.orders.is_empty());
}
