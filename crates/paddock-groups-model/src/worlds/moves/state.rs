//! The logs of source and target, home's map, and what each session has sent and seen.

use super::rules::Moves;
use crate::worlds::stamped_log::{PartEffect, StampedEntry, StampedLog};
use crate::worlds::write_order::{Sight, WriteOrder, Writes};

pub(super) const GROUPS: usize = 2;
pub(super) const SOURCE: usize = 0;
pub(super) const TARGET: usize = 1;
/// The ephemeral in the slot, and its removal when its session ends.
pub(super) const EPHEMERAL: u8 = 4;
pub(super) const REMOVAL: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MovesEntry {
    Empty,
    Write(u8),
    /// The content of the slot at the source goes to the target, where it does not show yet.
    Copy(Writes),
    /// The last delta: with what it adds to the copy at the target.
    Stage {
        attempt: u8,
        delta: Writes,
    },
    GiveUp(u8),
    /// The map's new version: the source gives the slot away, the target installs it.
    Release {
        attempt: u8,
        decided: u8,
    },
}

impl StampedEntry for MovesEntry {
    fn staging(&self) -> PartEffect {
        match self {
            MovesEntry::Stage { attempt, .. } => PartEffect::Stages(*attempt),
            MovesEntry::Release { attempt, .. } | MovesEntry::GiveUp(attempt) => PartEffect::Ends(*attempt),
            _ => PartEffect::None,
        }
    }

    fn decided_at(&self) -> Option<u8> {
        match self {
            MovesEntry::Release { decided, .. } => Some(*decided),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        *self == MovesEntry::Empty
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovesStep {
    Copy,
    Stage(usize),
    Decide,
    GiveUp,
    /// A group takes home's item: the release, or that the attempt was given up.
    TakeItem(usize),
    /// The writer's member learns the map.
    LearnMap,
    Send,
    Arrive,
    CreateEphemeral,
    AttachOwner,
    TimeOut,
    RemoveEphemeral(usize),
    LogEmpty(usize),
    Read {
        of_slot: bool,
        group: usize,
        applied: usize,
    },
    List {
        applied: [usize; GROUPS],
    },
}

/// The slot of the writer's requests that are on their way, which arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MovesSent {
    pub(super) request: u8,
    pub(super) group: usize,
    pub(super) version: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct MovesState {
    pub(super) logs: [StampedLog<MovesEntry>; GROUPS],
    pub(super) attempt: u8,
    /// Items of home's stream that each group has taken.
    pub(super) items: [Vec<MovesEntry>; GROUPS],
    pub(super) taken: [usize; GROUPS],
    pub(super) decided: Option<u8>,
    pub(super) owner_attached: bool,
    pub(super) owner_ended: bool,
    pub(super) removed: [bool; GROUPS],
    pub(super) knows_map: bool,
    pub(super) next: u8,
    pub(super) sent: Vec<MovesSent>,
    /// The first request that was refused, from which on the writer's member sends again.
    pub(super) refused: Option<u8>,
    pub(super) done: Writes,
    pub(super) writer: Sight,
    pub(super) reader: Sight,
    pub(super) looks: u8,
    pub(super) order: WriteOrder,
    pub(super) listed_twice: bool,
}

impl MovesState {
    pub(super) fn is_broken(&self) -> bool {
        self.order.has_circle() || self.listed_twice
    }

    pub(super) fn has_moved(&self) -> bool {
        (0..GROUPS).all(|group| self.version(group, self.logs[group].len()) == 1)
    }

    pub(super) fn is_done(&self, model: &Moves) -> bool {
        self.done.count_ones() as usize == model.program.len()
    }

    /// The ephemeral of an ended session shows somewhere.
    pub(super) fn has_orphan(&self) -> bool {
        let shows = |group: usize| {
            self.owns_slot(group) && self.in_slot(group, self.logs[group].len()) & 1 << EPHEMERAL != 0
        };
        let is_removed = |group: usize| self.in_slot(group, self.logs[group].len()) & 1 << REMOVAL != 0;
        self.owner_ended && (0..GROUPS).any(|group| shows(group) && !is_removed(group))
    }

    /// The map's version in the first entries of a group.
    pub(super) fn version(&self, group: usize, applied: usize) -> u8 {
        u8::from(
            self.logs[group].entries[..applied]
                .iter()
                .any(|entry| matches!(entry.1, MovesEntry::Release { .. })),
        )
    }

    pub(super) fn owns_slot(&self, group: usize) -> bool {
        self.owned_slot(group, self.logs[group].len())
    }

    pub(super) fn owned_slot(&self, group: usize, applied: usize) -> bool {
        (self.version(group, applied) == 1) == (group == TARGET)
    }

    pub(super) fn is_of_slot(model: &Moves, write: u8) -> bool {
        model.program.get(write as usize).copied().unwrap_or(true)
    }

    /// The writes that show, or showed, in the slot in the first entries of a group.
    pub(super) fn in_slot(&self, group: usize, applied: usize) -> Writes {
        let mut shown = 0;
        let mut copied = 0;
        for &(_, entry) in &self.logs[group].entries[..applied] {
            match entry {
                MovesEntry::Write(write) => shown |= 1 << write,
                MovesEntry::Copy(writes) => copied = writes,
                MovesEntry::Stage { delta, .. } => copied |= delta,
                MovesEntry::Release { .. } if group == TARGET => shown |= copied,
                MovesEntry::Empty | MovesEntry::GiveUp(_) | MovesEntry::Release { .. } => {}
            }
        }
        shown
    }

    /// The writes of one slot, or of the other, in what `in_slot` gives for both.
    pub(super) fn only(model: &Moves, of_slot: bool, writes: Writes) -> Writes {
        let all = 0..=REMOVAL;
        all.filter(|&write| Self::is_of_slot(model, write) == of_slot).fold(0, |all, write| all | 1 << write)
            & writes
    }

    pub(super) fn all_of(model: &Moves, of_slot: bool) -> Writes {
        let program = (1 << model.program.len()) - 1;
        let ephemeral = if model.ephemeral { 1 << EPHEMERAL | 1 << REMOVAL } else { 0 };
        Self::only(model, of_slot, program | ephemeral)
    }

    pub(super) fn is_held(&self, group: usize) -> bool {
        self.logs[group].open_parts(self.logs[group].len()).next().is_some()
    }

    /// The stamp with which the present attempt was staged in a group.
    pub(super) fn staged(&self, group: usize) -> Option<u8> {
        self.staged_in(group, self.attempt)
    }

    pub(super) fn staged_in(&self, group: usize, attempt: u8) -> Option<u8> {
        let mut entries = self.logs[group].entries.iter();
        entries.find(|(_, entry)| entry.staging() == PartEffect::Stages(attempt)).map(|entry| entry.0)
    }

    /// The largest stamp of what shows in any group.
    fn newest_shown(&self) -> u8 {
        let shown = self.logs.iter().flat_map(|log| &log.entries);
        let shown =
            shown.filter(|entry| matches!(entry.1, MovesEntry::Write(_) | MovesEntry::Release { .. }));
        shown.map(|entry| entry.0).max().unwrap_or(0)
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.attempt == 0 || self.items[SOURCE].contains(&MovesEntry::GiveUp(self.attempt))
    }

    pub(super) fn newest(&self) -> u8 {
        self.logs.iter().map(StampedLog::last_stamp).max().unwrap_or(0)
    }

    pub(super) fn step(&mut self, model: &Moves, action: MovesStep) -> Option<()> {
        match action {
            MovesStep::LogEmpty(group) => {
                let newest = self.newest();
                self.logs[group].append_empty(newest, MovesEntry::Empty);
                Some(())
            }
            MovesStep::LearnMap => {
                self.knows_map = true;
                Some(())
            }
            MovesStep::Send => self.send(model),
            MovesStep::Arrive => self.arrive(model),
            MovesStep::CreateEphemeral => self.create_ephemeral(model),
            MovesStep::TimeOut => {
                self.owner_ended = true;
                Some(())
            }
            MovesStep::RemoveEphemeral(group) => self.remove_ephemeral(group),
            MovesStep::Read { of_slot, group, applied } => self.read(model, of_slot, group, applied),
            MovesStep::List { applied } => self.list(model, applied),
            of_move => self.move_step(model, of_move),
        }
    }

    pub(super) fn actions(&self, model: &Moves, actions: &mut Vec<MovesStep>) {
        self.move_actions(model, actions);
        self.session_actions(model, actions);
        if self.looks < model.looks {
            for group in 0..GROUPS {
                if self.logs[group].last_stamp() < self.newest_shown() {
                    actions.push(MovesStep::LogEmpty(group));
                }
                for applied in 0..=self.logs[group].len() {
                    for of_slot in [false, true].into_iter().filter(|of_slot| *of_slot || group == SOURCE) {
                        actions.push(MovesStep::Read { of_slot, group, applied });
                    }
                    if group == SOURCE {
                        let second = 0..=self.logs[TARGET].len();
                        actions.extend(second.map(|second| MovesStep::List { applied: [applied, second] }));
                    }
                }
            }
        }
    }
}
