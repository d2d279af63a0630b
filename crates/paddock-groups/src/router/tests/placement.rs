//! Groups that are placed on other members, and come back, while clients ask for them.

use paddock_proto::{GroupsCommand, OpCode, Write, encode};
use paddock_state::{ClientInput, ConnId, Resumption};
use paddock_tree::Command;

use super::super::Order;
use super::handed_writes::{asked_of, attached, create};
use super::routed_pair::{HOST, ORIGIN, RoutedPair, SESSION, ToldClient};

/// The host that the router asks for in the last turn.
fn wanted_host(pair: &RoutedPair) -> Option<u32> {
    pair.orders.iter().find_map(|order| {
        let Order::Submit { group: 0, command } = order else { return None };
        match Command::decode(command).unwrap().write {
            Ok(Write::BetweenGroups(GroupsCommand::Host { guest: 1, group: 1, host })) => Some(host),
            _ => None,
        }
    })
}

fn decide_host(pair: &mut RoutedPair, floor: i64, host: u32) {
    pair.between(0, floor, &GroupsCommand::Host { guest: 1, group: 1, host });
    pair.send_items(floor + 1);
}

fn resume(pair: &mut RoutedPair) {
    let (conn, resumption) = (ConnId::new(0, 2), Resumption::keyed(SESSION, 1000));
    assert!(pair.router.take(ClientInput::Resume { conn, resumption, may_only_read: false }).is_none());
}

fn is_taken_over(pair: &RoutedPair) -> bool {
    let resumes = |order: &Order| matches!(order, Order::Hand { input: ClientInput::Resume { .. }, .. });
    pair.orders.iter().any(resumes)
}

fn come_through(pair: &mut RoutedPair, floor: i64, member: u32) {
    let mut body = Vec::new();
    GroupsCommand::Through { moves: 0 }.encode(&mut body);
    pair.write_by(member, (1, floor), SESSION, (GroupsCommand::OP, &body));
}

/// A pair whose member has a host for the other group. Its session has come through the host.
pub(super) fn hosted() -> RoutedPair {
    let mut pair = attached();
    assert!(pair.other.tree_mut().admit(HOST, 1));
    pair.place(true);
    decide_host(&mut pair, 40, HOST.member);
    come_through(&mut pair, 50, HOST.member);
    pair.work();
    pair.work();
    pair
}

#[test]
fn who_waits_for_a_group_that_goes_is_closed_and_comes_back_when_nothing_can_follow() {
    let mut pair = attached();
    assert!(pair.other.tree_mut().admit(HOST, 1));
    create(&mut pair, "/b/x");
    pair.work();
    pair.router.handed(SESSION, 1, (ORIGIN, 2));
    pair.place(true);
    assert_eq!(pair.work(), [ToldClient::Close]);
    assert_eq!(wanted_host(&pair), Some(HOST.member));
    resume(&mut pair);
    pair.work();
    assert!(!is_taken_over(&pair), "what was handed over may yet be applied");
    decide_host(&mut pair, 60, HOST.member);
    let is_taken_over = |_| {
        pair.router.tick();
        pair.work();
        is_taken_over(&pair)
    };
    assert!((0..5).any(is_taken_over), "the group takes nothing from the member itself any more");
}

#[test]
fn a_group_that_comes_back_takes_writes_when_it_takes_none_through_the_host() {
    let mut pair = hosted();
    pair.place(false);
    pair.router.look_for_hosts();
    pair.work();
    assert_eq!(wanted_host(&pair), Some(ORIGIN.member));
    create(&mut pair, "/b/x");
    pair.work();
    assert_eq!(asked_of(&pair, 1), []);
    decide_host(&mut pair, 70, ORIGIN.member);
    pair.work();
    assert!(!asked_of(&pair, 1).contains(&None), "what came through the host may be late");
    let through = |order: &Order| matches!(order, Order::Submit { group: 1, .. });
    assert!(pair.orders.iter().any(through), "the session has to come first");
    come_through(&mut pair, 80, ORIGIN.member);
    pair.work();
    assert!(asked_of(&pair, 1).contains(&None));
}

#[test]
fn a_host_that_was_asked_for_while_the_group_was_away_is_needed_no_more() {
    let mut pair = attached();
    pair.place(true);
    pair.work();
    assert_eq!(wanted_host(&pair), Some(HOST.member));
    pair.place(false);
    pair.work();
    decide_host(&mut pair, 60, HOST.member);
    let is_given_up = |_| {
        pair.router.tick();
        pair.work();
        wanted_host(&pair) == Some(ORIGIN.member)
    };
    assert!((0..30).any(is_given_up));
}

#[test]
fn nothing_is_taken_of_connections_that_are_closed_because_a_state_was_replaced() {
    let mut pair = attached();
    create(&mut pair, "/b/x");
    pair.work();
    let serving = ConnId::new(0, 9);
    let closed = pair.router.begin_anew(vec![serving]);
    assert_eq!(closed, [pair.conn, serving].into());
    create(&mut pair, "/b/y");
    pair.work();
    assert_eq!(asked_of(&pair, 1), []);
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, "/b", false);
    pair.hand_in(OpCode::GetData, body);
    assert_eq!(pair.work(), []);
}

/// Also if it has asked for nothing before: what is asked for behind a gap is not to be carried out.
#[test]
fn nothing_more_is_taken_of_a_connection_whose_session_comes_back_by_another() {
    for has_asked in [true, false] {
        let mut pair = attached();
        if has_asked {
            create(&mut pair, "/b/x");
            pair.work();
            pair.router.handed(SESSION, 1, (ORIGIN, 2));
        }
        let (conn, resumption) = (ConnId::new(0, 2), Resumption::keyed(SESSION, 1000));
        let taken = pair.router.take(ClientInput::Resume { conn, resumption, may_only_read: false });
        assert_eq!(taken.is_none(), has_asked, "it waits for what is under way");
        pair.work();
        create(&mut pair, "/g");
        pair.work();
        assert_eq!(asked_of(&pair, 0), [], "has asked before: {has_asked}");
    }
}

#[test]
fn a_write_that_was_left_with_a_host_is_over_when_the_group_takes_none_through_it() {
    let mut pair = hosted();
    create(&mut pair, "/b/x");
    for _ in 0..4 {
        pair.work();
        pair.router.tick();
    }
    pair.place(false);
    pair.router.look_for_hosts();
    assert_eq!(pair.work(), [ToldClient::Close]);
    resume(&mut pair);
    pair.work();
    assert!(!is_taken_over(&pair));
    decide_host(&mut pair, 70, ORIGIN.member);
    pair.work();
    assert!(is_taken_over(&pair));
}

#[test]
fn a_session_comes_back_when_what_its_host_was_given_by_a_connection_that_is_gone_is_applied() {
    // The host hears that the connection is gone in the turn in which it has a write handed over, or later.
    for is_gone_at_once in [true, false] {
        let mut pair = hosted();
        let hands_over = |pair: &mut RoutedPair, batch: u64| {
            (0..4).any(|_| {
                pair.work();
                pair.hands_over_at_host(batch)
            })
        };
        create(&mut pair, "/b/x");
        assert!(hands_over(&mut pair, 2));
        if is_gone_at_once {
            pair.is_cut_off = true;
            create(&mut pair, "/b/y");
            pair.work();
        }
        let conn = pair.conn;
        pair.router.take(ClientInput::Disconnect { conn });
        pair.is_cut_off = false;
        assert_eq!(hands_over(&mut pair, 3), is_gone_at_once);
        resume(&mut pair);
        let comes_back = |pair: &mut RoutedPair| {
            (0..4).any(|_| {
                pair.tick();
                pair.work();
                is_taken_over(pair)
            })
        };
        assert!(!comes_back(&mut pair), "a write may yet be applied");
        assert!(pair.other.tree_mut().admit(HOST, 2));
        if is_gone_at_once {
            assert!(!comes_back(&mut pair), "the later one may");
            assert!(pair.other.tree_mut().admit(HOST, 3));
        }
        assert!(comes_back(&mut pair), "at once: {is_gone_at_once}");
    }
}
