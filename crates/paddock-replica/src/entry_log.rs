//! The tail of the Raft log in memory, as the Raft library wants to read it.
//!
//! Entries stand here from the moment they are handed to the transaction log until they are applied and a bounded
//! number of bytes has come after them. What is older is in the snapshot. What a follower lacks that is on its way to have
//! everything is kept longer: else those who write could be faster for ever than a snapshot is there.

use std::cell::Cell;
use std::collections::VecDeque;

use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

use crate::Membership;

#[derive(Debug)]
pub(crate) struct EntryLog {
    /// The entry before the first one kept.
    before: (u64, u64),
    entries: VecDeque<Entry>,
    bytes: usize,
    hard_state: HardState,
    /// Membership when the log began.
    membership: Membership,
    /// Bytes of applied entries that are kept for members that lag a little.
    bytes_kept: usize,
    /// Index and term of the last entry in the newest snapshot file.
    snapshot: (u64, u64),
    /// Membership as of that entry.
    snapshot_membership: Membership,
    /// A follower lags behind `before`, and the newest snapshot is older than that, or doubted.
    wants_snapshot: Cell<bool>,
    /// The next snapshot will have all entries up to here, if one is wanted.
    next_snapshot: Cell<Option<u64>>,
    applied: u64,
    /// Entries behind this one are not let go, if there is a follower that lacks them.
    held: Cell<Option<u64>>,
}

impl EntryLog {
    /// Bytes that are kept for a follower at most. One that lags more begins anew with another snapshot.
    const BYTES_HELD_MAX: usize = 256 << 20;

    /// A log that begins behind `(index, term)`: a snapshot, or nothing at all. Where it is another entry, [`EntryLog::begin_with_snapshot`] tells of the snapshot.
    pub(crate) fn new(
        before: (u64, u64),
        membership: Membership,
        hard_state: HardState,
        bytes_kept: usize,
    ) -> EntryLog {
        EntryLog {
            before,
            entries: VecDeque::new(),
            bytes: 0,
            hard_state,
            snapshot_membership: membership.clone(),
            membership,
            bytes_kept,
            snapshot: before,
            wants_snapshot: Cell::new(false),
            next_snapshot: Cell::new(None),
            applied: before.0,
            held: Cell::new(None),
        }
    }

    /// The newest snapshot file is older than the entry before the log, which was applied from the disk.
    pub(crate) fn begin_with_snapshot(&mut self, snapshot: (u64, u64), membership: Membership) {
        (self.snapshot, self.snapshot_membership) = (snapshot, membership);
    }

    /// There is a snapshot up to this entry, when these took part.
    pub(crate) fn has_snapshot(&mut self, index: u64, term: u64, membership: Membership) {
        if (index, term) > self.snapshot {
            self.snapshot = (index, term);
            self.snapshot_membership = membership;
            self.next_snapshot.set(None);
        }
    }

    /// Index and term of the last entry in the newest snapshot file.
    pub(crate) fn newest_snapshot(&self) -> (u64, u64) {
        self.snapshot
    }

    /// A snapshot should be taken soon.
    pub(crate) fn want_snapshot(&self) {
        self.wants_snapshot.set(true);
        let next = self.next_snapshot.get().unwrap_or(self.applied);
        self.next_snapshot.set(Some(next));
        self.held.set(Some(self.held.get().map_or(next, |held| held.min(next))));
    }

    /// From where a follower goes on that has everything up to `matched`: there, or behind a snapshot that it will get.
    pub(crate) fn goes_on_behind(&self, matched: u64) -> Option<u64> {
        let places = [Some(matched), Some(self.snapshot.0), self.next_snapshot.get()];
        places.into_iter().flatten().find(|place| *place >= self.before.0)
    }

    /// Entries behind `held` are not let go from now on, but for want of memory.
    pub(crate) fn hold(&mut self, held: Option<u64>) {
        self.held.set(held);
    }

    /// True if a snapshot should be taken soon; asked once.
    pub(crate) fn take_wish(&self) -> bool {
        self.wants_snapshot.take()
    }

    /// Forgets everything: a snapshot up to this entry stands in its place.
    pub(crate) fn restore(&mut self, index: u64, term: u64, membership: Membership) {
        self.before = (index, term);
        self.snapshot = (index, term);
        self.next_snapshot.set(None);
        self.entries.clear();
        self.bytes = 0;
        self.applied = index;
        self.held.set(None);
        self.snapshot_membership = membership.clone();
        self.membership = membership;
    }

    pub(crate) fn first(&self) -> u64 {
        self.before.0 + 1
    }

    pub(crate) fn last(&self) -> u64 {
        self.before.0 + self.entries.len() as u64
    }

    /// Appends `entry`, in place of all that stood at its index and after it.
    pub(crate) fn append(&mut self, entry: Entry) {
        assert!(entry.index >= self.first(), "entry {} is older than the log", entry.index);
        assert!(entry.index <= self.last() + 1, "gap in the log before entry {}", entry.index);
        while self.last() >= entry.index {
            let dropped = self.entries.pop_back().expect("last() counts the entries");
            self.bytes -= dropped.data.len();
        }
        self.bytes += entry.data.len();
        self.entries.push_back(entry);
    }

    /// Lets go of the oldest entries up to `applied`, as far as memory demands it.
    pub(crate) fn trim(&mut self, applied: u64) {
        self.applied = applied;
        let free = self.held.get().unwrap_or(applied).min(applied);
        while self.bytes > self.bytes_kept && self.first() <= applied {
            if self.first() > free && self.bytes <= EntryLog::BYTES_HELD_MAX {
                return;
            }
            let oldest = self.entries.pop_front().expect("bytes counts the entries");
            self.bytes -= oldest.data.len();
            self.before = (oldest.index, oldest.term);
        }
    }

    fn get(&self, index: u64) -> Option<&Entry> {
        let position = index.checked_sub(self.first())?;
        self.entries.get(usize::try_from(position).ok()?)
    }
}

impl Storage for EntryLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.membership.to_raft()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low < self.first() {
            return Err(Error::Store(StorageError::Compacted));
        }
        assert!(high <= self.last() + 1, "entries up to {high} asked of a log that ends at {}", self.last());
        let mut room = max_size.into().unwrap_or(u64::MAX);
        let mut found = Vec::new();
        for index in low..high {
            let entry = self.get(index).expect("the bounds were checked");
            let size = entry.data.len() as u64;
            if size > room && !found.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.before.0 {
            return Ok(self.before.1);
        }
        if index < self.first() {
            return Err(Error::Store(StorageError::Compacted));
        }
        self.get(index).map(|entry| entry.term).ok_or(Error::Store(StorageError::Unavailable))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        // A snapshot is of no use to a receiver if the log does not go on right behind it, or if it was taken before the receiver joined:
        // by such a snapshot the receiver would find that it is no member.
        let is_too_old = self.snapshot.0 < self.before.0.max(request_index).max(1);
        if is_too_old || !self.snapshot_membership.contains(to) {
            self.want_snapshot();
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = self.snapshot;
        metadata.set_conf_state(self.snapshot_membership.to_raft());
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, term: u64, bytes: usize) -> Entry {
        Entry { index, term, data: vec![0; bytes].into(), ..Entry::default() }
    }

    #[test]
    fn a_new_term_replaces_the_tail() {
        let mut log = EntryLog::new((0, 0), Membership::new(vec![1, 2], vec![]), HardState::default(), 100);
        (1..=3).for_each(|index| log.append(entry(index, 1, 10)));
        log.append(entry(2, 2, 5));
        assert_eq!((log.last(), log.term(2).unwrap(), log.bytes), (2, 2, 15));
    }

    #[test]
    fn only_applied_entries_are_let_go() {
        let mut log = EntryLog::new((7, 3), Membership::new(vec![1, 2], vec![]), HardState::default(), 100);
        (8..=10).for_each(|index| log.append(entry(index, 3, 100)));
        log.trim(8);
        assert_eq!((log.first(), log.last()), (9, 10));
        assert_eq!(log.term(8).unwrap(), 3);
        assert!(log.term(7).is_err());
    }

    #[test]
    fn what_a_follower_lacks_is_kept() {
        let mut log = EntryLog::new((7, 3), Membership::new(vec![1, 2], vec![]), HardState::default(), 100);
        (8..=20).for_each(|index| log.append(entry(index, 3, 100)));
        log.trim(10);
        assert_eq!((log.goes_on_behind(10), log.goes_on_behind(9)), (Some(10), None));
        // A follower that lags more is sent the snapshot that is taken now, and the entries behind it.
        log.want_snapshot();
        log.trim(12);
        log.want_snapshot();
        assert_eq!((log.first(), log.goes_on_behind(9)), (11, Some(10)));
        log.has_snapshot(13, 3, Membership::new(vec![1, 2], vec![]));
        log.hold(log.goes_on_behind(9));
        log.trim(18);
        assert_eq!((log.first(), log.goes_on_behind(9)), (14, Some(13)));
        log.hold(Some(16));
        log.trim(20);
        assert_eq!(log.first(), 17);
        log.hold(None);
        log.trim(20);
        assert_eq!((log.first(), log.goes_on_behind(9)), (20, None));
    }

    #[test]
    fn a_snapshot_is_offered_only_if_the_entries_behind_it_are_there() {
        let mut log = EntryLog::new((7, 3), Membership::new(vec![1, 2], vec![]), HardState::default(), 100);
        assert_eq!(log.snapshot(0, 2).unwrap().get_metadata().index, 7);
        (8..=12).for_each(|index| log.append(entry(index, 3, 100)));
        log.trim(10);
        assert!(log.snapshot(0, 2).is_err());
        assert!(log.take_wish());
        assert!(!log.take_wish());
        log.has_snapshot(11, 3, Membership::new(vec![1, 2], vec![]));
        assert_eq!(log.snapshot(0, 2).unwrap().get_metadata().index, 11);
        assert!(log.snapshot(0, 3).is_err(), "member 3 had no part in it");
        assert!(log.take_wish());
        log.has_snapshot(12, 3, Membership::new(vec![1, 2], vec![3]));
        assert_eq!(log.snapshot(0, 3).unwrap().get_metadata().index, 12);
        log.restore(20, 4, Membership::new(vec![1, 2], vec![]));
        assert_eq!((log.first(), log.last(), log.term(20).unwrap()), (21, 20, 4));
    }
}
