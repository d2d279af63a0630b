//! Writes that are handed to a group behind what other groups have shown to their session.

use paddock_proto::{CreateMode, GroupsCommand, OpCode, Zxid, encode};
use paddock_state::ClientInput;
use paddock_tree::SLOTS;

use super::super::Order;
use super::routed_pair::{ORIGIN, RoutedPair, SESSION};

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
