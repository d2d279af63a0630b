//! Leases of a leader, which answer reads without asking a quorum.

use paddock_proto::OpCode;
use paddock_replica::Role;

use super::stage::Stage;

fn stage_with_leases(seed: u64, clock_bound_ms: u64) -> Stage {
    let mut stage = Stage::new(3, seed);
    stage.lease_clock_bound_ms = Some(clock_bound_ms);
    (1..=3).for_each(|id| stage.start_empty(id));
    stage
}

#[test]
fn a_lease_answers_without_asking_and_ends_before_another_can_lead() {
    let mut stage = stage_with_leases(43, 100);
    let former = stage.elect();
    let reader = stage.connect(former, 1);
    stage.create(&reader, 1, "/a", "old");
    stage.story(&reader);
    let sync = |stage: &mut Stage, xid| {
        stage.submit_local(&reader, xid, OpCode::Sync, "/a");
        stage.settle();
        stage.story(&reader).len()
    };
    assert_eq!(sync(&mut stage, 2), 1, "asked of a quorum");
    stage.cut(former);
    (1..=3).filter(|member| *member != former).for_each(|member| stage.lose_link(member, former));
    stage.run_ticks(7);
    assert_eq!(stage.roles().iter().filter(|role| **role == Role::Leader).count(), 1);
    assert_eq!(sync(&mut stage, 3), 1, "the lease holds: nobody else can lead yet");
    stage.run_ticks(1);
    assert_eq!(sync(&mut stage, 4), 0, "the lease is over");
    stage.mend(former);
    stage.elect();
}

/// A member that is started anew does not know that it has just heard a leader. It votes for nobody for as long as a lease may last.
#[test]
fn a_lease_holds_though_who_granted_it_is_started_anew() {
    for seed in 0..20 {
        let mut stage = stage_with_leases(seed, 0);
        let leader = stage.elect();
        let reader = stage.connect(leader, 1);
        stage.create(&reader, 1, "/a", "old");
        stage.story(&reader);
        let patient = stage.other_than(leader);
        let granter = 6 - leader - patient;
        // One has not heard the leader for long, and will stand for election soon.
        stage.cut(patient);
        stage.run_ticks(9);
        stage.submit_local(&reader, 2, OpCode::Sync, "/a");
        stage.settle();
        assert_eq!(stage.story(&reader).len(), 1, "the other one confirms the leader");
        stage.stop(granter);
        stage.start(granter);
        stage.mend(patient);
        stage.cut(leader);
        stage.run_ticks(8);
        for member in [patient, granter] {
            assert_ne!(stage.role(member), Role::Leader, "seed {seed}: member {member} leads during a lease");
        }
    }
}

/// Whoever is asked to lead stands for election at once, and is elected though the others have just heard the leader.
#[test]
fn a_lease_ends_when_the_lead_is_handed_over() {
    let mut stage = stage_with_leases(44, 0);
    let former = stage.elect();
    let heir = stage.other_than(former);
    let (reader, writer) = (stage.connect(former, 1), stage.connect(heir, 2));
    stage.create(&writer, 1, "/a", "old");
    stage.submit_reconfig(&writer, 2, &[], &[former]);
    let is_looking = |stage: &Stage| stage.roles().contains(&Role::Looking);
    for xid in 1.. {
        stage.submit_local(&reader, xid, OpCode::Sync, "/a");
        stage.step_once();
        if is_looking(&stage) {
            break;
        }
    }
    stage.deafen(former);
    stage.story(&reader);
    (0..3).for_each(|_| stage.step_once());
    assert_eq!(stage.roles().iter().filter(|role| **role == Role::Leader).count(), 2, "within one lease");
    let leader = (1..=3).find(|member| *member != former && stage.role(*member) == Role::Leader);
    let writer = stage.connect(leader.expect("there are two"), 3);
    stage.set(&writer, 1, "/a", "new");
    assert_eq!(stage.story(&writer).len(), 1);
    stage.submit_local(&reader, 1000, OpCode::Sync, "/a");
    stage.get(&reader, 1001, "/a");
    assert_eq!(stage.story(&reader), [""; 0], "another one leads");
}

/// It may hear of that much later.
#[test]
fn there_is_no_lease_any_more_once_another_was_asked_to_lead() {
    let mut stage = stage_with_leases(45, 0);
    let former = stage.elect();
    let heir = (1..=3).rev().find(|member| *member != former).expect("there are others");
    let (reader, writer) = (stage.connect(former, 1), stage.connect(heir, 2));
    stage.create(&writer, 1, "/a", "old");
    stage.deafen(heir);
    stage.run_ticks(1);
    stage.disk_full(former, true);
    stage.disk_full(former, false);
    stage.run_ticks(20);
    stage.submit_local(&reader, 2, OpCode::Sync, "/a");
    stage.settle();
    assert_eq!(stage.story(&reader).len(), 1, "nobody has taken the lead");
    stage.deafen(former);
    stage.tell(heir);
    assert_eq!(stage.role(heir), Role::Leader);
    stage.story(&writer);
    stage.set(&writer, 2, "/a", "new");
    assert_eq!(stage.story(&writer).len(), 1);
    stage.submit_local(&reader, 3, OpCode::Sync, "/a");
    stage.settle();
    assert_eq!(stage.story(&reader), [""; 0], "another one leads");
}

/// Whoever confirms a leader promises from then on, and the leader may hear of that only much later.
#[test]
fn a_lease_lasts_from_when_it_was_asked_for() {
    let mut stage = stage_with_leases(46, 0);
    let former = stage.elect();
    let reader = stage.connect(former, 1);
    stage.create(&reader, 1, "/a", "old");
    stage.story(&reader);
    stage.deafen(former);
    stage.submit_local(&reader, 2, OpCode::Sync, "/a");
    (0..2).for_each(|_| stage.step_once());
    stage.sleep(former);
    let leader = stage.elect_beside(former);
    let writer = stage.connect(leader, 2);
    stage.set(&writer, 1, "/a", "new");
    assert_eq!(stage.story(&writer).len(), 1);

    stage.wake(former);
    stage.cut(former);
    stage.tell(former);
    assert_eq!(stage.story(&reader).len(), 1, "it was asked before, and a quorum had confirmed it");
    stage.submit_local(&reader, 3, OpCode::Sync, "/a");
    stage.settle();
    assert_eq!(stage.story(&reader), [""; 0], "another one leads");
}
