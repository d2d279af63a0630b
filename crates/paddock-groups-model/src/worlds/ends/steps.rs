//! The steps of an end, of groups that are away, and of the sessions.

use super::rules::{END, Ends, EndsMistake, GROUPS, HOME, OTHER, READERS, WRITE};
use super::state::{EndsEntry, EndsState, EndsStep};
use crate::worlds::write_order::{Sight, Writes};

impl Ends {
    /// Appends to the streams of the attached groups. Home's own item takes effect with the entry that decided it.
    fn send(&self, state: &mut EndsState, floor: u8, item: EndsEntry) {
        state.logs[HOME].append(floor, if self.attached.contains(&HOME) { item } else { EndsEntry::Empty });
        for &group in self.attached.iter().filter(|&&group| group != HOME) {
            state.streams[group].push(item);
        }
    }

    fn fenced(&self, state: &EndsState) -> bool {
        self.attached.iter().all(|&group| state.logged(group, EndsEntry::Fence))
    }

    fn staged(&self, state: &EndsState) -> bool {
        self.attached.iter().all(|&group| {
            state.logged(group, EndsEntry::Stage(state.attempt))
                || self.is(EndsMistake::DecidedWithoutAbsent) && state.away == Some(group)
        })
    }

    fn write_arrives(&self, state: &mut EndsState) {
        let group = self.write_to;
        state.write_arrived = true;
        let refused = state.released(group, state.logs[group].len())
            || state.logged(group, EndsEntry::Fence) && !self.is(EndsMistake::FenceLetsWritesPass);
        if refused {
            return;
        }
        let (before, _) = self.shown(state, group, state.logs[group].len());
        state.order.put_before(before, WRITE);
        state.logs[group].append(0, EndsEntry::Write);
        // A session that sees the end has to see every write of the session that ever takes effect.
        state.order.put_before(WRITE, END);
        state.wrote_after_told |= state.told;
    }

    /// The writes that show in the first entries of a group, and the largest stamp of them.
    fn shown(&self, state: &EndsState, group: usize, applied: usize) -> (Writes, u8) {
        let mut shown = (0, 0);
        for (stamp, entry) in &state.logs[group].entries[..applied] {
            let write = match entry {
                EndsEntry::Write => WRITE,
                EndsEntry::Other => OTHER,
                EndsEntry::Release(_) => END,
                _ => continue,
            };
            shown = (shown.0 | write, *stamp);
        }
        shown
    }

    /// The writes that this group has or will have.
    fn writes_of(&self, group: usize) -> Writes {
        let write = if self.write_to == group { WRITE } else { 0 };
        let end = if self.attached.contains(&group) { END } else { 0 };
        let other = if self.other_to == group { OTHER } else { 0 };
        write | end | other
    }

    fn read(&self, state: &mut EndsState, reader: usize, group: usize, applied: usize) -> Option<()> {
        let log = &state.logs[group];
        let (writes, shown) = self.shown(state, group, applied);
        let (sight, reads) = &mut state.readers[reader];
        let at = if self.is(EndsMistake::AtPastStagedPart) {
            log.entries[..applied].last().map_or(0, |entry| entry.0)
        } else {
            log.at(applied)
        };
        let waits = at < sight.elsewhere(group) && !self.is(EndsMistake::ReadDoesNotWait);
        if waits || shown < sight.here(group) {
            return None;
        }
        sight.writes |= writes;
        sight.stamps[group] = shown;
        *reads += 1;
        let seen = sight.writes;
        state.order.sees(seen, self.writes_of(group) & !writes);
        Some(())
    }

    fn reader_writes(&self, state: &mut EndsState) -> Option<()> {
        let group = self.other_to;
        let log = &state.logs[group];
        let (sight, _) = state.readers[0];
        let is_parked = log.open_parts(log.len()).any(|(stamp, _)| stamp < sight.elsewhere(group));
        if is_parked && !self.is(EndsMistake::WriteNotGated) {
            return None;
        }
        let (before, _) = self.shown(state, group, log.len());
        state.has_written = true;
        state.order.put_before(before | sight.writes, OTHER);
        let seen = before | sight.writes | OTHER;
        state.order.sees(seen, self.writes_of(group) & !seen);
        let floor = sight.stamps.into_iter().max().unwrap_or(0);
        let stamp = state.logs[group].append(floor, EndsEntry::Other);
        state.readers[0].0 = Sight { writes: seen, ..sight };
        state.readers[0].0.stamps[group] = stamp;
        Some(())
    }

    pub(super) fn step(&self, state: &mut EndsState, action: EndsStep) -> Option<()> {
        match action {
            EndsStep::WriteArrives => self.write_arrives(state),
            EndsStep::TimeOut => {
                state.timed_out = true;
                let item =
                    if self.is(EndsMistake::NotStaged) { EndsEntry::Release(0) } else { EndsEntry::Fence };
                self.send(state, 0, item);
                state.settled = self.is(EndsMistake::NotStaged);
            }
            EndsStep::TakeItem { group, busy } => {
                let item = *state.streams[group].get(state.taken[group] as usize)?;
                let entry = match item {
                    EndsEntry::Stage(attempt) if busy => EndsEntry::Busy(attempt),
                    _ if busy => return None,
                    item => item,
                };
                // A release comes with a stamp above all that was staged: home knew those stamps when it decided.
                let floor =
                    if matches!(entry, EndsEntry::Release(_)) { self.stamp_of_decision(state) } else { 0 };
                if matches!(entry, EndsEntry::Release(_)) {
                    let (before, _) = self.shown(state, group, state.logs[group].len());
                    state.order.put_before(before & !END, END);
                }
                state.logs[group].append(floor, entry);
                state.taken[group] += 1;
            }
            EndsStep::StartStaging => {
                state.attempt += 1;
                let item = EndsEntry::Stage(state.attempt);
                self.send(state, 0, item);
            }
            EndsStep::Decide => {
                let floor = self.stamp_of_decision(state);
                let item = EndsEntry::Release(state.attempt);
                self.send(state, floor, item);
                state.settled = true;
            }
            EndsStep::GiveUp => {
                let item = EndsEntry::GiveUp(state.attempt);
                self.send(state, 0, item);
                state.settled = self.is(EndsMistake::BusyIsFinal);
            }
            EndsStep::LoseQuorum(group) => {
                state.away = Some(group);
                state.was_away = true;
            }
            EndsStep::RegainQuorum => state.away = None,
            EndsStep::LogEmpty(group) => {
                let newest = state.newest_stamp();
                if state.logs[group].last_stamp() >= newest {
                    return None;
                }
                state.logs[group].append_empty(newest, EndsEntry::Empty);
            }
            EndsStep::Read { reader, group, applied } => self.read(state, reader, group, applied)?,
            EndsStep::ReaderWrites => self.reader_writes(state)?,
            EndsStep::TellExpired => state.told = true,
            EndsStep::LockAgain(group) => {
                state.found_own_lock |= !state.released(group, state.logs[group].len())
            }
        }
        Some(())
    }

    /// The largest stamp with which a part of this attempt was staged.
    fn stamp_of_decision(&self, state: &EndsState) -> u8 {
        let staged = state.logs.iter().flat_map(|log| &log.entries);
        staged
            .filter(|(_, entry)| *entry == EndsEntry::Stage(state.attempt))
            .map(|entry| entry.0)
            .max()
            .unwrap_or(0)
    }

    pub(super) fn has_ended(&self, state: &EndsState) -> bool {
        let open =
            (0..GROUPS).any(|group| state.logs[group].open_parts(state.logs[group].len()).next().is_some());
        state.released_everywhere(&self.attached) && !open
    }

    pub(super) fn steps_of_end(&self, state: &EndsState, actions: &mut Vec<EndsStep>) {
        let is_open = state.attempt > 0
            && !state.logged(HOME, EndsEntry::GiveUp(state.attempt))
            && !state.streams.iter().flatten().any(|item| *item == EndsEntry::GiveUp(state.attempt));
        if !state.write_arrived && state.away != Some(self.write_to) {
            actions.push(EndsStep::WriteArrives);
        }
        if !state.timed_out {
            actions.push(EndsStep::TimeOut);
        }
        for group in (1..GROUPS).filter(|&group| state.away != Some(group)) {
            if (state.taken[group] as usize) < state.streams[group].len() {
                actions.push(EndsStep::TakeItem { group, busy: false });
                if state.attempt == 1 {
                    actions.push(EndsStep::TakeItem { group, busy: true });
                }
            }
        }
        let may_stage =
            state.timed_out && !state.settled && (self.fenced(state) || self.is(EndsMistake::Unfenced));
        let all_heard = state.away.is_none() || self.is(EndsMistake::Unfenced);
        if may_stage && !is_open && all_heard {
            actions.push(EndsStep::StartStaging);
        }
        if is_open && !state.settled {
            if self.staged(state) {
                actions.push(EndsStep::Decide);
            }
            if state.attempt == 1 {
                actions.push(EndsStep::GiveUp);
            }
        }
        match state.away {
            Some(_) => actions.push(EndsStep::RegainQuorum),
            None if self.outage && !state.was_away => {
                actions.extend(
                    self.attached
                        .iter()
                        .filter(|&&group| group != HOME)
                        .map(|&group| EndsStep::LoseQuorum(group)),
                );
            }
            None => {}
        }
    }

    pub(super) fn steps_of_sessions(&self, state: &EndsState, actions: &mut Vec<EndsStep>) {
        let may_tell = match self.mistake {
            Some(EndsMistake::ToldAtTimeout) => state.timed_out,
            Some(EndsMistake::ToldWhenFenced) => state.timed_out && self.fenced(state),
            _ => state.released_everywhere(&self.attached),
        };
        if may_tell && !state.told {
            actions.push(EndsStep::TellExpired);
        }
        if state.told && !state.found_own_lock {
            actions.extend(self.attached.iter().map(|&group| EndsStep::LockAgain(group)));
        }
        let groups = (0..GROUPS).filter(|group| self.attached.contains(group) || self.write_to == *group);
        for group in groups {
            let log = &state.logs[group];
            // An idle group that is asked logs an empty entry for a reader that waits.
            let asks = |reader: &(Sight, u8)| log.at(log.len()) < reader.0.elsewhere(group);
            if state.away != Some(group) && state.readers.iter().any(asks) {
                actions.push(EndsStep::LogEmpty(group));
            }
            for reader in (0..READERS).filter(|&reader| state.readers[reader].1 < self.reads[reader]) {
                actions.extend((0..=log.len()).map(|applied| EndsStep::Read { reader, group, applied }));
            }
        }
        if !state.has_written && state.away != Some(self.other_to) {
            actions.push(EndsStep::ReaderWrites);
        }
    }
}
