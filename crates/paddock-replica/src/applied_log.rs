//! Entries that were applied last, with the outcome of each command, for those who follow the changes of a member.
//!
//! An outcome depends on the state before it, so it is noted when it comes about. Entries are kept until there are too many bytes of them; of
//! what is older only the log tells, and not what came of it.

use std::collections::VecDeque;
use std::sync::Arc;

use paddock_proto::Zxid;
use paddock_tree::{Command, OutcomeNote};

use crate::LogEntry;

/// An entry that was applied.
#[derive(Debug)]
pub struct AppliedEntry {
    entry: LogEntry,
    /// For each of its commands the outcome; `None` for one that had been applied before.
    notes: Vec<Option<OutcomeNote>>,
    /// Zxid of the state before it.
    before: Zxid,
}

impl AppliedEntry {
    /// Index of the entry in the log.
    pub fn index(&self) -> u64 {
        self.entry.index
    }

    /// Zxid of the state before the entry.
    pub fn before(&self) -> Zxid {
        self.before
    }

    /// Its commands that were applied, in order, with their outcomes.
    pub fn commands(&self) -> impl Iterator<Item = (Command<'_>, &OutcomeNote)> {
        let commands = self.entry.batches().flat_map(|batch| batch.commands());
        commands.zip(&self.notes).filter_map(|(command, note)| Some((command, note.as_ref()?)))
    }

    fn bytes(&self) -> usize {
        let of_notes =
            self.notes.iter().map(|note| note.as_ref().map_or(0, OutcomeNote::bytes)).sum::<usize>();
        size_of::<AppliedEntry>() + self.entry.payload.len() + of_notes
    }
}

/// An entry or a transaction that is not among those kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKept {
    /// The oldest transaction that is.
    pub oldest: Zxid,
}

/// The entries that were applied last.
#[derive(Debug)]
pub struct AppliedLog {
    entries: VecDeque<Arc<AppliedEntry>>,
    bytes: usize,
    /// Bytes that are kept; 0 keeps nothing.
    bytes_max: usize,
    /// Outcomes of the commands of the entry that is being applied.
    notes: Vec<Option<OutcomeNote>>,
    /// Zxid of the state before the oldest entry that is kept.
    floor: Zxid,
    /// Index of the last entry that was applied.
    last: u64,
}

impl AppliedLog {
    /// A log that keeps nothing, behind an entry and the state after it.
    pub(crate) fn new(last: u64, zxid: Zxid) -> AppliedLog {
        let (entries, notes) = Default::default();
        AppliedLog { entries, bytes: 0, bytes_max: 0, notes, floor: zxid, last }
    }

    /// From now on as many bytes are kept.
    pub(crate) fn keep(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// A snapshot has taken the place of the state.
    pub(crate) fn begin_anew(&mut self, last: u64, zxid: Zxid) {
        *self = AppliedLog { bytes_max: self.bytes_max, ..AppliedLog::new(last, zxid) };
    }

    /// True if entries are kept at all.
    pub fn is_kept(&self) -> bool {
        self.bytes_max > 0
    }

    /// Takes the outcome of the next command of the entry that is being applied; `None` if that had been applied before.
    pub(crate) fn note(&mut self, note: Option<OutcomeNote>) {
        self.notes.push(note);
    }

    /// The entry was applied to a state with the zxid `before`, and all its commands were noted.
    pub(crate) fn push(&mut self, entry: LogEntry, before: Zxid) {
        assert!(entry.index == self.last + 1, "entry {} follows entry {}", entry.index, self.last);
        self.last = entry.index;
        if !self.is_kept() {
            return;
        }
        let entry = AppliedEntry { entry, notes: std::mem::take(&mut self.notes), before };
        self.bytes += entry.bytes();
        self.entries.push_back(Arc::new(entry));
        // The last one is kept however large it is, for those who read as fast as it is written.
        while self.bytes > self.bytes_max && self.entries.len() > 1 {
            let gone = self.entries.pop_front().expect("there is more than one");
            self.bytes -= gone.bytes();
            self.floor = self.entries[0].before;
        }
    }

    /// The oldest transaction that is kept, or would be the next one.
    pub fn oldest(&self) -> Zxid {
        Zxid(self.floor.0 + 1)
    }

    /// Index of the first entry that may have a transaction from this zxid on.
    pub fn find(&self, from: Zxid) -> Result<u64, NotKept> {
        if from < self.oldest() {
            return Err(NotKept { oldest: self.oldest() });
        }
        let behind = self.entries.partition_point(|entry| entry.before < from);
        // The one before it may hold the transaction, and those behind it.
        let first = behind.checked_sub(1).and_then(|at| self.entries.get(at));
        Ok(first.map_or(self.last + 1, |entry| entry.index()))
    }

    /// The entries from this index on, at most as many.
    pub fn from(&self, index: u64, entries_max: usize) -> Result<Vec<Arc<AppliedEntry>>, NotKept> {
        let first = self.entries.front().map_or(self.last + 1, |entry| entry.index());
        let skipped = index.checked_sub(first).ok_or(NotKept { oldest: self.oldest() })?;
        Ok(self.entries.iter().skip(skipped as usize).take(entries_max).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use paddock_proto::{IdList, OpCode, SessionId};
    use paddock_tree::Origin;

    use super::*;
    use crate::batch::{BatchBuilder, EntryBuilder};

    /// An entry with commands of sessions 1, 2 and so on.
    fn payload(commands: i64) -> Bytes {
        let (mut batch, mut entry) = (BatchBuilder::new(), EntryBuilder::new(None));
        for session in 1..=commands {
            let mut bytes = Vec::new();
            Command::encode(SessionId(session), 0, IdList::NONE, OpCode::CloseSession, &[], &mut bytes);
            batch.push(&bytes);
        }
        entry.add(
            &batch.take(Origin { member: 1, incarnation: 1 }, 1),
            paddock_state::Now { monotonic_ms: 0, wall_ms: 7 },
        );
        entry.take()
    }

    fn note(zxid: i64) -> Option<OutcomeNote> {
        let (created, removed) = Default::default();
        Some(OutcomeNote { zxid: Zxid(zxid), error: None, failed_operation: 0, created, removed })
    }

    /// Entries 11, 12 and so on, with two transactions each from zxid 101 on. A third command of each had been applied before.
    fn filled(bytes_max: usize, entries: u64) -> AppliedLog {
        let mut log = AppliedLog::new(10, Zxid(100));
        log.keep(bytes_max);
        for number in 0..entries {
            let before = 100 + 2 * number as i64;
            log.note(note(before + 1));
            log.note(None);
            log.note(note(before + 2));
            log.push(LogEntry { index: 11 + number, term: 1, payload: payload(3) }, Zxid(before));
        }
        log
    }

    fn told(log: &AppliedLog, index: u64) -> Vec<(i64, i64)> {
        let entries = log.from(index, 100).expect("they are kept");
        entries
            .iter()
            .flat_map(|entry| {
                entry.commands().map(|(command, note)| (command.session.0, note.zxid.0)).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn transactions_are_found_by_their_zxid() {
        let log = filled(1 << 20, 3);
        for (from, index) in [(101, 11), (102, 11), (103, 12), (106, 13), (107, 13), (900, 13)] {
            assert_eq!(log.find(Zxid(from)), Ok(index), "from {from}");
        }
        assert_eq!(log.find(Zxid(100)), Err(NotKept { oldest: Zxid(101) }));
        assert_eq!(told(&log, 12), [(1, 103), (3, 104), (1, 105), (3, 106)]);
        assert_eq!(told(&log, 14), []);
        assert_eq!(log.from(10, 1).unwrap_err(), NotKept { oldest: Zxid(101) });
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_bytes() {
        let bytes = filled(1 << 20, 1).bytes;
        let log = filled(3 * bytes, 10);
        assert_eq!((log.oldest(), log.bytes), (Zxid(115), 3 * bytes));
        assert_eq!(log.find(Zxid(114)), Err(NotKept { oldest: Zxid(115) }));
        assert_eq!(log.find(Zxid(115)), Ok(18));
        assert!(log.from(17, 1).is_err() && log.from(18, 1).is_ok());
        // However little is kept, the last one is.
        assert_eq!(told(&filled(1, 5), 15), [(1, 109), (3, 110)]);
    }

    #[test]
    fn nothing_is_kept_where_that_is_so_set_or_behind_a_snapshot() {
        let mut log = AppliedLog::new(10, Zxid(100));
        log.push(LogEntry { index: 11, term: 1, payload: payload(1) }, Zxid(100));
        assert_eq!(told(&log, 12), []);
        let mut log = filled(1 << 20, 3);
        log.begin_anew(50, Zxid(300));
        assert_eq!((log.find(Zxid(300)), log.find(Zxid(301))), (Err(NotKept { oldest: Zxid(301) }), Ok(51)));
        assert!(log.from(14, 1).is_err() && told(&log, 51).is_empty());
    }
}
