//! Faults, as far as a plan has them.

use super::entry::{Attempt, GroupEntry, Ruling};
use super::plan::{HOME, PlannedRequest};
use super::replicated::PartAnswer;
use super::step::StagingStep::{self, Die, Elect, GoAway, Stray, TimeOut};
use super::transactions::can_give_up;
use super::whole::{View, elsewhere};

/// Faults that may happen now.
pub(super) fn faults(view: &View<'_>, steps: &mut Vec<StagingStep>) {
    let (plan, whole) = (view.plan, view.whole);
    let allowed = &plan.faults;
    if whole.faults.deaths < allowed.deaths {
        let serves = |session: &usize| {
            let mut outstanding = view.outstanding(*session).iter();
            !whole.sessions[*session].is_stopped
                && outstanding.any(|request| matches!(request, PlannedRequest::Staged(_)))
        };
        steps.extend((0..plan.programs.len()).filter(serves).map(|session| Die { session }));
    }
    for transaction in 0..plan.transactions.len() as u8 {
        let attempt = view.attempt(transaction);
        let entry = GroupEntry::Ruled { attempt, ruling: Ruling::GivenUp };
        let mut participants = plan.participants(transaction);
        let stands = participants.any(|group| view.committed[group].is_staged(attempt));
        if whole.faults.timeouts < allowed.timeouts
            && stands
            && can_give_up(view, attempt)
            && !view.is_away(HOME)
        {
            steps.push(TimeOut { entry });
        }
        if whole.faults.strays < allowed.strays && attempt.number > 0 {
            stray_parts(view, transaction, steps);
            stray_decision(view, attempt, steps);
        }
    }
    if whole.faults.elections < allowed.elections {
        for (group, log) in whole.logs.iter().enumerate() {
            steps.extend((log.committed..log.entries.len()).map(|kept| Elect { group, kept }));
        }
    }
    if let Some(group) = allowed.away.filter(|group| !view.is_away(*group)) {
        steps.push(GoAway { group });
    }
}

/// Messages of a coordinator that arrive again, or late.
fn stray_parts(view: &View<'_>, transaction: u8, steps: &mut Vec<StagingStep>) {
    let state = &view.whole.coordinators[usize::from(transaction)];
    for number in 1..=state.attempt {
        let attempt = Attempt { transaction, number };
        // A part that goes out group after group goes out when those before it stand.
        let stands =
            |group: usize| matches!(view.committed[group].answer(attempt), Some(PartAnswer::Staged(_)));
        let was_sent = |group: usize| {
            number == 1
                || view.plan.participants(transaction).take_while(|before| *before < group).all(stands)
        };
        for group in
            view.plan.participants(transaction).filter(|group| !view.is_away(*group) && was_sent(*group))
        {
            let floor = view.plan.part_floor(&state.seen);
            let entry = GroupEntry::Part { attempt, floor, elsewhere: elsewhere(&state.seen, group) };
            steps.push(Stray { group, entry });
        }
    }
}

/// The decision of a coordinator that did not know yet that home has given the attempt up.
fn stray_decision(view: &View<'_>, attempt: Attempt, steps: &mut Vec<StagingStep>) {
    let staged = |group: usize| match view.committed[group].answer(attempt) {
        Some(PartAnswer::Staged(b)) => Some(b),
        _ => None,
    };
    let stamps: Option<Vec<u8>> = view.plan.participants(attempt.transaction).map(staged).collect();
    let above = stamps.and_then(|stamps| stamps.into_iter().max());
    if let (Some(above), Some(Ruling::GivenUp)) = (above, view.home().ruling(attempt)) {
        let ruling = Ruling::Released { above };
        steps.push(Stray { group: HOME, entry: GroupEntry::Ruled { attempt, ruling } });
    }
}
