//! Each step: of home and the groups, and of the sessions.

use super::rules::{Levels, LevelsMistake, LevelsRequest, SESSIONS};
use super::state::{LevelsState, LevelsStep};
use crate::worlds::level_logs::{GROUPS, HOME, LevelEntry};

impl LevelsState {
    pub(super) fn actions(&self, model: &Levels, actions: &mut Vec<LevelsStep>) {
        let decisions = (0..model.changes.len()).filter(|&change| model.is_homes_own(change));
        actions.extend(decisions.filter(|&change| !self.is_decided(change)).map(LevelsStep::Decide));
        for group in 0..GROUPS {
            if self.logs.next_item(group).is_some() {
                actions.push(LevelsStep::TakeItem(group));
            }
            if self.asked(model, group) > self.logs.last_stamp(group) {
                actions.push(LevelsStep::LogEmpty(group));
            }
        }
        for session in 0..SESSIONS {
            let Some(request) = self.request(model, session) else { continue };
            if self.sessions[session].moves < model.moves {
                actions.push(LevelsStep::Move(session));
            }
            match request {
                LevelsRequest::Read(znode) => self.reads(model, session, znode, actions),
                LevelsRequest::Look => {
                    (0..model.znodes.len()).for_each(|znode| self.reads(model, session, znode, actions));
                }
                LevelsRequest::Write(_) => actions.push(LevelsStep::Write(session)),
                LevelsRequest::Sync if self.sessions[session].sync.is_none() => {
                    actions.push(LevelsStep::StartSync(session));
                }
                LevelsRequest::Sync => actions.push(LevelsStep::EndSync(session)),
            }
        }
    }

    fn reads(&self, model: &Levels, session: usize, znode: usize, actions: &mut Vec<LevelsStep>) {
        let group = model.znodes[znode];
        let home = if group == HOME { 0..=0 } else { 0..=self.logs.len(HOME) };
        for home_applied in home {
            actions.extend((0..=self.logs.len(group)).map(|applied| LevelsStep::Read {
                session,
                znode,
                home_applied,
                applied,
            }));
        }
    }

    /// The largest stamp that a request waits for in this group.
    fn asked(&self, model: &Levels, group: usize) -> u8 {
        let nothing = if group == HOME {
            model.is(LevelsMistake::NoEmptyEntriesAtHome)
        } else {
            model.is(LevelsMistake::NoEmptyEntries)
        };
        let asks = (0..SESSIONS).filter(|&session| !nothing && self.request(model, session).is_some());
        // A request in a group asks home as well.
        let looks = |session: usize, at: usize| match self.request(model, session) {
            Some(LevelsRequest::Look) => true,
            Some(LevelsRequest::Read(znode)) => model.znodes[znode] == at,
            Some(LevelsRequest::Write(change)) => model.group_of(change) == at,
            _ => false,
        };
        let awaited = |session: usize| {
            let at = (0..GROUPS).filter(|&at| looks(session, at) && (at == group || group == HOME));
            at.map(|at| self.sessions[session].awaited(model, at)).max().unwrap_or(0)
        };
        asks.map(awaited).max().unwrap_or(0)
    }

    pub(super) fn step(&mut self, model: &Levels, action: LevelsStep) -> Option<()> {
        match action {
            LevelsStep::Decide(change) => {
                let before = self.logged(model, HOME);
                self.order.put_before(before, 1 << change);
                self.append(model, change, 0);
                Some(())
            }
            LevelsStep::TakeItem(group) => {
                let before = self.logged(model, group);
                let (place, _) = self.logs.next_item(group)?;
                let least = if model.is(LevelsMistake::ItemStampedBelow) { 0 } else { place - 1 };
                let change = self.logs.take_item(group, least.max(model.clocks[group]))?;
                self.order.put_before(before, 1 << change);
                Some(())
            }
            LevelsStep::LogEmpty(group) => {
                let asked = self.asked(model, group);
                self.logs.append_empty(group, asked.max(model.clocks[group] + 1));
                Some(())
            }
            LevelsStep::Read { session, znode, home_applied, applied } => {
                self.read(model, session, znode, home_applied, applied)
            }
            LevelsStep::Write(session) => self.write(model, session),
            LevelsStep::StartSync(session) => {
                let groups = if model.is(LevelsMistake::SyncOfOneGroup) { 1..2 } else { 0..GROUPS };
                let newest = groups.map(|group| self.logs.last_stamp(group)).max()?;
                self.sessions[session].sync = Some((self.told(), newest));
                Some(())
            }
            LevelsStep::EndSync(session) => {
                let session = &mut self.sessions[session];
                let (told, newest) = session.sync.take()?;
                session.seen |= told;
                session.claimed = session.claimed.max(newest);
                session.next += 1;
                Some(())
            }
            LevelsStep::Move(session) => {
                let session = &mut self.sessions[session];
                session.moves += 1;
                let claimed = session.largest();
                session.stamps = [0; GROUPS];
                session.shown = [0; GROUPS];
                if model.is(LevelsMistake::ClaimIsOwn) {
                    session.stamps[session.last_group as usize] = claimed;
                } else {
                    session.claimed = claimed;
                }
                Some(())
            }
        }
    }

    fn read(
        &mut self,
        model: &Levels,
        session: usize,
        znode: usize,
        home_applied: usize,
        applied: usize,
    ) -> Option<()> {
        let group = model.znodes[znode];
        let found = self.znode(model, znode, applied);
        let level = self.logs.level(model.rule(), group, home_applied, applied);
        let reader = &mut self.sessions[session];
        let waits = level < reader.awaited(model, group) && !model.is(LevelsMistake::ReadDoesNotWait);
        let lacks_own =
            applied < reader.shown[group] as usize && !model.is(LevelsMistake::OwnGroupNotApplied);
        if waits || lacks_own {
            return None;
        }
        reader.seen |= found.changes;
        reader.is_shown(group, found.stamp, found.applied);
        reader.next += 1;
        let seen = reader.seen;
        self.order.sees(seen, model.changes_of(znode) & !found.changes);
        Some(())
    }

    /// A write is handed to its group when no decision is lacking up to what the session was shown elsewhere, and is stamped above that.
    fn write(&mut self, model: &Levels, session: usize) -> Option<()> {
        let Some(LevelsRequest::Write(change)) = self.request(model, session) else { return None };
        let group = model.group_of(change);
        let settled = self.logs.newest_settled(model.rule(), group);
        let awaited = self.sessions[session].awaited(model, group);
        if settled < awaited && !model.is(LevelsMistake::WriteDoesNotWait) {
            return None;
        }
        let before = self.logged(model, group) | self.sessions[session].seen;
        self.order.put_before(before, 1 << change);
        let least = if model.is(LevelsMistake::WriteStampedByLog) { 0 } else { awaited };
        let stamp = self.append(model, change, least);
        // The answer is that of the znode as the write leaves it.
        let applied = self.logs.len(group);
        let znode = model.changes[change].znodes[0];
        let (found, all) = match model.changes[change].is_decision {
            true => (1 << change, 1 << change),
            false => (self.znode(model, znode, applied).changes, model.changes_of(znode)),
        };
        let writer = &mut self.sessions[session];
        writer.seen |= found;
        writer.is_shown(group, stamp, applied);
        writer.next += 1;
        let seen = writer.seen;
        self.order.sees(seen, all & !found);
        Some(())
    }

    /// Logs a change above a stamp.
    fn append(&mut self, model: &Levels, change: usize, least: u8) -> u8 {
        let group = model.group_of(change);
        let content = change as u8;
        let floor = model.clocks[group].max(least);
        match model.changes[change].is_decision {
            true => self.logs.decide(content, model.groups_of(change), floor, false),
            false => self.logs.append(group, floor, LevelEntry::Command(content)),
        }
    }
}
