//! The logs, the member that serves the watching session, and another session that looks on.

use super::rules::{LevelWatches, LevelWatchesMistake};
use super::session::LevelWatchingSession;
use crate::worlds::level_logs::{GROUPS, HOME, LevelEntry, LevelLogs, LevelRule};
use crate::worlds::write_order::{Sight, WriteOrder, Writes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelWatchesStep {
    Make(usize),
    TakeItem(usize),
    LogEmpty(usize),
    Apply(usize),
    Get { znode: usize, watch: bool },
    HandWrite,
    ReplyLeaves,
    OwnReplyLeaves,
    EventLeaves(usize),
    Move { applied: [usize; GROUPS] },
    Observe { group: usize, home_applied: usize, applied: usize },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelWatchesState {
    pub(super) logs: LevelLogs<u8>,
    /// Entries that the member of the watching session has applied.
    pub(super) applied: [usize; GROUPS],
    pub(super) session: LevelWatchingSession,
    observer: Sight,
    observed: u8,
    pub(super) order: WriteOrder,
    /// The most events that one registration has had.
    pub(super) events_of_one: u8,
}

impl LevelWatchesState {
    pub(super) fn actions(&self, model: &LevelWatches, actions: &mut Vec<LevelWatchesStep>) {
        for change in 0..model.changes.len() {
            let is_handed = self.session.own.is_some_and(|own| own.change == change);
            let is_ready = model.own != Some(change) || is_handed;
            if is_ready && self.index_of(model, change).is_none() {
                actions.push(LevelWatchesStep::Make(change));
            }
        }
        for group in 0..GROUPS {
            if self.logs.next_item(group).is_some() {
                actions.push(LevelWatchesStep::TakeItem(group));
            }
            if self.logs.last_stamp(group) < self.awaited(model) {
                actions.push(LevelWatchesStep::LogEmpty(group));
            }
            if self.applied[group] < self.logs.len(group) {
                actions.push(LevelWatchesStep::Apply(group));
            }
            if self.observed < model.observer_reads && model.changes_of(group) != 0 {
                self.observations(group, actions);
            }
        }
        self.session_actions(model, actions);
    }

    fn observations(&self, group: usize, actions: &mut Vec<LevelWatchesStep>) {
        let home = if group == HOME { 0 } else { self.logs.len(HOME) };
        for home_applied in 0..=home {
            let applied = 0..=self.logs.len(group);
            actions.extend(applied.map(|applied| LevelWatchesStep::Observe { group, home_applied, applied }));
        }
    }

    pub(super) fn step(&mut self, model: &LevelWatches, action: LevelWatchesStep) -> Option<()> {
        match action {
            LevelWatchesStep::Make(change) => self.make(model, change),
            LevelWatchesStep::TakeItem(group) => {
                let before = self.logged(model, group);
                let (place, _) = self.logs.next_item(group)?;
                let spare = u8::from(!model.is(LevelWatchesMistake::NoSpareStamp));
                let change = self.logs.take_item(group, place + spare - 1)?;
                self.order.put_before(before, 1 << change);
                Some(())
            }
            LevelWatchesStep::LogEmpty(group) => {
                // The member has applied up to a place in the log, so an empty entry that is there stays.
                let awaited = self.awaited(model);
                self.logs.logs[group].push((awaited, LevelEntry::Empty));
                Some(())
            }
            LevelWatchesStep::Apply(group) => {
                self.applied[group] += 1;
                self.fire(model, group, self.applied[group] - 1, 0);
                Some(())
            }
            LevelWatchesStep::Observe { group, home_applied, applied } => {
                self.observe(model, group, home_applied, applied)
            }
            session => self.session_step(model, session),
        }
    }

    fn make(&mut self, model: &LevelWatches, change: usize) -> Option<()> {
        let group = model.group_of(change);
        let is_own = model.own == Some(change);
        let mut before = self.logged(model, group);
        let mut least = 0;
        if let Some(after) = model.changes[change].after {
            // Its writer was shown that change, and its member waits for the decisions up to there.
            let index = self.index_of(model, after)?;
            let stamp = self.logs.logs[model.group_of(after)][index].0;
            let is_elsewhere = model.group_of(after) != group;
            if is_elsewhere {
                if self.logs.newest_settled(LevelRule::Right, group) < stamp {
                    return None;
                }
                least = stamp;
            }
            before |= 1 << after;
        }
        if is_own {
            before |= self.session.seen;
            least = least.max(self.session.own.as_ref()?.shown);
        }
        self.order.put_before(before, 1 << change);
        if model.changes[change].is_decision {
            let spare = !model.is(LevelWatchesMistake::NoSpareStamp);
            self.logs.decide(change as u8, model.groups_of(change), least, spare);
        } else {
            self.logs.append(group, least, LevelEntry::Command(change as u8));
        }
        if is_own {
            self.session.own.as_mut()?.index = Some(self.logs.len(group) - 1);
        }
        Some(())
    }

    pub(super) fn settled(&self, group: usize) -> u8 {
        self.logs.settled(LevelRule::Right, group, self.applied[HOME], self.applied[group])
    }

    pub(super) fn level(&self, group: usize) -> u8 {
        self.logs.level(LevelRule::Right, group, self.applied[HOME], self.applied[group])
    }

    /// The change of an entry, if it is to the znode of this group.
    pub(super) fn change_at(&self, model: &LevelWatches, group: usize, index: usize) -> Option<u8> {
        let change = match self.logs.logs[group][index].1 {
            LevelEntry::Empty => return None,
            LevelEntry::Command(change) => change,
            LevelEntry::Decision { content, .. } | LevelEntry::Item { content, .. } => content,
        };
        model.changes[change as usize].znodes.contains(&group).then_some(change)
    }

    /// The changes that show in the first entries of a group, and the largest stamp of them.
    pub(super) fn shown(&self, model: &LevelWatches, group: usize, applied: usize) -> (Writes, u8) {
        let mut shown = (0, 0);
        for index in 0..applied {
            if let Some(change) = self.change_at(model, group, index) {
                shown = (shown.0 | 1 << change, self.logs.logs[group][index].0);
            }
        }
        shown
    }

    /// All that stands in a group's log, home's decisions for other groups included.
    fn logged(&self, model: &LevelWatches, group: usize) -> Writes {
        let decided = self.logs.logs[group].iter().filter_map(|(_, entry)| match entry {
            LevelEntry::Decision { content, .. } => Some(1 << content),
            _ => None,
        });
        decided.fold(self.shown(model, group, self.logs.len(group)).0, |all, one| all | one)
    }

    fn index_of(&self, model: &LevelWatches, change: usize) -> Option<usize> {
        let is_it = |entry: &(u8, LevelEntry<u8>)| match entry.1 {
            LevelEntry::Command(content) | LevelEntry::Decision { content, .. } => content as usize == change,
            _ => false,
        };
        self.logs.logs[model.group_of(change)].iter().position(is_it)
    }

    /// Fires the watch on the znode of an entry that the member has applied, if its stamp is above `since`.
    pub(super) fn fire(&mut self, model: &LevelWatches, group: usize, index: usize, since: u8) {
        if self.change_at(model, group, index).is_some() && self.logs.logs[group][index].0 > since {
            self.session.fire(model, group, index);
        }
    }

    /// The largest stamp that anything waits for.
    fn awaited(&self, model: &LevelWatches) -> u8 {
        let session = &self.session;
        let answer = session.answer.iter().map(|answer| answer.shows);
        let events = session.events.iter().map(|event| self.turn(model, event).0.0);
        let entries = self.logs.logs.iter().flatten();
        // The stamp of an own write whose reply waits is one of those of the logs.
        let own = entries.map(|entry| entry.0).filter(|_| session.own.is_some());
        let observer = self.observer.stamps.into_iter();
        answer.chain(events).chain(own).chain(observer).chain([session.largest()]).max().unwrap_or(0)
    }

    fn observe(
        &mut self,
        model: &LevelWatches,
        group: usize,
        home_applied: usize,
        applied: usize,
    ) -> Option<()> {
        let (changes, stamp) = self.shown(model, group, applied);
        let level = self.logs.level(LevelRule::Right, group, home_applied, applied);
        if level < self.observer.elsewhere(group) || stamp < self.observer.here(group) {
            return None;
        }
        self.observer.writes |= changes;
        self.observer.stamps[group] = stamp;
        self.observed += 1;
        self.order.sees(self.observer.writes, model.changes_of(group) & !changes);
        Some(())
    }

    /// True if a change was made that the client watches and is not told.
    pub(super) fn owes_event(&self, model: &LevelWatches) -> bool {
        let made = (0..GROUPS).fold(0, |all, group| all | self.shown(model, group, self.logs.len(group)).0);
        self.session.watches.iter().any(|watch| watch.untold(model) & made != 0)
    }

    pub(super) fn is_answered(&self, model: &LevelWatches) -> bool {
        let session = &self.session;
        let is_quiet = session.answer.is_none() && session.own.is_none() && session.events.is_empty();
        session.requests == model.requests && is_quiet && session.has_written == model.own.is_some()
    }
}
