//! The logs, the slot in them, and the sessions.

use super::rules::{EPHEMERAL, LevelSlots, LevelSlotsMistake, REMOVAL, TARGET, WRITERS};
use crate::worlds::level_logs::{HOME, LevelEntry, LevelLogs, LevelRule};
use crate::worlds::write_order::{Sight, WriteOrder, Writes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LevelSlotsContent {
    Write(u8),
    /// The slot with its znodes, the largest stamp that they show, and the owners of ephemerals among them.
    Slot {
        writes: Writes,
        stamp: u8,
        attaches: bool,
    },
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelSlotsStep {
    Copy,
    MoveSlot,
    EndSession,
    TakeItem(usize),
    LogEmpty(usize),
    /// The member of both writers applies the move.
    LearnMap,
    Send(usize),
    Arrive(usize),
    Read {
        of_slot: bool,
        group: usize,
        home_applied: usize,
        applied: usize,
    },
    List {
        applied: [usize; 2],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LevelSlotsSent {
    Request(u8),
    GoOn,
}

/// A writer: what it has under way, all in one group and in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelSlotsWriter {
    pub(super) sight: Sight,
    pub(super) next: u8,
    pub(super) group: usize,
    pub(super) sent: Vec<LevelSlotsSent>,
    /// The first request that was refused, from which on its member sends again.
    pub(super) refused: Option<u8>,
    /// The groups, one bit each, in which it is stalled, and those to which its member has to say to go on.
    pub(super) stalled: u8,
    pub(super) must_go_on: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelSlotsState {
    pub(super) logs: LevelLogs<LevelSlotsContent>,
    pub(super) copied: Option<Writes>,
    pub(super) knows_map: bool,
    pub(super) writers: [LevelSlotsWriter; WRITERS],
    pub(super) done: Writes,
    pub(super) reader: Sight,
    pub(super) looks: u8,
    pub(super) order: WriteOrder,
    pub(super) listed_twice: bool,
}

impl LevelSlotsState {
    pub(super) fn first(model: &LevelSlots) -> LevelSlotsState {
        let mut state = LevelSlotsState::default();
        if model.ephemeral {
            state.logs.append(HOME, 0, LevelEntry::Command(LevelSlotsContent::Write(EPHEMERAL)));
        }
        state
    }

    pub(super) fn is_broken(&self) -> bool {
        self.order.has_circle() || self.listed_twice
    }

    pub(super) fn is_done(&self, model: &LevelSlots) -> bool {
        self.done.count_ones() as usize == model.programs.iter().map(Vec::len).sum::<usize>()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.decided(|content| content == LevelSlotsContent::End).is_some()
    }

    /// The place of the move in home's log.
    pub(super) fn moved(&self) -> Option<u8> {
        self.decided(|content| matches!(content, LevelSlotsContent::Slot { .. }))
    }

    fn decided(&self, is_it: impl Fn(LevelSlotsContent) -> bool) -> Option<u8> {
        self.logs.logs[HOME].iter().find_map(|(_, entry)| match entry {
            LevelEntry::Decision { content, place, .. } if is_it(*content) => Some(*place),
            _ => None,
        })
    }

    /// True if the first entries of a group leave the slot there.
    pub(super) fn has_slot(&self, group: usize, applied: usize) -> bool {
        let moves = self.logs.logs[group][..applied].iter().any(|(_, entry)| match entry {
            LevelEntry::Decision { content, .. } | LevelEntry::Item { content, .. } => {
                matches!(content, LevelSlotsContent::Slot { .. })
            }
            LevelEntry::Empty | LevelEntry::Command(_) => false,
        });
        moves == (group == TARGET)
    }

    /// The writes that show, or showed, in the first entries of a group, up to a place, and the largest stamp of them here.
    pub(super) fn shown(&self, group: usize, applied: usize, place: u8) -> (Writes, u8) {
        let mut shown = (0, 0);
        let mut is_attached = group == HOME;
        for (index, (stamp, entry)) in self.logs.logs[group][..applied].iter().enumerate() {
            if self.logs.place(group, index, applied).0 > place {
                continue;
            }
            let (content, is_item) = match entry {
                LevelEntry::Empty => continue,
                LevelEntry::Command(content) | LevelEntry::Decision { content, .. } => (*content, false),
                LevelEntry::Item { content, .. } => (*content, true),
            };
            shown = match content {
                LevelSlotsContent::Write(write) => (shown.0 | 1 << write, *stamp),
                LevelSlotsContent::Slot { writes, stamp, attaches } if is_item => {
                    is_attached = attaches;
                    (shown.0 | writes, stamp.max(shown.1))
                }
                LevelSlotsContent::Slot { .. } => shown,
                LevelSlotsContent::End => {
                    let removes = is_attached && self.has_slot(group, index) && shown.0 & 1 << EPHEMERAL != 0;
                    if removes { (shown.0 | 1 << REMOVAL, *stamp) } else { shown }
                }
            };
        }
        shown
    }

    pub(super) fn all_shown(&self, group: usize) -> Writes {
        self.shown(group, self.logs.len(group), u8::MAX).0
    }

    /// The ephemeral of an ended session shows somewhere.
    pub(super) fn has_orphan(&self) -> bool {
        let shows = |group: usize| {
            let shown = self.all_shown(group);
            self.has_slot(group, self.logs.len(group))
                && shown & 1 << EPHEMERAL != 0
                && shown & 1 << REMOVAL == 0
        };
        self.has_ended() && (shows(HOME) || shows(TARGET))
    }

    pub(super) fn newest(&self) -> u8 {
        self.logs.last_stamp(HOME).max(self.logs.last_stamp(TARGET))
    }

    pub(super) fn level(&self, group: usize, home_applied: usize, applied: usize) -> u8 {
        self.logs.level(LevelRule::Right, group, home_applied, applied)
    }

    pub(super) fn actions(&self, model: &LevelSlots, actions: &mut Vec<LevelSlotsStep>) {
        if self.moved().is_none() {
            actions.push(LevelSlotsStep::MoveSlot);
            if model.is(LevelSlotsMistake::CopiedEarly) && self.copied.is_none() {
                actions.push(LevelSlotsStep::Copy);
            }
        } else if !self.knows_map {
            actions.push(LevelSlotsStep::LearnMap);
        }
        if model.ephemeral && !self.has_ended() {
            actions.push(LevelSlotsStep::EndSession);
        }
        if self.logs.next_item(TARGET).is_some() {
            actions.push(LevelSlotsStep::TakeItem(TARGET));
        }
        for group in [HOME, TARGET] {
            if self.logs.last_stamp(group) < self.newest() {
                actions.push(LevelSlotsStep::LogEmpty(group));
            }
        }
        self.session_actions(model, actions);
    }

    pub(super) fn step(&mut self, model: &LevelSlots, action: LevelSlotsStep) -> Option<()> {
        match action {
            LevelSlotsStep::Copy => self.copied = Some(model.only(true, self.all_shown(HOME))),
            LevelSlotsStep::MoveSlot => {
                let now = model.only(true, self.all_shown(HOME));
                let writes = if model.is(LevelSlotsMistake::CopiedEarly) { self.copied? } else { now };
                let attaches = now & 1 << EPHEMERAL != 0 && !model.is(LevelSlotsMistake::OwnersNotAttached);
                let stamp = self.shown(HOME, self.logs.len(HOME), u8::MAX).1;
                self.logs.decide(LevelSlotsContent::Slot { writes, stamp, attaches }, 1 << TARGET, 0, false);
            }
            LevelSlotsStep::EndSession => self.end_session(model),
            LevelSlotsStep::TakeItem(group) => self.take_item(model, group)?,
            LevelSlotsStep::LogEmpty(group) => {
                let newest = self.newest();
                self.logs.append_empty(group, newest);
            }
            LevelSlotsStep::LearnMap => self.knows_map = true,
            LevelSlotsStep::Send(writer) => self.send(model, writer)?,
            LevelSlotsStep::Arrive(writer) => self.arrive(model, writer)?,
            LevelSlotsStep::Read { of_slot, group, home_applied, applied } => {
                self.read(model, of_slot, group, home_applied, applied)?;
            }
            LevelSlotsStep::List { applied } => self.list(model, applied)?,
        }
        Some(())
    }

    /// The end is an item for the groups to which the session is attached: with the slot, if it has moved.
    fn end_session(&mut self, model: &LevelSlots) {
        let is_attached = self.moved().is_some() && !model.is(LevelSlotsMistake::OwnersNotAttached);
        let before = self.all_shown(HOME);
        self.logs.decide(LevelSlotsContent::End, if is_attached { 1 << TARGET } else { 0 }, 0, false);
        if self.all_shown(HOME) & 1 << REMOVAL != 0 {
            self.order.put_before(before & !(1 << REMOVAL), 1 << REMOVAL);
        }
    }

    fn take_item(&mut self, model: &LevelSlots, group: usize) -> Option<()> {
        let before = model.only(true, self.all_shown(group));
        let (place, _) = self.logs.next_item(group)?;
        if self.logs.take_item(group, place - 1)? == LevelSlotsContent::End {
            self.order.put_before(before & !(1 << REMOVAL), 1 << REMOVAL);
        }
        Some(())
    }
}
