//! Contact of members with a leader that a quorum follows.

use super::stage::Stage;

/// A report each tick, and its confirmation at once, as messages take no time on the stage.
const FRESH_MS: u64 = 100;

#[test]
fn every_member_is_in_contact_while_there_is_a_quorum() {
    for members in [3, 5] {
        let mut stage = Stage::new(members, 50);
        stage.elect();
        stage.run_ticks(5);
        for _ in 0..50 {
            stage.run_ticks(1);
            (1..=members).for_each(|member| assert!(stage.silence_ms(member) <= FRESH_MS, "member {member}"));
        }
    }
}

#[test]
fn a_follower_that_is_cut_off_loses_contact_and_the_others_keep_it() {
    let mut stage = Stage::new(3, 51);
    let leader = stage.elect();
    stage.run_ticks(5);
    let follower = stage.other_than(leader);
    stage.cut(follower);
    stage.run_ticks(30);
    assert!(stage.silence_ms(follower) >= 3000);
    (1..=3).filter(|id| *id != follower).for_each(|id| assert!(stage.silence_ms(id) <= FRESH_MS));
    stage.mend(follower);
    stage.run_ticks(20);
    assert!(stage.silence_ms(follower) <= FRESH_MS);
}

#[test]
fn a_leader_that_is_cut_off_loses_contact_though_it_believes_that_it_leads() {
    let mut stage = Stage::new(3, 52);
    let leader = stage.elect();
    stage.run_ticks(5);
    stage.cut(leader);
    stage.run_ticks(9);
    assert!(stage.silence_ms(leader) >= 900);
    stage.elect_beside(leader);
    stage.run_ticks(3);
    (1..=3).filter(|id| *id != leader).for_each(|id| assert!(stage.silence_ms(id) <= FRESH_MS));
}

#[test]
fn a_leader_without_a_quorum_confirms_nobody() {
    let mut stage = Stage::new(5, 53);
    let former = stage.elect();
    stage.run_ticks(5);
    let faithful = stage.other_than(former);
    let client = stage.connect(faithful, 1);
    stage.set_apart(&[former, faithful]);
    let mut silence_ms = stage.silence_ms(faithful);
    for _ in 0..200 {
        stage.touch(&client);
        stage.run_ticks(1);
        silence_ms += 100;
        assert_eq!(stage.silence_ms(faithful), silence_ms);
        assert!(stage.silence_ms(former) >= silence_ms - FRESH_MS);
    }
    let others: Vec<u64> = (1..=5).filter(|id| ![former, faithful].contains(id)).collect();
    others.iter().for_each(|id| assert!(stage.silence_ms(*id) <= FRESH_MS, "member {id}"));
    assert!(stage.data(others[0], "/").is_some());
    stage.set_apart(&[]);
    stage.run_ticks(30);
    assert_eq!(stage.story(&client), ["close"], "the others have ended its session");
}

#[test]
fn a_session_whose_report_is_lost_is_reported_again() {
    let mut stage = Stage::new(3, 55);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let client = stage.connect(follower, 1);
    // Its timeout is 100 ticks.
    stage.run_ticks(95);
    stage.cut(follower);
    stage.touch(&client);
    stage.run_ticks(1);
    stage.mend(follower);
    stage.run_ticks(90);
    assert!(stage.has_session(&client), "it was heard 91 ticks ago");
    stage.run_ticks(20);
    assert!(!stage.has_session(&client));
}

#[test]
fn a_change_of_leader_is_a_short_silence() {
    for seed in 0..20 {
        let mut stage = Stage::new(3, seed);
        let leader = stage.elect();
        stage.run_ticks(5);
        stage.stop(leader);
        let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
        others.iter().for_each(|id| stage.lose_link(*id, leader));
        for _ in 0..20 {
            stage.run_ticks(1);
            others.iter().for_each(|id| assert!(stage.silence_ms(*id) <= 400, "seed {seed}, member {id}"));
        }
    }
}

#[test]
fn a_member_with_a_full_disk_is_in_contact_whoever_leads() {
    let mut stage = Stage::new(3, 56);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let client = stage.connect(follower, 1);
    stage.disk_full(follower, true);
    stage.run_ticks_with(&client, 150);
    assert!(stage.silence_ms(follower) <= FRESH_MS);
    let other = stage.other_than(follower);
    assert!(stage.has_session_at(other, &client), "it is heard all the while");
    stage.disk_full(follower, false);
    stage.run_ticks(30);

    // A leader gives the lead away.
    stage.disk_full(leader, true);
    stage.run_ticks(50);
    (1..=3).for_each(|id| assert!(stage.silence_ms(id) <= FRESH_MS, "member {id}"));
    stage.disk_full(leader, false);
    stage.run_ticks(30);
    stage.check_agreement();
}

#[test]
fn a_member_alone_needs_nobody() {
    let mut stage = Stage::new(1, 57);
    let leader = stage.elect();
    stage.pass_time(60_000);
    assert_eq!(stage.silence_ms(leader), 0);
}
