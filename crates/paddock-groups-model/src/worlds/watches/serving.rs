//! The member that serves the watching session: its answers, what may leave, and a move.

use super::rules::{GROUPS, Watches, WatchesMistake};
use super::session::{WaitingEvent, WaitingReply, WatchRegistration};
use super::state::{WatchesState, WatchesStep};
use crate::worlds::stamped_log::StampedEntry;
use crate::worlds::write_order::Writes;

impl WatchesState {
    pub(super) fn session_actions(&self, model: &Watches, actions: &mut Vec<WatchesStep>) {
        let session = &self.session;
        if session.reply.is_some() {
            actions.push(WatchesStep::ReplyLeaves);
        } else if session.requests < model.requests {
            for group in 0..GROUPS {
                actions.push(WatchesStep::Get { group, watch: false });
                if !model.lists && !session.has_watch(Some(group)) {
                    actions.push(WatchesStep::Get { group, watch: true });
                }
            }
            if model.lists && !session.has_watch(None) {
                actions.push(WatchesStep::List);
            }
        }
        actions.extend((0..session.events.len()).map(WatchesStep::EventLeaves));
        if session.moves < model.moves {
            for first in 0..=self.logs[0].len() {
                actions.extend(
                    (0..=self.logs[1].len()).map(|second| WatchesStep::Move { applied: [first, second] }),
                );
            }
        }
    }

    pub(super) fn session_step(&mut self, model: &Watches, action: WatchesStep) -> Option<()> {
        match action {
            WatchesStep::Get { group, watch } => self.get(model, group, watch),
            WatchesStep::List => self.list(model),
            WatchesStep::ReplyLeaves => self.reply_leaves(model),
            WatchesStep::EventLeaves(index) => self.event_leaves(model, index),
            WatchesStep::Move { applied } => self.move_session(model, applied),
            other => unreachable!("{other:?} is no step of the session"),
        }
    }

    fn get(&mut self, model: &Watches, group: usize, watch: bool) -> Option<()> {
        let read_at = self.at(model, group);
        let (writes, stamp) = self.shown(group, self.applied[group], u8::MAX);
        if read_at < self.session.seen_elsewhere(group) || stamp < self.session.stamps[group] {
            return None;
        }
        let mut here = [0; GROUPS];
        here[group] = stamp;
        let lacking = model.writes_of(group) & !writes;
        let watch = watch.then(|| WatchRegistration::new(Some(group), writes));
        self.answer(writes, lacking, here, read_at, watch);
        watch.into_iter().for_each(|watch| self.session.register(watch));
        Some(())
    }

    fn list(&mut self, model: &Watches) -> Option<()> {
        let at = (0..GROUPS).map(|group| self.at(model, group)).min()?;
        let mut as_of = at.max(self.session.largest_seen());
        if model.is(WatchesMistake::ListByStamp) {
            // The multi, if one part is at or below the stamp and the other one above: no less than the last part.
            let parts =
                self.logs.iter().flat_map(|log| &log.entries).filter(|entry| entry.1.decided_at().is_some());
            let parts: Vec<u8> = parts.map(|entry| entry.0).collect();
            let last = if parts.len() < GROUPS { u8::MAX } else { parts.iter().copied().max()? };
            if parts.iter().any(|part| *part <= as_of) {
                as_of = as_of.max(last);
            }
        }
        if at < as_of {
            return None;
        }
        let shown = [0, 1].map(|group| self.listed(model, group, as_of));
        let writes = shown[0].0 | shown[1].0;
        let lacking = (model.writes_of(0) | model.writes_of(1)) & !writes;
        let watch = WatchRegistration::new(None, writes);
        self.answer(writes, lacking, shown.map(|shown| shown.1), as_of, Some(watch));
        self.session.register(watch);
        if !model.is(WatchesMistake::RegistersAtApplied) {
            self.fire_unlisted(model, as_of);
        }
        Some(())
    }

    /// The children of a group as of this stamp, and the largest stamp of them.
    fn listed(&self, model: &Watches, group: usize, as_of: u8) -> (Writes, u8) {
        let mut listed = (0, 0);
        for index in (0..self.applied[group]).filter(|&index| self.is_listed(model, group, index, as_of)) {
            let (stamp, entry) = self.logs[group].entries[index];
            if let Some(write) = entry.shows() {
                listed = (listed.0 | 1 << write, stamp.max(listed.1));
            }
        }
        listed
    }

    fn is_listed(&self, model: &Watches, group: usize, index: usize, as_of: u8) -> bool {
        let log = &self.logs[group];
        match model.is(WatchesMistake::ListByStamp) {
            true => log.entries[index].0 <= as_of,
            false => log.place(index) <= (as_of, false),
        }
    }

    fn answer(
        &mut self,
        writes: Writes,
        lacking: Writes,
        here: [u8; GROUPS],
        read_at: u8,
        watch: Option<WatchRegistration>,
    ) {
        let stamp = here.into_iter().fold(self.session.largest_seen(), u8::max);
        self.session.reply =
            Some(WaitingReply { writes, lacking, stamp, here, read_at, watch, is_ack: false });
        self.session.requests += 1;
    }

    /// Fires watches for what was applied and is not in a list as of this stamp.
    fn fire_unlisted(&mut self, model: &Watches, as_of: u8) {
        for group in 0..GROUPS {
            for index in 0..self.applied[group] {
                if !self.is_listed(model, group, index, as_of) {
                    self.fire(model, group, index);
                }
            }
        }
    }

    /// Fires watches for what was applied with stamps above `since`.
    fn fire_since(&mut self, model: &Watches, since: u8) {
        for group in 0..GROUPS {
            for index in 0..self.applied[group] {
                if self.logs[group].entries[index].0 > since {
                    self.fire(model, group, index);
                }
            }
        }
    }

    /// Fires watches for an entry that the member has applied.
    pub(super) fn fire(&mut self, model: &Watches, group: usize, index: usize) {
        let (stamp, entry) = self.logs[group].entries[index];
        let place = match model.mistake {
            Some(WatchesMistake::PlacedByStamp) => (stamp, false),
            Some(WatchesMistake::ReleasePlacedByStamp) if entry.decided_at().is_some() => (stamp, false),
            _ => self.logs[group].place(index),
        };
        if let Some(write) = entry.shows() {
            self.session.fire(model, WaitingEvent { watch: None, stamp, place, group, write: 1 << write });
        }
    }

    /// True if every group in which the session watches is at this stamp.
    fn passes_gate(&self, model: &Watches, stamp: u8) -> bool {
        let is_watched = |group: &usize| self.session.table.iter().any(|watch| watch.covers(*group));
        (0..GROUPS).filter(is_watched).all(|group| self.at(model, group) >= stamp)
    }

    fn reply_leaves(&mut self, model: &Watches) -> Option<()> {
        let reply = self.session.reply.take()?;
        let is_free = reply.is_ack && model.is(WatchesMistake::AckNotGated);
        let is_behind =
            |event: &WaitingEvent| event.is_in_front_of(&reply) && (!is_free || reply.here[event.group] > 0);
        let has_earlier_event = self.session.events.iter().any(is_behind);
        let is_gated = !model.is(WatchesMistake::RepliesNotGated) && !self.passes_gate(model, reply.stamp);
        let is_applied = (0..GROUPS).all(|group| self.last_applied(group) >= reply.here[group]);
        if !is_applied || has_earlier_event || is_gated && !is_free {
            return None;
        }
        let last_applied = (0..GROUPS).map(|group| self.last_applied(group)).max();
        let session = &mut self.session;
        session.zxid = match model.mistake {
            Some(WatchesMistake::ZxidOfAnswer) => reply.here.into_iter().max()?,
            Some(WatchesMistake::ZxidOfApplied) => last_applied?,
            Some(WatchesMistake::AckNotGated) if reply.is_ack => session.zxid,
            _ => reply.stamp,
        };
        session.seen |= reply.writes;
        session.seen_by_zxid = session.seen;
        for group in 0..GROUPS {
            session.stamps[group] = session.stamps[group].max(reply.here[group]);
        }
        session.watches.extend(reply.watch);
        self.look(model, reply.lacking, 0);
        Some(())
    }

    fn event_leaves(&mut self, model: &Watches, index: usize) -> Option<()> {
        let event = self.session.events[index];
        let is_behind =
            self.session.events.iter().any(|other| match model.is(WatchesMistake::TiesInAnyOrder) {
                true => other.place < event.place,
                false => other.turn() < event.turn(),
            });
        let reply = self.session.reply.as_ref().filter(|_| !model.is(WatchesMistake::EventOvertakesReply));
        let is_gated = !model.is(WatchesMistake::EventsNotGated) && !self.passes_gate(model, event.stamp);
        if is_behind || is_gated || reply.is_some_and(|reply| !event.is_in_front_of(reply)) {
            return None;
        }
        let session = &mut self.session;
        // An answer that was read before the place of an event in front of it is read again: the client would come back
        // into the past. Its registration goes with it, and this event too if that is its own.
        let is_before_event = |read_at: u8| match model.is(WatchesMistake::AnswerStaysBehindSamePart) {
            true => read_at < event.place.0,
            false => (read_at, false) < event.place,
        };
        let is_past = |reply: &mut WaitingReply| !reply.is_ack && is_before_event(reply.read_at);
        if let Some(past) =
            session.reply.take_if(|reply| is_past(reply) && !model.is(WatchesMistake::AnswerStaysBehindEvent))
        {
            session.requests -= 1;
            if let Some(watch) = past.watch {
                session.table.retain(|other| other.group != watch.group);
                session.events.retain(|other| other.watch != watch.group);
            }
            return Some(());
        }
        session.events.remove(index);
        let known = session.watches.iter().position(|watch| watch.group == event.watch);
        match known {
            Some(known) => session.watches.remove(known),
            None => {
                self.events_of_one = 2;
                return Some(());
            }
        };
        self.events_of_one = self.events_of_one.max(1);
        session.seen |= event.write;
        session.stamps[event.group] = session.stamps[event.group].max(event.stamp);
        // A multi may have an event in each group, which come one by one.
        self.look(model, 0, event.write);
        Some(())
    }

    /// The client sees something: what it lacks, and what its watches have not told it, has to come later.
    fn look(&mut self, model: &Watches, lacking: Writes, told: Writes) {
        let untold = self.session.watches.iter().fold(0, |all, watch| all | watch.unseen(model));
        self.order.sees(self.session.seen, lacking | untold & !told);
    }

    fn move_session(&mut self, model: &Watches, applied: [usize; GROUPS]) -> Option<()> {
        self.applied = applied;
        let zxid = self.session.zxid;
        let is_ready = (0..GROUPS).all(|group| match model.mistake {
            Some(WatchesMistake::MoveDoesNotWait) => true,
            Some(WatchesMistake::MoveWaitsForApplied) => self.last_applied(group) >= zxid,
            _ => self.at(model, group) >= zxid,
        });
        if !is_ready {
            return None;
        }
        let session = &mut self.session;
        session.moves += 1;
        session.reply = None;
        session.events.clear();
        session.seen = session.seen_by_zxid;
        session.stamps = [0; GROUPS];
        let counts =
            !model.is(WatchesMistake::MoveDoesNotWait) && !model.is(WatchesMistake::MoveWaitsForApplied);
        session.resumed_at = if counts { zxid } else { 0 };
        session.table = session.watches.clone();
        if !model.is(WatchesMistake::SetWatchesFiresNothing) {
            self.fire_since(model, zxid);
        }
        Some(())
    }
}
