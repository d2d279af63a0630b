//! Carrying out a step: the state behind it.

use super::entry::{GroupEntry, Ruling};
use super::mistake::StagingMistake;
use super::plan::{GROUPS, HOME, Nodes, PlannedRequest, StagingPlan};
use super::replicated::{PartAnswer, Replicated};
use super::step::StagingStep;
use super::whole::{SyncState, View, Whole};

/// The state after a step.
pub(super) fn carry_out(plan: &StagingPlan, whole: &Whole, step: StagingStep) -> Whole {
    let view = View::new(plan, whole);
    let mut next = whole.clone();
    match step {
        StagingStep::Send { session } => send(&view, session, &mut next),
        StagingStep::Read { session, entries } => read(&view, session, entries, &mut next),
        StagingStep::Answer { session } => answer(&view, session, &mut next),
        StagingStep::Log { group, entry } => next.log(plan, group, entry),
        StagingStep::Commit { group } => next.logs[group].committed = next.logs[group].entries.len(),
        StagingStep::TryAgain { transaction } => {
            let coordinator = &mut next.coordinators[usize::from(transaction)];
            if view.refusal(transaction).is_some() {
                coordinator.has_failed = true;
            } else {
                coordinator.attempt += 1;
                coordinator.is_ordered = true;
            }
        }
        StagingStep::Die { session } => {
            next.faults.deaths += 1;
            next.sessions[session].is_stopped = true;
        }
        StagingStep::TimeOut { entry } => {
            next.faults.timeouts += 1;
            next.log(plan, HOME, entry);
        }
        StagingStep::Stray { group, entry } => {
            next.faults.strays += 1;
            next.log(plan, group, entry);
        }
        StagingStep::Elect { group, kept } => {
            next.faults.elections += 1;
            next.logs[group].entries.truncate(kept);
        }
        StagingStep::GoAway { group } => next.logs[group].is_away = true,
    }
    next
}

fn send(view: &View<'_>, session: usize, next: &mut Whole) {
    let (plan, state) = (view.plan, &view.whole.sessions[session]);
    let request = view.request(session, state.next).expect("there is a request to send");
    for operation in plan.operations_of(request) {
        next.miss(state.observed, plan.node(operation) & !state.observed);
    }
    next.sessions[session].next += 1;
    match request {
        PlannedRequest::Write(operation) => {
            let group = plan.group_of(operation);
            let (floor, elsewhere) = (plan.floor(&state.seen), state.elsewhere(group));
            next.log(
                plan,
                group,
                GroupEntry::Command { operation, session: session as u8, floor, elsewhere },
            );
        }
        PlannedRequest::Staged(transaction) => {
            let coordinator = &mut next.coordinators[usize::from(transaction)];
            coordinator.attempt = 1;
            coordinator.seen = state.seen;
            if plan.has(StagingMistake::RunWithoutOwnWrites) {
                return;
            }
            // Its own writes, applied and not answered yet.
            for request in view.outstanding(session) {
                let PlannedRequest::Write(operation) = *request else { continue };
                let group = plan.group_of(operation);
                let stamp = view.committed[group].stamp_of(operation).unwrap_or(0);
                coordinator.seen[group] = coordinator.seen[group].max(stamp);
            }
        }
        PlannedRequest::Sync => next.sessions[session].sync = Some(sync(view)),
        PlannedRequest::Read { .. } => unreachable!("a read is no request that waits"),
    }
}

/// A sync that begins now.
fn sync(view: &View<'_>) -> SyncState {
    let known = view.whole.sessions.iter().fold(0, |known, session| known | session.observed);
    let is_hasty = view.plan.has(StagingMistake::SyncBeforeStagedParts);
    let staged = |group: usize| view.committed[group].staged.iter().map(move |part| (group, part.attempt));
    let behind = if is_hasty { Vec::new() } else { (0..GROUPS).flat_map(staged).collect() };
    SyncState { behind, known }
}

fn read(view: &View<'_>, session: usize, entries: usize, next: &mut Whole) {
    let (plan, state) = (view.plan, &view.whole.sessions[session]);
    let Some(PlannedRequest::Read { znode }) = view.request(session, state.next) else {
        unreachable!("a session reads when its program says so");
    };
    let group = plan.znodes[usize::from(znode)];
    let replica = Replicated::after(plan, group, &view.whole.logs[group].entries[..entries]);
    let seen = replica.writes_seen(plan, znode);
    let present = seen.iter().fold(0, |nodes, write| nodes | plan.node(write.operation));
    let is_seen = |operation: &u8| seen.iter().any(|write| write.operation == *operation);
    let missing = plan.writes_to(znode).filter(|operation| !is_seen(operation));
    let missing = missing.fold(0, |nodes, operation| nodes | plan.node(operation));
    next.miss(state.observed | own_writes(view, session) | present, missing);
    let stamp = seen.iter().map(|write| write.stamp).max().unwrap_or(0);
    let after = &mut next.sessions[session];
    after.observed |= present;
    after.seen[group] = after.seen[group].max(stamp);
    after.answered += usize::from(after.answered == after.next);
    after.next += 1;
}

/// Writes that a session has asked for, but for those of failed multis.
fn own_writes(view: &View<'_>, session: usize) -> Nodes {
    let (plan, state) = (view.plan, &view.whole.sessions[session]);
    let has_failed = |request: &PlannedRequest| match request {
        PlannedRequest::Staged(transaction) => view.whole.coordinators[usize::from(*transaction)].has_failed,
        _ => false,
    };
    let sent = plan.programs[session][..state.next].iter().filter(|request| !has_failed(request));
    let operations = sent.flat_map(|request| plan.operations_of(*request));
    operations.fold(0, |nodes, operation| nodes | plan.node(operation))
}

fn answer(view: &View<'_>, session: usize, next: &mut Whole) {
    let plan = view.plan;
    let request = view.outstanding(session)[0];
    next.sessions[session].answered += 1;
    if let PlannedRequest::Staged(transaction) = request
        && next.coordinators[usize::from(transaction)].has_failed
    {
        let refusal = view.refusal(transaction);
        let (group, answer) = refusal.expect("an attempt fails because a vote is no");
        if let PartAnswer::No { revealed, stamp } = answer {
            let state = &mut next.sessions[session];
            state.observed |= revealed;
            state.seen[group] = state.seen[group].max(stamp);
        }
        return;
    }
    for operation in plan.operations_of(request) {
        let group = plan.group_of(operation);
        let replica = &view.committed[group];
        let state = &mut next.sessions[session];
        state.observed |= plan.node(operation);
        // A version tells which writes to the znode came before.
        if let Some(own) = replica.writes.iter().position(|write| write.operation == operation) {
            let znode = plan.operations[usize::from(operation)].znode();
            let earlier = replica.writes[..own]
                .iter()
                .filter(|write| plan.writes_to(znode).any(|at| at == write.operation));
            state.observed |= earlier.fold(0 as Nodes, |nodes, write| nodes | plan.node(write.operation));
            state.seen[group] = state.seen[group].max(replica.writes[own].stamp);
        }
    }
    if request == PlannedRequest::Sync {
        let state = &mut next.sessions[session];
        let sync = state.sync.take().expect("a sync is under way");
        state.observed |= sync.known;
        let groups = if plan.has(StagingMistake::SyncOfOneGroup) { 0..1 } else { 0..GROUPS };
        for group in groups {
            state.synced[group] = view.whole.logs[group].committed;
        }
    }
}

/// The ruling on an attempt that released it, if any did.
pub(super) fn is_decided(view: &View<'_>, transaction: u8) -> bool {
    matches!(view.ruling(transaction), Some(Ruling::Released { .. }))
}
