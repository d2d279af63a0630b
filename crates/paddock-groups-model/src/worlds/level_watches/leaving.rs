//! The turns in which events and replies leave the member that serves the watching session.

use super::rules::{LevelWatches, LevelWatchesMistake};
use super::session::{LevelAnswer, LevelEvent};
use super::state::LevelWatchesState;
use crate::worlds::level_logs::GROUPS;
use crate::worlds::write_order::Writes;

/// The turn of an event or of the reply of an own write: its place, its group, and its entry there.
pub(super) type Turn = ((u8, bool), usize, usize);

impl LevelWatchesState {
    pub(super) fn reached(&self, groups: &[usize], stamp: u8) -> bool {
        groups.iter().all(|&group| self.level(group) >= stamp)
    }

    /// The turn of the oldest change of an event, as far as this member knows.
    pub(super) fn turn(&self, model: &LevelWatches, event: &LevelEvent) -> Turn {
        let turn = |group: usize, index: usize| {
            let is_pulled = !model.is(LevelWatchesMistake::EventsNotPulled);
            let applied = if is_pulled { self.applied[group] } else { index + 1 };
            (self.logs.place(group, index, applied), group, index)
        };
        let firsts = event.firsts.iter().enumerate();
        let turns = firsts.filter_map(|(group, index)| index.map(|index| turn(group, index)));
        turns.min().expect("an event has a change")
    }

    /// The turn of the own write's reply, once the write is applied here.
    fn own_turn(&self, model: &LevelWatches) -> Option<Turn> {
        let own = self.session.own?;
        let (group, index) = (model.group_of(own.change), own.index?);
        let applied = match model.is(LevelWatchesMistake::OwnByStamp) {
            true => index + 1,
            false => self.applied[group],
        };
        let turn =
            (index < self.applied[group]).then(|| (self.logs.place(group, index, applied), group, index))?;
        // By its stamp it is behind all that has this stamp, a decision, too.
        Some(if model.is(LevelWatchesMistake::OwnByStamp) { ((turn.0.0, true), GROUPS, index) } else { turn })
    }

    pub(super) fn reply_leaves(&mut self, model: &LevelWatches) -> Option<()> {
        let answer = self.session.answer.take()?;
        let is_earlier = |event: &LevelEvent| self.turn(model, event).0.0 <= answer.shows;
        let gate = self.session.watched_groups(model);
        let is_gated = !model.is(LevelWatchesMistake::RepliesNotGated) && !self.reached(&gate, answer.shows);
        if is_gated || self.session.events.iter().any(is_earlier) {
            return None;
        }
        let session = &mut self.session;
        session.seen |= answer.changes;
        for group in model.groups_with(answer.znode) {
            session.stamps[group] = session.stamps[group].max(answer.stamp);
        }
        session.watches.extend(answer.watch);
        self.reply_with(answer.shows);
        self.look(model, model.changes_of(answer.znode) & !answer.changes, 0);
        Some(())
    }

    fn reply_with(&mut self, zxid: u8) {
        self.session.zxid = zxid;
        self.session.seen_by_zxid = self.session.seen;
    }

    pub(super) fn own_reply_leaves(&mut self, model: &LevelWatches) -> Option<()> {
        let turn = self.own_turn(model)?;
        let own = self.session.own?;
        let ((place, _), group, index) = (turn.0, model.group_of(own.change), turn.2);
        let mut gate = self.session.watched_groups(model);
        let is_watching = !gate.is_empty();
        if is_watching && !model.is(LevelWatchesMistake::OwnByStamp) {
            gate.push(group);
        }
        let is_gated = !model.is(LevelWatchesMistake::RepliesNotGated) && !self.reached(&gate, place);
        // The event of the write itself comes in front of its reply.
        if is_gated || self.session.events.iter().any(|event| self.turn(model, event) <= turn) {
            return None;
        }
        let stamp = self.logs.logs[group][index].0;
        let counts = if model.is(LevelWatchesMistake::OwnCarriesStamp) { stamp } else { place };
        let (changes, _) = self.shown(model, group, index + 1);
        let session = &mut self.session;
        session.own = None;
        session.seen |= changes;
        session.stamps[group] = session.stamps[group].max(counts);
        let zxid = self.session.largest();
        self.reply_with(zxid);
        // The write answers of its znode as it was in that place.
        self.look(model, model.changes_of(group) & !changes, 0);
        Some(())
    }

    pub(super) fn event_leaves(&mut self, model: &LevelWatches, index: usize) -> Option<()> {
        let event = self.session.events[index];
        let turn = self.turn(model, &event);
        let is_behind = |other: &LevelEvent| match model.is(LevelWatchesMistake::TiesInAnyOrder) {
            true => self.turn(model, other).0.0 < turn.0.0,
            false => self.turn(model, other) < turn,
        };
        let mut gate = self.session.watched_groups(model);
        let own_group = self.session.own_group(model);
        gate.extend(own_group.filter(|_| !model.is(LevelWatchesMistake::WriteNotAwaited)));
        let is_gated = !model.is(LevelWatchesMistake::EventsNotGated) && !self.reached(&gate, turn.0.0);
        let overtakes = self.own_turn(model).is_some_and(|own| own < turn)
            && !model.is(LevelWatchesMistake::EventOvertakesOwn);
        if is_gated || overtakes || self.session.events.iter().any(is_behind) {
            return None;
        }
        if self.reads_again(model, turn.0.0) {
            return Some(());
        }
        let change = 1 << self.change_at(model, turn.1, turn.2)?;
        let session = &mut self.session;
        session.events.remove(index);
        let Some(known) = session.watches.iter().position(|watch| watch.znode == event.znode) else {
            self.events_of_one = 2;
            return Some(());
        };
        session.watches.remove(known);
        self.events_of_one = self.events_of_one.max(1);
        session.seen |= change;
        let stamp = match model.mistake {
            Some(LevelWatchesMistake::EventsShowNothing) => 0,
            Some(LevelWatchesMistake::EventsShowStamp) => self.logs.logs[turn.1][turn.2].0,
            _ => turn.0.0,
        };
        session.stamps[turn.1] = session.stamps[turn.1].max(stamp);
        // A decision may have an event in each group, which come one by one.
        self.look(model, 0, change);
        Some(())
    }

    /// An answer that an event would leave in front of is given up, with its registration and that one's event.
    fn reads_again(&mut self, model: &LevelWatches, place: u8) -> bool {
        let keeps = |answer: &LevelAnswer| match model.mistake {
            Some(LevelWatchesMistake::NotReadAgain) => true,
            Some(LevelWatchesMistake::AgainIfOlder) => answer.level >= place,
            _ => false,
        };
        let session = &mut self.session;
        let Some(past) = session.answer.take_if(|answer| !keeps(answer)) else { return false };
        session.requests -= 1;
        if let Some(watch) = past.watch {
            session.table.retain(|other| other.znode != watch.znode);
            session.events.retain(|event| event.znode != watch.znode);
        }
        true
    }

    /// The client sees something: what it lacks, and what its watches have not told it, has to come later.
    fn look(&mut self, model: &LevelWatches, lacking: Writes, told: Writes) {
        let untold = self.session.watches.iter().fold(0, |all, watch| all | watch.untold(model));
        self.order.sees(self.session.seen, lacking | untold & !told);
    }
}
