//! Links with TLS: the same messages, and which members do not get one.

use paddock_tls::testing::{expired, for_loopback, named};
use paddock_tls::{PeerTls, TlsMode, TlsVersions};

use super::certificates::{Certificates, reason, start};
use super::delivery::{self, MIB, message};
use super::node::{Node, link};
use super::proxy::{Fault, Proxy};

fn pair() -> (Node, Node) {
    pair_of(|_| {})
}

fn pair_of(change: impl Fn(&mut PeerTls)) -> (Node, Node) {
    let certificates = Certificates::new();
    let [one, two] = [1, 2].map(|id| {
        let mut settings = certificates.settings(id);
        change(&mut settings);
        start(id, settings)
    });
    link(&one, &two, one.address());
    (one, two)
}

/// Lets two members try to reach each other, and returns why they do not once both have said so.
fn reasons_of_no_link(one: &Node, two: &Node) -> (String, String) {
    one.set_peers(&[(2, two.address())]);
    two.set_peers(&[(1, one.address())]);
    (reason(one, 2), reason(two, 1))
}

#[track_caller]
fn check_no_link(one: &Node, two: &Node, expected: (&str, &str)) {
    let reasons = reasons_of_no_link(one, two);
    assert!(reasons.0.contains(expected.0), "member 1: {}", reasons.0);
    assert!(reasons.1.contains(expected.1), "member 2: {}", reasons.1);
    assert!(one.events.is_empty() && two.events.is_empty());
}

#[test]
fn messages_arrive_in_order_both_ways() {
    let (one, two) = pair();
    delivery::check_order(&one, &two);
    let (one, two) = pair_of(|settings| settings.versions = TlsVersions::Only12);
    delivery::check_order(&one, &two);
}

#[test]
fn many_small_messages() {
    let (one, two) = pair();
    delivery::check_burst(&one, &two);
}

#[test]
fn ping_pong() {
    let (one, two) = pair();
    delivery::check_ping_pong(&one, two);
}

#[test]
fn a_member_that_does_not_get_on_with_its_messages_holds_only_so_many() {
    let (one, two) = pair();
    delivery::check_back_pressure(&one, &two);
}

/// The socket takes only some of what is sealed, again and again, while more is sent.
#[test]
fn delayed_bytes_are_whole_and_in_order() {
    let certificates = Certificates::new();
    let (one, two) = (certificates.start(1), certificates.start(2));
    let proxy = Proxy::start(one.address());
    link(&one, &two, proxy.address);
    let (release, released) = crossbeam_channel::bounded(0);
    proxy.faults[0].send(Fault::Hold(released)).unwrap();
    let sizes = [100, 3000, 70_000, MIB];
    let messages: Vec<_> =
        sizes.into_iter().cycle().take(120).enumerate().map(|(n, size)| message(n, size)).collect();
    messages.iter().for_each(|message| two.send(1, message));
    one.send(2, b"the other direction is not held");
    assert_eq!(&*two.expect_message(1), b"the other direction is not held");
    drop(release);
    messages.iter().for_each(|message| assert!(*one.expect_message(2) == **message));
}

#[test]
fn a_flipped_bit_ends_the_link_and_a_new_one_is_made() {
    for direction in [0, 1] {
        let certificates = Certificates::new();
        let (one, two) = (certificates.start(1), certificates.start(2));
        let proxy = Proxy::start(one.address());
        link(&one, &two, proxy.address);
        let (sender, to, receiver) = if direction == 0 { (&two, 1, &one) } else { (&one, 2, &two) };
        proxy.faults[direction].send(Fault::Flip).unwrap();
        sender.send(to, b"harmed");
        receiver.expect_down(3 - to);
        sender.expect_down(to);
        receiver.expect_up(3 - to);
        sender.expect_up(to);
        sender.send(to, b"after");
        assert_eq!(&*receiver.expect_message(3 - to), b"after");
    }
}

#[test]
fn a_member_that_comes_back_is_found() {
    let certificates = Certificates::new();
    let (one, two) = (certificates.start(1), certificates.start(2));
    link(&one, &two, one.address());
    two.links.shutdown();
    one.expect_down(2);
    let two = certificates.start(2);
    two.set_peers(&[(1, one.address())]);
    one.expect_up(2);
    two.expect_up(1);
}

#[test]
fn a_renewed_certificate_is_shown_on_the_next_link() {
    let certificates = Certificates::new();
    let old = certificates.settings_with(2, &expired(for_loopback()));
    let (one, two) = (certificates.start(1), start(2, old));
    check_no_link(&one, &two, ("", "this member's certificate is not valid now"));
    certificates.settings(2);
    one.expect_up(2);
    two.expect_up(1);
}

#[test]
fn a_certificate_of_another_authority_makes_no_link() {
    let (ours, theirs) = (Certificates::new(), Certificates::of("theirs"));
    // Each is called by the other, and sees the certificate of the called one first.
    let put = "put the certificate of who signed it into the trust store";
    check_no_link(&ours.start(1), &theirs.start(2), (put, put));
    // Member 2 trusts ours, but is not trusted.
    let mut settings = theirs.settings(2);
    settings.trust_store = ours.settings(1).trust_store;
    check_no_link(&ours.start(1), &start(2, settings), (put, "not in its trust store"));
}

#[test]
fn an_expired_certificate_makes_no_link() {
    let certificates = Certificates::new();
    let old = || certificates.settings_with(2, &expired(for_loopback()));
    let renew = "renew it, or correct the clock";
    check_no_link(&certificates.start(1), &start(2, old()), (renew, "not valid now"));
    let old = certificates.settings_with(1, &expired(for_loopback()));
    check_no_link(&start(1, old), &certificates.start(2), ("not valid now", renew));
}

#[test]
fn a_certificate_for_another_host_makes_no_link() {
    let certificates = Certificates::new();
    let elsewhere = || certificates.settings_with(2, &named("x", &["zoo9.example.org"]));
    let (one, two) = (certificates.start(1), start(2, elsewhere()));
    check_no_link(&one, &two, ("have it issued for the host", "not for the host that it has in the list"));

    // Without the verification of callers, the higher member calls and the lower one does not mind.
    let mut settings = certificates.settings(1);
    settings.verify_callers = false;
    let (one, two) = (start(1, settings), start(2, elsewhere()));
    link(&one, &two, one.address());

    // Without any, each may call the other.
    let careless = |mut settings: PeerTls| {
        (settings.verify_called, settings.verify_callers) = (false, false);
        settings
    };
    let one = start(1, careless(certificates.settings_with(1, &named("x", &["zoo9.example.org"]))));
    let two = start(2, careless(certificates.settings(2)));
    link(&one, &two, one.address());
}

#[test]
fn with_and_without_tls_there_is_no_link() {
    let certificates = Certificates::new();
    let at_both = "turn TLS on at both members, or at none";
    let needed = "takes calls with TLS only: turn TLS on at the calling one";
    check_no_link(&certificates.start(1), &Node::start(2), (at_both, needed));
    check_no_link(&Node::start(1), &certificates.start(2), (needed, at_both));
}

/// Each member may be one step ahead of the other, whichever of them calls.
#[test]
fn an_ensemble_changes_to_tls_step_by_step() {
    let certificates = Certificates::new();
    let start = |id, mode: Option<TlsMode>| match mode {
        None => Node::start(id),
        Some(mode) => start(id, PeerTls { mode, ..certificates.settings(id) }),
    };
    let steps = [None, Some(TlsMode::Accepted), Some(TlsMode::Preferred), Some(TlsMode::Required)];
    let neighbours = steps.windows(2).flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]);
    for (mode_one, mode_two) in neighbours.chain(steps.map(|step| (step, step))) {
        let (one, two) = (start(1, mode_one), start(2, mode_two));
        link(&one, &two, one.address());
        one.send(2, b"message");
        assert_eq!(&*two.expect_message(1), b"message");
    }
}
