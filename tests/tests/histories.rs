//! Concurrent clients at a few znodes while members are killed, hang and come back: Porcupine judges what they saw.
//!
//! `HISTORY_FAULTS` makes it longer, `HISTORY_SEED` does one run again.

use paddock_chance::Chance;
use paddock_tests::ensemble::Ensemble;
use paddock_tests::history::{Recorder, seed};
use paddock_tests::load::spread;
use paddock_tests::rounds;
use tokio::task::LocalSet;

/// At each member and nowhere else, and so many more that go from one member to the next.
const CLIENTS: usize = 2;
const MOVING_CLIENTS: usize = 3;
/// Answers of every client between two faults.
const ANSWERS: usize = 30;

#[tokio::test]
async fn what_clients_see_of_crashes_is_linearizable() {
    let seed = seed();
    println!("HISTORY_SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut ensemble = Ensemble::start(3);
    let members: Vec<_> = (0..3).map(|member| ensemble.member(member).address()).collect();
    let hosts: Vec<String> = (0..3 * CLIENTS)
        .map(|client| members[client / CLIENTS].to_string())
        .chain(spread(&members, MOVING_CLIENTS))
        .collect();
    let all: Vec<usize> = (0..hosts.len()).collect();
    let history = LocalSet::new()
        .run_until(async {
            let recorder = Recorder::start(chance.word(), &hosts);
            recorder.wait_for_answers(&all, ANSWERS).await;
            for _ in 0..rounds("HISTORY_FAULTS", 6) {
                // Mostly the leader: that is where it hurts.
                let victim = if chance.percent(70) { ensemble.leader() } else { chance.index(3) };
                let others: Vec<usize> =
                    (0..3 * CLIENTS).filter(|client| client / CLIENTS != victim).collect();
                let is_killed = chance.percent(60);
                if is_killed {
                    ensemble.member(victim).kill()
                } else {
                    ensemble.member(victim).pause()
                }
                recorder.wait_for_answers(&others, ANSWERS).await;
                if is_killed {
                    ensemble.member(victim).spawn()
                } else {
                    ensemble.member(victim).resume()
                }
                recorder.wait_for_answers(&all, ANSWERS).await;
                ensemble.leader();
            }
            recorder.stop().await
        })
        .await;
    history.check("crashes");
    ensemble.settle();
}
