//! An ensemble that grows and shrinks as a StatefulSet's does under Kubernetes, while clients write: 1 → 3 → 5 → 3 → 1 members.
//!
//! Only the list of members in the mounted file changes, and only the chart's job (`paddock members`) holds back what takes members away. A pod
//! has a new address at each start, its name comes late, and running pods see a new list when their machine gets round to it. Disks of pods that
//! are gone are kept, or are empty when the pod comes back. No write fails, and every member has everything that was acknowledged.

mod load;
mod pod;
mod stateful_set;

use std::time::Instant;

use load::Load;
use paddock_tests::rounds;
use stateful_set::{Disks, Policy, StatefulSet};

/// Members in a round, one after the other; the next round begins with the last of them.
const SIZES: [usize; 4] = [3, 5, 3, 1];

#[track_caller]
fn check(policy: Policy, name: &str) {
    let mut set = match StatefulSet::new(policy) {
        Ok(set) => set,
        Err(reason) => return println!("skipped: {reason}"),
    };
    set.install();
    for round in 1..=rounds("PADDOCK_GROWTH_ROUNDS", 2) {
        let (begun, load) =
            (Instant::now(), Load::start(set.hub(), set.addresses_of_all(), set.addresses_of(1)));
        // The disks of a round are those that the one before has left.
        let disks = if round % 2 == 0 { Disks::Kept } else { Disks::Deleted };
        for size in SIZES {
            set.scale(size, disks);
            load.wait_for_writes(20);
            if size == 5 {
                set.roll();
            }
        }
        set.check_members();
        // The writers go on until here: what they have been told is to be found at every member.
        set.scale(3, disks);
        let account = load.stop();
        set.check_holds(&account.acknowledged);
        set.scale(1, disks);
        set.check_holds(&account.acknowledged);
        println!(
            "{name}, round {round}: {} writes, longest wait {:.1} s, {} lost connections, {:.0} s",
            account.acknowledged.len(),
            account.longest_wait.as_secs_f64(),
            account.lost_connections,
            begun.elapsed().as_secs_f64()
        );
        set.clear();
    }
}

#[test]
fn pods_one_after_the_other() {
    check(Policy::OrderedReady, "OrderedReady");
}

#[test]
fn pods_all_at_once() {
    check(Policy::Parallel, "Parallel");
}
