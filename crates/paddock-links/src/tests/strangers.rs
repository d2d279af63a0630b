//! Strangers: they are kept out, told the reason, and cost little.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::node::{CLUSTER, Node, PATIENCE, TIMING, any_port, pair};
use super::speaker::{HELLO, Speaker, connect, read_answer, read_to_end};
use crate::Timing;
use crate::accept::STRANGERS_MAX;
use crate::frame::HEADER_BYTES;
use crate::greeting::{Answer, GREETING_BYTES, Hello, VERSION, Verdict};

/// A member that expects member 2.
fn expecting() -> Node {
    expecting_with(TIMING)
}

fn expecting_with(timing: Timing) -> Node {
    let one = Node::start_with(1, timing);
    one.set_peers(&[(2, one.address())]);
    one
}

#[test]
fn strangers_are_told_nothing() {
    // Short only here, where no stranger is let in: on a busy machine a member takes its time to say who it is.
    let one = expecting_with(Timing { greeting: Duration::from_millis(300), ..TIMING });
    let check = |bytes: &[u8]| {
        let mut socket = connect(one.address());
        socket.write_all(bytes).unwrap();
        assert_eq!(read_to_end(&socket), b"", "after {bytes:?}");
    };
    check(b"");
    check(b"PAD");
    check(b"GET / HTTP/1.1\r\n\r\n");
    check(&(-65536_i64).to_be_bytes());
    check(&[0xFF; 100]);
    check(&HELLO.encode()[..GREETING_BYTES - 1]);
    let mut damaged = HELLO.encode();
    damaged[20] ^= 1;
    check(&damaged);
    assert!(one.events.is_empty());
}

#[test]
fn members_are_told_why_they_are_refused() {
    let one = expecting();
    let check = |hello: &[u8], expected| {
        let mut socket = connect(one.address());
        socket.write_all(hello).unwrap();
        let answer = Answer::decode(&read_answer(&socket)).unwrap();
        assert_eq!(answer.verdict, expected);
        assert_eq!((answer.from, answer.cluster), (1, CLUSTER));
        assert_eq!(read_to_end(&socket), b"");
    };
    check(&Hello { cluster: CLUSTER + 1, ..HELLO }.encode(), Verdict::OtherCluster);
    check(&Hello { to: 3, ..HELLO }.encode(), Verdict::OtherRecipient);
    check(&Hello { from: 4, ..HELLO }.encode(), Verdict::UnknownMember);
    check(&Hello { from: 1, ..HELLO }.encode(), Verdict::SameNumber);
    let mut other_version = HELLO.encode();
    other_version[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    check(&[&other_version[..], b"and more that this version has not"].concat(), Verdict::OtherVersion);
    assert!(one.events.is_empty());

    check_welcome(&one, HELLO);
    check_welcome(&one, Hello { cluster: 0, ..HELLO });
}

fn check_welcome(one: &Node, hello: Hello) {
    let mut socket = connect(one.address());
    socket.write_all(&hello.encode()).unwrap();
    assert_eq!(Answer::decode(&read_answer(&socket)).unwrap().verdict, Verdict::Welcome);
    one.expect_up(2);
    drop(socket);
    one.expect_down(2);
}

#[test]
fn a_crowd_of_strangers_does_not_keep_a_member_out() {
    let one = Node::start_with(1, Timing { greeting: PATIENCE * 10, ..TIMING });
    one.set_peers(&[(2, one.address())]);
    let crowd: Vec<TcpStream> = (0..STRANGERS_MAX * 2).map(|_| connect(one.address())).collect();
    let mut two = Speaker::welcome(one.address());
    one.expect_up(2);
    two.send(b"through the crowd");
    assert_eq!(&*one.expect_message(2), b"through the crowd");
    // The first ones had to go.
    assert_eq!(read_to_end(&crowd[0]), b"");
    drop(crowd);
}

#[test]
fn what_is_not_a_frame_ends_the_link() {
    let one = expecting();
    let check = |bytes: &[u8]| {
        let mut two = Speaker::welcome(one.address());
        one.expect_up(2);
        two.socket.write_all(bytes).unwrap();
        one.expect_down(2);
    };
    check(&[0; HEADER_BYTES]);
    check(&[0xFF; HEADER_BYTES]);
    check(&[&u32::MAX.to_le_bytes()[..], &[0; 100]].concat());
}

/// Checks the log of a member whose hello was answered so.
fn check_reason(answer: &[u8], expected: &str) {
    let fake = TcpListener::bind(any_port()).unwrap();
    let two = Node::start(2);
    two.set_peers(&[(1, fake.local_addr().unwrap())]);
    let (mut socket, _) = fake.accept().unwrap();
    let mut hello = [0; GREETING_BYTES];
    socket.read_exact(&mut hello).unwrap();
    let hello = Hello::decode(&hello).unwrap();
    assert_eq!((hello.from, hello.to, hello.cluster), (2, 1, CLUSTER));
    socket.write_all(answer).unwrap();
    drop(socket);
    // The member tries again, after it has noted why the first attempt failed, and waits for an answer.
    let _second = fake.accept().unwrap();
    assert!(two.reason(1).contains(expected), "{}", two.reason(1));
    assert!(two.events.is_empty());
}

#[test]
fn a_member_says_why_there_is_no_link() {
    let answer =
        Answer { from: 1, verdict: Verdict::Welcome, cluster: CLUSTER, nonce: 1, process: 7, first_at: None };
    check_reason(b"", "closed the connection without a word");
    check_reason(&[b'x'; GREETING_BYTES], "not a member: it began with \"xxxxxxxx\"");
    check_reason(&HELLO.encode(), "not a member");
    check_reason(&Answer { from: 3, ..answer }.encode(), "is member 3");
    check_reason(&Answer { cluster: CLUSTER + 1, ..answer }.encode(), "another ensemble");
    let refused = Answer { verdict: Verdict::UnknownMember, ..answer };
    check_reason(&refused.encode(), "refuses: the calling member is not on the list");
}

#[test]
fn a_name_that_does_not_resolve_is_told() {
    let (one, two) = pair(TIMING);
    two.links.set_peers(vec![crate::PeerAddress { id: 1, address: "no port".to_owned() }]);
    two.expect_down(1);
    one.expect_down(2);
    // 1 knocks, whereupon 2 tries; both go on, and so does 2 when it has a good address again.
    two.set_peers(&[(1, one.address())]);
    two.expect_up(1);
    one.expect_up(2);
}
