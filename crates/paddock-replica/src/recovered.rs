//! A member as its disk describes it, before it begins to run.

use paddock_state::Now;
use paddock_tree::Tree;

use crate::configuration::ConfigurationEntry;
use crate::message::FoundOnDisk;
use crate::raft_id::{member_number, raft_id};
use crate::{Cluster, HardState, LogEntry, Membership};

/// Log, snapshot and identity of a member, as they were found on its disk.
#[derive(Debug)]
pub struct Recovered {
    /// Index and term of the last entry in the snapshot; zeros without one.
    pub snapshot: (u64, u64),
    /// Membership as of that entry; empty without a snapshot.
    pub(crate) snapshot_membership: Membership,
    /// Index and term of the last entry that the state has: that of the snapshot, or a later one that was applied when the log was read.
    pub applied: (u64, u64),
    /// Membership as of that entry.
    pub membership: Membership,
    pub hard_state: HardState,
    /// All entries behind that one, without a gap.
    pub entries: Vec<LogEntry>,
    /// The ensemble that the member belongs to, as its disk says.
    pub cluster: Cluster,
    /// The number of the start before the one that `begin` has numbered, as the hard state says; 0 if there was none.
    former_start: u64,
    /// The newest start before that one of which hard state, log or state tell.
    last_known_start: u64,
}

impl Recovered {
    /// Distance between the numbers of two starts, in blocks of session ids, if the clock does not keep them apart.
    const STARTS_APART: u64 = 1024;
    /// Bits of chance in the distance, for a start that its disk has forgotten: the next one must not get the same number.
    const CHANCE_BITS: u32 = 20;

    /// A member that belongs to no ensemble, as far as is known, with the state of its snapshot.
    pub fn new(
        snapshot: (u64, u64),
        membership: Membership,
        hard_state: HardState,
        entries: Vec<LogEntry>,
    ) -> Recovered {
        Recovered {
            snapshot,
            snapshot_membership: membership.clone(),
            applied: snapshot,
            membership,
            hard_state,
            entries,
            cluster: Cluster::None,
            former_start: 0,
            last_known_start: 0,
        }
    }

    /// The state has come to this entry, with this membership, when the log was read. What stands before it is in `entries` no more.
    pub fn applied_up_to(self, applied: (u64, u64), membership: Membership) -> Recovered {
        Recovered { applied, membership, ..self }
    }

    /// Numbers this start of the member, which runs in `process`: higher than every one before that the disk knows, even if the clock went
    /// back. The hard state has to be on disk before the member is made: what it sends to others counts by this number.
    pub fn begin(&mut self, member: u64, process: u64, tree: &Tree, now: Now) {
        let logged = self.entries.iter().flat_map(LogEntry::batches).map(|batch| batch.origin);
        let logged =
            logged.filter(|origin| raft_id(origin.member) == member).map(|origin| origin.incarnation);
        let in_tree = member_number(member).and_then(|member| tree.incarnation(member));
        let known = in_tree.into_iter().chain([self.hard_state.incarnation]);
        self.former_start = self.hard_state.incarnation;
        self.last_known_start = logged.chain(known).max().unwrap_or_default();
        let next = Recovered::next_start(self.last_known_start, process);
        self.hard_state.incarnation = next.max(u64::try_from(now.wall_ms).unwrap_or_default());
    }

    /// A number for a start in `process` behind another one, whatever the clock says; 1 if there was none before.
    pub(crate) fn next_start(last: u64, process: u64) -> u64 {
        let chance = process.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - Recovered::CHANCE_BITS);
        if last == 0 { 1 } else { last + Recovered::STARTS_APART + chance }
    }

    /// The last entry that is on the disk; 0 if there is none.
    pub(crate) fn last_index(&self) -> u64 {
        self.entries.last().map_or(self.applied.0, |entry| entry.index)
    }

    /// The newest start of the member before this one of which its disk tells. To be asked behind `begin`.
    pub(crate) fn last_known_start(&self) -> u64 {
        self.last_known_start
    }

    /// The member has to be told everything before it votes or serves: what it once had is of no use.
    pub fn learn_first(&mut self) {
        self.hard_state.silent_until = HardState::TERM_UNKNOWN;
    }

    /// The member's disk as it was found, for others to judge. To be asked behind `begin`.
    pub(crate) fn found(&self) -> FoundOnDisk {
        let (index, term) = self.entries.last().map_or(self.applied, |entry| (entry.index, entry.term));
        FoundOnDisk {
            former_start: self.former_start,
            start: self.hard_state.incarnation,
            last: (term, index),
        }
    }

    /// The id of the ensemble that a survivor has begun, if the log holds the entry with which one did.
    pub fn refounded_cluster(&self) -> Option<u64> {
        self.entries.iter().rev().find_map(LogEntry::refounded_cluster)
    }

    /// True if the group has no other member, as far as the log tells.
    pub fn is_alone(&self, member: u64) -> bool {
        let (membership, since) = membership_at_start(self);
        let changes = |entry: &LogEntry| {
            matches!(ConfigurationEntry::decode(&entry.payload), Some(ConfigurationEntry::Change(_)))
        };
        membership.is_alone(member) && !self.entries.iter().any(|entry| entry.index > since && changes(entry))
    }
}

/// The membership from which the entries go on, and the entry up to which they say nothing more about it.
pub(crate) fn membership_at_start(recovered: &Recovered) -> (Membership, u64) {
    let mut start = (recovered.membership.clone(), 0);
    for entry in &recovered.entries {
        match ConfigurationEntry::decode(&entry.payload) {
            Some(ConfigurationEntry::Founding(membership)) if entry.index == 1 => start.0 = membership,
            Some(ConfigurationEntry::Refounding { membership, .. }) => start = (membership, entry.index),
            _ => {}
        }
    }
    start
}
