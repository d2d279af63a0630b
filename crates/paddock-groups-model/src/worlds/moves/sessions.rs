//! The writer, the session with an ephemeral, and the one that looks on.

use super::rules::{Moves, MovesMistake};
use super::state::{
    EPHEMERAL, GROUPS, MovesEntry, MovesSent, MovesState, MovesStep, REMOVAL, SOURCE, TARGET,
};
use crate::worlds::write_order::Writes;

impl MovesState {
    pub(super) fn session_actions(&self, model: &Moves, actions: &mut Vec<MovesStep>) {
        if self.decided.is_some() && !self.knows_map {
            actions.push(MovesStep::LearnMap);
        }
        if (self.next as usize) < model.program.len() && self.refused.is_none() {
            actions.push(MovesStep::Send);
        }
        if !self.sent.is_empty() {
            actions.push(MovesStep::Arrive);
        }
        if !model.ephemeral {
            return;
        }
        if !self.owner_ended {
            actions.push(MovesStep::CreateEphemeral);
            actions.push(MovesStep::TimeOut);
        } else {
            actions.extend((0..GROUPS).filter(|&group| !self.removed[group]).map(MovesStep::RemoveEphemeral));
        }
    }

    /// The next request, with the map that the writer's member knows; only to the group of those on their way.
    pub(super) fn send(&mut self, model: &Moves) -> Option<()> {
        let of_slot = MovesState::is_of_slot(model, self.next);
        let group = if of_slot && self.knows_map { TARGET } else { SOURCE };
        let version = u8::from(self.knows_map);
        // Requests that were sent with the map before have to be answered first: they may be refused.
        let is_mixed = |sent: &MovesSent| sent.version != version && !model.is(MovesMistake::MixesVersions);
        if self.sent.iter().any(|sent| sent.group != group || is_mixed(sent)) {
            return None;
        }
        let request = self.next;
        self.sent.push(MovesSent { request, group, version });
        self.next += 1;
        Some(())
    }

    pub(super) fn arrive(&mut self, model: &Moves) -> Option<()> {
        let MovesSent { request, group, version } = *self.sent.first()?;
        let of_slot = MovesState::is_of_slot(model, request);
        let here = self.version(group, self.logs[group].len());
        let is_refused = here > version
            && match model.mistake {
                Some(MovesMistake::RefusesSlotOnly) => of_slot,
                Some(MovesMistake::RefusesNothing) => false,
                _ => true,
            };
        if is_refused {
            self.sent.remove(0);
            self.refused.get_or_insert(request);
            // The refusal carries the map.
            self.knows_map = true;
        } else {
            let passes_hold = model.is(MovesMistake::DeltaDoesNotHold)
                || group == TARGET && model.is(MovesMistake::TargetTakesEarly);
            let is_held = of_slot && self.is_held(group) && !passes_hold;
            let is_early = group == TARGET && here == 0 && !model.is(MovesMistake::TargetTakesEarly);
            let open = &self.logs[group];
            let is_parked = open.open_parts(open.len()).any(|part| part.0 < self.writer.elsewhere(group));
            if is_held || is_early || is_parked {
                return None;
            }
            self.sent.remove(0);
            self.write(model, group, request);
        }
        if self.sent.is_empty() {
            self.next = self.refused.take().unwrap_or(self.next);
            while self.done & 1 << self.next != 0 {
                self.next += 1;
            }
        }
        Some(())
    }

    fn write(&mut self, model: &Moves, group: usize, request: u8) {
        let of_slot = MovesState::is_of_slot(model, request);
        let before = self.in_slot(group, self.logs[group].len());
        self.order.put_before(before | self.writer.writes, 1 << request);
        // A writer's requests take effect in its order.
        self.order.put_before((1 << request) - 1, 1 << request);
        let floor = self.writer.stamps.into_iter().max().unwrap_or(0);
        let stamp = self.logs[group].append(floor, MovesEntry::Write(request));
        self.done |= 1 << request;
        self.writer.stamps[group] = stamp;
        self.writer.writes |= 1 << request;
        // The write was tried on what its slot holds here.
        let shown = MovesState::only(model, of_slot, before) | 1 << request;
        self.order.sees(self.writer.writes, MovesState::all_of(model, of_slot) & !shown);
    }

    pub(super) fn create_ephemeral(&mut self, model: &Moves) -> Option<()> {
        let before = self.in_slot(SOURCE, self.logs[SOURCE].len());
        let is_taken =
            self.owns_slot(SOURCE) && (!self.is_held(SOURCE) || model.is(MovesMistake::DeltaDoesNotHold));
        if !is_taken || before & 1 << EPHEMERAL != 0 {
            return None;
        }
        self.order.put_before(before, 1 << EPHEMERAL);
        self.logs[SOURCE].append(0, MovesEntry::Write(EPHEMERAL));
        Some(())
    }

    /// The released end in one group: it waits for what holds the slot there.
    pub(super) fn remove_ephemeral(&mut self, group: usize) -> Option<()> {
        if self.is_held(group) {
            return None;
        }
        self.removed[group] = true;
        let before = self.in_slot(group, self.logs[group].len());
        let is_attached = group == SOURCE || self.owner_attached;
        if is_attached && self.owns_slot(group) && before & 1 << EPHEMERAL != 0 && before & 1 << REMOVAL == 0
        {
            self.order.put_before(before, 1 << REMOVAL);
            self.logs[group].append(0, MovesEntry::Write(REMOVAL));
        }
        Some(())
    }

    pub(super) fn read(&mut self, model: &Moves, of_slot: bool, group: usize, applied: usize) -> Option<()> {
        let stamp = self.logs[group].entries[..applied].last().map_or(0, |entry| entry.0);
        let at = self.logs[group].at(applied);
        let is_served = !of_slot || self.owned_slot(group, applied);
        if !is_served || at < self.reader.elsewhere(group) || stamp < self.reader.here(group) {
            return None;
        }
        let shown = MovesState::only(model, of_slot, self.in_slot(group, applied));
        let stamp = self.stamp_shown(group, applied);
        self.reader.stamps[group] = self.reader.stamps[group].max(stamp);
        self.look(shown, MovesState::all_of(model, of_slot) & !shown);
        Some(())
    }

    fn stamp_shown(&self, group: usize, applied: usize) -> u8 {
        let entries = self.logs[group].entries[..applied].iter();
        let shown =
            entries.filter(|entry| matches!(entry.1, MovesEntry::Write(_) | MovesEntry::Release { .. }));
        shown.map(|entry| entry.0).max().unwrap_or(0)
    }

    fn look(&mut self, shown: Writes, lacking: Writes) {
        self.looks += 1;
        self.reader.writes |= shown;
        self.order.sees(self.reader.writes, lacking);
    }

    /// The children of both slots as of one stamp, each by its place then.
    pub(super) fn list(&mut self, model: &Moves, applied: [usize; GROUPS]) -> Option<()> {
        let at = [0, 1].map(|group| self.logs[group].at(applied[group]));
        let as_of = self.reader.stamps.into_iter().fold(at[0].min(at[1]), u8::max);
        if at.into_iter().any(|at| at < as_of) {
            return None;
        }
        let has_slot = |group: usize| match model.mistake {
            Some(MovesMistake::PlaceByMapOfNow) => self.decided.is_some() == (group == TARGET),
            Some(MovesMistake::PlaceByReplica | MovesMistake::ListsApplied) => {
                self.owned_slot(group, applied[group])
            }
            _ => self.decided.is_some_and(|decided| decided < as_of) == (group == TARGET),
        };
        let shown = [0, 1].map(|group| {
            let writes = match model.is(MovesMistake::ListsApplied) {
                true => self.in_slot(group, applied[group]),
                false => self.as_of(group, applied[group], as_of),
            };
            let slot = if has_slot(group) { MovesState::only(model, true, writes) } else { 0 };
            (slot, MovesState::only(model, false, writes))
        });
        self.listed_twice |= shown[SOURCE].0 & shown[TARGET].0 != 0;
        let shown = shown[SOURCE].0 | shown[TARGET].0 | shown[SOURCE].1;
        let all = MovesState::all_of(model, true) | MovesState::all_of(model, false);
        self.reader.stamps = [as_of; 3].map(|stamp| stamp.max(as_of));
        self.look(shown, all & !shown);
        Some(())
    }

    /// The writes of a group with places up to `as_of`.
    fn as_of(&self, group: usize, applied: usize, as_of: u8) -> Writes {
        let is_in = |index: &usize| self.logs[group].place(*index) <= (as_of, false);
        let within = (0..applied).take_while(is_in).count();
        self.in_slot(group, within)
    }
}
