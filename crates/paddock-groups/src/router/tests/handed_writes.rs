//! Writes that are handed to a group behind what other groups have shown to their session.

use bytes::Bytes;
use paddock_proto::{CreateMode, GroupsCommand, IdList, OpCode, SessionId, Zxid, encode};
use paddock_state::ClientInput;
use paddock_tree::{Command, SLOTS};

use super::super::Order;
use super::routed_pair::{ORIGIN, RoutedPair, SESSION, ToldClient};

/// A pair whose session may write in the other group, and was shown a change of the home group at 30 that the other group's replica has not come to.
pub(super) fn attached() -> RoutedPair {
    let mut pair = RoutedPair::new();
    let mut body = Vec::new();
    GroupsCommand::Attach { group: 1 }.encode(&mut body);
    pair.write(0, 20, SESSION, GroupsCommand::OP, &body);
    pair.send_items(21);
    for state in [&mut pair.home, &mut pair.other] {
        assert!(state.tree_mut().admit(ORIGIN, 1));
    }
    // A connection of which nothing was heard before may have been shown all that is here.
    pair.create(0, 30, "/h");
    pair
}

pub(super) fn create(pair: &mut RoutedPair, path: &str) {
    let mut body = Vec::new();
    encode::create_open(&mut body, path, None, CreateMode::Persistent);
    pair.hand_in_write(OpCode::Create, &body);
}

/// Orders of the last turn for a group: a stamp to come to, or a write to take.
pub(super) fn asked_of(pair: &RoutedPair, group: u32) -> Vec<Option<Zxid>> {
    let asked = pair.orders.iter().filter_map(|order| match order {
        Order::Mark { group: of, at_least } if *of == group => Some(Some(*at_least)),
        Order::Hand { group: of, input: ClientInput::Write { .. }, .. } if *of == group => Some(None),
        _ => None,
    });
    asked.collect()
}

#[test]
fn a_write_goes_to_a_group_that_is_behind_and_is_stamped_above_what_its_session_was_shown() {
    let mut pair = attached();
    assert!(pair.other.tree().zxid() < Zxid(30));
    create(&mut pair, "/b/x");
    pair.work();
    assert_eq!(asked_of(&pair, 1), [Some(Zxid(30)), None]);
    create(&mut pair, "/b/y");
    pair.work();
    assert_eq!(asked_of(&pair, 1), [Some(Zxid(30)), None], "what was asked for in another turn may be lost");
}

#[test]
fn no_write_overtakes_a_decision_that_its_session_may_have_been_shown() {
    let mut pair = attached();
    pair.create(0, 40, "/a/x");
    pair.between(0, 50, &GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 1 });
    pair.create(0, 60, "/i");
    create(&mut pair, "/b/x");
    pair.work();
    assert_eq!(asked_of(&pair, 1), [], "the group has yet to get znodes");
    pair.send_items(51);
    pair.work();
    assert_eq!(asked_of(&pair, 1).last(), Some(&None));
}

#[test]
fn the_home_group_takes_writes_behind_what_others_have_shown() {
    let mut pair = attached();
    // Before its first write a session may have been shown all that is in the groups where it writes.
    pair.create(1, 70, "/b/z");
    create(&mut pair, "/j");
    pair.work();
    assert!(pair.home.tree().zxid() < Zxid(70));
    assert_eq!(asked_of(&pair, 0), [Some(Zxid(70)), None]);
}

/// A client that watches a znode of the home group.
fn watching() -> RoutedPair {
    let mut pair = attached();
    pair.work();
    pair.create(1, 31, "/b/w");
    let mut watch = Vec::new();
    encode::path_and_watch(&mut watch, "/h", true);
    pair.ask(OpCode::GetData, watch);
    pair
}

/// The client's write is handed to the other group, which carries it out at 50. Behind it there comes what the home group decides at 40, and then changes what the client watches, at 45.
fn write_in_front_of_decision(pair: &mut RoutedPair) {
    create(pair, "/b/x");
    let is_handed = |_| {
        pair.work();
        asked_of(pair, 1).contains(&None)
    };
    assert!((0..4).any(is_handed));
    pair.carry_out_in_other(50);
    let (another, mut request, mut relay) = (SessionId(9), Vec::new(), Vec::new());
    encode::create_open(&mut request, "/b/z", None, CreateMode::Persistent);
    GroupsCommand::Relay { op: OpCode::Create, request: &request, enforces_quotas: false }.encode(&mut relay);
    pair.write(0, 39, another, OpCode::CreateSession, &1000_i32.to_be_bytes());
    pair.write(0, 40, another, GroupsCommand::OP, &relay);
    let mut set = Vec::new();
    encode::set_data(&mut set, "/h", Some(b"new"), -1);
    pair.write(0, 45, SessionId::NONE, OpCode::SetData, &set);
    assert_eq!(pair.work(), [], "the other group has yet to apply what was decided at 40");
    pair.send_items(60);
    pair.create(0, 61, "/h2");
}

/// The write was carried out with a later stamp, and in front of the decision's item: so it comes before the decision, and before what the event tells.
#[test]
fn an_event_waits_while_an_answer_can_have_an_earlier_moment() {
    let mut pair = watching();
    write_in_front_of_decision(&mut pair);
    assert_eq!(pair.work(), [ToldClient::Answer, ToldClient::Event(Some(Zxid(45)))]);
}

/// The sync has asked how far the groups have come, of which one has larger stamps than the change that the event tells of.
#[test]
fn an_event_waits_for_the_answer_to_an_earlier_write_that_stands_behind_another_one() {
    let mut pair = watching();
    pair.between(1, 48, &GroupsCommand::Mark { at_least: Zxid(48) });
    pair.sync();
    write_in_front_of_decision(&mut pair);
    assert_eq!(pair.work(), [ToldClient::Answer, ToldClient::Answer, ToldClient::Event(Some(Zxid(45)))]);
}

/// The group's replica here is behind its leader, which had carried out the write.
#[test]
fn a_write_that_is_refused_for_want_of_a_quorum_is_no_change_of_its_group() {
    let mut pair = watching();
    for path in ["/b/x", "/b/y"] {
        create(&mut pair, path);
        let is_handed = |_| {
            pair.work();
            asked_of(&pair, 1).contains(&None)
        };
        assert!((0..4).any(is_handed));
        if path == "/b/x" { pair.carry_out_in_other(50) } else { pair.refuse_in_other(Zxid(32)) }
    }
    pair.create(0, 61, "/h2");
    assert_eq!(pair.work(), [ToldClient::Answer, ToldClient::Answer]);
    assert_eq!(pair.answered_zxid, Zxid(50), "the first answer tells its own zxid");
}

#[test]
fn a_write_that_waits_for_long_does_not_keep_the_block_that_it_came_in() {
    let mut pair = attached();
    let (mut body, mut block) = (Vec::new(), Vec::new());
    encode::create_open(&mut body, "/b/x", None, CreateMode::Persistent);
    Command::encode(SESSION, 5, IdList::NONE, OpCode::Create, &body, &mut block);
    let length = block.len();
    block.resize(16 << 10, 0);
    let block = Bytes::from(block);
    pair.hand_in_command(OpCode::Create, block.slice(..length));
    pair.work();
    assert_eq!(asked_of(&pair, 1), [Some(Zxid(30)), None], "the group has taken it");
    pair.orders.clear();
    assert!(!block.is_unique());
    pair.router.tick();
    assert!(block.is_unique());
}
