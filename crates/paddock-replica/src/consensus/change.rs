//! Membership of the Raft group: what entries say of it, and how a leader changes it, one step at a time.

use std::collections::BTreeMap;

use raft::eraftpb::{ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2};
use raft::{GetEntriesContext, ProgressState};

use super::Consensus;
use crate::Membership;
use crate::configuration::{ConfigurationEntry, may_give_vote};
use crate::membership::{Follower, MembershipStep, StepTo};
use crate::raft_id::logged;

impl Consensus {
    /// Carries out what a committed entry says of the membership; true if it has changed.
    pub(crate) fn apply_configuration(&mut self, index: u64, entry: &ConfigurationEntry) -> bool {
        let before = self.membership.clone();
        match entry {
            _ if index <= self.refounded => {}
            ConfigurationEntry::Founding(founders) if self.membership.is_empty() => self.found(founders),
            ConfigurationEntry::Founding(_)
            | ConfigurationEntry::Refounding { .. }
            | ConfigurationEntry::Level(_)
            | ConfigurationEntry::Groups { .. }
            | ConfigurationEntry::Roster(_)
            | ConfigurationEntry::Promotion { .. } => {}
            ConfigurationEntry::Change(step) => self.apply_change(&to_raft(step)),
        }
        self.membership != before
    }

    fn apply_change(&mut self, change: &ConfChangeV2) {
        match self.node.apply_conf_change(change) {
            Ok(state) => self.membership = Membership::from_raft(&state),
            // Every member comes to the same conclusion.
            Err(error) => tracing::warn!(%error, ?change, "membership change has no effect"),
        }
    }

    fn found(&mut self, founders: &Membership) {
        let voters = founders.voters.iter().map(|id| (*id, StepTo::Voter));
        let learners = founders.learners.iter().map(|id| (*id, StepTo::Learner));
        voters.chain(learners).for_each(|member| self.apply_change(&to_raft(&vec![member])));
    }

    /// True if a step is on its way, so that the next one has to wait.
    pub(crate) fn is_changing(&self) -> bool {
        self.node.raft.has_pending_conf()
    }

    /// True if the log holds a change of the membership behind this entry that gives a vote to another member.
    pub(crate) fn may_gain_voters_behind(&self, index: u64) -> bool {
        let (own, log) = (self.node.raft.id, &self.node.raft.raft_log);
        let behind = log.slice(index + 1, log.last_index() + 1, None, GetEntriesContext::empty(false));
        // What cannot be read may hold one.
        behind.map_or(true, |entries| entries.iter().any(|entry| may_give_vote(entry, own)))
    }

    /// Proposes one step. Several members at once go through both majorities, until an empty step lets go of the one
    /// before.
    pub(crate) fn change(&mut self, step: &MembershipStep) {
        let context = ConfigurationEntry::encode_step(step);
        if let Err(error) = self.node.propose_conf_change(context, to_raft(step)) {
            tracing::debug!(%error, "membership change has to wait");
        }
    }

    /// Hands the lead over to another voter, when it has everything.
    pub(crate) fn transfer(&mut self, to: u64) {
        self.node.transfer_leader(to);
    }

    /// True if this member leads and takes proposals: not while it hands the lead over, and not when it was let go.
    pub(crate) fn takes_proposals(&self) -> bool {
        let raft = &self.node.raft;
        self.is_leader() && raft.lead_transferee.is_none() && raft.prs().get(raft.id).is_some()
    }

    /// The members as this leader sees them, itself among them.
    pub(crate) fn followers(&self) -> BTreeMap<u64, Follower> {
        let follower = |(id, progress): (&u64, &raft::Progress)| {
            let follower = Follower {
                matched: progress.matched,
                is_active: progress.recent_active,
                is_heard: self.is_heard(*id, progress),
                gets_snapshot: progress.state == ProgressState::Snapshot,
            };
            (*id, follower)
        };
        self.node.raft.prs().iter().map(follower).collect()
    }

    /// The member runs in another process, whose disk may not hold what the one before had acknowledged: it has to say anew
    /// what it has. Returns the last entry that it had acknowledged to this leader: its term, if that is still known, and
    /// its index.
    pub(crate) fn forget_matched(&mut self, member: u64) -> Option<(Option<u64>, u64)> {
        let raft = &mut self.node.raft;
        let progress = raft.mut_prs().get_mut(member)?;
        let matched = std::mem::take(&mut progress.matched);
        let next = progress.next_idx;
        progress.become_probe();
        progress.next_idx = progress.next_idx.max(next);
        (matched > 0).then(|| (raft.raft_log.term(matched).ok().filter(|term| *term > 0), matched))
    }

    /// The member says that it has nothing: what it had is lost, and it must be sent everything again.
    pub(crate) fn begin_anew(&mut self, member: u64) {
        let progress = self.node.raft.mut_prs().get_mut(member);
        if let Some(progress) = progress.filter(|progress| progress.matched > 0) {
            tracing::warn!(member = logged(member), "member has lost its data: sending it everything again");
            progress.matched = 0;
            progress.next_idx = 1;
            progress.become_probe();
        }
    }
}

/// A step as the library wants to have it.
fn to_raft(step: &MembershipStep) -> ConfChangeV2 {
    let mut change = ConfChangeV2::default();
    if step.len() > 1 {
        change.set_transition(ConfChangeTransition::Explicit);
    }
    let single = |&(node_id, standing): &(u64, StepTo)| {
        let mut single = ConfChangeSingle { node_id, ..ConfChangeSingle::default() };
        single.set_change_type(match standing {
            StepTo::Voter => ConfChangeType::AddNode,
            StepTo::Learner => ConfChangeType::AddLearnerNode,
            StepTo::Removed => ConfChangeType::RemoveNode,
        });
        single
    };
    change.set_changes(step.iter().map(single).collect());
    change
}
