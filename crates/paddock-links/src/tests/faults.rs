//! Links that are cut, harmed or silent: noticed, and made anew.

use std::time::Duration;

use super::node::{Node, TIMING, link, pair};
use super::proxy::{Fault, Proxy};
use super::speaker::{Speaker, read_to_end};
use crate::{LinkEvent, Timing};

/// Does `fault` to what one member sends: both see the link go and come, and nothing arrives that was not sent, or
/// twice.
fn check(fault: Fault, direction: usize, expected_arrivals: std::ops::RangeInclusive<usize>) {
    let (one, two) = (Node::start(1), Node::start(2));
    let proxy = Proxy::start(one.address());
    link(&one, &two, proxy.address);
    let (sender, to, receiver) = if direction == 0 { (&two, 1, &one) } else { (&one, 2, &two) };
    sender.send(to, b"before");
    receiver.expect_message(3 - to);
    proxy.faults[direction].send(fault).unwrap();
    sender.send(to, b"harmed");
    let mut arrived = Vec::new();
    loop {
        match receiver.next_event() {
            LinkEvent::Message { bytes, .. } => arrived.push(bytes.to_vec()),
            LinkEvent::Down { .. } => break,
            event => panic!("{event:?}"),
        }
    }
    assert!(arrived.iter().all(|message| message == b"harmed"));
    assert!(expected_arrivals.contains(&arrived.len()), "arrived {} times", arrived.len());
    receiver.expect_up(3 - to);
    sender.expect_down(to);
    sender.expect_up(to);
    sender.send(to, b"after");
    assert_eq!(&*receiver.expect_message(3 - to), b"after");
}

#[test]
fn a_flipped_bit_ends_the_link() {
    check(Fault::Flip, 0, 0..=0);
    check(Fault::Flip, 1, 0..=0);
}

#[test]
fn a_lost_frame_ends_the_link() {
    // If it was a heartbeat that got lost, the message behind it does not arrive either.
    check(Fault::Lose, 0, 0..=0);
    check(Fault::Lose, 1, 0..=0);
}

#[test]
fn a_repeated_frame_ends_the_link() {
    // If it was a heartbeat that was repeated, the message does not arrive.
    check(Fault::Repeat, 0, 0..=1);
    check(Fault::Repeat, 1, 0..=1);
}

#[test]
fn a_cut_link_is_made_anew() {
    check(Fault::Cut, 0, 0..=0);
    check(Fault::Cut, 1, 0..=0);
}

#[test]
fn a_silent_link_is_cut_by_both_sides() {
    let timing =
        Timing { heartbeat: Duration::from_millis(100), silence: Duration::from_millis(500), ..TIMING };
    let (one, two) = (Node::start_with(1, timing), Node::start_with(2, timing));
    let proxy = Proxy::start(one.address());
    link(&one, &two, proxy.address);
    // As with a cable that was pulled: neither side is told that nothing arrives.
    let (_release, released) = crossbeam_channel::bounded(0);
    for faults in &proxy.faults {
        faults.send(Fault::Hold(released.clone())).unwrap();
    }
    one.expect_down(2);
    two.expect_down(1);
}

#[test]
fn heartbeats_keep_an_idle_link() {
    let timing = Timing { heartbeat: Duration::from_millis(100), silence: Duration::from_secs(4), ..TIMING };
    let (one, two) = pair(timing);
    let quiet = one.events.recv_timeout(timing.silence + timing.heartbeat * 5);
    assert!(quiet.is_err(), "{quiet:?}");
    one.send(2, b"still here");
    assert_eq!(&*two.expect_message(1), b"still here");
}

#[test]
fn a_new_connection_takes_the_place_of_the_former_one() {
    let one = Node::start(1);
    one.set_peers(&[(2, one.address())]);
    let mut former = Speaker::welcome(one.address());
    one.expect_up(2);
    former.send(b"one");
    assert_eq!(&*one.expect_message(2), b"one");

    let mut latter = Speaker::welcome(one.address());
    one.expect_down(2);
    one.expect_up(2);
    former.socket.set_nonblocking(false).unwrap();
    read_to_end(&former.socket);
    one.send(2, b"for the latter");
    assert_eq!(latter.receive(1), [b"for the latter".len()]);
    latter.send(b"two");
    assert_eq!(&*one.expect_message(2), b"two");
}
