//! The order of all writes: that there is one, of which every session sees a growing prefix.
//!
//! Writes are nodes, and an arrow says that one comes before another: as their session asked for them, as their group applied them, and if a
//! session had seen one when it found the other missing, or when it asked for the other. There is an order if the arrows have no circle.

use super::plan::{Nodes, StagingPlan};
use super::whole::View;

/// True if there is an order.
pub(super) fn is_one(view: &View<'_>) -> bool {
    let plan = view.plan;
    let writes = view.committed.iter().flat_map(|replica| &replica.writes);
    let applied = writes.fold(0, |nodes, write| nodes | plan.node(write.operation));
    let mut after = view.whole.missed.clone();
    add_programs(plan, &mut after);
    for replica in view.committed.iter() {
        for pair in replica.writes.windows(2) {
            add(plan, &mut after, pair[0].operation, pair[1].operation);
        }
    }
    // What was never carried out stands nowhere in the order.
    for (node, reached) in after.iter_mut().enumerate() {
        *reached &= if applied & (1 << node) == 0 { 0 } else { applied };
    }
    has_no_circle(&mut after)
}

fn add_programs(plan: &StagingPlan, after: &mut [Nodes]) {
    for program in &plan.programs {
        let operations: Vec<u8> = program.iter().flat_map(|request| plan.operations_of(*request)).collect();
        for (at, first) in operations.iter().enumerate() {
            operations[at + 1..].iter().for_each(|second| add(plan, after, *first, *second));
        }
    }
}

fn add(plan: &StagingPlan, after: &mut [Nodes], first: u8, second: u8) {
    let (first, second) = (plan.node(first), plan.node(second));
    if first != second {
        after[first.trailing_zeros() as usize] |= second;
    }
}

fn has_no_circle(after: &mut [Nodes]) -> bool {
    for middle in 0..after.len() {
        let reached = after[middle];
        after.iter_mut().filter(|nodes| **nodes & (1 << middle) != 0).for_each(|nodes| *nodes |= reached);
    }
    after.iter().enumerate().all(|(node, reached)| reached & (1 << node) == 0)
}
