//! Stories of several members. The test carries their messages, and loses them; it stops members, and starts them again
//! with what they had on disk. Everything is decided by the test and its seed.

mod ensemble {
    mod contact;
    mod digests;
    mod disks;
    mod members;
    mod read_only;
    pub(crate) mod stage;
}

use ensemble::stage::{Stage, seeds};
use paddock_chance::Chance;
use paddock_proto::OpCode;
use paddock_replica::Role;

#[test]
fn three_members_elect_a_leader_and_agree() {
    let mut stage = Stage::new(3, 1);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    stage.create(&client, 1, "/a", "one");
    assert_eq!(stage.story(&client), ["#1 \"/a\""]);
    stage.run_ticks(2);
    for member in 1..=3 {
        assert_eq!(stage.data(member, "/a").as_deref(), Some("one"), "member {member}");
    }
}

#[test]
fn a_write_at_a_follower_goes_through_the_leader_and_is_answered_where_it_was_asked() {
    let mut stage = Stage::new(3, 2);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let client = stage.connect(follower, 1);
    stage.create(&client, 1, "/a", "one");
    stage.get(&client, 2, "/a");
    stage.create(&client, 3, "/a", "two");
    assert_eq!(stage.story(&client), ["#1 \"/a\"", "#2 \"one\"", "#3 NodeExists"]);
}

#[test]
fn a_write_takes_no_more_messages_than_it_needs() {
    let mut stage = Stage::new(3, 4);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    let before = stage.messages_carried;
    stage.create(&client, 1, "/a", "one");
    // Each follower is told of it, says that it has it, and is told that it is committed.
    assert_eq!(stage.messages_carried - before, 2 * 3);
}

#[test]
fn writes_survive_a_change_of_leader_and_are_applied_once() {
    let mut stage = Stage::new(3, 3);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let client = stage.connect(follower, 1);
    stage.create_sequential(&client, 1, "/s-");
    assert_eq!(stage.story(&client), ["#1 \"/s-0000000000\""]);

    // The leader takes the write and dies before anybody hears of it.
    stage.cut(leader);
    for xid in 2..=4 {
        stage.submit_sequential(&client, xid, "/s-");
    }
    stage.deliver_all();
    assert_eq!(stage.story(&client), [""; 0]);
    stage.stop(leader);
    let next = stage.elect();
    assert_ne!(next, leader);
    stage.settle();
    assert_eq!(
        stage.story(&client),
        ["#2 \"/s-0000000001\"", "#3 \"/s-0000000002\"", "#4 \"/s-0000000003\""]
    );

    stage.start(leader);
    stage.mend(leader);
    stage.run_ticks(30);
    stage.check_agreement();
}

/// A process that dies ends its links: nobody has to wait until it has been silent for long enough.
#[test]
fn a_leader_whose_links_end_is_replaced_within_a_few_ticks() {
    for seed in 0..20 {
        let mut stage = Stage::new(5, seed);
        let leader = stage.elect();
        // One that lags must not lead, and must not keep the others waiting.
        let lagging = stage.other_than(leader);
        stage.cut(lagging);
        let client = stage.connect(leader, 1);
        stage.create(&client, 1, "/a", "x");
        assert_eq!(stage.story(&client).len(), 1);
        stage.mend(lagging);
        stage.stop(leader);
        (1..=5).filter(|member| *member != leader).for_each(|member| stage.lose_link(member, leader));
        stage.run_ticks(3);
        let roles = stage.roles();
        assert_eq!(roles.iter().filter(|role| **role == Role::Leader).count(), 1, "seed {seed}: {roles:?}");
        assert!(!roles.contains(&Role::Looking), "seed {seed}: {roles:?}");
    }
}

#[test]
fn a_broken_link_to_a_leader_that_others_hear_deposes_nobody() {
    let mut stage = Stage::new(3, 12);
    let leader = stage.elect();
    let before = stage.roles();
    let follower = stage.other_than(leader);
    for _ in 0..5 {
        stage.lose_link(follower, leader);
        stage.run_ticks(3);
        assert_eq!(stage.roles(), before);
    }
    // What ends between two followers means nothing.
    stage.lose_link(follower, 6 - leader - follower);
    assert_eq!(stage.roles(), before);
}

#[test]
fn a_session_moves_to_another_member_and_leaves_nothing_behind() {
    let mut stage = Stage::new(3, 4);
    let leader = stage.elect();
    let (first, second) = (stage.other_than(leader), leader);
    let client = stage.connect(first, 1);
    stage.create(&client, 1, "/a", "0");
    assert_eq!(stage.story(&client), ["#1 \"/a\""]);

    // Its member is cut off with a write that nobody has seen; the client goes elsewhere.
    stage.cut(first);
    stage.submit_set(&client, 2, "/a", "of the past");
    stage.settle();
    let moved = stage.resume(second, 2, &client);
    stage.set(&moved, 1, "/a", "of the present");
    stage.mend(first);
    stage.run_ticks(60);
    for member in 1..=3 {
        assert_eq!(stage.data(member, "/a").as_deref(), Some("of the present"), "member {member}");
    }
    // Its former connection learns that the session is not there any more, and ends.
    let story = stage.story(&client);
    assert!(story.contains(&"close".to_owned()), "{story:?}");
    stage.check_agreement();
}

#[test]
fn a_session_that_is_heard_at_a_follower_lives_and_a_silent_one_ends_everywhere() {
    let mut stage = Stage::new(3, 5);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let (heard, silent) = (stage.connect(follower, 1), stage.connect(follower, 2));
    stage.create_ephemeral(&silent, 1, "/e");
    stage.story(&silent);
    for _ in 0..120 {
        stage.touch(&heard);
        stage.run_ticks(1);
    }
    assert!(stage.has_session(&heard));
    assert!(!stage.has_session(&silent));
    assert_eq!(stage.data(follower, "/e"), None);
    assert_eq!(stage.story(&silent), ["close"]);
    stage.check_agreement();
}

#[test]
fn an_end_that_a_former_leader_wanted_is_not_carried_out_by_the_next() {
    let mut stage = Stage::new(3, 5);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let client = stage.connect(follower, 1);
    // It is cut off just before the session's time is up, and does not know yet that it leads nobody.
    stage.run_ticks(103);
    assert!(stage.has_session(&client));
    stage.cut(leader);
    stage.run_ticks(5);
    let next = stage.elect_beside(leader);
    let client = stage.resume(next, 2, &client);
    stage.mend(leader);
    for _ in 0..60 {
        stage.touch(&client);
        stage.run_ticks(1);
    }
    assert!(stage.has_session(&client));
    assert_eq!(stage.role(leader), paddock_replica::Role::Follower, "it is back");
    stage.check_agreement();
}

#[test]
fn a_sync_at_a_follower_sees_what_was_written_before_it() {
    let mut stage = Stage::new(3, 6);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let (writer, reader) = (stage.connect(leader, 1), stage.connect(follower, 2));
    stage.create(&writer, 1, "/a", "old");
    stage.settle();
    stage.story(&writer);
    // The follower hears nothing of this write until later.
    stage.cut(follower);
    stage.set(&writer, 2, "/a", "new");
    assert_eq!(stage.story(&writer).len(), 1, "two of three are enough");
    stage.submit_local(&reader, 1, OpCode::Sync, "/a");
    stage.get(&reader, 2, "/a");
    assert_eq!(stage.story(&reader), [""; 0], "it cannot know");
    stage.mend(follower);
    stage.run_ticks(60);
    assert_eq!(stage.story(&reader), ["#1 \"/a\"", "#2 \"new\""]);
}

#[test]
fn a_sync_at_a_leader_that_was_deposed_is_not_answered_from_the_past() {
    let mut stage = Stage::new(3, 10);
    let former = stage.elect();
    let reader = stage.connect(former, 1);
    stage.create(&reader, 1, "/a", "old");
    stage.story(&reader);
    stage.cut(former);
    let leader = stage.elect_beside(former);
    let writer = stage.connect(leader, 2);
    stage.set(&writer, 1, "/a", "new");
    assert_eq!(stage.story(&writer).len(), 1);

    stage.submit_local(&reader, 2, OpCode::Sync, "/a");
    stage.get(&reader, 3, "/a");
    assert_eq!(stage.story(&reader), [""; 0], "a quorum does not follow it any more");
    stage.mend(former);
    stage.run_ticks(40);
    assert_eq!(stage.story(&reader), ["#2 \"/a\"", "#3 \"new\""]);
}

#[test]
fn what_was_said_to_a_question_does_not_answer_one_that_came_before_it_was_asked_again() {
    let mut stage = Stage::new(3, 12);
    let former = stage.elect();
    let others: Vec<u64> = (1..=3).filter(|member| *member != former).collect();
    let (early, late) = (stage.connect(others[0], 1), stage.connect(former, 2));
    stage.create(&late, 1, "/a", "old");
    stage.story(&late);

    // The leader asks both others whether it leads, for the one of them, and hears their answers only much later: that one's,
    // the same question once more, and the other's answer to what it was asked first.
    stage.submit_local(&early, 1, OpCode::Sync, "/a");
    stage.step_once();
    stage.deafen(former);
    (0..2).for_each(|_| stage.step_once());
    stage.sleep(former);
    let leader = stage.elect_beside(former);
    let writer = stage.connect(leader, 3);
    stage.set(&writer, 1, "/a", "new");
    assert_eq!(stage.story(&writer).len(), 1);

    stage.wake(former);
    stage.submit_local(&late, 2, OpCode::Sync, "/a");
    stage.get(&late, 3, "/a");
    assert_eq!(stage.story(&late), [""; 0], "it cannot know");
    stage.tell(former);
    stage.run_ticks(40);
    assert_eq!(stage.story(&late), ["#2 \"/a\"", "#3 \"new\""]);
}

#[test]
fn a_sync_makes_no_entry() {
    let mut stage = Stage::new(3, 11);
    let leader = stage.elect();
    let follower = stage.other_than(leader);
    let client = stage.connect(follower, 1);
    let entries = stage.entries(follower);
    for xid in 1..=5 {
        stage.submit_local(&client, xid, OpCode::Sync, "/");
    }
    stage.settle();
    assert_eq!(stage.story(&client).len(), 5);
    assert_eq!(stage.entries(follower), entries);
}

#[test]
fn without_a_quorum_nothing_is_answered_and_nothing_lost() {
    let mut stage = Stage::new(3, 7);
    let leader = stage.elect();
    let client = stage.connect(leader, 1);
    let others: Vec<u64> = (1..=3).filter(|member| *member != leader).collect();
    others.iter().for_each(|member| stage.stop(*member));
    stage.submit_sequential(&client, 1, "/s-");
    stage.run_ticks(50);
    assert_eq!(stage.story(&client), [""; 0]);
    others.iter().for_each(|member| stage.start(*member));
    stage.run_ticks(60);
    assert_eq!(stage.story(&client), ["#1 \"/s-0000000000\""]);
    stage.check_agreement();
}

#[test]
fn a_member_that_lags_too_far_gets_a_snapshot_and_its_connections_begin_anew() {
    let mut stage = Stage::new(3, 8);
    stage.entries_max = 20;
    let leader = stage.elect();
    let lagging = stage.other_than(leader);
    let (writer, guest) = (stage.connect(leader, 1), stage.connect(lagging, 2));
    stage.cut(lagging);
    stage.submit_sequential(&guest, 1, "/s-");
    for xid in 1..=60 {
        stage.create(&writer, xid, &format!("/n-{xid}"), &"x".repeat(200));
    }
    assert_eq!(stage.data(lagging, "/n-60"), None);
    stage.mend(lagging);
    stage.run_ticks(60);
    assert!(stage.data(lagging, "/n-60").is_some());
    let story = stage.story(&guest);
    assert_eq!(story[0], "close", "its watches may have missed events: {story:?}");
    assert!(
        stage.data(leader, "/s-0000000060").is_some(),
        "what it asked for is carried out, as after any lost connection"
    );
    stage.check_agreement();

    // It is a member like any other again, and finds what it got when it starts anew.
    let client = stage.connect(lagging, 3);
    stage.create(&client, 1, "/after", "");
    stage.story(&client);
    stage.stop(lagging);
    stage.start(lagging);
    stage.run_ticks(60);
    assert!(stage.data(lagging, "/after").is_some());
    stage.check_agreement();
}

/// Three members, of which one has missed sixty writes of so many bytes: its leader has no entries for it any more.
/// Returns the leader and the one that lags.
fn one_lags(seed: u64, bytes: usize) -> (Stage, u64, u64) {
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
    (stage, leader, lagging)
}

#[test]
fn a_leader_whose_snapshot_is_damaged_takes_another_one() {
    let (mut stage, leader, lagging) = one_lags(12, 200);
    stage.damage_snapshot(leader);
    stage.run_ticks(100);
    assert!(stage.data(lagging, "/n-60").is_some());
    stage.check_agreement();
}

#[test]
fn a_snapshot_comes_whole_though_its_leader_changes_on_the_way() {
    let (mut stage, leader, lagging) = one_lags(9, 1000);
    for _ in 0..12 {
        stage.step_once();
    }
    stage.stop(leader);
    stage.run_ticks(100);
    assert!(stage.data(lagging, "/n-60").is_some());
    stage.start(leader);
    stage.run_ticks(60);
    stage.check_agreement();
}

/// The leader stays, and has offered the snapshot already.
#[test]
fn a_snapshot_comes_whole_though_its_taker_is_away_on_the_way() {
    type Absence = fn(&mut Stage, u64, u64);
    let absences: [(&str, Absence); 3] = [
        ("its link ended", |stage, lagging, leader| stage.lose_link(lagging, leader)),
        ("it was cut off for longer than an election takes", |stage, lagging, _| {
            stage.cut(lagging);
            stage.run_ticks(40);
            stage.mend(lagging);
        }),
        ("it was started anew", |stage, lagging, _| {
            stage.stop(lagging);
            stage.start(lagging);
        }),
    ];
    for (what, absence) in absences {
        let (mut stage, leader, lagging) = one_lags(13, 1000);
        for _ in 0..12 {
            stage.step_once();
        }
        assert!(stage.data(lagging, "/n-60").is_none(), "it is under way");
        absence(&mut stage, lagging, leader);
        stage.run_ticks(100);
        assert!(stage.data(lagging, "/n-60").is_some(), "{what}");
        stage.check_agreement();
    }
}

#[test]
fn a_snapshot_comes_whatever_is_lost_on_the_way() {
    for lost_after in 0..16 {
        let (mut stage, _, lagging) = one_lags(9, 100);
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
