//! The groups' logs, the member that serves the watching session, and another session that looks on.

use super::rules::{GROUPS, Watches, WatchesMistake};
use super::session::{WaitingReply, WatchingSession};
use crate::worlds::stamped_log::{PartEffect, StampedEntry, StampedLog};
use crate::worlds::write_order::{Sight, WriteOrder, Writes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WatchesEntry {
    Empty,
    Write(u8),
    Stage(u8),
    /// The part of a multi that was staged, with the stamp of home's decision.
    Release {
        write: u8,
        decided: u8,
    },
}

impl StampedEntry for WatchesEntry {
    fn staging(&self) -> PartEffect {
        match self {
            WatchesEntry::Stage(write) => PartEffect::Stages(*write),
            WatchesEntry::Release { write, .. } => PartEffect::Ends(*write),
            _ => PartEffect::None,
        }
    }

    fn decided_at(&self) -> Option<u8> {
        match self {
            WatchesEntry::Release { decided, .. } => Some(*decided),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        *self == WatchesEntry::Empty
    }
}

impl WatchesEntry {
    /// The write that shows from this entry on.
    pub(super) fn shows(self) -> Option<u8> {
        match self {
            WatchesEntry::Write(write) | WatchesEntry::Release { write, .. } => Some(write),
            WatchesEntry::Empty | WatchesEntry::Stage(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchesStep {
    Log(usize),
    Stage { write: usize, group: usize },
    Release { write: usize, group: usize },
    LogEmpty(usize),
    Apply(usize),
    Get { group: usize, watch: bool },
    List,
    ReplyLeaves,
    EventLeaves(usize),
    Move { applied: [usize; GROUPS] },
    Observe { group: usize, applied: usize },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WatchesState {
    pub(super) logs: [StampedLog<WatchesEntry>; GROUPS],
    /// Entries that the member of the watching session has applied.
    pub(super) applied: [usize; GROUPS],
    pub(super) session: WatchingSession,
    observer: Sight,
    observed: u8,
    pub(super) order: WriteOrder,
    /// The most events that one registration has had.
    pub(super) events_of_one: u8,
}

impl WatchesState {
    pub(super) fn actions(&self, model: &Watches, actions: &mut Vec<WatchesStep>) {
        for (write, change) in model.changes.iter().enumerate() {
            let is_ready = change.after.is_none_or(|before| self.stamp_of(before).is_some());
            let (first, second) = change.groups;
            for group in [first, second].into_iter().filter(|_| first != second) {
                if !self.has(group, WatchesEntry::Stage(write as u8)) {
                    actions.push(WatchesStep::Stage { write, group });
                } else if !self.logs[group].entries.iter().any(|(_, entry)| entry.decided_at().is_some()) {
                    actions.push(WatchesStep::Release { write, group });
                }
            }
            let is_own = model.own == Some(write);
            let is_free = !is_own || self.session.reply.is_none();
            if first == second && is_ready && is_free && !self.has(first, WatchesEntry::Write(write as u8)) {
                actions.push(WatchesStep::Log(write));
            }
        }
        for group in 0..GROUPS {
            let log = &self.logs[group];
            if log.at(log.len()) < self.awaited() {
                actions.push(WatchesStep::LogEmpty(group));
            }
            if self.applied[group] < log.len() {
                actions.push(WatchesStep::Apply(group));
            }
            if self.observed < model.observer_reads {
                actions.extend((0..=log.len()).map(|applied| WatchesStep::Observe { group, applied }));
            }
        }
        self.session_actions(model, actions);
    }

    pub(super) fn step(&mut self, model: &Watches, action: WatchesStep) -> Option<()> {
        match action {
            WatchesStep::Log(write) => self.log(model, write),
            WatchesStep::Stage { write, group } => {
                self.logs[group].append(0, WatchesEntry::Stage(write as u8));
                Some(())
            }
            WatchesStep::Release { write, group } => self.release(write, group),
            WatchesStep::LogEmpty(group) => {
                let newest = self.logs.iter().map(StampedLog::last_stamp).max()?;
                // The member has applied up to a place in the log, so what is there stays.
                (self.logs[group].last_stamp() < newest)
                    .then(|| self.logs[group].entries.push((newest, WatchesEntry::Empty)))
            }
            WatchesStep::Apply(group) => {
                self.applied[group] += 1;
                self.fire(model, group, self.applied[group] - 1);
                Some(())
            }
            WatchesStep::Observe { group, applied } => self.observe(model, group, applied),
            session => self.session_step(model, session),
        }
    }

    pub(super) fn last_applied(&self, group: usize) -> u8 {
        self.logs[group].entries[..self.applied[group]].last().map_or(0, |entry| entry.0)
    }

    pub(super) fn at(&self, model: &Watches, group: usize) -> u8 {
        let log = &self.logs[group];
        if model.is(WatchesMistake::AtPastStagedPart) {
            return self.last_applied(group);
        }
        log.at(self.applied[group])
    }

    /// The writes that show in the first entries of a group with stamps up to `most`, and the largest stamp of them.
    pub(super) fn shown(&self, group: usize, applied: usize, most: u8) -> (Writes, u8) {
        let entries = self.logs[group].entries[..applied].iter().filter(|(stamp, _)| *stamp <= most);
        let shown = entries.filter_map(|(stamp, entry)| entry.shows().map(|write| (*stamp, write)));
        shown.fold((0, 0), |(writes, largest), (stamp, write)| (writes | 1 << write, u8::max(largest, stamp)))
    }

    /// The largest stamp that a reply, an event or a read may wait for.
    fn awaited(&self) -> u8 {
        let reply = self.session.reply.iter().map(|reply| reply.stamp);
        let events = self.session.events.iter().map(|event| event.stamp);
        let observer = self.observer.stamps.into_iter().max();
        reply.chain(events).chain(observer).chain([self.session.largest_seen()]).max().unwrap_or(0)
    }

    fn has(&self, group: usize, entry: WatchesEntry) -> bool {
        self.logs[group].entries.iter().any(|logged| logged.1 == entry)
    }

    fn stamp_of(&self, write: usize) -> Option<u8> {
        let entries = self.logs.iter().flat_map(|log| &log.entries);
        entries.filter(|(_, entry)| entry.shows() == Some(write as u8)).map(|entry| entry.0).max()
    }

    fn log(&mut self, model: &Watches, write: usize) -> Option<()> {
        let change = model.changes[write];
        let group = change.groups.0;
        let (before, _) = self.shown(group, self.logs[group].len(), u8::MAX);
        let after = change.after.map_or(0, |after| 1 << after);
        self.order.put_before(before | after, 1 << write);
        let mut floor = change.after.and_then(|after| self.stamp_of(after)).unwrap_or(0);
        let is_own = model.own == Some(write);
        if is_own {
            self.order.put_before(self.session.seen, 1 << write);
            floor = self.session.largest_seen();
        }
        let stamp = self.logs[group].append(floor, WatchesEntry::Write(write as u8));
        if is_own {
            let mut here = [0; GROUPS];
            here[group] = stamp;
            let reply = WaitingReply {
                writes: 1 << write,
                lacking: 0,
                stamp,
                here,
                read_at: stamp,
                watch: None,
                is_ack: true,
            };
            self.session.reply = Some(reply);
        }
        Some(())
    }

    fn release(&mut self, write: usize, group: usize) -> Option<()> {
        let staged: Vec<u8> = self
            .logs
            .iter()
            .flat_map(|log| &log.entries)
            .filter(|(_, entry)| *entry == WatchesEntry::Stage(write as u8))
            .map(|entry| entry.0)
            .collect();
        if staged.len() < GROUPS {
            return None;
        }
        let (before, _) = self.shown(group, self.logs[group].len(), u8::MAX);
        self.order.put_before(before, 1 << write);
        // Home logs the decision above all parts, and each group releases above the decision.
        let decided = staged.into_iter().max()? + 1;
        self.logs[group].append(decided, WatchesEntry::Release { write: write as u8, decided });
        Some(())
    }

    fn observe(&mut self, model: &Watches, group: usize, applied: usize) -> Option<()> {
        let (writes, stamp) = self.shown(group, applied, u8::MAX);
        if self.logs[group].at(applied) < self.observer.elsewhere(group) || stamp < self.observer.here(group)
        {
            return None;
        }
        self.observer.writes |= writes;
        self.observer.stamps[group] = stamp;
        self.observed += 1;
        self.order.sees(self.observer.writes, model.writes_of(group) & !writes);
        Some(())
    }

    /// True if a change was made that the client watches and is not told.
    pub(super) fn owes_event(&self, model: &Watches) -> bool {
        let made =
            (0..GROUPS).fold(0, |all, group| all | self.shown(group, self.logs[group].len(), u8::MAX).0);
        self.session.watches.iter().any(|watch| watch.unseen(model) & made != 0)
    }

    pub(super) fn is_answered(&self, model: &Watches) -> bool {
        self.session.requests == model.requests
            && self.session.reply.is_none()
            && self.session.events.is_empty()
    }
}
