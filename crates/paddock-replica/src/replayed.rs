//! The state of a group while a member reads its log, before there is a replica. Entries that are known to be committed are applied there, so that a log of any
//! length takes no more memory than its end.
//!
//! For the replica that comes, what was applied here is as good as what stands in the snapshot.

use paddock_tree::Tree;

use crate::configuration::ConfigurationEntry;
use crate::consensus::Consensus;
use crate::log_entry::REFOUNDING;
use crate::offline::{EntryPart, apply_on_members};
use crate::{HardState, LogEntry, Membership, Recovered, Replicated};

/// A state that follows a log.
#[derive(Debug)]
pub struct ReplayedState {
    tree: Tree,
    /// Index and term of the last entry that it has.
    applied: (u64, u64),
    /// Membership as of that entry.
    membership: Membership,
    replayed: Replayed,
}

/// Entries that a state has of its log before there is a replica.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Number of commands that were applied.
    pub commands: u64,
    /// The entries, for those who check them.
    #[cfg(feature = "testing")]
    pub entries: Vec<LogEntry>,
}

impl ReplayedState {
    /// The state of a snapshot that ends with this entry, when these took part.
    pub fn new(tree: Tree, snapshot: (u64, u64), membership: Membership) -> ReplayedState {
        ReplayedState { tree, applied: snapshot, membership, replayed: Replayed::default() }
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Index and term of the last entry that it has.
    pub fn applied(&self) -> (u64, u64) {
        self.applied
    }

    /// The state with the membership as of its last entry, and what was applied since the snapshot.
    pub fn into_parts(self) -> (Replicated, Replayed) {
        (Replicated::new(self.tree, self.applied, self.membership), self.replayed)
    }

    /// True if the log's next entry may be applied. `commit` is the last one that is known to be committed; what the only voter has on its disk is. A survivor's
    /// first entry has to be seen by the replica, and so has all behind it.
    pub fn may_apply(&self, member: u64, entry: &LogEntry, commit: u64) -> bool {
        let is_committed = entry.index <= commit || self.membership.is_alone(member);
        is_committed && entry.index == self.applied.0 + 1 && entry.payload.first() != Some(&REFOUNDING)
    }

    /// Applies the next entry, on a disk of this member. `removed_at_once` is what a transaction removes at most.
    pub fn apply(&mut self, member: u64, entry: &LogEntry, removed_at_once: usize) {
        if let Some(configuration) = ConfigurationEntry::decode(&entry.payload) {
            let recovered =
                Recovered::new(self.applied, self.membership.clone(), HardState::default(), Vec::new());
            let mut consensus = Consensus::new(member, 0, 0, recovered);
            if consensus.apply_configuration(entry.index, &configuration) {
                self.membership = consensus.membership().clone();
            }
        }
        let mut commands = 0;
        apply_on_members(&mut self.tree, entry, removed_at_once, &mut |_, part| {
            commands += u64::from(matches!(part, EntryPart::Command { outcome: Some(_), .. }));
        });
        // No client waits for them.
        drop(self.tree.take_applied_items());
        self.replayed.commands += commands;
        #[cfg(feature = "testing")]
        self.replayed.entries.push(entry.clone());
        self.applied = (entry.index, entry.term);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::StepTo;

    fn entry(index: u64, configuration: &ConfigurationEntry) -> LogEntry {
        LogEntry { index, term: 1, payload: configuration.encode() }
    }

    #[test]
    fn members_are_followed_and_those_of_an_ensemble_apply_what_is_known_to_be_committed() {
        let mut state = ReplayedState::new(Tree::new(), (0, 0), Membership::default());
        let founding = entry(1, &ConfigurationEntry::Founding(Membership::new(vec![1], vec![])));
        assert!(!state.may_apply(1, &founding, 0) && state.may_apply(1, &founding, 1));
        state.apply(1, &founding, 10);
        let second = entry(2, &ConfigurationEntry::Change(vec![(2, StepTo::Learner)]));
        assert!(state.may_apply(1, &second, 0), "the only voter has committed what it has");
        assert!(!state.may_apply(2, &second, 0));
        state.apply(1, &second, 10);
        let third = entry(3, &ConfigurationEntry::Change(vec![(2, StepTo::Voter)]));
        assert!(!state.may_apply(1, &third, 2) && state.may_apply(1, &third, 3));
        state.apply(1, &third, 10);
        let after_gap = LogEntry { index: 5, ..third };
        assert!(!state.may_apply(1, &after_gap, 9));
        let (state, _) = state.into_parts();
        assert_eq!((state.applied(), state.membership()), ((3, 1), &Membership::new(vec![1, 2], vec![])));
    }

    #[test]
    fn what_a_survivor_has_begun_is_left_to_the_replica() {
        let state = ReplayedState::new(Tree::new(), (4, 1), Membership::new(vec![1], vec![]));
        assert!(!state.may_apply(1, &LogEntry::refounding(5, 2, 1, 7, ""), 5));
    }
}
