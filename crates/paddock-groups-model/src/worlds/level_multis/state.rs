//! The logs with what each group makes of them, the multis, and the sessions.

use super::rules::{LevelMultis, LevelMultisMistake, LevelMultisRequest};
use crate::worlds::level_logs::{HOME, LevelEntry, LevelLogs};
use crate::worlds::write_order::{Sight, WriteOrder, Writes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LevelMultisContent {
    Write(u8),
    /// Home's first decision on an attempt: each group tries its part and holds it.
    Prepare {
        multi: u8,
        attempt: u8,
    },
    /// Home's second decision.
    Settle {
        multi: u8,
        commits: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelMultisVote {
    Yes,
    No,
    Busy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum LevelMultiPhase {
    #[default]
    Asked,
    Prepared,
    Committed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelMultisStep {
    Prepare(usize),
    Settle(usize),
    TakeItem(usize),
    LogEmpty(usize),
    Write(usize),
    Read {
        session: usize,
        group: usize,
        home_applied: usize,
        applied: usize,
    },
    /// The client is told the end of its multi.
    Answer(usize),
    Move(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelMultisSession {
    pub(super) sight: Sight,
    pub(super) next: u8,
    pub(super) moves: u8,
}

/// The state of a group behind the first entries of its log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LevelMultisGroup {
    pub(super) changes: Writes,
    pub(super) stamp: u8,
    /// The multis that hold its znode, one bit each.
    pub(super) holders: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelMultisState {
    pub(super) logs: LevelLogs<LevelMultisContent>,
    /// The phase and the attempt of each multi.
    pub(super) multis: [(LevelMultiPhase, u8); 2],
    /// Home's own part was found good with the first decision: a mistake.
    pub(super) home_was_good: [bool; 2],
    pub(super) sessions: [LevelMultisSession; 4],
    pub(super) order: WriteOrder,
    pub(super) told_wrong: bool,
}

impl LevelMultisState {
    pub(super) fn request(&self, model: &LevelMultis, session: usize) -> Option<LevelMultisRequest> {
        model.programs.get(session)?.get(self.sessions[session].next as usize).copied()
    }

    pub(super) fn is_done(&self, model: &LevelMultis) -> bool {
        (0..model.programs.len()).all(|session| self.request(model, session).is_none())
    }

    pub(super) fn is_broken(&self) -> bool {
        self.order.has_circle() || self.told_wrong
    }

    /// True if a group holds something for ever.
    pub(super) fn holds_any(&self, model: &LevelMultis) -> bool {
        (1..3).any(|group| self.group(model, group, self.logs.len(group)).holders != 0)
    }

    pub(super) fn group(&self, model: &LevelMultis, group: usize, applied: usize) -> LevelMultisGroup {
        let mut state = LevelMultisGroup::default();
        for (stamp, entry) in &self.logs.logs[group][..applied] {
            let content = match entry {
                LevelEntry::Empty => continue,
                LevelEntry::Command(content)
                | LevelEntry::Decision { content, .. }
                | LevelEntry::Item { content, .. } => *content,
            };
            match content {
                LevelMultisContent::Write(change) => {
                    (state.changes, state.stamp) = (state.changes | 1 << change, *stamp);
                }
                LevelMultisContent::Prepare { multi, .. } if group != HOME => {
                    let multi = multi as usize;
                    let is_free = state.holders == 0 || model.is(LevelMultisMistake::IgnoresHolds);
                    if model.holds(multi, group) && is_free {
                        state.holders |= 1 << multi;
                    }
                }
                LevelMultisContent::Prepare { .. } => {}
                LevelMultisContent::Settle { multi, commits } => {
                    state.holders &= !(1 << multi);
                    if commits && model.multis[multi as usize].sets.contains(&group) {
                        (state.changes, state.stamp) = (state.changes | 1 << multi, *stamp);
                    }
                }
            }
        }
        state
    }

    /// The vote of a group on the present attempt, and the changes that its part lacks if the multi takes effect.
    pub(super) fn vote(
        &self,
        model: &LevelMultis,
        multi: usize,
        group: usize,
    ) -> Option<(LevelMultisVote, Writes)> {
        let wanted = LevelMultisContent::Prepare { multi: multi as u8, attempt: self.multis[multi].1 };
        let is_it = |entry: &(u8, LevelEntry<LevelMultisContent>)| matches!(entry.1, LevelEntry::Item { content, .. } if content == wanted);
        let index = self.logs.logs[group].iter().position(is_it)?;
        let before = self.group(model, group, index);
        let lacks = model.lacks(multi, group, before.changes);
        let vote = if before.holders != 0 && !model.is(LevelMultisMistake::IgnoresHolds) {
            LevelMultisVote::Busy
        } else if model.failing(multi, group, before.changes) != 0 {
            LevelMultisVote::No
        } else {
            LevelMultisVote::Yes
        };
        Some((vote, lacks))
    }

    /// Changes in a group's log.
    pub(super) fn logged(&self, model: &LevelMultis, group: usize) -> Writes {
        let decided = self.logs.logs[group].iter().filter_map(|(_, entry)| match entry {
            LevelEntry::Decision { content: LevelMultisContent::Settle { multi, commits: true }, .. } => {
                Some(1 << multi)
            }
            _ => None,
        });
        decided.fold(self.group(model, group, self.logs.len(group)).changes, |all, one| all | one)
    }
}
