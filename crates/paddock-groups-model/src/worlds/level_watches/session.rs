//! The watching session: the knowledge of its client, and what its member holds for it.

use super::rules::{LevelWatches, LevelWatchesMistake};
use crate::worlds::level_logs::GROUPS;
use crate::worlds::write_order::Writes;

/// A watch on a znode or the split point's children, with the changes that the reply showed that registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelWatch {
    pub(super) znode: usize,
    pub(super) included: Writes,
}

impl LevelWatch {
    /// Changes, made or not, that an event has to tell before any other sight of them.
    pub(super) fn untold(&self, model: &LevelWatches) -> Writes {
        model.changes_of(self.znode) & !self.included
    }
}

/// The answer to a read that has not left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelAnswer {
    pub(super) znode: usize,
    pub(super) changes: Writes,
    /// The largest stamp in the answer, and the largest that the session was shown with it.
    pub(super) stamp: u8,
    pub(super) shows: u8,
    /// The level of the replica that answered.
    pub(super) level: u8,
    pub(super) watch: Option<LevelWatch>,
}

/// A notification that has not left, with the first entry of each group that made a change to what was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelEvent {
    pub(super) znode: usize,
    pub(super) firsts: [Option<usize>; GROUPS],
}

/// The session's own write: handed to its group, and then an entry of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelOwnWrite {
    pub(super) change: usize,
    /// The largest stamp that other groups had shown when it was handed over.
    pub(super) shown: u8,
    pub(super) index: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelWatchingSession {
    /// Changes that the client has seen, and those of them that its `lastZxidSeen` covers.
    pub(super) seen: Writes,
    pub(super) seen_by_zxid: Writes,
    pub(super) zxid: u8,
    /// The largest stamp that each group has shown since the last move, and what the client came with.
    pub(super) stamps: [u8; GROUPS],
    pub(super) claimed: u8,
    pub(super) answer: Option<LevelAnswer>,
    pub(super) own: Option<LevelOwnWrite>,
    pub(super) has_written: bool,
    pub(super) events: Vec<LevelEvent>,
    /// Registrations that the client knows of and has no event for, and the member's table.
    pub(super) watches: Vec<LevelWatch>,
    pub(super) table: Vec<LevelWatch>,
    pub(super) requests: u8,
    pub(super) moves: u8,
}

impl LevelWatchingSession {
    pub(super) fn largest(&self) -> u8 {
        self.stamps.into_iter().fold(self.claimed, u8::max)
    }

    pub(super) fn elsewhere(&self, group: usize) -> u8 {
        let others = (0..GROUPS).filter(|&other| other != group);
        others.fold(self.claimed, |most, other| most.max(self.stamps[other]))
    }

    /// True if a watch of this znode is registered, about to be, or about to fire.
    pub(super) fn has_watch(&self, znode: usize) -> bool {
        let mut all = self.watches.iter().chain(&self.table);
        all.any(|watch| watch.znode == znode) || self.events.iter().any(|event| event.znode == znode)
    }

    /// Turns an entry that the member has applied into events of the watches on what it changes, or notes it with the event of a watch that has
    /// fired for another group.
    pub(super) fn fire(&mut self, model: &LevelWatches, group: usize, index: usize) {
        let covers = |znode: usize| model.groups_with(znode).contains(&group);
        let keeps_first = model.is(LevelWatchesMistake::KeepsFirstChange);
        for event in self.events.iter_mut().filter(|event| covers(event.znode) && !keeps_first) {
            event.firsts[group].get_or_insert(index);
        }
        let mut firsts = [None; GROUPS];
        firsts[group] = Some(index);
        let fired = self.table.iter().filter(|watch| covers(watch.znode));
        self.events.extend(fired.map(|watch| LevelEvent { znode: watch.znode, firsts }));
        self.table.retain(|watch| !covers(watch.znode));
    }

    /// Groups in which the session watches, or for which it has an event.
    pub(super) fn watched_groups(&self, model: &LevelWatches) -> Vec<usize> {
        let fired = self.events.iter().map(|event| event.znode);
        let fired = fired.filter(|_| !model.is(LevelWatchesMistake::FiredNotAwaited));
        let watched = self.table.iter().map(|watch| watch.znode).chain(fired);
        watched.flat_map(|znode| model.groups_with(znode)).collect()
    }

    /// The group of the own write that has no reply yet.
    pub(super) fn own_group(&self, model: &LevelWatches) -> Option<usize> {
        self.own.map(|own| model.group_of(own.change))
    }
}
