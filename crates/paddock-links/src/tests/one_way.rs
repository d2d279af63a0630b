//! Members of which only the one with the lower number reaches the other: it does not wait to be called.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use paddock_tls::testing::named;

use super::certificates::{self, Certificates, reason};
use super::delivery;
use super::node::{Node, TIMING, any_port};
use super::proxy::{Fault, Proxy};
use super::speaker::{HELLO, connect, read_answer};
use crate::Timing;
use crate::greeting::{Answer, Hello, Verdict};

/// An address at which no process listens.
fn nobody() -> SocketAddr {
    TcpListener::bind(any_port()).unwrap().local_addr().unwrap()
}

/// Links the two, of which member 2 calls member 1 at an address that is not member 1's.
#[track_caller]
fn check_linked(one: &Node, two: &Node, wrong: SocketAddr) {
    two.set_peers(&[(1, wrong)]);
    reason(two, 1);
    one.set_peers(&[(2, two.address())]);
    one.expect_up(2);
    two.expect_up(1);
    delivery::check_order(one, two);
}

#[test]
fn a_member_that_cannot_be_reached_is_linked_by_its_own_call() {
    check_linked(&Node::start(1), &Node::start(2), nobody());
}

#[test]
fn a_member_whose_address_leads_to_another_one_is_linked_by_its_own_call() {
    let (one, two, three) = (Node::start(1), Node::start(2), Node::start(3));
    three.set_peers(&[(2, two.address())]);
    check_linked(&one, &two, three.address());
}

#[test]
fn a_member_whose_address_leads_to_the_caller_is_linked_by_its_own_call() {
    let (one, two) = (Node::start(1), Node::start(2));
    check_linked(&one, &two, two.address());
}

/// As with a packet filter, an attempt takes as long as it may, and most of the time one goes on.
#[test]
fn a_call_is_taken_while_an_attempt_waits() {
    let timing = Timing { greeting: Duration::from_millis(200), ..TIMING };
    let (one, two) = (Node::start(1), Node::start_with(2, timing));
    // A member that connects there waits for an answer.
    let silent = TcpListener::bind(any_port()).unwrap();
    check_linked(&one, &two, silent.local_addr().unwrap());
}

#[test]
fn a_link_by_the_others_call_is_made_anew() {
    let (one, two) = (Node::start(1), Node::start(2));
    let proxy = Proxy::start(two.address());
    two.set_peers(&[(1, nobody())]);
    reason(&two, 1);
    one.set_peers(&[(2, proxy.address)]);
    one.expect_up(2);
    two.expect_up(1);
    proxy.faults[0].send(Fault::Cut).unwrap();
    one.send(2, b"cut");
    one.expect_down(2);
    two.expect_down(1);
    one.expect_up(2);
    two.expect_up(1);
    two.send(1, b"again");
    assert_eq!(&*one.expect_message(2), b"again");
}

#[test]
fn a_member_that_can_be_reached_is_called() {
    let (one, two) = (Node::start(1), Node::start(2));
    two.set_peers(&[(1, one.address())]);
    let mut socket = connect(two.address());
    socket.write_all(&Hello { from: 1, to: 2, ..HELLO }.encode()).unwrap();
    assert_eq!(Answer::decode(&read_answer(&socket)).unwrap().verdict, Verdict::WillCall);
}

#[test]
fn a_caller_has_to_show_its_certificate() {
    let stores = Certificates::new();
    let (one, two) = (stores.start(1), stores.start(2));
    check_linked(&one, &two, nobody());

    let one = certificates::start(1, stores.settings_with(1, &named("a member", &["elsewhere.example"])));
    let two = stores.start(2);
    two.set_peers(&[(1, nobody())]);
    reason(&two, 1);
    one.set_peers(&[(2, two.address())]);
    let refusal = reason(&one, 2);
    assert!(refusal.contains("the certificate of the calling member is not for the host"), "{refusal}");
    assert!(one.events.is_empty() && two.events.is_empty());
}
