//! Processes that share a member number, and members of different ensembles.

use std::time::{Duration, Instant};

use paddock_proto::MemberNumber;

use super::LinkState;
use super::node::{CLUSTER, Node, PATIENCE, TIMING, link, pair};
use super::proxy::{Fault, Proxy};
use crate::Timing;

/// Waits until the member has a reason for not being linked to `peer` that says `expected`.
fn wait_for_reason(node: &Node, peer: MemberNumber, expected: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reason = node.links.status().iter().any(|status| status.peer == peer).then(|| node.reason(peer));
        if let Some(reason) = reason.as_ref().filter(|reason| reason.contains(expected)) {
            return reason.clone();
        }
        assert!(Instant::now() < deadline, "there is no link because {reason:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_second_process_of_a_member_is_refused_until_the_first_is_gone() {
    let (one, two) = pair(TIMING);
    let copy = Node::start(2);
    copy.set_peers(&[(1, one.address())]);
    let reason = wait_for_reason(&copy, 1, "another process");
    let first = one.links.link_address(2).unwrap();
    assert!(reason.contains(&format!("calls from {first}")), "{reason}");
    assert!(reason.contains("this one calls from 127.0.0.1:"), "{reason}");
    assert_eq!(one.status(2).state, LinkState::Up, "the first process has not noticed anything");
    two.send(1, b"still here");
    assert_eq!(one.expect_message(2).to_vec(), b"still here");

    two.links.shutdown();
    one.expect_down(2);
    one.expect_up(2);
    copy.expect_up(1);
    copy.send(1, b"the second");
    assert_eq!(one.expect_message(2).to_vec(), b"the second");
}

#[test]
fn a_copy_that_only_knocks_is_refused_as_well() {
    let (one, two) = pair(TIMING);
    // A copy of member 1 does not call member 2, which has the higher number, but asks to be called.
    let copy = Node::start(1);
    copy.set_peers(&[(2, two.address())]);
    wait_for_reason(&copy, 2, "another process");
    assert_eq!(one.status(2).state, LinkState::Up);
}

/// A process that hung, or whose machine is gone, does not keep its member out until its link is cut for silence.
#[test]
fn a_link_that_is_silent_gives_way_to_another_process() {
    let timing = Timing { gives_way: Duration::from_millis(100), ..TIMING };
    let (one, two) = (Node::start_with(1, timing), Node::start_with(2, timing));
    let proxy = Proxy::start(one.address());
    link(&one, &two, proxy.address);
    let (_release, released) = crossbeam_channel::bounded(0);
    proxy.faults[0].send(Fault::Hold(released)).unwrap();
    let latter = Node::start(2);
    latter.set_peers(&[(1, one.address())]);
    one.expect_down(2);
    one.expect_up(2);
    latter.expect_up(1);
}

#[test]
fn links_are_judged_again_when_a_side_learns_its_ensemble() {
    // Neither knows its ensemble yet.
    let (one, two) = (Node::start_in(1, 0), Node::start_in(2, 0));
    link(&one, &two, one.address());
    one.links.set_cluster(CLUSTER);
    two.send(1, b"hello");
    assert_eq!(one.expect_message(2).to_vec(), b"hello", "the other side may be of the same ensemble");
    two.links.set_cluster(CLUSTER + 1);
    // What comes over the link shows where it comes from.
    one.links.refuse(2, CLUSTER + 1);
    one.expect_down(2);
    let reason = wait_for_reason(&two, 1, "different ensembles");
    assert!(reason.contains("000000000000004d") && reason.contains("000000000000004e"), "{reason}");

    // One side said where it belongs when the link began, and the other one learns it now.
    let three = Node::start_in(3, 0);
    one.set_peers(&[(3, three.address())]);
    three.set_peers(&[(1, one.address())]);
    three.expect_up(1);
    three.links.set_cluster(CLUSTER + 1);
    three.expect_down(1);
    wait_for_reason(&three, 1, "different ensembles");
}
