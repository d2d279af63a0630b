//! Steps for transactions: staging, deciding, giving up, and asking home.

use super::entry::{Attempt, GroupEntry, Ruling};
use super::mistake::StagingMistake;
use super::plan::HOME;
use super::replicated::PartAnswer;
use super::step::StagingStep::{self, Log, TryAgain};
use super::whole::{View, elsewhere};

/// Steps for a transaction, by its coordinator, by home, and by parts that stand.
pub(super) fn of_transaction(view: &View<'_>, transaction: u8, steps: &mut Vec<StagingStep>) {
    let state = &view.whole.coordinators[usize::from(transaction)];
    for number in 1..=state.attempt {
        ask_home(view, Attempt { transaction, number }, steps);
        drop_alone(view, Attempt { transaction, number }, steps);
    }
    if state.attempt == 0 || state.has_failed {
        return;
    }
    let is_dead = view.whole.sessions[view.plan.session_of(transaction)].is_stopped;
    match view.ruling(transaction) {
        Some(Ruling::Released { .. }) => {}
        Some(Ruling::GivenUp) if is_dead || view.has_away(transaction) => {}
        Some(Ruling::GivenUp) => steps.push(TryAgain { transaction }),
        None => {
            if !is_dead {
                stage(view, transaction, steps);
                decide(view, transaction, steps);
            }
            give_up(view, transaction, is_dead, steps);
        }
    }
}

fn stage(view: &View<'_>, transaction: u8, steps: &mut Vec<StagingStep>) {
    let (plan, attempt) = (view.plan, view.attempt(transaction));
    if view.has_away(transaction) {
        return;
    }
    let state = &view.whole.coordinators[usize::from(transaction)];
    for group in plan.participants(transaction) {
        let replica = &view.committed[group];
        let elsewhere = elsewhere(&state.seen, group);
        let is_free = replica.vote(plan, transaction, elsewhere) != Some(PartAnswer::Busy);
        let waits = state.is_ordered || plan.has(StagingMistake::BusyWaitsInPlace);
        let is_its_turn = match replica.answer(attempt) {
            None => !state.is_ordered || is_free,
            Some(PartAnswer::Busy) => waits && is_free,
            Some(_) => false,
        };
        let is_gated = plan.has(StagingMistake::RunsGated) && !replica.parts_below(elsewhere).is_empty();
        let entry = GroupEntry::Part { attempt, floor: plan.part_floor(&state.seen), elsewhere };
        if is_its_turn && !is_gated && !view.whole.logs[group].has_uncommitted(&entry) {
            steps.push(Log { group, entry });
        }
        let is_in_order = state.is_ordered && !plan.has(StagingMistake::TriedInAnyOrder);
        if is_in_order && !matches!(replica.answer(attempt), Some(PartAnswer::Staged(_))) {
            break;
        }
    }
}

fn decide(view: &View<'_>, transaction: u8, steps: &mut Vec<StagingStep>) {
    let (plan, attempt) = (view.plan, view.attempt(transaction));
    let is_early = plan.has(StagingMistake::AnsweredWhenLogged);
    let stamps: Vec<Option<u8>> = plan
        .participants(transaction)
        .map(|group| {
            let answer = if is_early {
                view.logged(group).answer(attempt)
            } else {
                view.committed[group].answer(attempt)
            };
            match answer {
                Some(PartAnswer::Staged(b)) => Some(b),
                _ => None,
            }
        })
        .collect();
    let is_complete = stamps.iter().all(Option::is_some)
        || plan.has(StagingMistake::DecidesEarly) && stamps.iter().any(Option::is_some);
    let mut above = stamps.into_iter().flatten().max().unwrap_or(0);
    for earlier in plan.earlier_windows(transaction) {
        match view.ruling(earlier) {
            Some(Ruling::Released { above: before }) => {
                if !plan.has(StagingMistake::ReleaseBelowEarlierWindows) {
                    above = above.max(before);
                }
            }
            _ if view.whole.coordinators[usize::from(earlier)].has_failed => {}
            _ if plan.has(StagingMistake::LaterWindowFirst) => {}
            _ => return,
        }
    }
    if is_complete {
        rule(view, attempt, Ruling::Released { above }, steps);
    }
}

fn rule(view: &View<'_>, attempt: Attempt, ruling: Ruling, steps: &mut Vec<StagingStep>) {
    let entry = GroupEntry::Ruled { attempt, ruling };
    if !view.whole.logs[HOME].has_uncommitted(&entry) {
        steps.push(Log { group: HOME, entry });
    }
}

/// True if an attempt may be given up at all.
pub(super) fn can_give_up(view: &View<'_>, attempt: Attempt) -> bool {
    let lacks_part = |group: usize| !view.is_away(group) && !view.committed[group].is_staged(attempt);
    !view.plan.has(StagingMistake::AllPartsDecide)
        || view.plan.participants(attempt.transaction).any(lacks_part)
}

/// A coordinator gives up an attempt that was refused. One that is dead, or cannot reach a group, is given up by its staged parts.
fn give_up(view: &View<'_>, transaction: u8, is_dead: bool, steps: &mut Vec<StagingStep>) {
    let (plan, attempt) = (view.plan, view.attempt(transaction));
    let waits = view.whole.coordinators[usize::from(transaction)].is_ordered
        || plan.has(StagingMistake::BusyWaitsInPlace);
    let is_refused =
        plan.participants(transaction).any(|group| match view.committed[group].answer(attempt) {
            Some(PartAnswer::Busy) => !waits,
            Some(PartAnswer::No { .. }) => true,
            _ => false,
        });
    let is_asked_by_part =
        !plan.has(StagingMistake::DeadNotGivenUp) && !plan.has(StagingMistake::GroupGivesUp);
    let is_left = is_dead && is_asked_by_part || view.has_away(transaction);
    let stands = plan.participants(transaction).any(|group| view.committed[group].is_staged(attempt));
    if (is_refused && !is_dead || is_left && stands) && can_give_up(view, attempt) {
        rule(view, attempt, Ruling::GivenUp, steps);
    }
}

/// For a mistake: groups drop parts of a dead coordinator themselves.
fn drop_alone(view: &View<'_>, attempt: Attempt, steps: &mut Vec<StagingStep>) {
    let is_dead = view.whole.sessions[view.plan.session_of(attempt.transaction)].is_stopped;
    if !is_dead || !view.plan.has(StagingMistake::GroupGivesUp) {
        return;
    }
    let standing =
        view.plan.participants(attempt.transaction).filter(|group| view.committed[*group].is_staged(attempt));
    steps.extend(
        standing.map(|group| Log { group, entry: GroupEntry::Answered { attempt, ruling: Ruling::GivenUp } }),
    );
}

/// A part that came after the item of its attempt is dropped, as home answers.
fn ask_home(view: &View<'_>, attempt: Attempt, steps: &mut Vec<StagingStep>) {
    let (plan, home) = (view.plan, view.home());
    for group in plan.participants(attempt.transaction).filter(|group| *group != HOME) {
        let stream = home.stream(plan, group);
        let Some(item) = stream.into_iter().find(|item| item.attempt == attempt) else { continue };
        let replica = &view.committed[group];
        let has_come = item.number <= replica.items;
        let ruling = match plan.mistake {
            Some(StagingMistake::LatePartNotAsked) => continue,
            Some(StagingMistake::AnswerReleases) => item.ruling,
            _ if has_come => Ruling::GivenUp,
            _ => continue,
        };
        let entry = GroupEntry::Answered { attempt, ruling };
        if replica.is_staged(attempt) && !view.whole.logs[group].has_uncommitted(&entry) {
            steps.push(Log { group, entry });
        }
    }
}
