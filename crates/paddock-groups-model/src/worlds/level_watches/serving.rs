//! The member that serves the watching session: its answers, and a move.

use super::rules::{CHILDREN, LevelWatches, LevelWatchesMistake};
use super::session::{LevelAnswer, LevelOwnWrite, LevelWatch};
use super::state::{LevelWatchesState, LevelWatchesStep};
use crate::worlds::level_logs::{GROUPS, HOME};

impl LevelWatchesState {
    pub(super) fn session_actions(&self, model: &LevelWatches, actions: &mut Vec<LevelWatchesStep>) {
        let session = &self.session;
        if session.answer.is_some() {
            actions.push(LevelWatchesStep::ReplyLeaves);
        } else if session.own.is_some() {
            actions.push(LevelWatchesStep::OwnReplyLeaves);
        } else {
            if session.requests < model.requests {
                for &znode in &model.reads {
                    actions.push(LevelWatchesStep::Get { znode, watch: false });
                    if model.watched.contains(&znode) && !session.has_watch(znode) {
                        actions.push(LevelWatchesStep::Get { znode, watch: true });
                    }
                }
            }
            if model.own.is_some() && !session.has_written {
                actions.push(LevelWatchesStep::HandWrite);
            }
        }
        actions.extend((0..session.events.len()).map(LevelWatchesStep::EventLeaves));
        if session.moves < model.moves {
            let [home, first, second] = [0, 1, 2].map(|group| self.logs.len(group));
            for home in 0..=home {
                for first in 0..=first {
                    let seconds = 0..=second;
                    actions.extend(
                        seconds.map(|second| LevelWatchesStep::Move { applied: [home, first, second] }),
                    );
                }
            }
        }
    }

    pub(super) fn session_step(&mut self, model: &LevelWatches, action: LevelWatchesStep) -> Option<()> {
        match action {
            LevelWatchesStep::Get { znode, watch } => self.get(model, znode, watch),
            LevelWatchesStep::HandWrite => self.hand_write(model),
            LevelWatchesStep::ReplyLeaves => self.reply_leaves(model),
            LevelWatchesStep::OwnReplyLeaves => self.own_reply_leaves(model),
            LevelWatchesStep::EventLeaves(index) => self.event_leaves(model, index),
            LevelWatchesStep::Move { applied } => self.move_session(model, applied),
            other => unreachable!("{other:?} is no step of the session"),
        }
    }

    fn get(&mut self, model: &LevelWatches, znode: usize, watch: bool) -> Option<()> {
        if znode == CHILDREN {
            return self.list(model, watch);
        }
        let level = self.level(znode);
        let (changes, stamp) = self.shown(model, znode, self.applied[znode]);
        let session = &mut self.session;
        if level < session.elsewhere(znode) {
            return None;
        }
        let watch = watch.then_some(LevelWatch { znode, included: changes });
        let shows = stamp.max(session.largest());
        session.answer = Some(LevelAnswer { znode, changes, stamp, shows, level, watch });
        session.table.extend(watch);
        session.requests += 1;
        Some(())
    }

    /// The children as of one place, which every group has reached. Changes behind it fire a watch that the list registers.
    fn list(&mut self, model: &LevelWatches, watch: bool) -> Option<()> {
        let level = model.listed.iter().map(|&group| self.level(group)).min()?;
        let as_of = level.max(self.session.largest());
        if level < as_of {
            return None;
        }
        let is_listed = |state: &Self, group: usize, index: usize| match model.mistake {
            Some(LevelWatchesMistake::ListsApplied) => true,
            Some(LevelWatchesMistake::ListsByStamp) => state.logs.logs[group][index].0 <= as_of,
            _ => state.logs.place(group, index, state.applied[group]).0 <= as_of,
        };
        let applied =
            model.listed.iter().flat_map(|&group| (0..self.applied[group]).map(move |index| (group, index)));
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            applied.partition(|&(group, index)| is_listed(self, group, index));
        let changes = listed.iter().filter_map(|&(group, index)| self.change_at(model, group, index));
        let changes = changes.fold(0, |all, change| all | 1 << change);
        let watch = watch.then_some(LevelWatch { znode: CHILDREN, included: changes });
        let (stamp, shows) = (as_of, as_of);
        self.session.answer =
            Some(LevelAnswer { znode: CHILDREN, changes, stamp, shows, level: as_of, watch });
        self.session.table.extend(watch);
        self.session.requests += 1;
        unlisted.into_iter().for_each(|(group, index)| self.fire(model, group, index, 0));
        Some(())
    }

    /// The write waits for decisions up to what other groups have shown, and comes into its group's log, above that, at any time from now on.
    fn hand_write(&mut self, model: &LevelWatches) -> Option<()> {
        let change = model.own?;
        let group = model.group_of(change);
        let shown = self.session.elsewhere(group);
        if self.settled(group) < shown {
            return None;
        }
        self.session.own = Some(LevelOwnWrite { change, shown, index: None });
        self.session.has_written = true;
        Some(())
    }

    fn move_session(&mut self, model: &LevelWatches, applied: [usize; GROUPS]) -> Option<()> {
        // A write that is under way belongs to the worlds of sessions.
        if self.session.own.is_some() {
            return None;
        }
        self.applied = applied;
        let zxid = self.session.zxid;
        let waits = !model.is(LevelWatchesMistake::MoveDoesNotWait);
        let read = model.reads.iter().flat_map(|&znode| model.groups_with(znode));
        let moved_to: Vec<usize> = read.chain([HOME]).collect();
        if waits && !self.reached(&moved_to, zxid) {
            return None;
        }
        let session = &mut self.session;
        session.moves += 1;
        session.answer = None;
        session.events.clear();
        session.seen = session.seen_by_zxid;
        session.stamps = [0; GROUPS];
        session.claimed = if waits { zxid } else { 0 };
        session.table = session.watches.clone();
        if !model.is(LevelWatchesMistake::SetWatchesFiresNothing) {
            for (group, applied) in applied.into_iter().enumerate() {
                (0..applied).for_each(|index| self.fire(model, group, index, zxid));
            }
        }
        Some(())
    }
}
