//! Steps of sessions: what they send, read, and are answered.

use super::entry::GroupEntry;
use super::mistake::StagingMistake;
use super::plan::PlannedRequest;
use super::replicated::Replicated;
use super::step::StagingStep::{self, Answer, Log, Read, Send};
use super::whole::View;

/// Steps of a session whose member lives.
pub(super) fn of_session(view: &View<'_>, session: usize, steps: &mut Vec<StagingStep>) {
    let state = &view.whole.sessions[session];
    let outstanding = view.outstanding(session);
    match view.request(session, state.next) {
        Some(PlannedRequest::Read { znode }) if may_read(view, session) => read(view, session, znode, steps),
        Some(request) if may_send(view, session, request) => steps.push(Send { session }),
        _ => {}
    }
    let Some(oldest) = outstanding.first() else { return };
    let is_answered = match *oldest {
        PlannedRequest::Write(operation) => {
            let group = view.plan.group_of(operation);
            let is_early = view.plan.has(StagingMistake::WriteAcknowledgedWhenLogged);
            send_again(view, session, steps);
            view.committed[group].stamp_of(operation).is_some()
                || is_early && view.logged(group).stamp_of(operation).is_some()
        }
        PlannedRequest::Staged(transaction) => {
            view.whole.coordinators[usize::from(transaction)].has_failed || view.is_released(transaction)
        }
        PlannedRequest::Sync => {
            let sync = state.sync.as_ref().expect("a sync is under way");
            sync.behind.iter().all(|(group, attempt)| !view.committed[*group].is_staged(*attempt))
        }
        // For a mistake it went ahead of what was sent before it.
        PlannedRequest::Read { .. } => true,
    };
    if is_answered {
        steps.push(Answer { session });
    }
}

/// A read waits for the answers to all that its session has sent.
fn may_read(view: &View<'_>, session: usize) -> bool {
    let is_staged = |request: &PlannedRequest| matches!(request, PlannedRequest::Staged(_));
    let mut outstanding = view.outstanding(session).iter();
    outstanding.all(|request| view.plan.has(StagingMistake::ReadsDoNotEndWindows) && is_staged(request))
}

/// True if a session may send a request behind those that are outstanding.
fn may_send(view: &View<'_>, session: usize, request: PlannedRequest) -> bool {
    let mut outstanding = view.outstanding(session).iter();
    match request {
        PlannedRequest::Write(operation) => {
            let group = view.plan.group_of(operation);
            let is_alike = |other: &PlannedRequest| matches!(other, PlannedRequest::Write(other) if view.plan.group_of(*other) == group);
            let is_whole = lost_write(view, session).is_none();
            is_whole
                && outstanding.all(is_alike)
                && !view.is_away(group)
                && !is_held_by_leader(view, session, group)
        }
        PlannedRequest::Staged(_) => outstanding.all(|other| match other {
            PlannedRequest::Write(operation) => {
                let group = view.plan.group_of(*operation);
                let is_applied = view.committed[group].stamp_of(*operation).is_some();
                is_applied || view.plan.has(StagingMistake::RunBeforeWriteApplied)
            }
            other => matches!(other, PlannedRequest::Staged(_)),
        }),
        PlannedRequest::Sync => outstanding.next().is_none(),
        PlannedRequest::Read { .. } => false,
    }
}

/// For a mistake: true if the leader holds a write back. An entry that is committed may not be applied yet.
fn is_held_by_leader(view: &View<'_>, session: usize, group: usize) -> bool {
    let log = &view.whole.logs[group];
    let elsewhere = view.whole.sessions[session].elsewhere(group);
    let applied = (log.committed.saturating_sub(1)..=log.committed)
        .map(|applied| Replicated::after(view.plan, group, &log.entries[..applied]));
    view.plan.has(StagingMistake::GateInLeader)
        && applied.into_iter().all(|replica| !replica.parts_below(elsewhere).is_empty())
}

/// The first write of a session that an election has lost: later ones are numbered, and refused until it comes again.
fn lost_write(view: &View<'_>, session: usize) -> Option<u8> {
    view.outstanding(session).iter().find_map(|request| {
        let PlannedRequest::Write(operation) = *request else { return None };
        let entries = &view.whole.logs[view.plan.group_of(operation)].entries;
        let is_it =
            |entry: &GroupEntry| matches!(entry, GroupEntry::Command { operation: other, .. } if *other == operation);
        (!entries.iter().any(is_it)).then_some(operation)
    })
}

/// A write that an election has lost is sent again.
fn send_again(view: &View<'_>, session: usize, steps: &mut Vec<StagingStep>) {
    let Some(operation) = lost_write(view, session) else { return };
    let group = view.plan.group_of(operation);
    let state = &view.whole.sessions[session];
    let (floor, elsewhere) = (view.plan.floor(&state.seen), state.elsewhere(group));
    steps.push(Log {
        group,
        entry: GroupEntry::Command { operation, session: session as u8, floor, elsewhere },
    });
}

fn read(view: &View<'_>, session: usize, znode: u8, steps: &mut Vec<StagingStep>) {
    let (plan, state) = (view.plan, &view.whole.sessions[session]);
    let group = plan.znodes[usize::from(znode)];
    let (here, elsewhere) = (state.seen[group], state.elsewhere(group));
    let log = &view.whole.logs[group];
    let mut replica = Replicated::new(plan, group);
    let mut before = None;
    for entries in 0..=log.committed {
        if entries > 0 {
            replica.apply(plan, &log.entries[entries - 1]);
        }
        let is_at = plan.has(StagingMistake::ReadDoesNotWait)
            || plan.has(StagingMistake::SeenIsOneNumber) && here > elsewhere
            || replica.at(plan) >= elsewhere;
        if entries < state.synced[group] || replica.last_stamp < here || !is_at {
            continue;
        }
        let seen = replica.writes_seen(plan, znode).len();
        if before != Some(seen) {
            steps.push(Read { session, entries });
        }
        before = Some(seen);
    }
    let entry = GroupEntry::Empty { floor: elsewhere };
    let is_asked = view.committed[group].last_stamp < elsewhere && !plan.has(StagingMistake::NoEmptyEntries);
    if is_asked && !log.has_uncommitted(&entry) {
        steps.push(Log { group, entry });
    }
}
