//! The move of the slot: copy, staged delta, home's decision, release.

use super::rules::{Moves, MovesMistake};
use super::state::{EPHEMERAL, GROUPS, MovesEntry, MovesState, MovesStep, REMOVAL, SOURCE, TARGET};

impl MovesState {
    pub(super) fn move_actions(&self, model: &Moves, actions: &mut Vec<MovesStep>) {
        let attempts = model.attempts + u8::from(self.owner_ended);
        if self.decided.is_none() && self.is_given_up() && self.attempt < attempts {
            actions.push(MovesStep::Copy);
        }
        if model.ephemeral && !self.owner_attached && self.decided.is_none() {
            actions.push(MovesStep::AttachOwner);
        }
        if !self.is_given_up() && self.decided.is_none() {
            let unstaged = (0..GROUPS).filter(|&group| self.staged(group).is_none());
            actions.extend(unstaged.map(MovesStep::Stage));
            actions.push(MovesStep::Decide);
            if self.attempt < attempts {
                actions.push(MovesStep::GiveUp);
            }
        }
        let waiting = (0..GROUPS).filter(|&group| self.taken[group] < self.items[group].len());
        actions.extend(waiting.map(MovesStep::TakeItem));
    }

    pub(super) fn move_step(&mut self, model: &Moves, action: MovesStep) -> Option<()> {
        match action {
            MovesStep::Copy => self.copy(model),
            MovesStep::Stage(group) => self.stage(model, group),
            MovesStep::Decide => self.decide(model),
            MovesStep::GiveUp => {
                self.items.iter_mut().for_each(|items| items.push(MovesEntry::GiveUp(self.attempt)));
                Some(())
            }
            MovesStep::TakeItem(group) => self.take_item(model, group),
            MovesStep::AttachOwner => {
                // Home attaches no session that has ended. One mistake attaches what has ephemerals when the move begins.
                let is_late = model.is(MovesMistake::OwnersAttachedOnce) && self.attempt > 0;
                (!self.owner_ended && !is_late).then(|| self.owner_attached = true)
            }
            other => unreachable!("{other:?} is no step of a move"),
        }
    }

    fn slot_at_source(&self, model: &Moves) -> u16 {
        MovesState::only(model, true, self.in_slot(SOURCE, self.logs[SOURCE].len()))
    }

    /// Begins an attempt with a copy of the slot. Changes made meanwhile come with the delta.
    fn copy(&mut self, model: &Moves) -> Option<()> {
        // The move waits for the removal of an ended session's ephemerals, which would meet its hold.
        if self.owner_ended && self.slot_at_source(model) & (1 << EPHEMERAL | 1 << REMOVAL) == 1 << EPHEMERAL
        {
            return None;
        }
        self.attempt += 1;
        let copied = self.slot_at_source(model);
        self.logs[TARGET].append(0, MovesEntry::Copy(copied));
        Some(())
    }

    fn stage(&mut self, model: &Moves, group: usize) -> Option<()> {
        if model.is(MovesMistake::NoStagedDelta) {
            return None;
        }
        let attempt = self.attempt;
        let delta = if group == TARGET && !model.is(MovesMistake::DeltaLacksMeanwhile) {
            // The source's part says what is in the slot.
            let staged = self.staged(SOURCE)?;
            let index = self.logs[SOURCE].entries.iter().position(|entry| entry.0 == staged)?;
            MovesState::only(model, true, self.in_slot(SOURCE, index))
        } else {
            0
        };
        self.logs[group].append(0, MovesEntry::Stage { attempt, delta });
        Some(())
    }

    fn decide(&mut self, model: &Moves) -> Option<()> {
        let staged = (0..GROUPS).map(|group| self.staged(group));
        let is_staged = staged.clone().all(|part| part.is_some());
        if !is_staged && !model.is(MovesMistake::NoStagedDelta) {
            return None;
        }
        let slot = self.slot_at_source(model);
        let has_ephemeral = slot & 1 << EPHEMERAL != 0 && slot & 1 << REMOVAL == 0;
        let is_unattached =
            has_ephemeral && !self.owner_attached && !model.is(MovesMistake::OwnersAttachedOnce);
        // The removal of an ended session's ephemerals meets the hold, so the attempt is given up for it.
        let is_disturbed = has_ephemeral && self.owner_ended && !model.is(MovesMistake::EndDoesNotDisturb);
        let lets_end_pass = model.is(MovesMistake::EndDoesNotDisturb) && self.owner_ended;
        if is_unattached && !lets_end_pass || is_disturbed {
            return None;
        }
        let decided = staged.flatten().max().unwrap_or_else(|| self.newest()) + 1;
        self.decided = Some(decided);
        let release = MovesEntry::Release { attempt: self.attempt, decided };
        self.items.iter_mut().for_each(|items| items.push(release));
        Some(())
    }

    fn take_item(&mut self, model: &Moves, group: usize) -> Option<()> {
        let item = self.items[group][self.taken[group]];
        self.taken[group] += 1;
        match item {
            MovesEntry::GiveUp(attempt)
                if self.staged_in(group, attempt).is_none() || model.is(MovesMistake::GivenUpHolds) => {}
            MovesEntry::GiveUp(attempt) => _ = self.logs[group].append(0, MovesEntry::GiveUp(attempt)),
            MovesEntry::Release { decided, .. } => _ = self.logs[group].append(decided, item),
            other => unreachable!("{other:?} is no item"),
        }
        Some(())
    }
}
