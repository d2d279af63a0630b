//! Random stories of an ensemble: members crash, links are cut, messages are lost, members join and leave. They are Rust, since
//! what happens is drawn from a seed while the story goes on.

use paddock_chance::Chance;
use paddock_replica::Role;
use paddock_state::ConnId;

use super::stage::{Stage, founding, server_line};

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

/// Members join and leave while others crash and links are cut; in the end those that belong together agree, and nothing
/// that was answered is lost.
#[test]
fn members_change_in_any_weather() {
    let mut changes = 0;
    for seed in seeds(100, 40) {
        let mut chance = Chance::new(seed);
        let mut stage = Stage::new(3, seed);
        stage.entries_max = 5 + seed as usize % 30;
        stage.elect();
        stage.founding = founding(1..=5);
        [4, 5].into_iter().for_each(|id| stage.start_empty(id));
        stage.run_ticks(5);
        let mut acknowledged = Vec::new();
        for round in 0..40 {
            stage.disturb(&mut chance);
            let member = 1 + chance.below(5);
            stage.ask_for_session(member, 1000 + round, false);
            stage.run_ticks(chance.below(6));
            if stage.story_of(member, 1000 + round) == ["connected"] {
                let guest = stage.greet(member, ConnId::new(0, 1000 + round));
                stage.submit_named(&guest, 1, &format!("/w-{round}-1"));
                let changed = 1 + chance.below(5);
                let (joining, leaving) = match chance.below(3) {
                    0 => (vec![server_line(changed, "participant")], vec![]),
                    1 => (vec![], vec![changed]),
                    _ => (vec![server_line(changed, "observer")], vec![]),
                };
                stage.submit_reconfig(&guest, 2, &joining, &leaving);
                stage.settle();
                stage.run_ticks(chance.below(10));
                let told = stage.story(&guest);
                changes += told.iter().filter(|line| line.starts_with("#2 config ")).count();
                acknowledged.extend(
                    told.iter().filter(|line| line.starts_with("#1 \"/w-")).count().eq(&1).then_some(round),
                );
            }
        }
        stage.heal();
        stage.run_ticks(400);
        let leader = (1..=5).find(|id| matches!(stage.role(*id), Role::Leader));
        let leader = leader.unwrap_or_else(|| panic!("seed {seed}: nobody leads in the end"));
        let members = stage.config(leader);
        for id in &members {
            assert_eq!(stage.config(*id), members, "seed {seed}: member {id}");
            for round in &acknowledged {
                let path = format!("/w-{round}-1");
                assert!(stage.data(*id, &path).is_some(), "seed {seed}: member {id} has lost {path}");
            }
        }
    }
    assert!(changes > 0, "no change of members was ever in force");
}

/// The seeds of a run; `ENSEMBLE_SEEDS` asks for another number of them.
fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("ENSEMBLE_SEEDS").ok();
    let count = asked.map_or(count, |asked| asked.parse().expect("ENSEMBLE_SEEDS is a number"));
    first..first + count
}
