//! State that a member has only while it leads. It begins with a term of this member's and ends with it.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use paddock_proto::{DecodeError, IdList, OpCode, SessionId};
use paddock_state::Now;
use paddock_tree::{Command, FeatureLevel, Origin};

use crate::batch::{Batch, BatchBuilder, EntryBuilder};
use crate::confirming::Confirming;
use crate::digests::DigestReports;
use crate::disk_age::Acknowledged;
use crate::lease::Lease;
use crate::log_ends::LogEnds;
use crate::proposal_sizes::ProposalSizes;
use crate::rosters::RosterReport;
use crate::snapshot_transfer::SnapshotOffers;
use crate::stamps::StampClock;

/// Bytes of batches that make an entry full.
const ENTRY_BYTES: usize = 1 << 20;

/// Ticks after its last question for which a member counts as one that asks.
const ASKING_TICKS: u32 = 5;

#[derive(Debug)]
pub(crate) struct Leading {
    /// Entries under construction: batches of all members. All but the last one are full, and wait until they may be proposed. There
    /// is always one.
    entries: VecDeque<EntryBuilder>,
    /// Clock of the stamps that zxids are; `None` if they are counted.
    stamps: Option<StampClock>,
    /// Commands of the leader itself, such as that a session has expired. They have no number and are kept nowhere: they count
    /// if they come into the log in this term. The next leader judges for itself. All batches of them but the last one are full.
    announcements: VecDeque<BatchBuilder>,
    pub(crate) confirming: Confirming,
    pub(crate) lease: Lease,
    pub(crate) offers: SnapshotOffers,
    pub(crate) digests: DigestReports,
    pub(crate) proposals: Option<ProposalSizes>,
    pub(crate) log_ends: LogEnds,
    /// Entry up to which this leader has proposed ends of sessions, but for those that follow.
    ended_through: u64,
    /// Ends of sessions were announced, and were not seen to be proposed.
    has_unproposed_ends: bool,
    /// The last entry that a process of each member had acknowledged to this leader, before another process followed it.
    acknowledged_before: BTreeMap<u64, Acknowledged>,
    /// Members that were started and ask to be admitted, or for the term, with the ticks for which that counts: they neither vote nor lead yet.
    asking: BTreeMap<u64, u32>,
    /// The feature level that this leader has proposed last.
    proposed_level: FeatureLevel,
    /// The number of groups that this leader has proposed last.
    proposed_groups: u32,
    /// The roster that this leader has proposed last.
    proposed_roster: u64,
    /// The last report of this leader's group about a roster, and ticks since it was told.
    pub(crate) told_roster: Option<(RosterReport, u32)>,
    /// True once this leader has announced the split points that it wants.
    has_split: bool,
    /// True once this leader has announced the ensemble's name and members.
    has_named_ensemble: bool,
    /// True if an entry was proposed since the last tick, while the ensemble has no name.
    has_proposed_unnamed: bool,
}

impl Leading {
    /// A leader at the beginning of its term.
    pub(crate) fn new(lease_clock_bound_ms: Option<u64>, stamps: Option<StampClock>) -> Leading {
        Leading {
            entries: VecDeque::from([EntryBuilder::new(stamps)]),
            stamps,
            announcements: VecDeque::new(),
            confirming: Confirming::default(),
            lease: Lease::new(lease_clock_bound_ms),
            offers: SnapshotOffers::default(),
            digests: DigestReports::default(),
            proposals: None,
            log_ends: LogEnds::default(),
            ended_through: 0,
            has_unproposed_ends: false,
            acknowledged_before: BTreeMap::new(),
            asking: BTreeMap::new(),
            proposed_level: FeatureLevel::NONE,
            proposed_groups: 1,
            proposed_roster: 0,
            told_roster: None,
            has_split: false,
            has_named_ensemble: false,
            has_proposed_unnamed: false,
        }
    }

    /// Announces a command of the leader itself.
    pub(crate) fn announce(&mut self, op: OpCode, body: &[u8]) {
        let mut command = Vec::with_capacity(Command::encoded_len(IdList::NONE, body));
        Command::encode(SessionId::NONE, 0, IdList::NONE, op, body, &mut command);
        let has_room = |batch: &BatchBuilder| batch.len() + command.len() <= ENTRY_BYTES;
        if !self.announcements.back().is_some_and(has_room) {
            self.announcements.push_back(BatchBuilder::new());
        }
        if let Some(batch) = self.announcements.back_mut() {
            batch.push(&command);
        }
        self.has_unproposed_ends |= op == OpCode::ExpireSession;
    }

    /// The entry up to which this leader has ended sessions; none if ends are announced that stand in no entry of the log, which ends at
    /// `last`. To be called while no announcements are being moved.
    pub(crate) fn ended_through(&mut self, last: u64) -> Option<u64> {
        if self.has_unproposed_ends {
            let is_all_proposed =
                self.announcements.is_empty() && self.entries.iter().all(EntryBuilder::is_empty);
            if !is_all_proposed {
                return None;
            }
            (self.ended_through, self.has_unproposed_ends) = (last, false);
        }
        Some(self.ended_through)
    }

    /// Takes the announcements, as batches that an entry has room for.
    pub(crate) fn take_announcements(&mut self, origin: Origin) -> Vec<Bytes> {
        self.announcements.drain(..).map(|mut batch| batch.take(origin, Batch::UNNUMBERED)).collect()
    }

    /// True if a batch of this many bytes still fits into the entry.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.last_entry().is_none_or(|entry| entry.len() + bytes <= ENTRY_BYTES)
    }

    fn last_entry(&self) -> Option<&EntryBuilder> {
        self.entries.back().filter(|entry| !entry.is_empty())
    }

    /// Begins another entry. The one before waits until it may be proposed.
    pub(crate) fn begin_entry(&mut self) {
        if self.last_entry().is_some() {
            self.entries.push_back(EntryBuilder::new(self.stamps));
        }
    }

    fn entry(&mut self) -> &mut EntryBuilder {
        self.entries.back_mut().expect("there is always one")
    }

    /// Zxids of entries that are begun from now on are stamps of this clock, or are counted.
    pub(crate) fn set_stamps(&mut self, stamps: Option<StampClock>) {
        self.stamps = stamps;
        self.entry().set_stamps(stamps);
    }

    /// Adds a batch of this member, stamped with the leader's time.
    pub(crate) fn add_own(&mut self, batch: &[u8], now: Now) {
        self.entry().add(batch, now);
    }

    /// Adds a batch that another member has sent, unless it cannot be read; returns the sessions that clients resume by it.
    pub(crate) fn add_foreign(&mut self, batch: &[u8], now: Now) -> Result<Vec<SessionId>, DecodeError> {
        self.entry().add_foreign(batch, now)
    }

    /// The oldest entry, if it holds anything and may be proposed.
    ///
    /// An entry behind the one that names the ensemble waits until that is committed. So a member that has any of them on disk
    /// knows to which ensemble it belongs, and cannot be taken for a member of another one.
    pub(crate) fn take_entry(&mut self, is_ensemble_named: bool) -> Option<Bytes> {
        let entry = self.entries.front_mut().filter(|entry| !entry.is_empty())?;
        let may_propose = is_ensemble_named
            || self.has_named_ensemble && !std::mem::replace(&mut self.has_proposed_unnamed, true);
        if !may_propose {
            return None;
        }
        let payload = entry.take();
        if self.entries.len() > 1 {
            self.entries.pop_front();
        }
        Some(payload)
    }

    /// True the first time that this leader is to propose a level as high as this one.
    pub(crate) fn begins_level(&mut self, level: FeatureLevel) -> bool {
        let is_first = level > self.proposed_level;
        self.proposed_level = self.proposed_level.max(level);
        is_first
    }

    /// True the first time that this leader is to propose as many groups as these.
    pub(crate) fn begins_groups(&mut self, count: u32) -> bool {
        let is_first = count > self.proposed_groups;
        self.proposed_groups = self.proposed_groups.max(count);
        is_first
    }

    /// True the first time that this leader is to propose a roster as new as this one.
    pub(crate) fn begins_roster(&mut self, number: u64) -> bool {
        let is_first = number > self.proposed_roster;
        self.proposed_roster = self.proposed_roster.max(number);
        is_first
    }

    /// The ensemble has this number of groups, whatever this leader has proposed: it may propose more again.
    pub(crate) fn has_groups(&mut self, count: u32) {
        self.proposed_groups = count;
    }

    /// True the first time that this leader is to announce the split points that it wants.
    pub(crate) fn begins_splitting(&mut self) -> bool {
        !std::mem::replace(&mut self.has_split, true)
    }

    /// A tick has passed: an entry that should have named the ensemble may be proposed again.
    pub(crate) fn tick(&mut self) {
        self.has_proposed_unnamed = false;
        self.confirming.tick();
        self.asking.retain(|_, ticks| {
            *ticks -= 1;
            *ticks > 0
        });
    }

    /// A member has asked how things are. It does so at each tick until it has a say.
    pub(crate) fn note_question(&mut self, member: u64) {
        self.asking.insert(member, ASKING_TICKS);
    }

    /// True if a member has no say yet, as its questions show.
    pub(crate) fn is_asking(&self, member: u64) -> bool {
        self.asking.contains_key(&member)
    }

    pub(crate) fn has_named_ensemble(&self) -> bool {
        self.has_named_ensemble
    }

    pub(crate) fn note_named_ensemble(&mut self) {
        self.has_named_ensemble = true;
    }

    /// Remembers which entries the former process of a member had acknowledged, when another process has taken its place.
    pub(crate) fn note_restart(&mut self, member: u64, acknowledged: Acknowledged) {
        self.acknowledged_before.insert(member, acknowledged);
    }

    pub(crate) fn acknowledged_before(&self, member: u64) -> Option<Acknowledged> {
        self.acknowledged_before.get(&member).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::batches as batches_of;

    const ORIGIN: Origin = Origin { member: 1, incarnation: 7 };

    fn add_announcements(leading: &mut Leading) {
        for batch in leading.take_announcements(ORIGIN) {
            leading.add_own(&batch, Now::default());
        }
    }

    #[test]
    fn ends_of_sessions_have_an_entry_once_they_are_proposed() {
        let mut leading = Leading::new(None, None);
        leading.announce(OpCode::DeleteContainer, b"body");
        assert_eq!(leading.ended_through(3), Some(0), "no session has ended");
        leading.announce(OpCode::ExpireSession, &9_i64.to_be_bytes());
        assert_eq!(leading.ended_through(3), None);
        add_announcements(&mut leading);
        assert_eq!(leading.ended_through(3), None, "the entry is not in the log");
        leading.begin_entry();
        leading.announce(OpCode::ExpireSession, &8_i64.to_be_bytes());
        add_announcements(&mut leading);
        assert!(leading.take_entry(true).is_some());
        assert_eq!(leading.ended_through(4), None, "another one is not");
        assert!(leading.take_entry(true).is_some());
        assert_eq!(leading.ended_through(5), Some(5));
        assert_eq!(leading.ended_through(9), Some(5), "what follows ends no session");
    }

    #[test]
    fn very_many_announcements_are_several_batches_none_larger_than_an_entry() {
        let mut leading = Leading::new(None, None);
        let count = 2 * ENTRY_BYTES as i64 / 32;
        (0..count).for_each(|session| leading.announce(OpCode::ExpireSession, &session.to_be_bytes()));
        let batches = leading.take_announcements(ORIGIN);
        assert!(batches.len() > 1 && batches.iter().all(|batch| batch.len() <= ENTRY_BYTES));
        for batch in batches {
            if !leading.has_room_for(batch.len()) {
                leading.begin_entry();
            }
            leading.add_own(&batch, Now::default());
        }
        let entries: Vec<Bytes> = std::iter::from_fn(|| leading.take_entry(true)).collect();
        let commands =
            entries.iter().flat_map(|entry| batches_of(entry)).map(|batch| batch.commands().count());
        assert_eq!(commands.sum::<usize>(), count as usize);
        assert!(entries.iter().all(|entry| entry.len() <= ENTRY_BYTES + 1));
    }

    #[test]
    fn entries_that_may_not_be_proposed_yet_do_not_grow_without_end() {
        let mut leading = Leading::new(None, None);
        let mut batch = BatchBuilder::new();
        let mut command = Vec::new();
        let body = vec![7; ENTRY_BYTES / 3];
        Command::encode(SessionId(7), 0, IdList::NONE, OpCode::Create, &body, &mut command);
        batch.push(&command);
        let batch = batch.take(ORIGIN, 1);
        for _ in 0..7 {
            if !leading.has_room_for(batch.len()) {
                assert_eq!(leading.take_entry(false), None, "the ensemble has no name");
                leading.begin_entry();
            }
            leading.add_own(&batch, Now::default());
        }
        let entries: Vec<Bytes> = std::iter::from_fn(|| leading.take_entry(true)).collect();
        assert_eq!(entries.iter().map(|entry| batches_of(entry).count()).collect::<Vec<_>>(), [2, 2, 2, 1]);
    }

    #[test]
    fn announcements_are_a_batch_without_a_number() {
        let mut leading = Leading::new(None, None);
        assert!(leading.take_announcements(ORIGIN).is_empty());
        assert_eq!(leading.take_entry(true), None);
        leading.announce(OpCode::ExpireSession, &9_i64.to_be_bytes());
        leading.announce(OpCode::ExpireSession, &8_i64.to_be_bytes());
        add_announcements(&mut leading);
        let entry = leading.take_entry(true).unwrap();
        let seen: Vec<_> = batches_of(&entry).map(|batch| (batch.number, batch.commands().count())).collect();
        assert_eq!(seen, [(Batch::UNNUMBERED, 2)]);
        assert_eq!(leading.take_entry(true), None);
    }

    #[test]
    fn one_entry_each_tick_may_name_the_ensemble_and_nothing_comes_before_it() {
        let mut leading = Leading::new(None, None);
        let fill = |leading: &mut Leading| {
            leading.announce(OpCode::ExpireSession, &9_i64.to_be_bytes());
            add_announcements(leading);
        };
        fill(&mut leading);
        assert_eq!(leading.take_entry(false), None);
        leading.note_named_ensemble();
        assert!(leading.take_entry(false).is_some());
        fill(&mut leading);
        assert_eq!(leading.take_entry(false), None, "the first one is not committed");
        leading.tick();
        assert!(leading.take_entry(false).is_some(), "the first one may be lost");
    }
}
