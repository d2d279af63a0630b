//! The logs, and what each session was shown.

use super::rules::{Levels, LevelsChangeKind, LevelsMistake, LevelsRequest, SESSIONS};
use crate::worlds::level_logs::{GROUPS, HOME, LevelEntry, LevelLogs};
use crate::worlds::write_order::{WriteOrder, Writes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelsStep {
    Decide(usize),
    TakeItem(usize),
    LogEmpty(usize),
    /// The member of the session has applied these numbers of entries of home and of the znode's group.
    Read {
        session: usize,
        znode: usize,
        home_applied: usize,
        applied: usize,
    },
    Write(usize),
    StartSync(usize),
    EndSync(usize),
    Move(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelsSession {
    pub(super) next: u8,
    pub(super) seen: Writes,
    /// The largest stamp that each group has shown since the last move, and entries of it that a replica needs for that.
    pub(super) stamps: [u8; GROUPS],
    pub(super) shown: [u8; GROUPS],
    /// The largest stamp that the client came with.
    pub(super) claimed: u8,
    pub(super) last_group: u8,
    pub(super) moves: u8,
    /// A sync is under way: what had been told when it began, and the ends of the logs then.
    pub(super) sync: Option<(Writes, u8)>,
}

impl LevelsSession {
    pub(super) fn largest(&self) -> u8 {
        self.stamps.into_iter().fold(self.claimed, u8::max)
    }

    /// The stamp for whose level a request in this group waits.
    pub(super) fn awaited(&self, model: &Levels, group: usize) -> u8 {
        if model.is(LevelsMistake::OneStampAndGroup) && self.largest() == self.stamps[group] {
            return 0;
        }
        let counts = |other: &usize| *other != group || model.is(LevelsMistake::OwnGroupWaits);
        (0..GROUPS).filter(counts).fold(self.claimed, |most, other| most.max(self.stamps[other]))
    }

    pub(super) fn is_shown(&mut self, group: usize, stamp: u8, applied: usize) {
        self.stamps[group] = self.stamps[group].max(stamp);
        self.shown[group] = self.shown[group].max(applied as u8);
        self.last_group = group as u8;
    }
}

/// A znode as the first entries of its group make it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LevelsZnode {
    pub(super) changes: Writes,
    /// The largest stamp in the answer.
    pub(super) stamp: u8,
    /// Entries up to the last change that shows.
    pub(super) applied: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelsState {
    pub(super) logs: LevelLogs<u8>,
    pub(super) sessions: [LevelsSession; SESSIONS],
    pub(super) order: WriteOrder,
}

impl LevelsState {
    pub(super) fn is_done(&self, model: &Levels) -> bool {
        (0..SESSIONS).all(|session| self.request(model, session).is_none())
    }

    pub(super) fn request(&self, model: &Levels, session: usize) -> Option<LevelsRequest> {
        model.programs[session].get(self.sessions[session].next as usize).copied()
    }

    pub(super) fn is_decided(&self, change: usize) -> bool {
        let is_it = |entry: &(u8, LevelEntry<u8>)| matches!(entry.1, LevelEntry::Decision { content, .. } if content as usize == change);
        self.logs.logs[HOME].iter().any(is_it)
    }

    /// The change that the first entries of a group end with, and the stamp by which it shows.
    fn change_at(model: &Levels, entry: &(u8, LevelEntry<u8>)) -> Option<(usize, u8)> {
        match entry.1 {
            LevelEntry::Empty => None,
            LevelEntry::Command(change) | LevelEntry::Decision { content: change, .. } => {
                Some((change as usize, entry.0))
            }
            LevelEntry::Item { content, .. } if model.is(LevelsMistake::ItemShowsEntry) => {
                Some((content as usize, entry.0))
            }
            LevelEntry::Item { content, place } => Some((content as usize, place)),
        }
    }

    pub(super) fn znode(&self, model: &Levels, znode: usize, applied: usize) -> LevelsZnode {
        let group = model.znodes[znode];
        let mut found = LevelsZnode::default();
        for (index, entry) in self.logs.logs[group][..applied].iter().enumerate() {
            let Some((change, stamp)) = Self::change_at(model, entry) else { continue };
            if !model.changes[change].znodes.contains(&znode) {
                continue;
            }
            let hides = match model.changes[change].kind {
                LevelsChangeKind::Set => false,
                LevelsChangeKind::Delete => model.is(LevelsMistake::MissingShowsNothing),
                LevelsChangeKind::Acl => model.is(LevelsMistake::AclShowsNothing),
            };
            found.changes |= 1 << change;
            found.stamp = found.stamp.max(if hides { 0 } else { stamp });
            found.applied = index + 1;
        }
        found
    }

    /// All changes in a group's log.
    pub(super) fn logged(&self, model: &Levels, group: usize) -> Writes {
        let changes = self.logs.logs[group].iter().filter_map(|entry| Self::change_at(model, entry));
        let touches =
            |change: usize| model.changes[change].znodes.iter().any(|&znode| model.znodes[znode] == group);
        changes
            .filter(|(change, _)| touches(*change) || group == HOME)
            .fold(0, |all, (change, _)| all | 1 << change)
    }

    pub(super) fn told(&self) -> Writes {
        self.sessions.iter().fold(0, |all, session| all | session.seen)
    }
}
