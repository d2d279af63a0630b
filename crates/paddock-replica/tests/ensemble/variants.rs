//! Stories that are played with an interruption in every one of some rounds, and whose answers are not the same each time: what
//! must hold is a relation between them. Those with the same answers are scripts (`rounds=…`).

use paddock_replica::Role;
use paddock_tree::FeatureLevel;

use super::stage::{Stage, founding, server_line};

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
fn the_feature_level_rises_when_all_programs_know_it_and_is_refused_by_others_then() {
    const ONE: FeatureLevel = FeatureLevel(1);
    for last in 1..=3 {
        let mut stage = Stage::new(3, 47);
        stage.elect();
        let others = (1..=3).filter(|member| *member != last);
        for member in others.clone() {
            stage.stop(member);
            stage.known_levels.insert(member, ONE);
            stage.start(member);
            stage.run_ticks(50);
        }
        stage.stop(last);
        stage.run_ticks(50);
        let first = stage.other_than(last);
        assert_eq!(stage.level(first), FeatureLevel::NONE, "member {last} is away");
        stage.start(last);
        stage.run_ticks(50);
        assert_eq!(
            (1..=3).map(|member| stage.level(member)).max(),
            Some(FeatureLevel::NONE),
            "{last} lacks it"
        );

        stage.stop(last);
        stage.known_levels.insert(last, ONE);
        stage.start(last);
        stage.run_ticks(50);
        assert!((1..=3).all(|member| stage.level(member) == ONE), "all know it");

        // The older program, on a disk that has not seen that.
        stage.stop(last);
        stage.known_levels.remove(&last);
        stage.start_empty(last);
        stage.run_ticks(50);
        assert!(stage.has_to_stop(last));
        assert_eq!(stage.level(last), FeatureLevel::NONE);
        assert!(others.clone().all(|member| stage.level(member) == ONE && !stage.has_to_stop(member)));
    }
}

#[test]
fn a_session_that_comes_anew_leaves_behind_what_waits_for_a_change_of_members() {
    for rounds in 0..20 {
        let mut stage = Stage::new(3, 34);
        let leader = stage.elect();
        let client = stage.connect(leader, 1);
        // The newcomer does not come yet.
        stage.submit_reconfig(&client, 1, &[server_line(4, "participant")], &[]);
        stage.settle();
        stage.submit_create(&client, 2, "/behind", "x", 0);
        stage.founding = founding(1..=4);
        stage.start_empty(4);
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
        assert_eq!(stage.story(&resumed), ["#4 \"/new\""]);
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
        // The member hears from both which term it is, and what was written from the leader only.
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
