//! Members join, leave, lose their data and come back.

use paddock_chance::Chance;
use paddock_proto::OpCode;
use paddock_replica::Role;
use paddock_state::ConnId;

use super::stage::{Stage, founding, seeds, server_line};

fn voters(ids: &[u64]) -> Vec<String> {
    ids.iter().map(|id| server_line(*id, "participant")).collect()
}

/// Starts members that are new to the ensemble of `present`.
fn start_new(stage: &mut Stage, present: &[u64], new: &[u64]) {
    stage.founding = founding(present.iter().chain(new).copied());
    new.iter().for_each(|id| stage.start_empty(*id));
}

#[test]
fn one_becomes_three_and_five_and_three_again() {
    let mut stage = Stage::new(1, 20);
    stage.entries_max = 20;
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    for xid in 1..=40 {
        stage.create(&client, xid, &format!("/n-{xid}"), &"x".repeat(200));
    }
    stage.story(&client);
    let mut present = vec![1];
    for (joining, leaving) in [(vec![2, 3], vec![]), (vec![4, 5], vec![]), (vec![], vec![1, 2])] {
        start_new(&mut stage, &present, &joining);
        stage.run_ticks(5);
        stage.reconfig(&client, 100, &voters(&joining), &leaving);
        stage.get(&client, 101, "/n-1");
        stage.run_ticks_with(&client, 60);
        present.extend(&joining);
        present.retain(|id| !leaving.contains(id));
        let story = stage.story(&client);
        assert!(story[0].starts_with("#100 \"server."), "{story:?}");
        assert!(story[1].starts_with("#101 \"xxx"), "what comes behind is answered behind: {story:?}");
        // In the end its own member leaves.
        assert_eq!(story.get(2).map(String::as_str), leaving.first().map(|_| "close"));
        for id in &present {
            assert_eq!(stage.config(*id), present);
            let membership = stage.membership(*id);
            assert_eq!((membership.voters, membership.learners), (present.clone(), vec![]), "member {id}");
            assert!(stage.data(*id, "/n-40").is_some());
        }
        if leaving.is_empty() {
            stage.check_agreement();
        }
    }
    // Who left knows it, and serves nobody.
    assert_eq!(stage.role(1), Role::Looking);
    stage.ask_for_session(1, 9, true);
    assert_eq!(stage.story_of(1, 9), ["close"]);
    [1, 2].into_iter().for_each(|id| stage.stop(id));
    let leader = stage.elect();
    assert!(present.contains(&leader));
    stage.connect(leader, 10);
}

#[test]
fn a_change_goes_on_under_the_next_leader() {
    let mut stage = Stage::new(3, 21);
    let leader = stage.elect();
    let client = stage.connect(stage.other_than(leader), 1);
    // The newcomer is not there yet when the leader that began the change dies.
    stage.reconfig(&client, 1, &voters(&[4]), &[]);
    stage.run_ticks(5);
    stage.stop(leader);
    stage.elect();
    start_new(&mut stage, &[1, 2, 3], &[4]);
    stage.run_ticks(100);
    let story = stage.story(&client);
    assert!(story[0].starts_with("#1 \"server.1"), "{story:?}");
    stage.start(leader);
    stage.run_ticks(60);
    assert_eq!(stage.membership(leader).voters, [1, 2, 3, 4]);
    stage.check_agreement();
}

#[test]
fn a_newcomer_that_never_comes_is_given_up() {
    let mut stage = Stage::new(3, 22);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    stage.reconfig(&client, 1, &voters(&[4]), &[]);
    let other = stage.connect(leader, 2);
    stage.reconfig(&other, 1, &voters(&[5]), &[]);
    assert_eq!(stage.story_of(leader, 2), ["#1 ReconfigInProgress"]);
    stage.run_ticks_with(&client, 120);
    assert_eq!(stage.story(&client), ["#1 NewConfigNoQuorum"]);
    stage.run_ticks(100);
    assert_eq!(stage.membership(leader).learners, [0; 0], "it is no member in any sense");
    assert_eq!(stage.config(leader), [1, 2, 3]);
    stage.create(&client, 2, "/a", "");
    assert_eq!(stage.story(&client), ["#2 \"/a\""]);
}

#[test]
fn a_change_is_given_up_if_those_who_are_to_stay_are_not_there() {
    let mut stage = Stage::new(3, 34);
    let leader = stage.elect();
    let (leaving, gone) = (stage.other_than(leader), 6 - leader - stage.other_than(leader));
    let client = stage.connect(leader, 1);
    stage.stop(gone);
    stage.reconfig(&client, 1, &[], &[leaving]);
    stage.run_ticks_with(&client, 120);
    assert_eq!(stage.story(&client), ["#1 NewConfigNoQuorum"]);
    assert_eq!(stage.membership(leader).voters, [1, 2, 3]);
    stage.create(&client, 2, "/a", "");
    assert_eq!(stage.story(&client), ["#2 \"/a\""]);
}

#[test]
fn an_observer_has_everything_and_no_vote() {
    let mut stage = Stage::new(3, 23);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    start_new(&mut stage, &[1, 2, 3], &[4]);
    stage.reconfig(&client, 1, &[server_line(4, "observer")], &[]);
    stage.run_ticks(60);
    assert_eq!(stage.role(4), Role::Observer);
    assert_eq!(stage.membership(4).learners, [4]);
    let guest = stage.connect(4, 2);
    stage.create(&guest, 1, "/a", "one");
    stage.submit_local(&guest, 2, OpCode::Sync, "/a");
    stage.get(&guest, 3, "/a");
    assert_eq!(stage.story(&guest), ["#1 \"/a\"", "#2 \"/a\"", "#3 \"one\""]);
    // Two of the voters are not enough with it.
    let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    others.iter().for_each(|id| stage.stop(*id));
    stage.submit_sequential(&guest, 4, "/s-");
    stage.run_ticks(30);
    assert_eq!(stage.story(&guest), [""; 0]);
    others.iter().for_each(|id| stage.start(*id));
    stage.elect();

    // It is promoted by being named again.
    stage.run_ticks(60);
    let client = stage.connect(others[0], 3);
    stage.reconfig(&client, 1, &voters(&[4]), &[]);
    stage.run_ticks(60);
    assert_eq!(stage.membership(4).voters, [1, 2, 3, 4]);
    assert_ne!(stage.role(4), Role::Observer);
    stage.check_agreement();
}

#[test]
fn a_member_that_lost_its_data_gets_it_again_and_has_no_say_before() {
    let mut stage = Stage::new(3, 24);
    stage.entries_max = 20;
    let leader = stage.elect();
    let (wiped, lagging) = {
        let wiped = stage.other_than(leader);
        (wiped, 6 - leader - wiped)
    };
    let client = stage.connect(leader, 1);
    stage.cut(lagging);
    for xid in 1..=30 {
        stage.create(&client, xid, &format!("/n-{xid}"), "x");
    }
    assert_eq!(stage.story(&client).len(), 30, "two of three are enough");
    // The leader is gone, its other half of the quorum has forgotten: nobody may lead who does not have the writes.
    stage.stop(leader);
    stage.start_empty(wiped);
    stage.mend(lagging);
    stage.run_ticks(100);
    assert_eq!(stage.role(lagging), Role::ReadOnly, "it was elected by one that had forgotten its promises");
    stage.start(leader);
    stage.run_ticks(100);
    for member in 1..=3 {
        assert!(stage.data(member, "/n-30").is_some(), "member {member}");
    }
    stage.check_agreement();

    // Once it has caught up it counts.
    stage.stop(leader);
    stage.elect();
    // With its leader alive it is simply told everything.
    stage.start(leader);
    stage.run_ticks(60);
    let leader = stage.elect();
    let wiped = stage.other_than(leader);
    stage.start_empty(wiped);
    stage.run_ticks(60);
    assert!(stage.data(wiped, "/n-30").is_some());
    stage.check_agreement();
}

#[test]
fn who_slept_since_the_founding_does_not_begin_anew_with_who_forgot() {
    let mut stage = Stage::new(3, 31);
    // All have said that they have nothing. The third hears no more for a long time.
    stage.run_ticks(1);
    stage.cut(3);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    for xid in 1..=5 {
        stage.create(&client, xid, &format!("/n-{xid}"), "x");
    }
    assert_eq!(stage.story(&client).len(), 5);
    stage.stop(1);
    stage.start_empty(2);
    stage.mend(3);
    stage.run_ticks(100);
    assert!(stage.entries(3) <= 1 && stage.data(2, "/n-5").is_none());
    assert_eq!(stage.entries(2), 0, "it began anew without what was acknowledged");
    stage.start(1);
    stage.run_ticks(100);
    for member in 1..=3 {
        assert!(stage.data(member, "/n-5").is_some(), "member {member}");
    }
    stage.check_agreement();
}

/// One founder has lost its disk and proposes another id by now, in half of the runs a smaller one.
#[test]
fn who_slept_since_the_founding_is_not_led_astray_by_who_forgot() {
    for seed in 0..20 {
        let mut stage = Stage::new(3, seed);
        stage.run_ticks(1);
        stage.sleep(3);
        let leader = stage.elect();
        let client = stage.connect(leader, 1);
        for xid in 1..=5 {
            stage.create(&client, xid, &format!("/n-{xid}"), "x");
        }
        assert_eq!(stage.story(&client).len(), 5);
        stage.cut(leader);
        stage.start_empty(3 - leader);
        stage.wake(3);
        stage.run_ticks(5);
        stage.mend(leader);
        stage.run_ticks(100);
        for member in 1..=3 {
            assert!(stage.data(member, "/n-5").is_some(), "seed {seed}: member {member}");
        }
        stage.check_agreement();
    }
}

#[test]
fn a_newcomer_has_a_vote_only_when_it_would_give_one() {
    for rounds in 0..20 {
        let mut stage = Stage::new(3, 32);
        let leader = stage.elect();
        let client = stage.connect(leader, 1);
        (1..=20).for_each(|xid| stage.create(&client, xid, &format!("/n-{xid}"), "x"));
        start_new(&mut stage, &[1, 2, 3], &[4]);
        stage.run_ticks(5);
        stage.submit_reconfig(&client, 21, &voters(&[4]), &[]);
        (0..rounds).for_each(|_| stage.step_once());
        // Whether it has a vote by now or not: without the leader the others need it then.
        (1..=4).for_each(|member| stage.stop(member));
        (1..=4).filter(|member| *member != leader).for_each(|member| stage.start(member));
        stage.elect();
    }
}

#[test]
fn what_is_asked_behind_a_change_of_members_waits_and_events_do_not() {
    let mut stage = Stage::new(3, 33);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    stage.create(&client, 1, "/a", "one");
    stage.watch(&client, 2, "/a");
    stage.story(&client);
    // The newcomer does not come yet.
    stage.reconfig(&client, 3, &voters(&[4]), &[]);
    stage.get(&client, 4, "/a");
    let other = stage.connect(leader, 2);
    stage.set(&other, 1, "/a", "two");
    assert_eq!(stage.story(&client), ["NodeDataChanged /a"]);
    start_new(&mut stage, &[1, 2, 3], &[4]);
    stage.run_ticks_with(&client, 60);
    let story = stage.story(&client);
    assert!(story[0].starts_with("#3 \"server.1"), "{story:?}");
    assert_eq!(story[1], "#4 \"two\"");
}

#[test]
fn an_observer_that_was_let_go_and_does_not_know_serves_nobody() {
    let mut stage = Stage::new(3, 36);
    let leader = stage.elect();
    let observer = stage.other_than(leader);
    let (client, guest) = (stage.connect(leader, 1), stage.connect(observer, 2));
    stage.reconfig(&client, 1, &[server_line(observer, "observer")], &[]);
    stage.run_ticks_with(&client, 10);
    stage.cut(observer);
    stage.reconfig(&client, 2, &[], &[observer]);
    stage.submit_create(&guest, 1, "/n", "x", 0);
    stage.run_ticks_with(&client, 60);
    assert_eq!(stage.config(leader), [leader, 6 - leader - observer]);
    stage.mend(observer);
    stage.run_ticks_with(&client, 60);
    assert_eq!(stage.story(&guest), ["close"], "nobody knows what becomes of its write");
    assert_eq!(stage.role(observer), Role::ReadOnly);
}

#[test]
fn who_lags_catches_up_however_much_is_written() {
    let mut stage = Stage::new(3, 37);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    let late = stage.other_than(leader);
    stage.cut(late);
    for xid in 1..=30 {
        stage.create(&client, xid, &format!("/n-{xid}"), &"x".repeat(1000));
    }
    stage.mend(late);
    // A piece of the snapshot comes a step, and more is written than members keep.
    for xid in 31..=300 {
        stage.submit_create(&client, xid, &format!("/n-{xid}"), &"x".repeat(1000), 0);
        stage.touch(&client);
        stage.step_once();
    }
    assert!(stage.data(late, "/n-250").is_some());
}

#[test]
fn a_session_that_comes_anew_leaves_behind_what_waits_for_a_change_of_members() {
    for rounds in 0..20 {
        let mut stage = Stage::new(3, 34);
        let leader = stage.elect();
        let client = stage.connect(leader, 1);
        // The newcomer does not come yet.
        stage.reconfig(&client, 1, &voters(&[4]), &[]);
        stage.submit_create(&client, 2, "/behind", "x", 0);
        start_new(&mut stage, &[1, 2, 3], &[4]);
        (0..rounds).for_each(|_| stage.step_once());
        // The client has given its connection up, with a request under way, when the change is or is not in force yet.
        let resumed = stage.submit_resume(leader, 2, &client);
        stage.submit_create(&client, 3, "/late", "x", 0);
        stage.run_ticks_with(&client, 60);
        let resumed = stage.greet(leader, resumed);
        let story = stage.story(&client);
        let heard = story.iter().take_while(|line| *line != "close");
        let was_done = heard.filter(|line| line.starts_with("#2 ")).count() > 0;
        assert_eq!(stage.data(leader, "/behind").is_some(), was_done, "after {rounds} rounds");
        assert_eq!(stage.data(leader, "/late"), None, "after {rounds} rounds");
        stage.create(&resumed, 4, "/new", "x");
        assert!(stage.is_done(&resumed, 4));
    }
}

#[test]
fn a_member_that_lost_its_data_does_not_listen_to_a_leader_of_old() {
    let mut stage = Stage::new(3, 35);
    let old = stage.elect();
    let late = stage.connect(old, 1);
    stage.sleep(old);
    let new = stage.elect_beside(old);
    let third = 6 - old - new;
    let client = stage.connect(new, 2);
    (1..=5).for_each(|xid| stage.create(&client, xid, &format!("/n-{xid}"), "x"));
    assert_eq!(stage.story(&client).len(), 5);
    // The old leader wakes up and finds one that has forgotten it, and nobody else.
    stage.stop(third);
    stage.start_empty(new);
    stage.wake(old);
    stage.create(&late, 1, "/other", "x");
    stage.run_ticks(60);
    assert!(!stage.story(&late).contains(&"#1 \"/other\"".to_owned()), "two of three have lost /n-5");
    stage.start(third);
    stage.run_ticks(100);
    for member in 1..=3 {
        assert!(stage.data(member, "/n-5").is_some(), "member {member}");
    }
    stage.check_agreement();
}

#[test]
fn a_member_that_lost_its_data_and_the_time_serves_again() {
    for entries_max in [usize::MAX, 10] {
        let mut stage = Stage::new(3, 29);
        stage.entries_max = entries_max;
        let leader = stage.elect();
        let wiped = stage.other_than(leader);
        let client = stage.connect(wiped, 1);
        for xid in 1..=30 {
            stage.create(&client, xid, &format!("/n-{xid}"), "x");
        }
        // By its clock this start is the one in which it created all that, or an earlier one.
        stage.set_wall_clock(if entries_max == 10 { 5 } else { 1_000_000 });
        stage.start_empty(wiped);
        stage.ask_for_session(wiped, 2, false);
        stage.run_ticks(60);
        assert_eq!(stage.story_of(wiped, 2), ["close"], "it serves nobody before it has learned");
        let client = stage.connect(wiped, 3);
        stage.create(&client, 1, "/again", "x");
        assert_eq!(stage.story(&client), ["#1 \"/again\""]);
        stage.check_agreement();
    }
}

#[test]
fn a_member_alone_becomes_an_ensemble_by_its_configuration() {
    let mut stage = Stage::new(1, 25);
    stage.founding.members.clear();
    stage.start_empty(1);
    stage.run_ticks(3);
    assert_eq!(stage.role(1), Role::Alone);
    let client = stage.connect(1, 1);
    stage.create(&client, 1, "/a", "one");
    assert_eq!(stage.cluster(1), None);

    stage.founding = founding(1..=3);
    stage.stop(1);
    stage.start(1);
    [2, 3].into_iter().for_each(|id| stage.start_empty(id));
    stage.run_ticks(100);
    for id in 1..=3 {
        assert_eq!(stage.membership(id).voters, [1, 2, 3], "member {id}");
        assert_eq!(stage.data(id, "/a").as_deref(), Some("one"));
        assert_eq!(stage.cluster(id), stage.cluster(1));
    }
    stage.check_agreement();
}

#[test]
fn an_ensemble_is_founded_by_most_of_its_voters_and_joined_by_the_rest() {
    let mut stage = Stage::new(3, 26);
    stage.stop(3);
    (1..=2).for_each(|id| stage.start_empty(id));
    stage.elect();
    let cluster = stage.cluster(1);
    assert!(cluster.is_some());
    stage.start_empty(3);
    stage.run_ticks(60);
    assert_eq!(stage.cluster(3), cluster);
    stage.check_agreement();

    // One of three founds nothing.
    let mut stage = Stage::new(3, 27);
    [2, 3].into_iter().for_each(|id| stage.stop(id));
    stage.start_empty(1);
    stage.run_ticks(100);
    assert_eq!((stage.cluster(1), stage.entries(1)), (None, 0));
}

#[test]
fn an_ensemble_is_named_once_whoever_leads_when() {
    for rounds in 0..30 {
        let mut stage = Stage::new(3, 43);
        (0..rounds).for_each(|_| stage.step_once());
        let leader = (1..=3).find(|id| stage.role(*id) == Role::Leader);
        leader.into_iter().for_each(|leader| stage.stop(leader));
        stage.elect();
        stage.run_ticks(5);
        let running = stage.other_than(leader.unwrap_or_default());
        assert!(stage.cluster(running).is_some());
        assert_eq!(stage.zxid(running), 1, "after {rounds} rounds");
    }
}

#[test]
fn observers_do_not_count_as_founders() {
    let mut stage = Stage::new(4, 38);
    (1..=4).for_each(|id| stage.stop(id));
    stage.founding = founding(1..=3);
    stage.founding.membership.learners.push(4);
    stage.founding.members += &(server_line(4, "observer") + "\n");
    (1..=3).for_each(|id| stage.start_empty(id));
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    (1..=5).for_each(|xid| stage.create(&client, xid, &format!("/n-{xid}"), "x"));
    assert_eq!(stage.story(&client).len(), 5);
    // A voter that has lost its disk meets an observer that comes for the first time, and nobody else.
    let wiped = stage.other_than(leader);
    (1..=3).for_each(|id| stage.stop(id));
    stage.start_empty(wiped);
    stage.start_empty(4);
    stage.run_ticks(100);
    assert_eq!((stage.entries(wiped), stage.entries(4)), (0, 0), "an ensemble was founded anew");
    (1..=3).filter(|id| *id != wiped).for_each(|id| stage.start(id));
    stage.run_ticks(100);
    for member in 1..=4 {
        assert!(stage.data(member, "/n-5").is_some(), "member {member}");
    }
    assert_eq!(stage.role(4), Role::Observer);
    stage.check_agreement();
}

#[test]
fn who_is_started_anew_knows_of_the_last_change_of_members() {
    for (joining, leaving) in [(vec![], vec![1]), (vec![server_line(1, "observer")], vec![])] {
        let mut stage = Stage::new(4, 39);
        let leader = stage.elect();
        let client = stage.connect(leader, 1);
        stage.reconfig(&client, 1, &joining, &leaving);
        stage.run_ticks_with(&client, 100);
        let story = stage.story(&client);
        assert!(story[0].starts_with("#1 \"server."), "{story:?}");
        let expected = stage.membership(leader);
        assert!(!expected.voters.contains(&1));
        for member in 2..=4 {
            stage.cut(member);
            stage.stop(member);
            stage.start(member);
            stage.settle();
            assert_eq!(stage.membership(member), expected, "member {member}");
        }
    }
}

/// Wherever its learning is interrupted.
#[test]
fn a_member_that_is_started_anew_while_it_learns_has_no_say() {
    let mut led = 0;
    for rounds in 20..60 {
        let mut stage = Stage::new(3, 40);
        stage.entries_max = 20;
        let leader = stage.elect();
        let wiped = stage.other_than(leader);
        let lagging = 6 - leader - wiped;
        let client = stage.connect(leader, 1);
        stage.cut(lagging);
        for xid in 1..=30 {
            stage.create(&client, xid, &format!("/n-{xid}"), "x");
        }
        assert_eq!(stage.story(&client).len(), 30, "two of three are enough");
        // It hears from both which term it is, and what was written from the leader only.
        stage.stop(wiped);
        [leader, lagging].iter().for_each(|member| stage.lose_link(*member, wiped));
        stage.start_empty(wiped);
        (0..3).for_each(|_| stage.step_once());
        stage.sleep(leader);
        stage.mend(lagging);
        (0..3).for_each(|_| stage.step_once());
        stage.cut(lagging);
        stage.wake(leader);
        (0..rounds).for_each(|_| stage.step_once());
        stage.stop(leader);
        stage.stop(wiped);
        stage.start(wiped);
        stage.mend(lagging);
        stage.run_ticks(100);
        for member in [wiped, lagging] {
            if stage.role(member) == Role::Leader {
                assert!(stage.data(member, "/n-30").is_some(), "member {member} leads after {rounds} rounds");
                led += 1;
            }
        }
        stage.start(leader);
        stage.run_ticks(100);
        for member in 1..=3 {
            assert!(stage.data(member, "/n-30").is_some(), "member {member} after {rounds} rounds");
        }
    }
    assert!(led > 0, "it never learned everything");
}

#[test]
fn too_few_to_found_an_ensemble_ask_once_a_tick_and_wait() {
    let mut stage = Stage::new(5, 28);
    (3..=5).for_each(|member| stage.stop(member));
    // Each tick ends when all is said.
    stage.run_ticks(20);
    assert!(stage.cluster(1).is_none());
    stage.start(4);
    stage.elect();
    stage.run_ticks(20);
    assert!(stage.cluster(1).is_some());
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
        start_new(&mut stage, &[1, 2, 3], &[4, 5]);
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
                match chance.below(3) {
                    0 => stage.reconfig(&guest, 2, &voters(&[changed]), &[]),
                    1 => stage.reconfig(&guest, 2, &[], &[changed]),
                    _ => stage.reconfig(&guest, 2, &[server_line(changed, "observer")], &[]),
                }
                stage.run_ticks(chance.below(10));
                let told = stage.story(&guest);
                changes += told.iter().filter(|line| line.starts_with("#2 \"server.")).count();
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
