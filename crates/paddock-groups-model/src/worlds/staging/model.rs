//! The model of a plan, and the properties that hold in every state.

use stateright::{Model, Property};

use super::carry_out::{carry_out, is_decided};
use super::faults::faults;
use super::order;
use super::plan::{GROUPS, HOME, PlannedRequest, StagingPlan, StagingShown};
use super::replicated::{AppliedWrite, PartAnswer, Replicated};
use super::step::StagingStep;
use super::steps::steps;
use super::whole::{View, Whole};

pub(super) const ORDER: &str = "there is one order of which every session sees a growing prefix";
pub(super) const ALL_OR_NOTHING: &str = "a transaction takes effect in all its groups or in none";
pub(super) const TOLD: &str = "what a session is told is true";
pub(super) const VOTES: &str = "a vote of yes stays true";
pub(super) const ONCE: &str = "every write is applied at most once";
pub(super) const RISING: &str = "stamps rise in each group";
pub(super) const CLOSED: &str = "nothing comes at or below what a replica is at";
pub(super) const WINDOWS: &str = "no later window lives where an earlier one is lost";
pub(super) const END: &str = "all that began ends";
const PROGRAMS_END: &str = "all programs end";

impl Model for StagingPlan {
    type State = Whole;
    type Action = StagingStep;

    fn init_states(&self) -> Vec<Whole> {
        vec![Whole::new(self)]
    }

    fn actions(&self, whole: &Whole, actions: &mut Vec<StagingStep>) {
        let view = View::new(self, whole);
        steps(&view, actions);
        faults(&view, actions);
    }

    fn next_state(&self, whole: &Whole, step: StagingStep) -> Option<Whole> {
        Some(carry_out(self, whole, step))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ORDER, |plan, whole| order::is_one(&View::new(plan, whole))),
            Property::always(ALL_OR_NOTHING, |plan, whole| is_all_or_nothing(&View::new(plan, whole))),
            Property::always(TOLD, |plan, whole| is_told_truly(&View::new(plan, whole))),
            Property::always(VOTES, |plan, whole| {
                View::new(plan, whole).committed.iter().all(|replica| !replica.has_broken_vote)
            }),
            Property::always(ONCE, |plan, whole| View::new(plan, whole).committed.iter().all(is_once)),
            Property::always(RISING, |plan, whole| {
                View::new(plan, whole).committed.iter().all(|replica| is_rising(plan, replica))
            }),
            Property::always(CLOSED, |plan, whole| (0..GROUPS).all(|group| stays_closed(plan, whole, group))),
            Property::always(WINDOWS, |plan, whole| is_in_windows(&View::new(plan, whole))),
            Property::always(END, |plan, whole| has_ended(&View::new(plan, whole))),
            Property::sometimes("a command is parked", |plan, whole| {
                is_shown(plan, whole, StagingShown::Parked)
            }),
            Property::sometimes("a part is busy", |plan, whole| is_shown(plan, whole, StagingShown::Busy)),
            Property::sometimes("a vote is no", |plan, whole| is_shown(plan, whole, StagingShown::No)),
            Property::sometimes("an attempt is made in order", |plan, whole| {
                is_shown(plan, whole, StagingShown::InOrder)
            }),
            Property::sometimes(PROGRAMS_END, are_answered),
        ]
    }
}

/// True in a state that shows a thing, or if the plan does not want that.
fn is_shown(plan: &StagingPlan, whole: &Whole, thing: StagingShown) -> bool {
    if !plan.shows.contains(&thing) {
        return true;
    }
    let replicas = View::new(plan, whole).committed;
    let mut answers = replicas.iter().flat_map(|replica| &replica.answers);
    match thing {
        StagingShown::Parked => replicas.iter().any(Replicated::has_parked),
        StagingShown::Busy => answers.any(|(_, answer)| *answer == PartAnswer::Busy),
        StagingShown::No => answers.any(|(_, answer)| matches!(answer, PartAnswer::No { .. })),
        StagingShown::InOrder => whole.coordinators.iter().any(|coordinator| coordinator.is_ordered),
    }
}

/// If a part has taken effect, each other one has, or is staged and will.
fn is_all_or_nothing(view: &View<'_>) -> bool {
    let plan = view.plan;
    (0..plan.transactions.len() as u8).all(|transaction| {
        let attempt = view.attempt(transaction);
        let has_effect = |group: usize| {
            let mut operations = plan.operations_in(transaction, group);
            operations.any(|operation| view.committed[group].stamp_of(operation).is_some())
        };
        let is_whole = |group: usize| {
            let mut sets = plan.operations_in(transaction, group).filter(|at| plan.is_set(*at));
            view.committed[group].is_staged(attempt)
                || sets.all(|operation| view.committed[group].stamp_of(operation).is_some())
        };
        !plan.participants(transaction).any(has_effect) || plan.participants(transaction).all(is_whole)
    })
}

/// A write that a session was told of is there, and nothing is of a multi that it was told failed.
fn is_told_truly(view: &View<'_>) -> bool {
    let plan = view.plan;
    let is_applied = |operation: u8| view.committed[plan.group_of(operation)].stamp_of(operation).is_some();
    view.whole.sessions.iter().zip(&plan.programs).all(|(session, program)| {
        program[..session.answered].iter().all(|request| {
            let has_failed = match request {
                PlannedRequest::Staged(transaction) => {
                    view.whole.coordinators[usize::from(*transaction)].has_failed
                }
                _ => false,
            };
            let mut sets = plan.operations_of(*request).into_iter().filter(|at| plan.is_set(*at));
            sets.all(|operation| is_applied(operation) != has_failed)
        })
    })
}

fn is_once(replica: &Replicated) -> bool {
    let writes = &replica.writes;
    writes
        .iter()
        .enumerate()
        .all(|(at, write)| !writes[..at].iter().any(|before| before.operation == write.operation))
}

fn is_rising(plan: &StagingPlan, replica: &Replicated) -> bool {
    // The writes of a part of a multi share a stamp.
    let rises = |pair: &[AppliedWrite]| {
        pair[0].stamp < pair[1].stamp
            || pair[0].stamp == pair[1].stamp && plan.node(pair[0].operation) == plan.node(pair[1].operation)
    };
    replica.writes.windows(2).all(rises)
}

/// A replica that has applied less knows all that is at or below what it is at.
fn stays_closed(plan: &StagingPlan, whole: &Whole, group: usize) -> bool {
    let log = &whole.logs[group];
    let mut replica = Replicated::new(plan, group);
    let mut at = 0;
    for entry in &log.entries[..log.committed] {
        let known = replica.writes.len();
        replica.apply(plan, entry);
        if replica.writes[known..].iter().any(|write| write.stamp <= at) {
            return false;
        }
        at = at.max(replica.at(plan));
    }
    true
}

/// A window that took effect comes behind all earlier ones of its session, but for those that a vote refused.
fn is_in_windows(view: &View<'_>) -> bool {
    let plan = view.plan;
    (0..plan.transactions.len() as u8).filter(|transaction| is_decided(view, *transaction)).all(
        |transaction| {
            plan.earlier_windows(transaction).into_iter().all(|earlier| {
                is_decided(view, earlier) || view.whole.coordinators[usize::from(earlier)].has_failed
            })
        },
    )
}

fn are_answered(plan: &StagingPlan, whole: &Whole) -> bool {
    whole.sessions.iter().zip(&plan.programs).all(|(session, program)| session.answered == program.len())
}

/// If only faults are left, nothing stands open in a group that has its quorum, and with all groups there all sessions are served.
fn has_ended(view: &View<'_>) -> bool {
    let mut left = Vec::new();
    steps(view, &mut left);
    if !left.is_empty() || view.is_away(HOME) {
        return true;
    }
    let is_clear = |group: usize| {
        let replica = &view.committed[group];
        view.is_away(group) || replica.staged.is_empty() && !replica.has_parked()
    };
    let is_whole = (0..GROUPS).all(|group| !view.is_away(group));
    let sessions = view.whole.sessions.iter().zip(&view.plan.programs);
    let are_served = || {
        sessions.into_iter().all(|(session, program)| session.is_stopped || session.answered == program.len())
    };
    (0..GROUPS).all(is_clear) && (!is_whole || are_served())
}
