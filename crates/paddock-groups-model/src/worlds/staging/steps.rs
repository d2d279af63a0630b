//! Steps that may be taken in a state without a fault: those of sessions, of transactions, and of groups and home.

use super::entry::GroupEntry;
use super::mistake::StagingMistake;
use super::plan::{GROUPS, HOME};
use super::sessions::of_session;
use super::step::StagingStep::{self, Commit, Log};
use super::transactions::of_transaction;
use super::whole::View;

/// Steps that are no faults. When none is left, all has to have ended.
pub(super) fn steps(view: &View<'_>, steps: &mut Vec<StagingStep>) {
    for session in 0..view.plan.programs.len() {
        if !view.whole.sessions[session].is_stopped {
            of_session(view, session, steps);
        }
    }
    for transaction in 0..view.plan.transactions.len() as u8 {
        of_transaction(view, transaction, steps);
    }
    for group in 0..GROUPS {
        if view.is_away(group) {
            continue;
        }
        let log = &view.whole.logs[group];
        if log.committed < log.entries.len() {
            steps.push(Commit { group });
        }
        deliver(view, group, steps);
    }
    // A group without a quorum logs nothing.
    steps.retain(|step| !matches!(step, Log { group, .. } if view.is_away(*group)));
}

/// Home sends the next item of a group's stream.
fn deliver(view: &View<'_>, group: usize, steps: &mut Vec<StagingStep>) {
    let (plan, replica) = (view.plan, &view.committed[group]);
    if group == HOME {
        if plan.has(StagingMistake::HomeReleasesLater) {
            let standing = replica.rulings.iter().filter(|(attempt, _)| replica.is_staged(*attempt));
            steps.extend(standing.map(|(attempt, ruling)| Log {
                group,
                entry: GroupEntry::Answered { attempt: *attempt, ruling: *ruling },
            }));
        }
        return;
    }
    let is_early = plan.has(StagingMistake::SentWhenLogged);
    let stream =
        if is_early { view.logged(HOME).stream(plan, group) } else { view.home().stream(plan, group) };
    let is_any = plan.has(StagingMistake::ReleaseInAnyOrder);
    for item in stream {
        let is_due = if is_any { replica.is_staged(item.attempt) } else { item.number == replica.items + 1 };
        let others_stand =
            replica.has_parked() || replica.staged.iter().any(|part| part.attempt != item.attempt);
        let waits = plan.has(StagingMistake::ItemsWait) && others_stand;
        let entry = GroupEntry::Item(item);
        if is_due && !waits && !view.whole.logs[group].has_uncommitted(&entry) {
            steps.push(Log { group, entry });
        }
    }
}
