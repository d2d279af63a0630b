//! The leader dies or hangs while kazoo and ZooKeeper's Java client write on the other members: none of them notices more
//! than a slow answer, and the slow answer comes no later than Apache ZooKeeper's service comes back.
//!
//! The environment makes it longer: `FAILOVER_ROUNDS` (of a leader that dies), `SILENCE_ROUNDS` (of one that hangs),
//! `RETURN_ROUNDS` (of one that comes back).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::ensemble::Ensemble;
use paddock_tests::load::{Load, SessionAccount, check_data, check_ephemerals, longest_gap, now_ns, spread};
use paddock_tests::rounds;
use paddock_tests::server::ServerKind;

/// Sessions of each library.
const SESSIONS: usize = 4;
/// Writes of every session, before and after a fault.
const WRITES: usize = 50;

/// With the default settings, whatever happens to the leader.
const GAP_MAX: Duration = Duration::from_secs(2);

/// Effects of a fault that clients of the members that stayed saw.
struct FaultEffects {
    gap: Duration,
    sessions: Vec<SessionAccount>,
}

impl FaultEffects {
    fn complaints(&self) -> Vec<String> {
        self.sessions.iter().flat_map(SessionAccount::complaints).collect()
    }

    fn failed_writes(&self) -> usize {
        self.sessions.iter().flat_map(|session| &session.writes).filter(|write| write.result.is_err()).count()
    }
}

/// Lets both libraries write on all members but the leader, does `fault` to it, and waits until every session writes on.
fn watch(ensemble: &mut Ensemble, name: &str, fault: impl FnOnce(&mut Ensemble, usize)) -> FaultEffects {
    let leader = ensemble.leader();
    let others = ensemble.addresses_beside(leader);
    let loads = Load::start_all(&format!("/{name}"), &spread(&others, SESSIONS));
    loads.iter().for_each(|load| load.wait_for_writes(WRITES));
    let from = now_ns();
    fault(ensemble, leader);
    loads.iter().for_each(|load| load.wait_for_writes(WRITES));
    let to = now_ns();
    check_ephemerals(others[0], &loads);
    let sessions: Vec<SessionAccount> = loads.into_iter().flat_map(Load::stop).collect();
    FaultEffects { gap: longest_gap(&sessions, from, to), sessions }
}

#[test]
fn a_leader_that_dies_is_missed_no_longer_than_apache_zookeepers() {
    let rounds = rounds("FAILOVER_ROUNDS", 3);
    let mut servers =
        [ServerKind::Paddock, ServerKind::ZooKeeper].map(|kind| Ensemble::start_kind(kind, 3, &[]));
    let mut gaps = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (ensemble, gaps) in servers.iter_mut().zip(&mut gaps) {
            let mut killed = 0;
            let seen = watch(ensemble, &format!("round-{round}"), |ensemble, leader| {
                ensemble.member(leader).kill();
                killed = leader;
            });
            let kind = ensemble.member(killed).kind();
            println!(
                "round {round}, {kind:?}: no write for {:?}; {} writes failed, {} changes of a connection",
                seen.gap,
                seen.failed_writes(),
                seen.sessions.iter().map(|session| session.states.len()).sum::<usize>(),
            );
            if kind == ServerKind::Paddock {
                assert_eq!(seen.complaints(), Vec::<String>::new(), "round {round}");
            }
            gaps.push(seen.gap);
            ensemble.member(killed).spawn();
            ensemble.leader();
            ensemble.settle();
            check_data(ensemble.member(killed).address(), &seen.sessions);
        }
    }
    let [paddock, zookeeper] = gaps.map(median);
    println!("medians of {rounds} rounds: Paddock {paddock:?}, Apache ZooKeeper {zookeeper:?}");
    assert!(paddock <= zookeeper, "no write for {paddock:?}, with Apache ZooKeeper for {zookeeper:?}");
}

#[test]
fn a_leader_that_hangs_is_missed_for_less_than_two_seconds_and_follows_when_it_goes_on() {
    let mut ensemble = Ensemble::start(3);
    for round in 0..rounds("SILENCE_ROUNDS", 3) {
        let mut silent = 0;
        let seen = watch(&mut ensemble, &format!("round-{round}"), |ensemble, leader| {
            ensemble.member(leader).pause();
            silent = leader;
        });
        println!("round {round}: no write for {:?}", seen.gap);
        assert_eq!(seen.complaints(), Vec::<String>::new(), "round {round}");
        assert!(seen.gap < GAP_MAX, "no write for {:?}", seen.gap);
        ensemble.member(silent).resume();
        assert_ne!(ensemble.leader(), silent, "it leads again, without an election");
        ensemble.settle();
        check_data(ensemble.member(silent).address(), &seen.sessions);
    }
}

/// A leader keeps what a member lacks until it has not heard that one for two seconds, and then no more than 8 MiB.
const LEADERS_PATIENCE: Duration = Duration::from_millis(2500);

/// Log line of a member that takes a snapshot of the leader's.
const SNAPSHOT_TAKEN: &str = "snapshot of the leader installed";

#[test]
fn a_killed_leader_comes_back_by_its_log_or_by_a_snapshot_while_clients_write() {
    let mut ensemble = Ensemble::start_with(3, &[("snapCount", "2000")]);
    for round in 0..rounds("RETURN_ROUNDS", 2) {
        let by_snapshot = round % 2 == 1;
        let mut returned = 0;
        let seen = watch(&mut ensemble, &format!("round-{round}"), |ensemble, leader| {
            ensemble.member(leader).kill();
            returned = leader;
            // Without a leader between it could come back as one.
            ensemble.leader();
            if by_snapshot {
                fill(ensemble.addresses_beside(leader)[0], &format!("/filled-{round}"));
            }
            ensemble.member(leader).spawn();
            assert_ne!(ensemble.leader(), leader, "it leads again, without an election");
        });
        assert_eq!(seen.complaints(), Vec::<String>::new(), "round {round}");
        ensemble.settle();
        check_data(ensemble.member(returned).address(), &seen.sessions);
        if by_snapshot {
            ensemble.member(returned).wait_for_log(SNAPSHOT_TAKEN);
        }
        let taken = ensemble.member(returned).log().matches(SNAPSHOT_TAKEN).count();
        println!("round {round}: no write for {:?}, {taken} snapshots taken by the member", seen.gap);
        assert_eq!(taken > 0, by_snapshot);
        ensemble.member(returned).forget_log();
    }
}

/// Writes for a time, and then enough that a member which is away cannot come back by its log.
#[tokio::main(flavor = "current_thread")]
async fn fill(member: SocketAddr, parent: &str) {
    let client = Client::connect(&member.to_string(), ClientOptions::default())
        .await
        .expect("connect to the ensemble");
    client.create(parent, b"", CreateMode::Persistent).await.expect("create the parent");
    let begun = Instant::now();
    while begun.elapsed() < LEADERS_PATIENCE {
        client.set_data(parent, b"x", None).await.expect("set the parent");
    }
    let value = vec![b'x'; 4000];
    for hundred in 0..80 {
        let created: Vec<_> = (0..100)
            .map(|number| {
                client.create(&format!("{parent}/{hundred}-{number}"), &value, CreateMode::Persistent)
            })
            .collect();
        for created in created {
            created.await.expect("create a znode");
        }
    }
    client.close().await.expect("close");
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}
