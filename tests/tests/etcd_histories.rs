//! Concurrent clients at two front ends on an etcd of three members, while etcd's members and front ends are killed, hang and come
//! back: Porcupine judges what the clients saw.
//!
//! `HISTORY_FAULTS` makes it longer, `HISTORY_SEED` does one run again.

use paddock_chance::Chance;
use paddock_tests::etcd::EtcdCluster;
use paddock_tests::history::{Recorder, seed};
use paddock_tests::load::spread;
use paddock_tests::rounds;
use tokio::task::LocalSet;

const FRONTS: usize = 2;
/// At each front end and nowhere else, and so many more that go from one front end to the other.
const CLIENTS: usize = 2;
const MOVING_CLIENTS: usize = 3;
/// Answers of every client between two faults.
const ANSWERS: usize = 30;

#[tokio::test]
async fn what_clients_see_of_crashes_is_linearizable_on_etcd() {
    let seed = seed();
    println!("HISTORY_SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut etcd = EtcdCluster::start(3);
    let mut fronts: Vec<_> = (0..FRONTS).map(|place| etcd.front_end(place)).collect();
    fronts.iter_mut().for_each(|front| front.restart());
    let addresses: Vec<_> = fronts.iter().map(|front| front.address()).collect();
    let hosts: Vec<String> = (0..FRONTS * CLIENTS)
        .map(|client| addresses[client / CLIENTS].to_string())
        .chain(spread(&addresses, MOVING_CLIENTS))
        .collect();
    let all: Vec<usize> = (0..hosts.len()).collect();
    let history = LocalSet::new()
        .run_until(async {
            let recorder = Recorder::start(chance.word(), &hosts);
            recorder.wait_for_answers(&all, ANSWERS).await;
            for _ in 0..rounds("HISTORY_FAULTS", 6) {
                if chance.percent(30) {
                    let victim = chance.index(FRONTS);
                    println!("front end {victim} is killed");
                    fronts[victim].kill();
                    let others: Vec<usize> =
                        (0..FRONTS * CLIENTS).filter(|client| client / CLIENTS != victim).collect();
                    recorder.wait_for_answers(&others, ANSWERS).await;
                    fronts[victim].spawn();
                } else {
                    // Mostly the leader: that is where it hurts.
                    let leader = etcd.leader();
                    let victim = if chance.percent(70) { leader } else { chance.index(3) };
                    let is_killed = chance.percent(60);
                    println!("etcd {victim} of leader {leader}, killed: {is_killed}");
                    if is_killed {
                        etcd.kill(victim);
                    } else {
                        etcd.pause(victim);
                    }
                    recorder.wait_for_answers(&all, ANSWERS).await;
                    if is_killed {
                        etcd.spawn(victim);
                    } else {
                        etcd.resume(victim);
                    }
                }
                recorder.wait_for_answers(&all, ANSWERS).await;
            }
            recorder.stop().await
        })
        .await;
    println!("{} requests", history.len());
    history.check("etcd-crashes");
    etcd.leader();
}
