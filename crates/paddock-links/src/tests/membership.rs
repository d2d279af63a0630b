//! Members that come, go, move and come back.

use std::net::TcpListener;

use super::LinkState;
use super::node::{Node, PATIENCE, TIMING, any_port, link, pair};
use super::proxy::Proxy;
use crate::Timing;

#[test]
fn three_members_reach_each_other() {
    let nodes = [Node::start(1), Node::start(2), Node::start(3)];
    let all: Vec<_> = (1..=3).zip(nodes.iter().map(Node::address)).collect();
    // Each gets the whole list, with itself in it.
    nodes.iter().for_each(|node| node.set_peers(&all));
    for node in &nodes {
        node.next_event();
        node.next_event();
        assert_eq!(node.links.status().iter().filter(|status| status.state == LinkState::Up).count(), 2);
    }
    for from in [1, 2] {
        nodes[from - 1].send(3, b"to the third");
        assert_eq!(&*nodes[2].expect_message(from as u32), b"to the third");
    }
}

#[test]
fn a_removed_member_is_cut_off_until_it_is_added_again() {
    let (one, two) = pair(TIMING);
    one.set_peers(&[]);
    one.expect_down(2);
    two.expect_down(1);
    assert!(!one.links.send(2, b"nobody".to_vec()));
    assert!(one.links.status().is_empty());
    one.set_peers(&[(2, two.address())]);
    one.expect_up(2);
    two.expect_up(1);
    let status = one.status(2);
    assert_eq!((status.state, status.address), (LinkState::Up, two.address().to_string()));
    one.send(2, b"again");
    assert_eq!(&*two.expect_message(1), b"again");
}

#[test]
fn a_member_that_moves_is_dialled_where_it_is_now() {
    let (one, two) = (Node::start(1), Node::start(2));
    let (former, latter) = (Proxy::start(one.address()), Proxy::start(one.address()));
    link(&one, &two, former.address);
    former.expect_connection();
    two.set_peers(&[(1, latter.address)]);
    latter.expect_connection();
    two.expect_down(1);
    two.expect_up(1);
    one.expect_down(2);
    one.expect_up(2);
    two.send(1, b"from there");
    assert_eq!(&*one.expect_message(2), b"from there");
}

#[test]
fn an_address_of_the_dialling_side_can_change_without_a_cut() {
    let (one, two) = pair(TIMING);
    one.set_peers(&[(2, any_port())]);
    two.send(1, b"still here");
    assert_eq!(&*one.expect_message(2), b"still here");
    assert!(two.events.is_empty());
}

#[test]
fn a_member_that_stops_is_missed_and_one_that_comes_back_is_found() {
    let (one, two) = pair(TIMING);
    two.links.shutdown();
    one.expect_down(2);
    let two = Node::start(2);
    two.set_peers(&[(1, one.address())]);
    one.expect_up(2);
    two.expect_up(1);
}

#[test]
fn a_knock_ends_the_callers_pause() {
    let absent = TcpListener::bind(any_port()).unwrap();
    let address = absent.local_addr().unwrap();
    // Member 2 will not try again by itself before this test has failed.
    let two = Node::start_with(2, Timing { pause_min: PATIENCE * 4, pause_max: PATIENCE * 4, ..TIMING });
    two.set_peers(&[(1, address)]);
    drop(absent.accept().unwrap());
    drop(absent);
    let one = Node::start_at(1, address, TIMING);
    one.set_peers(&[(2, two.address())]);
    one.expect_up(2);
    two.expect_up(1);
}
