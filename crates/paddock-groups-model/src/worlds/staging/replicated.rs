//! The replicated state of a group: what a prefix of its log makes of it. Every rule that is decided at apply is here.

use super::entry::{Attempt, GroupEntry, Ruling, RulingItem};
use super::mistake::StagingMistake;
use super::plan::{HOME, Nodes, StagedOperation, StagingPlan, Stamp};

/// A write that was carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppliedWrite {
    pub(super) operation: u8,
    pub(super) stamp: Stamp,
}

/// A part that is durable and invisible.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagedPart {
    pub(super) attempt: Attempt,
    /// Its stamp, above which nothing of the group is closed while it stands.
    pub(super) b: Stamp,
}

/// A command that waits in the state.
#[derive(Clone, Debug)]
struct ParkedCommand {
    operation: u8,
    session: u8,
    floor: Stamp,
    /// Attempts whose parts were staged before it, and have to be released before.
    behind: Vec<Attempt>,
}

/// The answer of a group to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartAnswer {
    /// Staged with this stamp; of a multi, a vote of yes.
    Staged(Stamp),
    /// Something else holds its znodes, or stands before it.
    Busy,
    /// A check failed, since these writes were there.
    No { revealed: Nodes, stamp: Stamp },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Replicated {
    pub(super) group: usize,
    pub(super) last_stamp: Stamp,
    pub(super) writes: Vec<AppliedWrite>,
    pub(super) staged: Vec<StagedPart>,
    parked: Vec<ParkedCommand>,
    pub(super) answers: Vec<(Attempt, PartAnswer)>,
    /// Number of the last item of home's stream.
    pub(super) items: u8,
    /// At home: rulings in order.
    pub(super) rulings: Vec<(Attempt, Ruling)>,
    /// True if a multi was released whose checks did not hold any more.
    pub(super) has_broken_vote: bool,
}

impl Replicated {
    pub(super) fn new(plan: &StagingPlan, group: usize) -> Replicated {
        Replicated { group, last_stamp: plan.first_stamps[group], ..Replicated::default() }
    }

    /// The state after some entries.
    pub(super) fn after(plan: &StagingPlan, group: usize, entries: &[GroupEntry]) -> Replicated {
        let mut state = Replicated::new(plan, group);
        entries.iter().for_each(|entry| state.apply(plan, entry));
        state
    }

    pub(super) fn apply(&mut self, plan: &StagingPlan, entry: &GroupEntry) {
        match *entry {
            GroupEntry::Command { operation, session, floor, elsewhere } => {
                let behind =
                    if plan.has(StagingMistake::WritesNotGated) || plan.has(StagingMistake::GateInLeader) {
                        Vec::new()
                    } else {
                        self.parts_below(elsewhere)
                    };
                self.parked.push(ParkedCommand { operation, session, floor, behind });
                self.run_parked(plan);
            }
            GroupEntry::Part { attempt, floor, elsewhere } => {
                self.apply_part(plan, attempt, floor, elsewhere)
            }
            GroupEntry::Ruled { attempt, ruling } => self.apply_ruling(plan, attempt, ruling),
            GroupEntry::Item(item) => {
                if item.number == self.items + 1 || plan.has(StagingMistake::ReleaseInAnyOrder) {
                    self.items += 1;
                    self.end_part(plan, item.attempt, item.ruling);
                }
            }
            GroupEntry::Answered { attempt, ruling } => self.end_part(plan, attempt, ruling),
            GroupEntry::Empty { floor } => self.last_stamp = floor.max(self.last_stamp + 1),
        }
    }

    /// The stamp below which nothing changes any more.
    pub(super) fn at(&self, plan: &StagingPlan) -> Stamp {
        let oldest = self.staged.iter().map(|part| part.b).min();
        let oldest = oldest.filter(|_| !plan.has(StagingMistake::AtPastStagedParts));
        oldest.map_or(self.last_stamp, |b| b.min(self.last_stamp))
    }

    pub(super) fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    pub(super) fn stamp_of(&self, operation: u8) -> Option<Stamp> {
        self.writes.iter().find(|write| write.operation == operation).map(|write| write.stamp)
    }

    pub(super) fn is_staged(&self, attempt: Attempt) -> bool {
        self.staged.iter().any(|part| part.attempt == attempt)
    }

    /// The last answer to an attempt.
    pub(super) fn answer(&self, attempt: Attempt) -> Option<PartAnswer> {
        self.answers.iter().rev().find(|(known, _)| *known == attempt).map(|(_, answer)| *answer)
    }

    pub(super) fn ruling(&self, attempt: Attempt) -> Option<Ruling> {
        // There is one, but for a mistake.
        self.rulings.iter().rev().find(|(known, _)| *known == attempt).map(|(_, ruling)| *ruling)
    }

    /// At home: the stream to a group.
    pub(super) fn stream(&self, plan: &StagingPlan, group: usize) -> Vec<RulingItem> {
        let concerned = self
            .rulings
            .iter()
            .filter(|(attempt, _)| plan.participants(attempt.transaction).any(|part| part == group));
        let numbered = concerned.zip(1..);
        numbered
            .map(|((attempt, ruling), number)| RulingItem { number, attempt: *attempt, ruling: *ruling })
            .collect()
    }

    /// Writes to a znode that are applied, or for a mistake staged.
    pub(super) fn writes_seen(&self, plan: &StagingPlan, znode: u8) -> Vec<AppliedWrite> {
        let is_to = |operation: u8| plan.operations[usize::from(operation)] == StagedOperation::Set(znode);
        let mut seen: Vec<AppliedWrite> =
            self.writes.iter().copied().filter(|write| is_to(write.operation)).collect();
        if plan.has(StagingMistake::ReadsSeeStaged) {
            for part in &self.staged {
                let operations = plan.operations_in(part.attempt.transaction, self.group);
                seen.extend(
                    operations
                        .filter(|operation| is_to(*operation))
                        .map(|operation| AppliedWrite { operation, stamp: part.b }),
                );
            }
        }
        seen
    }

    /// Attempts with parts here whose stamps are below this one.
    pub(super) fn parts_below(&self, stamp: Stamp) -> Vec<Attempt> {
        self.staged.iter().filter(|part| part.b < stamp).map(|part| part.attempt).collect()
    }

    fn apply_part(&mut self, plan: &StagingPlan, attempt: Attempt, floor: Stamp, elsewhere: Stamp) {
        let is_ruled = self.ruling(attempt).is_some();
        if self.is_staged(attempt) || is_ruled {
            return;
        }
        if let Some(refusal) = self.vote(plan, attempt.transaction, elsewhere) {
            self.answers.push((attempt, refusal));
            return;
        }
        self.last_stamp = floor.max(self.last_stamp + 1);
        self.staged.push(StagedPart { attempt, b: self.last_stamp });
        self.answers.push((attempt, PartAnswer::Staged(self.last_stamp)));
    }

    /// Home's entry: the first ruling on an attempt counts. Home's own part ends with it.
    fn apply_ruling(&mut self, plan: &StagingPlan, attempt: Attempt, ruling: Ruling) {
        let known = self.ruling(attempt);
        let is_too_late = match known {
            None => false,
            Some(Ruling::GivenUp) => {
                ruling == Ruling::GivenUp || !plan.has(StagingMistake::DecidesAfterGivenUp)
            }
            Some(Ruling::Released { .. }) => true,
        };
        if is_too_late {
            return;
        }
        self.rulings.push((attempt, ruling));
        if self.group == HOME && !plan.has(StagingMistake::HomeReleasesLater) {
            self.end_part(plan, attempt, ruling);
        }
    }

    fn end_part(&mut self, plan: &StagingPlan, attempt: Attempt, ruling: Ruling) {
        let Some(place) = self.staged.iter().position(|part| part.attempt == attempt) else { return };
        self.staged.remove(place);
        if let Ruling::Released { above } = ruling {
            self.release(plan, attempt.transaction, above);
        }
        self.run_parked(plan);
    }

    fn release(&mut self, plan: &StagingPlan, transaction: u8, above: Stamp) {
        let is_multi = plan.transaction(transaction).is_multi;
        let operations: Vec<u8> = plan.operations_in(transaction, self.group).collect();
        self.has_broken_vote |= is_multi && operations.iter().any(|operation| !self.holds(plan, *operation));
        let mut stamp = if plan.has(StagingMistake::CoordinatorsStamps) {
            above + 1
        } else if plan.has(StagingMistake::ReleaseAboveOwnLogOnly) {
            self.last_stamp + 1
        } else {
            above.max(self.last_stamp) + 1
        };
        for operation in operations {
            if let StagedOperation::Set(_) = plan.operations[usize::from(operation)] {
                self.writes.push(AppliedWrite { operation, stamp });
                self.last_stamp = self.last_stamp.max(stamp);
                stamp += u8::from(!is_multi);
            }
        }
    }

    /// Carries out the commands that nothing holds back any more, in order.
    fn run_parked(&mut self, plan: &StagingPlan) {
        let mut waiting: Vec<ParkedCommand> = Vec::new();
        for command in std::mem::take(&mut self.parked) {
            let is_behind_its_own = waiting.iter().any(|other| other.session == command.session)
                && !plan.has(StagingMistake::RestOvertakes);
            let is_gated = command.behind.iter().any(|attempt| self.is_staged(*attempt));
            if is_behind_its_own || is_gated || self.is_held(plan, command.operation) {
                waiting.push(command);
                continue;
            }
            self.last_stamp = command.floor.max(self.last_stamp + 1);
            self.writes.push(AppliedWrite { operation: command.operation, stamp: self.last_stamp });
        }
        self.parked = waiting;
    }
}
