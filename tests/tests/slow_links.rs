//! Members whose links to others are slow.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode};
use paddock_relay::{LinkQuality, RETRANSMISSION, Relay};
use paddock_tests::ensemble::Ensemble;
use paddock_tests::server::free_port;

const MEMBERS: usize = 3;
const SLOW: Duration = Duration::from_millis(50);
const WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// An ensemble in which each member calls each other one through a relay.
struct Relayed {
    ensemble: Ensemble,
    /// Callers and called members, by their places, with the relays between them.
    relays: Vec<([usize; 2], Relay)>,
}

impl Relayed {
    fn start() -> Relayed {
        let ports: Vec<[u16; 2]> = (0..MEMBERS).map(|_| [free_port(), free_port()]).collect();
        let pairs = (0..MEMBERS).flat_map(|from| (0..MEMBERS).map(move |to| [from, to]));
        let relays: Vec<([usize; 2], Relay)> = pairs
            .filter(|[from, to]| from != to)
            .map(|pair| {
                let target = SocketAddr::from((Ipv4Addr::LOCALHOST, ports[pair[1]][0]));
                (pair, Relay::start(target).expect("start a relay"))
            })
            .collect();
        let settings = |id: usize| {
            let own = id - 1;
            let port = |to: usize| {
                let relay = relays.iter().find(|(pair, _)| *pair == [own, to]);
                relay.map_or(ports[to][0], |(_, relay)| relay.address().port())
            };
            let line = |to: usize| {
                (format!("server.{}", to + 1), format!("127.0.0.1:{}:{}", port(to), ports[to][1]))
            };
            (0..MEMBERS).map(line).collect()
        };
        let mut ensemble = Ensemble::start_each(MEMBERS, &[], settings);
        ensemble.leader();
        Relayed { ensemble, relays }
    }

    /// All that goes between the member and others takes this time longer, each way.
    fn slow_down(&self, member: usize, by: Duration) {
        self.spoil(member, LinkQuality { delay: by, ..LinkQuality::default() });
    }

    /// One in a hundred portions between the member and others has to be sent again.
    fn lose(&self, member: usize) {
        self.spoil(member, LinkQuality { lost_one_in: 100, ..LinkQuality::default() });
    }

    fn spoil(&self, member: usize, quality: LinkQuality) {
        let own = self.relays.iter().filter(|(pair, _)| pair.contains(&member));
        own.for_each(|(_, relay)| relay.set_quality(quality, quality));
    }

    /// Writes at the leader and at a follower, each for two seconds, while the leader stays. Returns the times of both, those of each in their order of length.
    fn write_at(&mut self, leader: usize, follower: usize) -> [Vec<Duration>; 2] {
        [leader, follower].map(|member| {
            let stop = Arc::new(AtomicBool::new(false));
            let writer = thread::spawn({
                let (hosts, stop) = (self.ensemble.at(member).address().to_string(), stop.clone());
                move || write_until(&hosts, &stop)
            });
            thread::sleep(Duration::from_secs(2));
            assert_eq!(self.ensemble.leader(), leader, "the lead stays");
            stop.store(true, Ordering::Relaxed);
            let times = writer.join().expect("the writer ends well");
            let mut times: Vec<Duration> = times.into_iter().map(|(_, took)| took).collect();
            times.sort_unstable();
            times
        })
    }
}

/// Writes one znode after the other until it is stopped, and returns the time of each write. None may fail.
#[tokio::main(flavor = "current_thread")]
async fn write_until(hosts: &str, stop: &AtomicBool) -> Vec<(Instant, Duration)> {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    match client.create("/written", b"", CreateMode::Persistent).await {
        Ok(_) | Err(Error::Refused { code: ErrorCode::NodeExists, .. }) => {}
        Err(error) => panic!("create: {error}"),
    }
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        client.set_data("/written", b"data", None).await.expect("no write fails");
        times.push((began, began.elapsed()));
    }
    client.close().await.expect("close");
    times
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_leader_whose_links_become_slow_hands_the_lead_over() {
    let mut relayed = Relayed::start();
    let leader = relayed.ensemble.leader();
    let follower = (leader + 1) % MEMBERS;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (hosts, stop) = (relayed.ensemble.at(follower).address().to_string(), stop.clone());
        move || write_until(&hosts, &stop)
    });
    // The members have told each other how quick they are.
    thread::sleep(Duration::from_secs(2));
    let slowed = Instant::now();
    relayed.slow_down(leader, SLOW);
    while relayed.ensemble.leader() == leader {
        assert!(slowed.elapsed() < WITHIN, "member {} still leads", leader + 1);
        thread::sleep(POLL);
    }
    let handed_over = Instant::now();
    relayed.ensemble.at(leader).wait_for_log("the way of this leader to a quorum is much longer");
    let next = relayed.ensemble.leader();
    thread::sleep(Duration::from_secs(2));
    assert_eq!(relayed.ensemble.leader(), next, "the lead stays");
    stop.store(true, Ordering::Relaxed);
    let times = writer.join().expect("the writer ends well");
    let (before, after): (Vec<_>, Vec<_>) = times.iter().partition(|(at, _)| *at < handed_over);
    let slowest = before.iter().map(|(_, took)| *took).max().expect("there was a write");
    let after = median(after.iter().map(|(_, took)| *took));
    println!("writes: up to {slowest:?} for {:?}, then {after:?}", handed_over - slowed);
    assert!(slowest >= SLOW && after < SLOW, "{slowest:?} and then {after:?}");
}

/// Spoils the way to a follower: of the writes at the leader and at the other follower, which are a quorum, this part in a hundred takes less than a time.
#[track_caller]
fn check_elsewhere(spoil: fn(&Relayed, usize), percent: usize, bound: Duration) {
    let mut relayed = Relayed::start();
    let leader = relayed.ensemble.leader();
    let [spoilt, other] = [1, 2].map(|step| (leader + step) % MEMBERS);
    spoil(&relayed, spoilt);
    for times in relayed.write_at(leader, other) {
        let time = times[times.len() * percent / 100];
        println!("{percent}% of {} writes: {time:?}", times.len());
        assert!(time < bound, "{time:?}");
    }
}

#[test]
fn a_follower_whose_links_are_slow_slows_only_its_own_clients() {
    check_elsewhere(|relayed, slow| relayed.slow_down(slow, SLOW), 50, SLOW / 2);
}

/// A portion that has to be sent again holds up what is behind it.
#[test]
fn a_follower_whose_links_lose_packets_slows_only_its_own_clients() {
    check_elsewhere(Relayed::lose, 99, RETRANSMISSION / 2);
}

/// Nothing is gained where all members are as far apart.
#[test]
fn where_all_links_are_slow_the_lead_stays() {
    let mut relayed = Relayed::start();
    let leader = relayed.ensemble.leader();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (hosts, stop) = (relayed.ensemble.hosts(), stop.clone());
        move || write_until(&hosts, &stop)
    });
    (0..MEMBERS).for_each(|member| relayed.slow_down(member, SLOW));
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        assert_eq!(relayed.ensemble.leader(), leader, "the lead stays");
        thread::sleep(POLL);
    }
    stop.store(true, Ordering::Relaxed);
    let times = writer.join().expect("the writer ends well");
    assert!(median(times.iter().map(|(_, took)| *took)) >= SLOW);
}
