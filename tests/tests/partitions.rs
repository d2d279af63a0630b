//! Members in network namespaces that are cut off from each other, both ways and one way, while clients reach them all: who
//! is cut off acknowledges no write and no sync, the others go on, and what everybody saw is linearizable.
//!
//! `HISTORY_SEED` lets the clients ask the same again.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use paddock_tests::ensemble::Ensemble;
use paddock_tests::history::{History, Recorder, seed};
use paddock_tests::load::now_ns;
use paddock_tests::network::Network;
use paddock_tests::server::ServerKind;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// At each member.
const CLIENTS: usize = 2;
/// Answers of every client that is not cut off.
const ANSWERS: usize = 50;
/// A cut lasts for this time at least: an election, and the time in which a leader finds out that it has no followers.
const CUT_MIN: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Leader,
    Follower,
}

/// The leader of before, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leadership {
    Stays,
    Changes,
}

#[test]
fn a_leader_that_is_cut_off_acknowledges_nothing() {
    play("leader-isolated", Victim::Leader, Leadership::Changes, Network::isolate);
}

#[test]
fn a_leader_that_only_sends_acknowledges_nothing() {
    play("leader-deaf", Victim::Leader, Leadership::Changes, Network::deafen);
}

#[test]
fn a_leader_that_only_receives_acknowledges_nothing() {
    play("leader-mute", Victim::Leader, Leadership::Changes, Network::mute);
}

#[test]
fn a_follower_that_is_cut_off_acknowledges_nothing_and_deposes_nobody() {
    play("follower-isolated", Victim::Follower, Leadership::Stays, Network::isolate);
}

#[test]
fn a_follower_that_only_sends_acknowledges_nothing_and_deposes_nobody() {
    play("follower-deaf", Victim::Follower, Leadership::Stays, Network::deafen);
}

/// Cuts a member off under load, and heals the network again.
fn play(name: &str, victim: Victim, leadership: Leadership, cut: fn(&Network, usize)) {
    in_network(name, async |network, ensemble| {
        let leader = ensemble.leader();
        let victim = if victim == Victim::Leader { leader } else { (leader + 1) % 3 };
        let (cut_off, others) = clients_of(victim);
        let recorder = start_recorder(ensemble);
        recorder.wait_for_answers(&[&cut_off[..], &others].concat(), ANSWERS).await;

        cut(network, victim);
        let (moment, since) = (now_ns(), Instant::now());
        recorder.wait_for_answers(&others, ANSWERS).await;
        println!("{name}: the others go on after {:?}", since.elapsed());
        while since.elapsed() < CUT_MIN {
            recorder.wait_for_answers(&others, 1).await;
        }
        for client in &cut_off {
            let answered = recorder.answered_since(*client, moment);
            assert_eq!(answered, Vec::<String>::new(), "client {client} asked a member that is cut off");
        }

        network.heal();
        let since = Instant::now();
        recorder.wait_for_answers(&[&cut_off[..], &others].concat(), ANSWERS).await;
        println!("{name}: all go on {:?} after it is healed", since.elapsed());
        let now = if ensemble.leader() == leader { Leadership::Stays } else { Leadership::Changes };
        assert_eq!(now, leadership);
        recorder.stop().await
    });
}

#[test]
fn on_slow_and_lossy_links_all_goes_on() {
    in_network("lossy", async |network, ensemble| {
        let recorder = start_recorder(ensemble);
        let all: Vec<usize> = (0..3 * CLIENTS).collect();
        recorder.wait_for_answers(&all, ANSWERS).await;
        let how: Vec<&str> = (0..3).map(|member| network.impair(member)).collect();
        let since = Instant::now();
        recorder.wait_for_answers(&all, ANSWERS).await;
        let lost: u64 = (0..3).map(|member| network.lost_frames(member)).sum();
        println!(
            "lossy: {ANSWERS} answers of each client in {:?}, {lost} frames lost, by {:?}",
            since.elapsed(),
            how[0]
        );
        assert!(lost > 0, "the links have lost nothing");
        recorder.stop().await
    });
}

/// Plays a story in a network of its own, if that is allowed, and judges what its clients saw.
fn in_network(name: &str, story: impl AsyncFnOnce(&Network, &mut Ensemble) -> History + Send) {
    let network = match Network::new(3) {
        Ok(network) => network,
        Err(reason) => return println!("{name}: skipped: {reason}"),
    };
    // A thread that has entered a network does not come back.
    let played = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            network.enter();
            let mut ensemble = Ensemble::start_at(ServerKind::Paddock, &network.places(), &[]);
            let runtime = Builder::new_current_thread().enable_all().build().expect("make a runtime");
            let history = LocalSet::new().block_on(&runtime, story(&network, &mut ensemble));
            history.check(name);
            ensemble.leader();
            ensemble.settle();
        });
        thread.join()
    });
    if let Err(panic) = played {
        // Not before the network is gone.
        drop(network);
        resume_unwind(panic);
    }
}

/// Two clients at each member, and nowhere else.
fn start_recorder(ensemble: &mut Ensemble) -> Recorder {
    let hosts: Vec<String> =
        (0..3 * CLIENTS).map(|client| ensemble.member(client / CLIENTS).address().to_string()).collect();
    let seed = seed();
    println!("HISTORY_SEED={seed}");
    Recorder::start(seed, &hosts)
}

/// The clients of a member, and all others.
fn clients_of(member: usize) -> (Vec<usize>, Vec<usize>) {
    (0..3 * CLIENTS).partition(|client| client / CLIENTS == member)
}
