//! Read-only mode of a member, while nothing can be written.

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
fn without_a_quorum_writes_are_refused_and_reads_go_on() {
    let mut stage = Stage::new(3, 40);
    let leader = stage.elect();
    let (waiting, idle) = (stage.connect(leader, 1), stage.connect(leader, 2));
    stage.create(&idle, 1, "/a", "one");
    stage.story(&idle);
    let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    others.iter().for_each(|id| stage.stop(*id));
    stage.submit_sequential(&waiting, 1, "/s-");
    stage.run_ticks(90);
    assert_eq!(stage.story(&waiting), ["close"], "nobody knows what becomes of its write");
    assert_eq!(stage.role(leader), Role::ReadOnly);
    stage.set(&idle, 2, "/a", "two");
    stage.get(&idle, 3, "/a");
    stage.submit_local(&idle, 4, OpCode::Sync, "/a");
    stage.settle();
    assert_eq!(stage.story(&idle), ["#2 NotReadOnly", "#3 \"one\"", "#4 NotReadOnly"]);

    // New clients are served if they can do without writing.
    stage.ask_for_session(leader, 3, false);
    assert_eq!(stage.story_of(leader, 3), ["close"]);
    stage.ask_for_session(leader, 4, true);
    assert_eq!(stage.story_of(leader, 4), ["connected to read"]);

    // With a quorum they come back for a session that lasts; who had one keeps it.
    others.iter().for_each(|id| stage.start(*id));
    stage.elect();
    stage.run_ticks(5);
    assert_eq!(stage.story_of(leader, 4), ["close"]);
    stage.set(&idle, 5, "/a", "three");
    assert!(stage.is_done(&idle, 5));
    stage.run_ticks(30);
    assert!(stage.data(leader, "/s-0000000001").is_some(), "the write that waited was carried out after all");
    stage.check_agreement();
}

/// A client that hung up without a word came back over a second connection. When the quorum is lost before that is
/// carried out, both connections are closed: what the first one asks for is not taken any more.
#[test]
fn a_connection_that_was_left_is_closed_when_its_successor_is_abandoned() {
    let mut stage = Stage::new(3, 46);
    let leader = stage.elect();
    let first = stage.connect(leader, 1);
    let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    others.iter().for_each(|id| stage.stop(*id));
    stage.submit_resume(leader, 2, &first);
    stage.get(&first, 1, "/");
    stage.run_ticks(90);
    assert_eq!(stage.story_of(leader, 2), ["close"]);
    assert_eq!(stage.story(&first), ["close"], "it is neither answered nor left waiting");

    others.iter().for_each(|id| stage.start(*id));
    stage.elect();
    let third = stage.resume(leader, 3, &first);
    stage.set(&third, 1, "/a", "");
    assert_eq!(stage.story(&third), ["#1 NoNode"]);
}

#[test]
fn who_goes_while_everything_waits_leaves_no_watches() {
    for seed in 0..3 {
        let mut stage = Stage::new(3, seed);
        let leader = stage.elect();
        let (first, second) = (stage.connect(leader, 1), stage.connect(leader, 2));
        stage.create(&first, 1, "/a", "one");
        stage.watch(&first, 2, "/a");
        stage.watch(&second, 1, "/a");
        assert_eq!(stage.watch_count(leader), 2);
        let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
        others.iter().for_each(|id| stage.stop(*id));
        // One goes behind a write of its own, and one behind a question that nobody answers.
        stage.submit_sequential(&first, 3, "/s-");
        stage.disconnect(&first);
        stage.settle();
        stage.submit_local(&second, 2, OpCode::Sync, "/a");
        stage.disconnect(&second);
        stage.run_ticks(90);
        assert_eq!(stage.role(leader), Role::ReadOnly);
        assert_eq!(stage.watch_count(leader), 0);
    }
}

#[test]
fn a_full_disk_gives_the_lead_away_and_refuses_writes() {
    let mut stage = Stage::new(3, 41);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    stage.create(&client, 1, "/a", "one");
    stage.story(&client);
    stage.disk_full(leader, true);
    stage.run_ticks(10);
    let next = stage.elect_beside(leader);
    stage.set(&client, 2, "/a", "two");
    assert_eq!(stage.story(&client), ["#2 NotReadOnly"]);
    let guest = stage.connect(next, 1);
    stage.set(&guest, 1, "/a", "two");
    assert!(stage.is_done(&guest, 1));
    stage.disk_full(leader, false);
    stage.run_ticks(30);
    stage.set(&client, 3, "/a", "three");
    assert!(stage.is_done(&client, 3));
    stage.check_agreement();
}

/// While nothing can be written nobody can come back to a session, and none must end for that.
#[test]
fn a_full_disk_ends_no_session() {
    let mut stage = Stage::new(1, 47);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    stage.disk_full(leader, true);
    stage.run_ticks(200);
    stage.disk_full(leader, false);
    stage.run_ticks(50);
    assert!(stage.has_session(&client));
    stage.run_ticks(80);
    assert!(!stage.has_session(&client), "it had its whole time");
}

#[test]
fn every_read_asks_the_quorum_if_it_has_to() {
    let mut stage = Stage::new(3, 42);
    stage.linearizable_reads = true;
    (1..=3).for_each(|id| stage.start_empty(id));
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let (writer, reader) = (stage.connect(leader, 1), stage.connect(follower, 2));
    stage.create(&writer, 1, "/a", "old");
    stage.settle();
    stage.story(&writer);
    let entries = stage.entries(follower);
    stage.get(&reader, 1, "/a");
    assert_eq!(stage.story(&reader), ["#1 \"old\""]);
    assert_eq!(stage.entries(follower), entries, "a read is no entry");
    // Cut off it cannot know, and says nothing from the past.
    stage.cut(follower);
    stage.set(&writer, 2, "/a", "new");
    stage.get(&reader, 2, "/a");
    assert_eq!(stage.story(&reader), [""; 0]);
    stage.mend(follower);
    stage.run_ticks(40);
    assert_eq!(stage.story(&reader), ["#2 \"new\""]);
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
