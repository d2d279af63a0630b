//! An ensemble without work sleeps: its threads wake for a heartbeat and a tick, and for little else.
//!
//! Counted are the times at which a thread went to sleep by itself. A busy machine does not add to them, unlike to times and to switches that the system
//! orders.

use std::fs;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions};
use paddock_tests::ensemble::Ensemble;

/// Wake-ups of all threads of a member in a second. Ten ticks and ten heartbeats with their answers are the most of it; a timer of a tenth of a second
/// more would be another ten.
const WAKE_UPS_MAX: f64 = 60.0;
const MEASURED: Duration = Duration::from_secs(6);
/// The threads that start files and connections have come to rest by then, at the latest.
const WITHIN: Duration = Duration::from_secs(90);

#[tokio::test]
async fn members_without_work_hardly_wake() {
    let mut ensemble = Ensemble::start(3);
    ensemble.settle();
    let mut clients = Vec::new();
    for place in 0..3 {
        let address = ensemble.at(place).address().to_string();
        clients.push(Client::connect(&address, ClientOptions::default()).await.expect("a member serves"));
    }
    let pids = [0, 1, 2].map(|place| ensemble.at(place).pid());
    let began = Instant::now();
    loop {
        let (before, since) = (pids.map(sleeps), Instant::now());
        tokio::time::sleep(MEASURED).await;
        let seconds = since.elapsed().as_secs_f64();
        let rates =
            pids.map(sleeps).into_iter().zip(before).map(|(now, before)| (now - before) as f64 / seconds);
        let most = rates.fold(0.0, f64::max);
        if most <= WAKE_UPS_MAX {
            break;
        }
        assert!(
            began.elapsed() < WITHIN,
            "the threads of a member without work wake {most:.0} times in a second"
        );
    }
}

/// Number of times that the threads of a process have gone to sleep by themselves.
fn sleeps(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the member runs");
    let of_thread = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.expect("Linux counts switches").trim().parse::<u64>().expect("a number")
    };
    threads
        .map(|thread| thread.expect("threads are listed").path().join("status"))
        // A thread may have ended meanwhile.
        .filter_map(|status| fs::read_to_string(status).ok())
        .map(of_thread)
        .sum()
}
