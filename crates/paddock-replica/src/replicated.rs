//! State of a member together with its place in the log.

use std::collections::BTreeSet;

use paddock_proto::{MemberNumber, SessionId, Zxid};
use paddock_state::{MemberFacts, State, WatchTable};
use paddock_tree::{OutcomeNote, Tree};

use crate::raft_id::member_number;
use crate::{AppliedLog, LogEntry, Membership, SoughtMembers};

/// The state, the entry of the log that it was applied up to, and the membership as of that entry. All three change
/// together, under the lock of the state.
#[derive(Debug)]
pub struct Replicated {
    state: State,
    /// Index and term of the last entry applied.
    applied: (u64, u64),
    membership: Membership,
    /// Others have the state between two commands of an entry.
    is_within_entry: bool,
    /// Entries that were applied last.
    applied_log: AppliedLog,
}

impl Replicated {
    /// State as of entry `applied` (index and term), with the membership of that moment.
    pub fn new(tree: Tree, applied: (u64, u64), membership: Membership) -> Replicated {
        let applied_log = AppliedLog::new(applied.0, tree.zxid());
        Replicated { state: State::new(tree), applied, membership, is_within_entry: false, applied_log }
    }

    /// Puts the state of a snapshot in the place of this one, and drops all watches.
    pub fn replace(&mut self, tree: Tree, applied: (u64, u64), membership: Membership) {
        self.applied_log.begin_anew(applied.0, tree.zxid());
        self.state.replace(tree);
        (self.applied, self.membership) = (applied, membership);
    }

    /// Puts the state of a snapshot in the place of this one, which is one of several of its member: watches stay.
    pub fn replace_beside_others(&mut self, tree: Tree, applied: (u64, u64), membership: Membership) {
        self.applied_log.begin_anew(applied.0, tree.zxid());
        self.state.replace_tree(tree);
        (self.applied, self.membership) = (applied, membership);
    }

    /// From now on changes are told to those who watch in this table.
    pub fn share_watches(&mut self, watches: &WatchTable) {
        self.state.share_watches(watches);
    }

    /// Puts a state that is equal to this one in its place, and keeps all watches and what clients are told of this member. Returns the
    /// former state, which may take long to drop.
    pub fn succeed(&mut self, mut successor: Replicated) -> Replicated {
        successor.state.take_place_of(&mut self.state);
        std::mem::replace(self, successor)
    }

    /// Sets what clients are told that ask about this member.
    pub fn set_facts(&mut self, facts: MemberFacts) {
        self.state.set_facts(facts);
    }

    /// From now on the ephemerals that go with their sessions are kept for [`Replicated::take_deaths`].
    pub fn record_deaths(&mut self) {
        self.state.record_deaths();
    }

    /// Ephemerals that went with their sessions since they were taken before.
    pub fn take_deaths(&mut self) -> Vec<(SessionId, String)> {
        self.state.take_deaths()
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    pub fn tree(&self) -> &Tree {
        self.state.tree()
    }

    /// The tree, for taking a snapshot, which changes nothing that a client sees.
    pub fn tree_mut(&mut self) -> &mut Tree {
        self.state.tree_mut()
    }

    /// Index and term of the last entry applied.
    pub fn applied(&self) -> (u64, u64) {
        self.applied
    }

    /// True while some commands of an entry are applied and others are not: no snapshot may begin then, because it would say that none is.
    pub fn is_within_entry(&self) -> bool {
        self.is_within_entry
    }

    pub(crate) fn set_within_entry(&mut self, is_within_entry: bool) {
        self.is_within_entry = is_within_entry;
    }

    /// From now on entries are kept when they have been applied, as many bytes of them.
    pub fn keep_applied(&mut self, bytes_max: usize) {
        self.applied_log.keep(bytes_max);
    }

    /// The entries that were applied last.
    pub fn applied_log(&self) -> &AppliedLog {
        &self.applied_log
    }

    /// Takes the outcome of the next command of an entry; `None` if it had been applied before.
    pub(crate) fn note_outcome(&mut self, note: Option<OutcomeNote>) {
        self.applied_log.note(note);
    }

    /// Members with which the one that has this state is to have links: those in it, those that take part as of the last entry applied, and those that are
    /// sought. Those in its configuration count while the state names none, or if they are sought.
    pub fn linked_members(
        &self,
        configured: impl IntoIterator<Item = MemberNumber>,
        sought: &SoughtMembers,
    ) -> BTreeSet<MemberNumber> {
        let ensemble = self.tree().ensemble();
        let named = ensemble.iter().flat_map(|ensemble| ensemble.all_members()).chain(&sought.told);
        let mut linked: BTreeSet<MemberNumber> = named.map(|member| member.id).collect();
        linked.extend(self.membership.all().filter_map(member_number));
        if ensemble.is_none() || sought.has_configured {
            linked.extend(configured);
        }
        linked
    }

    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn set_membership(&mut self, membership: Membership) {
        self.membership = membership;
    }

    /// This entry was applied to a state with the zxid `before`.
    pub(crate) fn set_applied(&mut self, entry: LogEntry, before: Zxid) {
        let LogEntry { index, term, .. } = entry;
        assert!(index == self.applied.0 + 1, "entry {index} applied after entry {}", self.applied.0);
        self.applied = (index, term);
        self.applied_log.push(entry, before);
    }
}
