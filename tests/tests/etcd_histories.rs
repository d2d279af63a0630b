//! Concurrent clients at two front ends on an etcd of three members, while etcd's members and front ends are killed, hang, are cut off
//! and come back, and the lead is handed over: Porcupine judges what the clients saw.
//!
//! `HISTORY_FAULTS` makes it longer, `HISTORY_SEED` does one run again.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::thread;

use paddock_chance::Chance;
use paddock_tests::etcd::EtcdCluster;
use paddock_tests::history::{History, Recorder, seed};
use paddock_tests::load::spread;
use paddock_tests::network::Network;
use paddock_tests::rounds;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

const FRONTS: usize = 2;
/// At each front end and nowhere else, and so many more that go from one front end to the other.
const CLIENTS: usize = 2;
const MOVING_CLIENTS: usize = 3;
/// Answers of every client between two faults.
const ANSWERS: usize = 30;
const MEMBERS: usize = 3;

#[tokio::test]
async fn what_clients_see_of_crashes_is_linearizable_on_etcd() {
    let seed = seed();
    println!("HISTORY_SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut etcd = EtcdCluster::start(MEMBERS);
    let mut fronts: Vec<_> = (0..FRONTS).map(|place| etcd.front_end(place)).collect();
    fronts.iter_mut().for_each(|front| front.restart());
    let addresses: Vec<_> = fronts.iter().map(|front| front.address()).collect();
    let hosts = hosts_of_clients(&addresses);
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
                    let victim = if chance.percent(70) { leader } else { chance.index(MEMBERS) };
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

/// Connect strings of the clients: some stay at one front end, others know all of them.
fn hosts_of_clients(addresses: &[SocketAddr]) -> Vec<String> {
    let staying = (0..FRONTS * CLIENTS).map(|client| addresses[client / CLIENTS].to_string());
    staying.chain(spread(addresses, MOVING_CLIENTS)).collect()
}

/// Members of etcd and front ends, each in a network namespace: members first.
#[test]
fn what_clients_see_of_partitions_is_linearizable_on_etcd() {
    let network = match Network::new(MEMBERS + FRONTS) {
        Ok(network) => network,
        Err(reason) => return println!("partitions on etcd: skipped: {reason}"),
    };
    // A thread that has entered a network does not come back.
    let played = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            network.enter();
            let runtime = Builder::new_current_thread().enable_all().build().expect("make a runtime");
            let history = LocalSet::new().block_on(&runtime, play_partitions(&network));
            println!("{} requests", history.len());
            history.check("etcd-partitions");
        });
        thread.join()
    });
    if let Err(panic) = played {
        // Not before the network is gone.
        drop(network);
        resume_unwind(panic);
    }
}

async fn play_partitions(network: &Network) -> History {
    let seed = seed();
    println!("HISTORY_SEED={seed}");
    let mut chance = Chance::new(seed);
    let places = network.places();
    let etcd = EtcdCluster::start_at(&places[..MEMBERS]);
    let mut fronts: Vec<_> =
        (0..FRONTS).map(|front| etcd.front_end_at(&places[MEMBERS + front], front)).collect();
    fronts.iter_mut().for_each(|front| front.restart());
    let addresses: Vec<_> = fronts.iter().map(|front| front.address()).collect();
    let hosts = hosts_of_clients(&addresses);
    let all: Vec<usize> = (0..hosts.len()).collect();
    let recorder = Recorder::start(chance.word(), &hosts);
    recorder.wait_for_answers(&all, ANSWERS).await;
    for _ in 0..rounds("HISTORY_FAULTS", 4) {
        let leader = etcd.leader();
        let (member, front) = (chance.index(MEMBERS), chance.index(FRONTS));
        // Clients at a front end that reaches no member wait until it is over.
        let mut going_on = all.clone();
        match chance.index(6) {
            0 => {
                println!("etcd {leader} leads and is cut off");
                network.isolate(leader);
            }
            1 => {
                println!("etcd {leader} leads and hears nobody");
                network.deafen(leader);
            }
            2 => {
                println!("etcd {member} sends nothing, leader {leader}");
                network.mute(member);
            }
            3 => {
                println!("front end {front} and etcd {member} do not reach each other, leader {leader}");
                network.separate(MEMBERS + front, member);
            }
            4 => {
                println!("front end {front} is cut off");
                network.isolate(MEMBERS + front);
                going_on = (0..FRONTS * CLIENTS).filter(|client| client / CLIENTS != front).collect();
            }
            _ => {
                println!("etcd {leader} hands the lead over");
                etcd.move_leader();
            }
        }
        recorder.wait_for_answers(&going_on, ANSWERS).await;
        network.heal();
        recorder.wait_for_answers(&all, ANSWERS).await;
    }
    recorder.stop().await
}
