//! All checks: each is a function from facts to findings, and none asks or waits.

mod certificates;
mod clocks;
mod common;
mod disks;
mod ensemble;
mod groups;
mod limits;
mod machine;
mod tree;

use super::facts::DoctorFacts;
use super::finding::Finding;

/// Checks in the order in which they are told.
const CHECKS: &[fn(&DoctorFacts) -> Vec<Finding>] = &[
    ensemble::reach,
    ensemble::quorum,
    ensemble::lag,
    ensemble::versions,
    ensemble::settings,
    ensemble::state,
    groups::groups,
    clocks::clocks,
    disks::sync,
    disks::room,
    disks::snapshots,
    limits::descriptors,
    limits::memory,
    limits::connections,
    limits::sessions,
    limits::hits,
    certificates::certificates,
    tree::directories,
    tree::values,
    tree::whole,
    machine::descriptors,
    machine::swap,
    machine::huge_pages,
    machine::clock,
    machine::directories,
    ensemble::unknown,
];

/// Findings of all checks.
pub(super) fn run(facts: &DoctorFacts) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(facts)).collect()
}
