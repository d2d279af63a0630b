//! The watching session: what its client knows, what its member holds for it, and what may leave.

use super::rules::{GROUPS, Watches, WatchesMistake};
use crate::worlds::write_order::Writes;

/// A registration: on the data of a group's znode, or on the children of the split point, which lie in all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchRegistration {
    pub(super) group: Option<usize>,
    /// Writes that the registering reply showed.
    pub(super) included: Writes,
    /// Groups whose change fires it, one bit each: all that it covers, until it has fired.
    pub(super) armed: u8,
}

impl WatchRegistration {
    pub(super) fn new(group: Option<usize>, included: Writes) -> WatchRegistration {
        let armed = group.map_or((1 << GROUPS) - 1, |group| 1 << group);
        WatchRegistration { group, included, armed }
    }

    pub(super) fn covers(&self, group: usize) -> bool {
        self.group.is_none_or(|own| own == group)
    }

    /// Writes, made or not, that have to be told by an event before any other sight of them.
    pub(super) fn unseen(&self, model: &Watches) -> Writes {
        let covered = (0..GROUPS)
            .filter(|&group| self.covers(group))
            .fold(0, |all, group| all | model.writes_of(group));
        covered & !self.included
    }
}

/// The answer to the request that is outstanding, and the stamp that it reveals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WaitingReply {
    pub(super) writes: Writes,
    pub(super) lacking: Writes,
    /// The largest stamp revealed to the session so far, this answer included.
    pub(super) stamp: u8,
    /// The largest stamp of the answer in each group.
    pub(super) here: [u8; GROUPS],
    /// The stamp that the replica was at when it answered.
    pub(super) read_at: u8,
    pub(super) watch: Option<WatchRegistration>,
    pub(super) is_ack: bool,
}

/// A notification on its way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WaitingEvent {
    pub(super) watch: Option<usize>,
    pub(super) stamp: u8,
    /// Place of the change in the one order of all groups' changes.
    pub(super) place: (u8, bool),
    pub(super) group: usize,
    pub(super) write: Writes,
}

impl WaitingEvent {
    /// Its turn among the events. Two groups may have changes in one place.
    pub(super) fn turn(&self) -> ((u8, bool), usize, u8) {
        (self.place, self.group, self.stamp)
    }

    pub(super) fn is_in_front_of(&self, reply: &WaitingReply) -> bool {
        self.place <= (reply.stamp, false)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WatchingSession {
    /// Writes that the client has seen, and those of them that its `lastZxidSeen` covers.
    pub(super) seen: Writes,
    pub(super) seen_by_zxid: Writes,
    pub(super) zxid: u8,
    /// The largest stamps revealed in each group since the last move, and `lastZxidSeen` at that move.
    pub(super) stamps: [u8; GROUPS],
    pub(super) resumed_at: u8,
    pub(super) reply: Option<WaitingReply>,
    pub(super) events: Vec<WaitingEvent>,
    /// Registrations that the client knows of and has no event for.
    pub(super) watches: Vec<WatchRegistration>,
    /// The member's table of watches.
    pub(super) table: Vec<WatchRegistration>,
    pub(super) requests: u8,
    pub(super) moves: u8,
}

impl WatchingSession {
    pub(super) fn largest_seen(&self) -> u8 {
        self.stamps.into_iter().fold(self.resumed_at, u8::max)
    }

    pub(super) fn seen_elsewhere(&self, group: usize) -> u8 {
        (0..GROUPS)
            .filter(|&other| other != group)
            .fold(self.resumed_at, |most, other| most.max(self.stamps[other]))
    }

    /// Turns a change that the member has applied into the event of each watch on it.
    pub(super) fn fire(&mut self, model: &Watches, change: WaitingEvent) {
        let group = change.group;
        for watch in &mut self.table {
            if watch.armed & (1 << group) == 0 {
                continue;
            }
            watch.armed =
                if model.is(WatchesMistake::TablePerGroup) { watch.armed & !(1 << group) } else { 0 };
            self.events.push(WaitingEvent { watch: watch.group, ..change });
        }
        self.table.retain(|watch| watch.armed != 0);
        if model.is(WatchesMistake::KeepsFirstStamp) || model.is(WatchesMistake::TablePerGroup) {
            return;
        }
        // A watch in two groups has fired for one, and the other now applies a change that is older.
        for event in self.events.iter_mut().filter(|event| event.watch.is_none()) {
            if change.turn() < event.turn() {
                *event = WaitingEvent { watch: None, ..change };
            }
        }
    }

    pub(super) fn register(&mut self, watch: WatchRegistration) {
        self.table.push(watch);
    }

    /// True if a watch of this kind is registered, about to be, or about to fire.
    pub(super) fn has_watch(&self, group: Option<usize>) -> bool {
        let all = self.watches.iter().chain(&self.table);
        let registering = self.reply.iter().filter_map(|reply| reply.watch.as_ref());
        all.chain(registering).any(|watch| watch.group == group)
            || self.events.iter().any(|event| event.watch == group)
    }
}
