//! A few rounds of torture; `cargo xtask torture` plays as many as one likes.
//!
//! `TORTURE_ROUNDS` makes it longer, `TORTURE_SEED` plays a round again.
//! Fifty rounds of those with several Raft groups are the stage `torture-groups`.

use std::sync::atomic::AtomicBool;

use paddock_tests::torture::{Options, Size, TortureOutcome, run};

#[test]
fn what_kazoo_and_java_see_of_tortured_members_is_linearizable() {
    let options = Options::from_environment(2);
    assert_eq!(run(&options, &AtomicBool::new(false)), TortureOutcome::Good);
}

/// One group for each znode that clients ask about, so that each multi is about two groups.
#[test]
fn what_is_seen_of_znodes_in_several_groups_is_linearizable() {
    let size = Size { groups: 4, replicas: 0 };
    let options = Options { size, ..Options::from_environment(1) };
    assert_eq!(run(&options, &AtomicBool::new(false)), TortureOutcome::Good);
}

/// Five members with three replicas of each group: clients are served in groups that their member does not have.
#[test]
fn what_is_seen_through_members_that_lack_groups_is_linearizable() {
    let size = Size { groups: 4, replicas: 3 };
    let options = Options { size, ..Options::from_environment(1) };
    assert_eq!(run(&options, &AtomicBool::new(false)), TortureOutcome::Good);
}
