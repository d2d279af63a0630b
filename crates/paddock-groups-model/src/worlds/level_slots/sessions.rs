//! The writers, and the session that looks on.

use super::rules::{LevelSlots, LevelSlotsMistake, TARGET, WRITERS};
use super::state::{LevelSlotsContent, LevelSlotsSent, LevelSlotsState, LevelSlotsStep};
use crate::worlds::level_logs::{HOME, LevelEntry};
use crate::worlds::write_order::Writes;

impl LevelSlotsState {
    pub(super) fn session_actions(&self, model: &LevelSlots, actions: &mut Vec<LevelSlotsStep>) {
        for writer in 0..WRITERS {
            if (self.writers[writer].next as usize) < model.programs[writer].len() {
                actions.push(LevelSlotsStep::Send(writer));
            }
            if !self.writers[writer].sent.is_empty() {
                actions.push(LevelSlotsStep::Arrive(writer));
            }
        }
        if self.looks >= model.looks {
            return;
        }
        let home = 0..=self.logs.len(HOME);
        for home_applied in home {
            for applied in 0..=self.logs.len(TARGET) {
                let group = TARGET;
                actions.push(LevelSlotsStep::Read { of_slot: true, group, home_applied, applied });
                actions.push(LevelSlotsStep::List { applied: [home_applied, applied] });
            }
            for of_slot in [false, true] {
                let applied = home_applied;
                actions.push(LevelSlotsStep::Read { of_slot, group: HOME, home_applied, applied });
            }
        }
    }

    /// The next request, by the map that the member knows; only to the group of those under way.
    pub(super) fn send(&mut self, model: &LevelSlots, writer: usize) -> Option<()> {
        let known = &self.writers[writer];
        let of_slot = model.programs[writer][known.next as usize];
        let group = if of_slot && self.knows_map { TARGET } else { HOME };
        let is_free = known.sent.is_empty() || known.group == group;
        let settled = self.logs.newest_settled(crate::worlds::level_logs::LevelRule::Right, group);
        let waits = settled < known.sight.elsewhere(group) && !model.is(LevelSlotsMistake::WriteDoesNotWait);
        if known.refused.is_some() || !is_free || waits {
            return None;
        }
        let known = &mut self.writers[writer];
        known.group = group;
        if known.must_go_on & (1 << group) != 0 {
            known.must_go_on &= !(1 << group);
            known.sent.push(LevelSlotsSent::GoOn);
        }
        known.sent.push(LevelSlotsSent::Request(known.next));
        known.next += 1;
        Some(())
    }

    pub(super) fn arrive(&mut self, model: &LevelSlots, writer: usize) -> Option<()> {
        let group = self.writers[writer].group;
        let bit = 1 << group;
        match self.writers[writer].sent.remove(0) {
            LevelSlotsSent::GoOn => {
                let all = model.is(LevelSlotsMistake::GoOnForAll);
                for other in (0..WRITERS).filter(|&other| all || other == writer) {
                    self.writers[other].stalled &= !bit;
                }
            }
            LevelSlotsSent::Request(request) => {
                let of_slot = model.programs[writer][request as usize];
                let is_served = !of_slot
                    || self.has_slot(group, self.logs.len(group))
                    || group == HOME && model.is(LevelSlotsMistake::RefusesNothing)
                    || group == TARGET && model.is(LevelSlotsMistake::TargetTakesEarly);
                if is_served && self.writers[writer].stalled & bit == 0 {
                    self.write(model, writer, request);
                } else {
                    self.refuse(model, writer, request);
                }
            }
        }
        let known = &mut self.writers[writer];
        if known.sent.is_empty() {
            // All is answered: what was refused is sent again, in order, and what took effect is not.
            known.next = known.refused.take().unwrap_or(known.next);
            let done = |request: u8| self.done & 1 << model.write(writer, request) != 0;
            while (self.writers[writer].next as usize) < model.programs[writer].len()
                && done(self.writers[writer].next)
            {
                self.writers[writer].next += 1;
            }
        }
        Some(())
    }

    fn refuse(&mut self, model: &LevelSlots, writer: usize, request: u8) {
        let known = &mut self.writers[writer];
        known.refused = Some(known.refused.map_or(request, |first| first.min(request)));
        if model.is(LevelSlotsMistake::RefusalStallsNothing) {
            return;
        }
        let bit = 1 << known.group;
        let is_first = known.stalled & bit == 0;
        known.stalled |= bit;
        if model.is(LevelSlotsMistake::GoOnOvertakes) && is_first {
            known.sent.insert(0, LevelSlotsSent::GoOn);
        } else if !model.is(LevelSlotsMistake::GoOnOvertakes) {
            known.must_go_on |= bit;
        }
    }

    fn write(&mut self, model: &LevelSlots, writer: usize, request: u8) {
        let write = model.write(writer, request);
        let of_slot = model.programs[writer][request as usize];
        let group = self.writers[writer].group;
        let before = self.all_shown(group);
        let earlier = (0..request).fold(0, |all, earlier| all | 1 << model.write(writer, earlier));
        // A writer's requests take effect in its order.
        self.order.put_before(before | self.writers[writer].sight.writes | earlier, 1 << write);
        let elsewhere = self.writers[writer].sight.elsewhere(group);
        let stamp = self.logs.append(group, elsewhere, LevelEntry::Command(LevelSlotsContent::Write(write)));
        self.done |= 1 << write;
        // The write was tried on what its slot holds here.
        let shown = model.only(of_slot, before) | 1 << write;
        let sight = &mut self.writers[writer].sight;
        sight.stamps[group] = stamp;
        sight.writes |= shown;
        self.order.sees(sight.writes, model.all_of(of_slot) & !shown);
    }

    pub(super) fn read(
        &mut self,
        model: &LevelSlots,
        of_slot: bool,
        group: usize,
        home_applied: usize,
        applied: usize,
    ) -> Option<()> {
        let by_map = match model.is(LevelSlotsMistake::ReadsByMapOfNow) {
            true => self.moved().is_some() == (group == TARGET),
            // By the map of home's replica, and by a replica that has the slot.
            false => self.has_slot(HOME, home_applied) == (group == HOME) && self.has_slot(group, applied),
        };
        let (writes, stamp) = self.shown(group, applied, u8::MAX);
        let level = self.level(group, home_applied, applied);
        let waits = level < self.reader.elsewhere(group) || stamp < self.reader.here(group);
        if of_slot && !by_map || waits {
            return None;
        }
        self.reader.stamps[group] = stamp;
        let shown = model.only(of_slot, writes);
        self.look(shown, model.all_of(of_slot) & !shown);
        Some(())
    }

    fn look(&mut self, shown: Writes, lacking: Writes) {
        self.looks += 1;
        self.reader.writes |= shown;
        self.order.sees(self.reader.writes, lacking);
    }

    /// The children of both slots as of one place, each from the group that has its slot then.
    pub(super) fn list(&mut self, model: &LevelSlots, applied: [usize; 2]) -> Option<()> {
        let levels = [HOME, TARGET].map(|group| self.level(group, applied[0], applied[group]));
        let as_of = self.reader.stamps.into_iter().fold(levels[0].min(levels[1]), u8::max);
        if levels.into_iter().any(|level| level < as_of) {
            return None;
        }
        let has_slot = |group: usize| match model.mistake {
            Some(LevelSlotsMistake::ListsByMapOfNow) => self.moved().is_some() == (group == TARGET),
            Some(LevelSlotsMistake::ListsByReplica | LevelSlotsMistake::ListsApplied) => {
                self.has_slot(group, applied[group])
            }
            _ => self.moved().is_some_and(|place| place <= as_of) == (group == TARGET),
        };
        let place = if model.is(LevelSlotsMistake::ListsApplied) { u8::MAX } else { as_of };
        let shown = [HOME, TARGET].map(|group| {
            let writes = self.shown(group, applied[group], place).0;
            let slot = if has_slot(group) { model.only(true, writes) } else { 0 };
            (slot, model.only(false, writes))
        });
        self.listed_twice |= shown[HOME].0 & shown[TARGET].0 != 0;
        let shown = shown[HOME].0 | shown[TARGET].0 | shown[HOME].1;
        let all = model.all_of(true) | model.all_of(false);
        self.reader.stamps = self.reader.stamps.map(|stamp| stamp.max(as_of));
        self.look(shown, all & !shown);
        Some(())
    }
}
