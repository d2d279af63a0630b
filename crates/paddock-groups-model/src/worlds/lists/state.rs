//! The groups' logs and home's decisions, and what each session has seen.

use super::rules::{Lists, ListsMistake};
use crate::worlds::stamped_log::{PartEffect, StampedEntry, StampedLog};
use crate::worlds::write_order::{Sight, WriteOrder, Writes};

/// Two groups of children, and home, which has the split point itself.
const GROUPS: usize = 3;
const HOME: usize = 2;
const SESSIONS: usize = 2;
const CHANGES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListsEntry {
    Empty,
    Write(u8),
    Stage(u8),
    /// The part of this change, with the stamp of home's decision.
    Release {
        change: u8,
        decided: u8,
    },
}

impl StampedEntry for ListsEntry {
    fn staging(&self) -> PartEffect {
        match self {
            ListsEntry::Stage(change) => PartEffect::Stages(*change),
            ListsEntry::Release { change, .. } => PartEffect::Ends(*change),
            _ => PartEffect::None,
        }
    }

    fn decided_at(&self) -> Option<u8> {
        match self {
            ListsEntry::Release { decided, .. } => Some(*decided),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        *self == ListsEntry::Empty
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListsStep {
    Log(usize),
    Stage { change: usize, group: usize },
    Decide(usize),
    Release(usize),
    LogEmpty(usize),
    Read { session: usize, group: usize, applied: usize },
    List { session: usize, applied: [usize; GROUPS] },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ListsState {
    logs: [StampedLog<ListsEntry>; GROUPS],
    /// Home's decisions in order, with their stamps, and how many of them each group has released.
    decisions: Vec<(u8, u8)>,
    released: [u8; GROUPS],
    sights: [Sight; SESSIONS],
    looks: [u8; SESSIONS],
    pub(super) order: WriteOrder,
}

impl ListsState {
    pub(super) fn actions(&self, model: &Lists, actions: &mut Vec<ListsStep>) {
        for (change, first) in model.changes.iter().map(|change| change.parts[0]).enumerate() {
            if model.changes[change].parts.len() == 1 {
                if !self.logged(first.0, ListsEntry::Write(first.1)) {
                    actions.push(ListsStep::Log(change));
                }
                continue;
            }
            let staged = (0..HOME).filter(|&group| self.logged(group, ListsEntry::Stage(change as u8)));
            if staged.count() == HOME && self.decision_of(change).is_none() {
                actions.push(ListsStep::Decide(change));
            }
            let unstaged = (0..HOME).filter(|&group| !self.logged(group, ListsEntry::Stage(change as u8)));
            actions.extend(unstaged.map(|group| ListsStep::Stage { change, group }));
        }
        for group in 0..model.groups {
            if group != HOME && (self.released[group] as usize) < self.decisions.len() {
                actions.push(ListsStep::Release(group));
            }
            let newest = self.logs.iter().map(StampedLog::last_stamp).max().unwrap_or(0);
            if self.logs[group].last_stamp() < newest {
                actions.push(ListsStep::LogEmpty(group));
            }
        }
        for session in (0..model.looks.len()).filter(|&session| self.looks[session] < model.looks[session]) {
            for group in 0..model.groups {
                let all = 0..=self.logs[group].len();
                actions.extend(all.map(|applied| ListsStep::Read { session, group, applied }));
            }
            for first in 0..=self.logs[0].len() {
                for second in 0..=self.logs[1].len() {
                    let home = 0..=self.logs[HOME].len();
                    let at = |home| ListsStep::List { session, applied: [first, second, home] };
                    actions.extend(home.map(at));
                }
            }
        }
    }

    pub(super) fn step(&mut self, model: &Lists, action: ListsStep) -> Option<()> {
        match action {
            ListsStep::Log(change) => self.log(model, change)?,
            ListsStep::Stage { change, group } => {
                _ = self.logs[group].append(0, ListsEntry::Stage(change as u8))
            }
            ListsStep::Decide(change) => {
                // Home logs the decision above all parts and above its decisions before.
                let staged = self.logs.iter().flat_map(|log| &log.entries);
                let staged = staged
                    .filter(|(_, entry)| *entry == ListsEntry::Stage(change as u8))
                    .map(|entry| entry.0);
                let last = self.decisions.last().map_or(0, |decision| decision.0);
                self.decisions.push((staged.chain([last]).max()? + 1, change as u8));
            }
            ListsStep::Release(group) => {
                let (decided, change) = self.decisions[self.released[group] as usize];
                self.released[group] += 1;
                let before = self.shown(model, group, self.logs[group].len());
                for &(_, write) in model.changes[change as usize].parts.iter().filter(|part| part.0 == group)
                {
                    self.order.put_before(before & !(1 << write), 1 << write);
                }
                self.put_parts_in_order(model, change as usize);
                self.logs[group].append(decided, ListsEntry::Release { change, decided });
            }
            ListsStep::LogEmpty(group) => {
                let newest = self.logs.iter().map(StampedLog::last_stamp).max()?;
                self.logs[group].append_empty(newest, ListsEntry::Empty);
            }
            ListsStep::Read { session, group, applied } => self.read(model, session, group, applied)?,
            ListsStep::List { session, applied } => self.list(model, session, applied)?,
        }
        Some(())
    }

    fn logged(&self, group: usize, entry: ListsEntry) -> bool {
        self.logs[group].entries.iter().any(|logged| logged.1 == entry)
    }

    fn decision_of(&self, change: usize) -> Option<u8> {
        self.decisions.iter().find(|decision| decision.1 == change as u8).map(|decision| decision.0)
    }

    fn put_parts_in_order(&mut self, model: &Lists, change: usize) {
        for pair in model.changes[change].parts.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
            self.order.put_before(1 << pair[0].1, 1 << pair[1].1);
        }
    }

    /// The writes that an entry makes visible.
    fn shows(model: &Lists, group: usize, entry: ListsEntry) -> Writes {
        match entry {
            ListsEntry::Write(write) => 1 << write,
            ListsEntry::Release { change, .. } => {
                let parts = model.changes[change as usize].parts.iter().filter(|part| part.0 == group);
                parts.fold(0, |all, part| all | 1 << part.1)
            }
            ListsEntry::Empty | ListsEntry::Stage(_) => 0,
        }
    }

    fn shown(&self, model: &Lists, group: usize, applied: usize) -> Writes {
        self.logs[group].entries[..applied]
            .iter()
            .fold(0, |all, entry| all | Self::shows(model, group, entry.1))
    }

    fn writes_of(model: &Lists, group: usize) -> Writes {
        let parts = model.changes.iter().flat_map(|change| &change.parts);
        parts.filter(|part| part.0 == group).fold(0, |all, part| all | 1 << part.1)
    }

    fn all_writes(model: &Lists) -> Writes {
        (0..GROUPS).fold(0, |all, group| all | Self::writes_of(model, group))
    }

    /// Logs a write, behind the release of each part that is older than what its writer saw in the other group.
    fn log(&mut self, model: &Lists, change: usize) -> Option<()> {
        let (group, write) = model.changes[change].parts[0];
        let mut floor = 0;
        if let Some(after) = model.changes[change].after {
            let (other, seen) = model.changes[after].parts[0];
            let entry =
                self.logs[other].entries.iter().find(|(_, entry)| *entry == ListsEntry::Write(seen))?;
            floor = entry.0;
            let log = &self.logs[group];
            if other != group && log.open_parts(log.len()).any(|part| part.0 < floor) {
                return None;
            }
            self.order.put_before(1 << seen, 1 << write);
        }
        let before = self.shown(model, group, self.logs[group].len());
        self.order.put_before(before, 1 << write);
        self.logs[group].append(floor, ListsEntry::Write(write));
        Some(())
    }

    fn at(&self, model: &Lists, group: usize, applied: usize) -> u8 {
        let last = self.logs[group].entries[..applied].last().map_or(0, |entry| entry.0);
        if model.is(ListsMistake::AtPastStagedPart) { last } else { self.logs[group].at(applied) }
    }

    fn read(&mut self, model: &Lists, session: usize, group: usize, applied: usize) -> Option<()> {
        let shown = self.shown(model, group, applied);
        let stamp = self.stamp_shown(model, group, applied, u8::MAX);
        let sight = &self.sights[session];
        if self.at(model, group, applied) < sight.elsewhere(group) || stamp < sight.here(group) {
            return None;
        }
        self.look(session, shown, Self::writes_of(model, group) & !shown);
        self.sights[session].stamps[group] = stamp;
        Some(())
    }

    fn stamp_shown(&self, model: &Lists, group: usize, applied: usize, most: u8) -> u8 {
        let entries = self.logs[group].entries[..applied].iter();
        let shown = entries.filter(|(stamp, entry)| *stamp <= most && Self::shows(model, group, *entry) != 0);
        shown.map(|entry| entry.0).max().unwrap_or(0)
    }

    fn list(&mut self, model: &Lists, session: usize, applied: [usize; GROUPS]) -> Option<()> {
        let at: Vec<u8> = (0..model.groups).map(|group| self.at(model, group, applied[group])).collect();
        let seen = self.sights[session].stamps.into_iter().max()?;
        // The split point itself is shown as home's replica has it.
        let own = self.stamp_shown(model, HOME, applied[HOME], u8::MAX);
        let mut as_of = at.iter().copied().min()?;
        if !model.is(ListsMistake::BelowSeen) {
            as_of = as_of.max(seen);
        }
        if !model.is(ListsMistake::BelowOwnChange) {
            as_of = as_of.max(own);
        }
        if model.is(ListsMistake::CutByRaisedStamp) {
            as_of = self.raised(as_of);
        }
        if at.iter().any(|at| *at < as_of) {
            return None;
        }
        let mut shown = 0;
        for (group, log) in self.logs.iter().enumerate() {
            for (index, &(stamp, entry)) in log.entries[..applied[group]].iter().enumerate() {
                let is_in = match model.mistake {
                    _ if group == HOME => true,
                    Some(ListsMistake::NewestOfEach) => true,
                    Some(ListsMistake::CutByStamp | ListsMistake::CutByRaisedStamp) => stamp <= as_of,
                    _ => log.place(index) <= (as_of, false),
                };
                shown |= if is_in { Self::shows(model, group, entry) } else { 0 };
            }
        }
        let all = Self::all_writes(model);
        self.look(session, shown, all & !shown);
        if !model.is(ListsMistake::RevealsNothing) {
            let sight = &mut self.sights[session];
            // The session has seen in all groups that nothing else was there as of this stamp.
            sight.stamps = sight.stamps.map(|stamp| stamp.max(as_of));
        }
        Some(())
    }

    /// The smallest stamp from `as_of` on that has no decision with a part at or below it and another one above.
    fn raised(&self, as_of: u8) -> u8 {
        let mut raised = as_of;
        for _ in 0..CHANGES {
            for &(decided, _) in &self.decisions {
                let parts = self.logs.iter().flat_map(|log| &log.entries);
                let parts: Vec<u8> =
                    parts.filter(|part| part.1.decided_at() == Some(decided)).map(|part| part.0).collect();
                let is_cut = parts.iter().any(|part| *part <= raised);
                let last = if parts.len() < HOME { u8::MAX } else { parts.into_iter().max().unwrap_or(0) };
                raised = if is_cut { raised.max(last) } else { raised };
            }
        }
        raised
    }

    fn look(&mut self, session: usize, shown: Writes, lacking: Writes) {
        let sight = &mut self.sights[session];
        sight.writes |= shown;
        self.looks[session] += 1;
        self.order.sees(sight.writes, lacking);
    }

    pub(super) fn is_all_listed(&self, model: &Lists) -> bool {
        self.sights[0].writes == Self::all_writes(model)
    }
}
