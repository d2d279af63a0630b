//! A few rounds of torture; `cargo xtask torture` plays as many as one likes.
//!
//! `TORTURE_ROUNDS` makes it longer, `TORTURE_SEED` plays a round again.

use std::sync::atomic::AtomicBool;

use paddock_tests::torture::{Options, TortureOutcome, run};

#[test]
fn what_kazoo_and_java_see_of_tortured_members_is_linearizable() {
    let options = Options::from_environment(2);
    assert_eq!(run(&options, &AtomicBool::new(false)), TortureOutcome::Good);
}
