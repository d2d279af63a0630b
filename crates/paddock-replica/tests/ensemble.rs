//! Stories of several members. The test carries their messages, and loses them; it stops members, and starts them again
//! with what they had on disk. Everything is decided by the test and its seed. Many are scripts (`scripts/ensemble/`);
//! what is played in many variants, or at random, is Rust.

mod ensemble {
    mod disks;
    mod leases;
    mod members;
    mod script;
    pub(crate) mod stage;
}

#[path = "shared/scripts.rs"]
mod scripts;

use ensemble::stage::{Stage, seeds};
use paddock_chance::Chance;

/// Three members, of which one has missed sixty writes of so many bytes: its leader has no entries for it any more.
/// Returns the one that lags.
fn one_lags(seed: u64, bytes: usize) -> (Stage, u64) {
    let mut stage = Stage::new(3, seed);
    stage.entries_max = 20;
    let leader = stage.elect();
    let lagging = stage.other_than(leader);
    let writer = stage.connect(leader, 1);
    stage.cut(lagging);
    for xid in 1..=60 {
        stage.create(&writer, xid, &format!("/n-{xid}"), &"x".repeat(bytes));
    }
    stage.mend(lagging);
    (stage, lagging)
}

#[test]
fn a_snapshot_comes_whatever_is_lost_on_the_way() {
    for lost_after in 0..16 {
        let (mut stage, lagging) = one_lags(9, 100);
        (0..lost_after).for_each(|_| stage.step_once());
        stage.cut(lagging);
        stage.step_once();
        stage.mend(lagging);
        stage.run_ticks(80);
        assert!(stage.data(lagging, "/n-60").is_some(), "lost after {lost_after} steps");
        stage.check_agreement();
    }
}

/// Members crash, links are cut, messages are lost; whatever was answered is there in the end, once, in its order.
#[test]
fn whatever_happens_acknowledged_writes_are_there_once() {
    let mut answered = 0;
    for seed in seeds(0, 40) {
        let mut chance = Chance::new(seed);
        let members = if seed % 2 == 0 { 3 } else { 5 };
        let mut stage = Stage::new(members, seed);
        stage.entries_max = 5 + seed as usize;
        let _ = stage.elect();
        let clients: Vec<_> = (1..=members).map(|member| stage.connect(member, member)).collect();
        let mut acknowledged = Vec::new();
        let mut lost = vec![false; clients.len()];
        for xid in 1..=60 {
            stage.disturb(&mut chance);
            for (number, client) in clients.iter().enumerate() {
                // Who lost its member is gone.
                lost[number] =
                    lost[number] || !stage.submit_named(client, xid, &format!("/w-{number}-{xid}"));
            }
            stage.run_ticks(chance.below(8));
            acknowledged.extend(stage.all_created());
        }
        stage.heal();
        stage.run_ticks(200);
        acknowledged.extend(stage.all_created());
        stage.check_agreement();
        for path in &acknowledged {
            assert!(stage.data(1, path).is_some(), "seed {seed}: {path} was acknowledged and is lost");
        }
        stage.check_order(seed, &acknowledged);
        answered += acknowledged.len();
    }
    assert!(answered > 0, "nothing was ever answered");
}
