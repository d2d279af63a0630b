//! The logs and streams, what the sessions know, and each step of the world.

use super::rules::{GROUPS, READERS};
use crate::worlds::stamped_log::{PartEffect, StampedEntry, StampedLog};
use crate::worlds::write_order::{Sight, WriteOrder};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EndsEntry {
    Empty,
    Write,
    Other,
    Fence,
    Stage(u8),
    Busy(u8),
    Release(u8),
    GiveUp(u8),
}

impl StampedEntry for EndsEntry {
    fn staging(&self) -> PartEffect {
        match self {
            EndsEntry::Stage(attempt) => PartEffect::Stages(*attempt),
            EndsEntry::Release(attempt) | EndsEntry::GiveUp(attempt) => PartEffect::Ends(*attempt),
            _ => PartEffect::None,
        }
    }

    fn is_empty(&self) -> bool {
        *self == EndsEntry::Empty
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EndsState {
    pub(super) logs: [StampedLog<EndsEntry>; GROUPS],
    /// Items of home's streams, and how many of them each group has logged.
    pub(super) streams: [Vec<EndsEntry>; GROUPS],
    pub(super) taken: [u8; GROUPS],
    pub(super) away: Option<usize>,
    pub(super) was_away: bool,
    pub(super) write_arrived: bool,
    pub(super) timed_out: bool,
    pub(super) attempt: u8,
    pub(super) settled: bool,
    pub(super) told: bool,
    pub(super) readers: [(Sight, u8); READERS],
    pub(super) has_written: bool,
    pub(super) order: WriteOrder,
    pub(super) wrote_after_told: bool,
    pub(super) found_own_lock: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndsStep {
    WriteArrives,
    TimeOut,
    TakeItem { group: usize, busy: bool },
    StartStaging,
    Decide,
    GiveUp,
    LoseQuorum(usize),
    RegainQuorum,
    LogEmpty(usize),
    Read { reader: usize, group: usize, applied: usize },
    ReaderWrites,
    TellExpired,
    LockAgain(usize),
}

impl EndsState {
    pub(super) fn logged(&self, group: usize, entry: EndsEntry) -> bool {
        self.logs[group].entries.iter().any(|logged| logged.1 == entry)
    }

    pub(super) fn released(&self, group: usize, applied: usize) -> bool {
        self.logs[group].entries[..applied].iter().any(|(_, entry)| matches!(entry, EndsEntry::Release(_)))
    }

    pub(super) fn released_everywhere(&self, attached: &[usize]) -> bool {
        attached.iter().all(|&group| self.released(group, self.logs[group].len()))
    }

    pub(super) fn is_broken(&self) -> bool {
        self.order.has_circle() || self.wrote_after_told || self.found_own_lock
    }

    pub(super) fn newest_stamp(&self) -> u8 {
        self.logs.iter().map(StampedLog::last_stamp).max().unwrap_or(0)
    }
}
