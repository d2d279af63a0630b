//! Delivery: its content, its speed, and one side that is slow.

use std::time::{Duration, Instant};

use super::node::{Node, TIMING, link, pair};
use super::proxy::{Fault, Proxy};
use super::speaker::Speaker;
use crate::MESSAGE_BYTES_MAX;
use crate::outbox::QUEUE_BYTES_MAX;

pub(super) const MIB: usize = 1 << 20;

/// A message that differs from all others of its test.
pub(super) fn message(number: usize, bytes: usize) -> Vec<u8> {
    let mut message = vec![number as u8; bytes.max(8)];
    message[..8].copy_from_slice(&(number as u64).to_le_bytes());
    message
}

#[test]
fn messages_arrive_in_order_both_ways() {
    let (one, two) = pair(TIMING);
    check_order(&one, &two);
}

pub(super) fn check_order(one: &Node, two: &Node) {
    let sizes = [1, 100, 16 << 10, (16 << 10) + 1, 64 << 10, (64 << 10) + 1, 16 * MIB, 5, 0, 3 * MIB];
    let messages: Vec<Vec<u8>> =
        sizes.into_iter().cycle().take(40).enumerate().map(|(n, s)| message(n, s)).collect();
    // More than a queue holds goes each way, so each side has to take before the other sends on.
    for ten in messages.chunks(10) {
        for message in ten {
            one.send(2, message);
            two.send(1, message);
        }
        for message in ten {
            assert!(*two.expect_message(1) == *message);
            assert!(*one.expect_message(2) == *message);
        }
    }
}

#[test]
fn a_message_larger_than_a_queue_arrives_and_one_that_is_too_large_holds_nothing_up() {
    let (one, two) = pair(TIMING);
    // Zeros that are never touched take no memory.
    assert!(!one.links.send(2, vec![0; MESSAGE_BYTES_MAX + 1]));
    let sizes = [QUEUE_BYTES_MAX + 1, 100];
    for (number, bytes) in sizes.into_iter().enumerate() {
        while !one.links.send(2, message(number, bytes)) {
            std::thread::yield_now();
        }
    }
    for (number, bytes) in sizes.into_iter().enumerate() {
        assert!(*two.expect_message(1) == *message(number, bytes));
    }
    assert!(one.status(2).dropped > 0);
}

#[test]
fn many_small_messages() {
    let (one, two) = pair(TIMING);
    check_burst(&one, &two);
}

pub(super) fn check_burst(one: &Node, two: &Node) {
    const COUNT: usize = 100_000;
    let start = Instant::now();
    (0..COUNT).for_each(|n| one.send(2, &message(n, 100)));
    for n in 0..COUNT {
        assert!(*two.expect_message(1) == *message(n, 100));
    }
    println!("{COUNT} messages of 100 bytes: {:.0} per second", COUNT as f64 / start.elapsed().as_secs_f64());
}

#[test]
fn ping_pong() {
    let (one, two) = pair(TIMING);
    check_ping_pong(&one, two);
}

pub(super) fn check_ping_pong(one: &Node, two: Node) {
    const COUNT: usize = 5_000;
    let echo = std::thread::spawn(move || {
        for _ in 0..COUNT {
            let ping = two.expect_message(1);
            two.send(1, &ping);
        }
        two
    });
    let mut times: Vec<Duration> = (0..COUNT)
        .map(|n| {
            let start = Instant::now();
            one.send(2, &message(n, 100));
            assert!(*one.expect_message(2) == *message(n, 100));
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("there and back: p50 {:?}, p99 {:?}", times[COUNT / 2], times[COUNT * 99 / 100]);
    drop(echo.join().unwrap());
}

#[test]
fn a_full_queue_drops_and_says_so_and_harms_no_other_peer() {
    let one = Node::start(1);
    let three = Node::start(3);
    one.set_peers(&[(2, one.address()), (3, three.address())]);
    let mut slow = Speaker::welcome_deaf(one.address());
    one.expect_up(2);
    three.set_peers(&[(1, one.address())]);
    one.expect_up(3);
    three.expect_up(1);

    let queued = (0..200).take_while(|&n| one.links.send(2, message(n, MIB))).count();
    // The queue, and what sockets take.
    assert!((63..120).contains(&queued), "{queued} MiB queued");
    assert_eq!(one.status(2).dropped, 1);
    assert!(one.status(2).queued_bytes > 62 * MIB);
    one.send(3, b"still here");
    assert_eq!(&*three.expect_message(1), b"still here");

    assert_eq!(slow.receive(queued), vec![MIB; queued]);
    one.send(2, b"room again");
    assert_eq!(slow.receive(1), [b"room again".len()]);
}

#[test]
fn a_member_that_does_not_get_on_with_its_messages_holds_only_so_many() {
    let (one, two) = pair(TIMING);
    check_back_pressure(&one, &two);
}

/// The most that the kernel keeps between a program that sends and one that does not read, in bytes.
fn socket_buffers_max() -> usize {
    let largest = |name: &str| -> usize {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        text.split_whitespace().last().map_or(MESSAGE_BYTES_MAX, |bytes| bytes.parse().unwrap())
    };
    largest("tcp_rmem") + largest("tcp_wmem")
}

pub(super) fn check_back_pressure(one: &Node, two: &Node) {
    let mut sent = 0;
    let mut send_all = || {
        while one.links.send(2, message(sent, MIB)) {
            sent += 1
        }
    };
    // Takes messages as the engine would, and lets none go.
    let held: Vec<_> = (0..64)
        .map(|_| {
            send_all();
            two.expect_message(1)
        })
        .collect();
    send_all();
    let more = two.events.recv_timeout(Duration::from_millis(300));
    assert!(more.is_err(), "{more:?}");
    // Messages that are held, a full queue, and what the two sockets take by the kernel's settings.
    assert!(sent < 140 + socket_buffers_max() / MIB, "{sent} MiB sent");
    for (n, bytes) in held.into_iter().enumerate() {
        assert!(*bytes == *message(n, MIB));
    }
    (64..sent).for_each(|_| drop(two.expect_message(1)));
}

#[test]
fn delayed_bytes_are_whole_and_in_order() {
    let (one, two) = (Node::start(1), Node::start(2));
    let proxy = Proxy::start(one.address());
    link(&one, &two, proxy.address);
    let (release, released) = crossbeam_channel::bounded(0);
    proxy.faults[0].send(Fault::Hold(released)).unwrap();
    (0..1000).for_each(|n| two.send(1, &message(n, 3000)));
    one.send(2, b"the other direction is not held");
    assert_eq!(&*two.expect_message(1), b"the other direction is not held");
    assert!(one.events.is_empty());
    drop(release);
    (0..1000).for_each(|n| assert!(*one.expect_message(2) == *message(n, 3000)));
}
