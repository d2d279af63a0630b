//! Each step: of home, of the groups and of the sessions.

use super::rules::{LevelMultis, LevelMultisMistake, LevelMultisRequest};
use super::state::{LevelMultiPhase, LevelMultisContent, LevelMultisState, LevelMultisStep, LevelMultisVote};
use crate::worlds::level_logs::{GROUPS, HOME, LevelEntry, LevelRule};

impl LevelMultisState {
    pub(super) fn actions(&self, model: &LevelMultis, actions: &mut Vec<LevelMultisStep>) {
        for multi in 0..model.multis.len() {
            match self.multis[multi].0 {
                LevelMultiPhase::Asked => actions.push(LevelMultisStep::Prepare(multi)),
                LevelMultiPhase::Prepared => actions.push(LevelMultisStep::Settle(multi)),
                LevelMultiPhase::Committed | LevelMultiPhase::Failed => {}
            }
        }
        for group in 0..GROUPS {
            if self.logs.next_item(group).is_some() {
                actions.push(LevelMultisStep::TakeItem(group));
            }
            if self.logs.last_stamp(group) < self.awaited(model) {
                actions.push(LevelMultisStep::LogEmpty(group));
            }
        }
        for session in 0..model.programs.len() {
            let Some(request) = self.request(model, session) else { continue };
            match request {
                LevelMultisRequest::Multi(_) => actions.push(LevelMultisStep::Answer(session)),
                LevelMultisRequest::Write { .. } => actions.push(LevelMultisStep::Write(session)),
                LevelMultisRequest::Look => {
                    (0..GROUPS).for_each(|group| self.reads(session, group, actions));
                }
            }
            let is_multi = matches!(request, LevelMultisRequest::Multi(_));
            if is_multi && self.sessions[session].moves < model.moves {
                actions.push(LevelMultisStep::Move(session));
            }
        }
    }

    fn reads(&self, session: usize, group: usize, actions: &mut Vec<LevelMultisStep>) {
        let home = if group == HOME { 0 } else { self.logs.len(HOME) };
        for home_applied in 0..=home {
            let applied = 0..=self.logs.len(group);
            actions.extend(applied.map(|applied| LevelMultisStep::Read {
                session,
                group,
                home_applied,
                applied,
            }));
        }
    }

    fn awaited(&self, model: &LevelMultis) -> u8 {
        let waiting = (0..model.programs.len()).filter(|&session| self.request(model, session).is_some());
        let stamps = waiting.flat_map(|session| self.sessions[session].sight.stamps);
        stamps.max().unwrap_or(0)
    }

    pub(super) fn step(&mut self, model: &LevelMultis, action: LevelMultisStep) -> Option<()> {
        match action {
            LevelMultisStep::Prepare(multi) => self.prepare(model, multi),
            LevelMultisStep::Settle(multi) => self.settle(model, multi),
            LevelMultisStep::TakeItem(group) => {
                let before = self.logged(model, group);
                let (place, _) = self.logs.next_item(group)?;
                if let LevelMultisContent::Settle { multi, commits: true } =
                    self.logs.take_item(group, place - 1)?
                {
                    self.order.put_before(before, 1 << multi);
                }
                Some(())
            }
            LevelMultisStep::LogEmpty(group) => {
                let awaited = self.awaited(model);
                self.logs.append_empty(group, awaited);
                Some(())
            }
            LevelMultisStep::Write(session) => self.write(model, session),
            LevelMultisStep::Read { session, group, home_applied, applied } => {
                self.read(model, session, group, home_applied, applied)
            }
            LevelMultisStep::Answer(session) => self.answer(model, session),
            LevelMultisStep::Move(session) => self.move_session(model, session),
        }
    }

    /// The session asks for its multi when it is its turn, and home is at what others have shown to it.
    fn prepare(&mut self, model: &LevelMultis, multi: usize) -> Option<()> {
        let session = model.session_of(multi);
        let is_asked = self.request(model, session) == Some(LevelMultisRequest::Multi(multi));
        let awaited = self.sessions[session].sight.elsewhere(HOME);
        // What was busy is asked for again when nothing else is open.
        let is_again = self.multis[multi].1 > 0;
        let is_open = is_again && self.multis.iter().any(|other| other.0 == LevelMultiPhase::Prepared);
        if !is_asked || is_open || self.logs.last_stamp(HOME) < awaited {
            return None;
        }
        self.multis[multi].0 = LevelMultiPhase::Prepared;
        let changes = self.group(model, HOME, self.logs.len(HOME)).changes;
        self.home_was_good[multi] = model.failing(multi, HOME, changes) == 0;
        if model.is(LevelMultisMistake::HomeTriesEarly) && self.home_was_good[multi] {
            self.order.put_before(1 << multi, model.lacks(multi, HOME, changes));
        }
        let content = LevelMultisContent::Prepare { multi: multi as u8, attempt: self.multis[multi].1 };
        self.logs.decide(content, model.groups_of(multi), 0, false);
        Some(())
    }

    /// Home decides when all groups have voted. Its own part is tried with this entry.
    fn settle(&mut self, model: &LevelMultis, multi: usize) -> Option<()> {
        let groups = (1..GROUPS).filter(|group| model.groups_of(multi) & 1 << group != 0);
        let votes: Option<Vec<_>> = groups.map(|group| self.vote(model, multi, group)).collect();
        let votes = votes?;
        let all = |wanted: LevelMultisVote| votes.iter().all(|vote| vote.0 == wanted);
        let is_busy = votes.iter().any(|vote| vote.0 == LevelMultisVote::Busy);
        let changes = self.group(model, HOME, self.logs.len(HOME)).changes;
        let is_home_good = match model.is(LevelMultisMistake::HomeTriesEarly) {
            true => self.home_was_good[multi],
            false => model.failing(multi, HOME, changes) == 0,
        };
        let passes = all(LevelMultisVote::Yes) || model.is(LevelMultisMistake::VotesDoNotCount);
        let commits = passes && is_home_good;
        let before = self.logged(model, HOME);
        self.logs.decide(
            LevelMultisContent::Settle { multi: multi as u8, commits },
            model.groups_of(multi),
            0,
            false,
        );
        if commits {
            let session = model.session_of(multi);
            let seen = before | self.sessions[session].sight.writes;
            self.order.put_before(seen & !(1 << multi), 1 << multi);
            let is_early = model.is(LevelMultisMistake::HomeTriesEarly);
            let lacks_home = if is_early { 0 } else { model.lacks(multi, HOME, changes) };
            let lacks = votes.iter().fold(lacks_home, |all, vote| all | vote.1);
            // These changes were not there where the parts were tried, and come behind the multi.
            self.order.put_before(1 << multi, lacks);
            self.multis[multi].0 = LevelMultiPhase::Committed;
        } else if is_busy {
            self.multis[multi] = (LevelMultiPhase::Asked, self.multis[multi].1 + 1);
        } else {
            self.multis[multi].0 = LevelMultiPhase::Failed;
        }
        Some(())
    }

    /// The client learns the end from home's replica behind the second decision.
    fn answer(&mut self, model: &LevelMultis, session: usize) -> Option<()> {
        let Some(LevelMultisRequest::Multi(multi)) = self.request(model, session) else { return None };
        let is_voted = (1..GROUPS)
            .filter(|group| model.groups_of(multi) & 1 << group != 0)
            .all(|group| self.vote(model, multi, group).is_some_and(|vote| vote.0 == LevelMultisVote::Yes));
        let by_votes = model.is(LevelMultisMistake::ToldByVotes) && is_voted;
        let commits = match self.multis[multi].0 {
            LevelMultiPhase::Committed => true,
            LevelMultiPhase::Failed => false,
            LevelMultiPhase::Prepared if by_votes => true,
            LevelMultiPhase::Asked | LevelMultiPhase::Prepared => return None,
        };
        let stamp = self.logs.logs[HOME].iter().rev().find_map(|(stamp, entry)| match entry {
            LevelEntry::Decision { content: LevelMultisContent::Settle { multi: of, .. }, .. }
                if *of as usize == multi =>
            {
                Some(*stamp)
            }
            _ => None,
        });
        let session = &mut self.sessions[session];
        session.next += 1;
        session.sight.stamps[HOME] = session.sight.stamps[HOME].max(stamp.unwrap_or(0));
        if commits {
            session.sight.writes |= 1 << multi;
        }
        Some(())
    }

    /// The client goes on without the answer. Home gives up what is open with the decision that makes the new owner.
    fn move_session(&mut self, model: &LevelMultis, session: usize) -> Option<()> {
        let Some(LevelMultisRequest::Multi(multi)) = self.request(model, session) else { return None };
        let known = &mut self.sessions[session];
        known.moves += 1;
        known.next += 1;
        match self.multis[multi].0 {
            LevelMultiPhase::Prepared if !model.is(LevelMultisMistake::OutlivesOwner) => {
                let content = LevelMultisContent::Settle { multi: multi as u8, commits: false };
                self.logs.decide(content, model.groups_of(multi), 0, false);
                self.multis[multi].0 = LevelMultiPhase::Failed;
            }
            LevelMultiPhase::Asked => self.multis[multi].0 = LevelMultiPhase::Failed,
            _ => {}
        }
        // The new owner's writes wait for the items of this decision in the groups.
        let newest = self.logs.last_stamp(HOME);
        self.sessions[session].sight.stamps[HOME] = newest;
        Some(())
    }

    fn write(&mut self, model: &LevelMultis, session: usize) -> Option<()> {
        let Some(LevelMultisRequest::Write { change, group }) = self.request(model, session) else {
            return None;
        };
        let state = self.group(model, group, self.logs.len(group));
        let settled = self.logs.newest_settled(LevelRule::Right, group);
        let shown = self.sessions[session].sight.elsewhere(group);
        // A command on what is held is refused, and sent again.
        if state.holders != 0 || settled < shown {
            return None;
        }
        let before = self.logged(model, group) | self.sessions[session].sight.writes;
        let earlier = &model.programs[session][..self.sessions[session].next as usize];
        let earlier = earlier.iter().fold(0, |all, request| match request {
            LevelMultisRequest::Multi(multi) if self.multis[*multi].0 == LevelMultiPhase::Failed => all,
            LevelMultisRequest::Multi(multi) => all | 1 << multi,
            LevelMultisRequest::Write { change, .. } => all | 1 << change,
            LevelMultisRequest::Look => all,
        });
        self.order.put_before(before | earlier, 1 << change);
        let stamp = self.logs.append(group, shown, LevelEntry::Command(LevelMultisContent::Write(change)));
        let known = &mut self.sessions[session];
        known.sight.writes |= state.changes | 1 << change;
        known.sight.stamps[group] = stamp;
        known.next += 1;
        let seen = known.sight.writes;
        self.order.sees(seen, model.changes_of(group) & !state.changes & !(1 << change));
        Some(())
    }

    fn read(
        &mut self,
        model: &LevelMultis,
        session: usize,
        group: usize,
        home_applied: usize,
        applied: usize,
    ) -> Option<()> {
        let state = self.group(model, group, applied);
        let level = self.logs.level(LevelRule::Right, group, home_applied, applied);
        let known = &mut self.sessions[session];
        if level < known.sight.elsewhere(group) || state.stamp < known.sight.here(group) {
            return None;
        }
        known.sight.writes |= state.changes;
        known.sight.stamps[group] = state.stamp;
        known.next += 1;
        let seen = known.sight.writes;
        self.order.sees(seen, model.changes_of(group) & !state.changes);
        Some(())
    }

    /// A client that was told of a multi that did not take effect was told wrong.
    pub(super) fn look_for_lies(&mut self, model: &LevelMultis) {
        let told = |multi: usize| self.sessions[model.session_of(multi)].sight.writes & 1 << multi != 0;
        let failed = |multi: usize| self.multis[multi].0 == LevelMultiPhase::Failed;
        self.told_wrong |= (0..model.multis.len()).any(|multi| told(multi) && failed(multi));
    }
}
