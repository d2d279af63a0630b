//! Members whose state is not what the log made it.

use paddock_proto::OpCode;
use paddock_replica::Role;

use super::stage::{Guest, Stage};

fn write(stage: &mut Stage, client: &Guest, xids: std::ops::RangeInclusive<i32>) {
    for xid in xids {
        stage.create(client, xid, &format!("/n-{xid}"), "");
    }
}

#[test]
fn a_member_whose_state_differs_from_that_of_most_stops_and_fetches_it_again() {
    let mut stage = Stage::new(3, 28);
    let leader = stage.elect();
    let corrupt = stage.other_than(leader);
    let client = stage.connect(leader, 1);
    stage.create(&client, 1, "/a", "");
    stage.run_ticks(2);
    stage.corrupt(corrupt, "/a");
    write(&mut stage, &client, 2..=140);
    assert!(stage.has_diverged(corrupt), "it does not wait for anything else to go wrong");
    assert!(stage.differing(leader).contains(&corrupt));
    let third = 6 - leader - corrupt;
    assert_eq!(stage.differing(third), [0; 0]);
    assert!(!stage.differing(leader).contains(&third));

    stage.start(corrupt);
    stage.run_ticks(40);
    assert_eq!(stage.role(corrupt), Role::Follower);
    assert_eq!(stage.data(corrupt, "/a").as_deref(), Some(""));
    stage.check_agreement();
}

#[test]
fn a_leader_whose_state_differs_from_that_of_most_makes_room_for_another() {
    let mut stage = Stage::new(3, 29);
    let corrupt = stage.elect();
    let client = stage.connect(corrupt, 1);
    stage.create(&client, 1, "/a", "");
    stage.run_ticks(2);
    stage.corrupt(corrupt, "/a");
    for xid in 2..=140 {
        if stage.has_diverged(corrupt) {
            break;
        }
        stage.create(&client, xid, &format!("/n-{xid}"), "");
    }
    assert!(stage.has_diverged(corrupt));
    stage.elect();
    stage.start(corrupt);
    stage.run_ticks(60);
    assert_eq!(stage.data(corrupt, "/a").as_deref(), Some(""));
    stage.check_agreement();
}

#[test]
fn while_it_is_not_known_who_is_right_those_that_differ_serve_nobody() {
    let mut stage = Stage::new(3, 30);
    let leader = stage.elect();
    let corrupt = stage.other_than(leader);
    let third = 6 - leader - corrupt;
    let (client, reader) = (stage.connect(leader, 1), stage.connect(corrupt, 2));
    stage.create(&client, 1, "/a", "");
    stage.run_ticks(2);
    stage.stop(third);
    stage.corrupt(corrupt, "/a");
    write(&mut stage, &client, 2..=130);
    stage.run_ticks(3);
    for member in [leader, corrupt] {
        assert_eq!(stage.role(member), Role::Looking, "member {member}");
    }
    stage.story(&reader);
    stage.submit_local(&reader, 9, OpCode::GetData, "/a");
    stage.run_ticks(10);
    assert!(
        !stage.story(&reader).iter().any(|line| line.starts_with("#9 \"")),
        "the reader is not told what is wrong"
    );
    // The third one decides.
    stage.start(third);
    stage.run_ticks(30);
    assert!(stage.has_diverged(corrupt));
    assert_ne!(stage.role(leader), Role::Looking);
    stage.start(corrupt);
    stage.run_ticks(40);
    stage.check_agreement();
}
