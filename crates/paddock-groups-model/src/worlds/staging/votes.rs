//! Votes of a group on parts, and what its staged multis hold.

use super::mistake::StagingMistake;
use super::plan::{StagedOperation, StagingPlan, Stamp};
use super::replicated::{PartAnswer, Replicated, StagedPart};

impl Replicated {
    /// The vote on a part, before it is staged.
    pub(super) fn vote(&self, plan: &StagingPlan, transaction: u8, elsewhere: Stamp) -> Option<PartAnswer> {
        let is_multi = plan.transaction(transaction).is_multi;
        let meets = |part: &&StagedPart| {
            let mut operations = plan.operations_in(transaction, self.group);
            operations.any(|operation| {
                plan.touches(part.attempt.transaction, plan.operations[usize::from(operation)].znode())
            })
        };
        let of_multi = |part: &&StagedPart| plan.transaction(part.attempt.transaction).is_multi;
        let is_held = self.staged.iter().filter(of_multi).any(|part| meets(&part));
        let meets_run = self.staged.iter().filter(|part| !of_multi(part)).any(|part| meets(&part));
        let ignores_holds = plan.has(StagingMistake::NoHolds);
        if is_held && !ignores_holds && (is_multi || !plan.has(StagingMistake::RunIgnoresHolds)) {
            return Some(PartAnswer::Busy);
        }
        if !is_multi {
            return None;
        }
        let is_gated = !self.parts_below(elsewhere).is_empty() && !plan.has(StagingMistake::MultiNotGated);
        if meets_run && !plan.has(StagingMistake::MultiIgnoresRuns) || is_gated {
            return Some(PartAnswer::Busy);
        }
        let failed =
            plan.operations_in(transaction, self.group).find(|operation| !self.holds(plan, *operation))?;
        let seen = self.writes_seen(plan, plan.operations[usize::from(failed)].znode());
        let revealed = seen.iter().fold(0, |nodes, write| nodes | plan.node(write.operation));
        let stamp = seen.iter().map(|write| write.stamp).max().unwrap_or(0);
        (!plan.has(StagingMistake::VotesDoNotCount)).then_some(PartAnswer::No { revealed, stamp })
    }

    /// True of a check that holds, and of all sets.
    pub(super) fn holds(&self, plan: &StagingPlan, operation: u8) -> bool {
        match plan.operations[usize::from(operation)] {
            StagedOperation::Set(_) => true,
            StagedOperation::Check(znode) => !self
                .writes
                .iter()
                .any(|write| plan.operations[usize::from(write.operation)] == StagedOperation::Set(znode)),
        }
    }

    /// True if a multi that is staged here touches the znode of a command.
    pub(super) fn is_held(&self, plan: &StagingPlan, operation: u8) -> bool {
        let znode = plan.operations[usize::from(operation)].znode();
        let holds = |held: u8| match plan.operations[usize::from(held)] {
            StagedOperation::Set(other) => other == znode,
            StagedOperation::Check(other) => other == znode && !plan.has(StagingMistake::ChecksNotHeld),
        };
        let of_multi = |part: &&StagedPart| plan.transaction(part.attempt.transaction).is_multi;
        let mut parts = self.staged.iter().filter(of_multi);
        !plan.has(StagingMistake::NoHolds)
            && parts.any(|part| plan.operations_in(part.attempt.transaction, self.group).any(holds))
    }
}
