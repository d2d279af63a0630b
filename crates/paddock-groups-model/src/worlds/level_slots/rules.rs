//! The rules at work in a world of slots that move away from home, and the mistakes that can be planted.

use crate::worlds::write_order::Writes;

pub(super) const WRITERS: usize = 2;
/// The group that gets the slot.
pub(super) const TARGET: usize = 1;
/// The ephemeral in the slot, and its removal when its session ends.
pub(super) const EPHEMERAL: u8 = 6;
pub(super) const REMOVAL: u8 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelSlotsMistake {
    /// A refused command stalls nothing that its session has under way behind it.
    RefusalStallsNothing,
    /// A member's word to go on is for all sessions.
    GoOnForAll,
    /// A member says to go on while commands behind the refused one are under way, and overtakes them.
    GoOnOvertakes,
    /// Home takes commands about the slot after the move.
    RefusesNothing,
    /// The group takes commands about the slot before it has applied the item.
    TargetTakesEarly,
    /// Writes made between a copy and the decision stay behind.
    CopiedEarly,
    /// Owners of ephemerals in the slot are not attached to the group.
    OwnersNotAttached,
    /// A write waits for nothing that home has shown.
    WriteDoesNotWait,
    /// A read goes to the group that has the slot now, at a replica that need not have it.
    ReadsByMapOfNow,
    /// A list takes the slot from the group that has it now.
    ListsByMapOfNow,
    /// A list takes the slot from each replica that has it.
    ListsByReplica,
    /// A list takes of each group all that is applied.
    ListsApplied,
}

#[derive(Clone, Debug)]
pub(super) struct LevelSlots {
    pub(super) mistake: Option<LevelSlotsMistake>,
    /// The requests of each writer: true for one on the slot that moves, else on one that stays at home.
    pub(super) programs: [Vec<bool>; WRITERS],
    /// True if a session has created an ephemeral in the slot, and ends.
    pub(super) ephemeral: bool,
    /// Reads and lists of the session that looks on.
    pub(super) looks: u8,
}

impl LevelSlots {
    pub(super) fn is(&self, mistake: LevelSlotsMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The number of a writer's request among all writes.
    pub(super) fn write(&self, writer: usize, request: u8) -> u8 {
        if writer == 0 { request } else { self.programs[0].len() as u8 + request }
    }

    fn is_of_slot(&self, write: u8) -> bool {
        let all = self.programs[0].iter().chain(&self.programs[1]);
        all.copied().nth(write as usize).unwrap_or(true)
    }

    /// The writes among these that are to the slot, or to the other one.
    pub(super) fn only(&self, of_slot: bool, writes: Writes) -> Writes {
        let of_it = (0..=REMOVAL).filter(|&write| self.is_of_slot(write) == of_slot);
        of_it.fold(0, |all, write| all | 1 << write) & writes
    }

    pub(super) fn all_of(&self, of_slot: bool) -> Writes {
        let programs = (1 << (self.programs[0].len() + self.programs[1].len())) - 1;
        let ephemeral = if self.ephemeral { 1 << EPHEMERAL | 1 << REMOVAL } else { 0 };
        self.only(of_slot, programs | ephemeral)
    }
}
