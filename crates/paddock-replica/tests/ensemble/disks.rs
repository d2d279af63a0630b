//! Members that come back with a disk that is not theirs, or not as new as it should be.

use paddock_replica::Role;

use super::stage::{Disk, Stage, founding, server_line};

/// An ensemble of three with some data, its leader, and a member that follows.
fn with_data(seed: u64, writes: i32) -> (Stage, u64, u64) {
    let mut stage = Stage::new(3, seed);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    for xid in 1..=writes {
        stage.create(&client, xid, &format!("/{seed}-{xid}"), "x");
    }
    stage.run_ticks(5);
    let follower = stage.other_than(leader);
    (stage, leader, follower)
}

/// Writes more, at the leader.
fn write(stage: &mut Stage, leader: u64, number: u64) {
    let client = stage.connect(leader, number);
    for xid in 1..=10 {
        stage.create(&client, xid, &format!("/more-{number}-{xid}"), "x");
    }
    stage.run_ticks(2);
}

#[test]
fn a_member_with_another_ensembles_disk_is_refused() {
    for (own_writes, its_writes) in [(10, 30), (30, 10)] {
        let (mut stage, leader, follower) = with_data(60, own_writes);
        let (other, ..) = with_data(61, its_writes);
        assert_ne!(stage.cluster(leader), other.cluster(follower));
        stage.start_with(follower, other.copy_disk(follower));
        stage.run_ticks(100);
        assert_ne!(stage.role(follower), Role::Follower, "it serves nobody");
        assert_eq!(stage.cluster(follower), other.cluster(follower), "it has what it had");
        assert!(stage.data(follower, "/60-1").is_none());
        let third = 6 - leader - follower;
        for member in [leader, third] {
            assert!(stage.foreign(member).contains(&follower), "member {member} has noticed it");
            assert!(stage.data(member, "/61-1").is_none());
        }
        // It does not count: with one member less nothing is committed, and nobody is elected.
        let leader = stage.elect_beside(follower);
        stage.stop(6 - leader - follower);
        let client_number = 9;
        stage.ask_for_session(leader, client_number, false);
        stage.run_ticks(30);
        assert!(stage.story_of(leader, client_number).is_empty());
        stage.run_ticks(100);
        assert_ne!(stage.role(leader), Role::Leader);
    }
}

#[test]
fn a_founder_takes_nothing_of_another_ensemble_either() {
    let (other, ..) = with_data(61, 10);
    let mut configuration = founding(1..=3);
    configuration.members = configuration.members.replace("=host", "=other");
    let mut stage = Stage::founded_with(configuration, 62);
    // Two of three found an ensemble, and hear of a member of another one before they have a leader.
    stage.start_with(3, other.copy_disk(3));
    stage.run_ticks(100);
    for member in 1..=2 {
        assert!(stage.data(member, "/61-1").is_none(), "member {member}");
    }
}

#[test]
fn who_was_away_when_the_ensemble_got_its_id_joins_it() {
    // Member 3 founds with the others and hears nothing of what they agree on.
    for seed in 63..73 {
        let mut stage = Stage::new(3, seed);
        stage.step_once();
        stage.step_once();
        stage.cut(3);
        let leader = stage.elect_beside(3);
        write(&mut stage, leader, 1);
        stage.mend(3);
        stage.run_ticks(60);
        assert_eq!(stage.cluster(3), stage.cluster(leader));
        stage.check_agreement();
    }
}

#[test]
fn who_was_away_when_the_ensemble_got_its_id_believes_the_only_other_who_remembers_it() {
    for seed in 140..150 {
        // Member 3 has written the first entry, and proposes another id.
        let mut founders = Stage::new(3, seed + 100);
        founders.run_ticks(3);
        let mut stage = Stage::new(3, seed);
        stage.cut(3);
        let leader = stage.elect_beside(3);
        write(&mut stage, leader, 1);
        stage.start_with(3, founders.copy_disk(3));
        stage.start_empty(3 - leader);
        stage.mend(3);
        stage.run_ticks(100);
        for member in [3, 3 - leader] {
            assert_eq!(stage.cluster(member), stage.cluster(leader), "member {member}, seed {seed}");
            assert!(stage.data(member, "/more-1-10").is_some(), "member {member}, seed {seed}");
        }
        stage.check_agreement();
    }
}

/// The follower's disk as it was before some writes that it has acknowledged.
fn older_disk(stage: &mut Stage, leader: u64, follower: u64) -> Disk {
    let disk = stage.copy_disk(follower);
    write(stage, leader, 2);
    disk
}

#[test]
fn a_member_with_its_own_older_disk_learns_before_it_votes_or_serves() {
    let (mut stage, leader, follower) = with_data(80, 10);
    let disk = older_disk(&mut stage, leader, follower);
    // What it promised since then is known when both others have told it the term.
    let third = 6 - leader - follower;
    stage.cut(third);
    stage.start_with(follower, disk);
    stage.run_ticks(20);
    assert_eq!(stage.role(follower), Role::Looking, "it has to hear the others first");
    stage.mend(third);
    stage.run_ticks(20);
    assert_eq!(stage.role(follower), Role::Follower);
    stage.check_agreement();
}

#[test]
fn an_older_disk_is_known_by_the_start_that_it_has_forgotten() {
    let (mut stage, _, follower) = with_data(81, 10);
    let disk = stage.copy_disk(follower);
    // It is started again, writes something, and another leader follows, who has never heard of it before that.
    stage.stop(follower);
    stage.start(follower);
    stage.run_ticks(30);
    let client = stage.connect(follower, 5);
    stage.create(&client, 1, "/from-the-later-start", "x");
    let leader = stage.elect();
    stage.stop(follower);
    stage.stop(leader);
    stage.start(leader);
    stage.run_ticks(30);
    let leader = stage.elect();
    let third = 6 - leader - follower;
    stage.start_with(follower, disk);
    stage.run_ticks(1);
    stage.cut(third);
    stage.run_ticks(9);
    assert_eq!(stage.role(follower), Role::Looking);
    stage.mend(third);
    stage.run_ticks(40);
    assert_eq!(stage.role(follower), Role::Follower);
    stage.check_agreement();
}

#[test]
fn a_member_that_is_started_with_all_that_it_had_goes_on_at_once() {
    let (mut stage, leader, follower) = with_data(82, 10);
    stage.stop(follower);
    stage.lose_link(leader, follower);
    write(&mut stage, leader, 2);
    stage.start(follower);
    stage.run_ticks(3);
    assert_eq!(stage.role(follower), Role::Follower);
    // All at once, and nobody has to wait for the third.
    (1..=3).for_each(|member| stage.stop(member));
    stage.run_ticks(20);
    (1..=2).for_each(|member| stage.start(member));
    stage.elect();
}

#[test]
fn a_newcomer_is_no_member_of_another_ensemble() {
    let (mut stage, leader, _) = with_data(83, 5);
    stage.founding = founding(1..=4);
    stage.start_empty(4);
    stage.run_ticks(5);
    let client = stage.connect(leader, 7);
    stage.reconfig(&client, 1, &[server_line(4, "participant")], &[]);
    stage.run_ticks(30);
    assert_eq!(stage.cluster(4), stage.cluster(leader));
    assert!(stage.foreign(leader).is_empty());
}
