//! Groups beside the home group: how they are founded, and what a member does with one of them.
//!
//! The home group's log says how many groups there are, and which members begin each. A member that has applied that entry as the ensemble did, and has lost nothing since, has never had the groups
//! if it does not have them now: it writes their first entry as soon as it has a say in the home group. So a power cut ends no founding: those who come back go on with it. A member that came
//! without data, or lost it, and has learned the home group's state with that entry (`HardState::learned_through`) may have voted in the groups and have
//! lost that. It asks the others first, as a member without data does in the home group.
//!
//! A group's lead belongs to one of its voters, another one for each group, so that leaders are spread. That member asks for the lead when it has
//! everything; if it is away, the next one in the group's own order does. No other member asks, so leads do not go back and forth.
//!
//! Once members have changed, none is founded any more: those who began it may have left, and may come back with nothing. Members of groups follow the home
//! group's (`rosters.rs`).

use paddock_state::{ClientInput, Now};
use paddock_tree::{FeatureLevel, GroupFounders, Origin, Tree};

use super::Replica;
use crate::configuration::ConfigurationEntry;
use crate::message::PeerMessage;
use crate::offline::found_groups;
use crate::presence::NewGroup;
use crate::queued_item::QueuedItem;
use crate::raft_id::{member_number, raft_id};
use crate::stamps::StampClock;
use crate::{Input, Membership, Replicated};

/// Ticks between two moments at which a member asks for the lead of a group that should be its own.
const SEEK_TICKS: u64 = 20;
/// Moments of those ticks over which a member's groups are distributed, so that it asks for a few at a time.
const SEEK_SLOTS: u64 = 10;

impl Replica<'_> {
    /// Begins with a group that is not the home group, with the state of the newest snapshot. See [`NewGroup`] for `not_before`.
    pub fn open_other(&mut self, state: &Replicated, not_before: Option<u64>) {
        assert!(!self.group.is_home(), "the home group is opened by itself");
        self.group.disk_age.adopt(state.tree());
        self.take_roster(state.tree());
        self.group.applied.level = state.tree().feature_level();
        self.begin_with_disk(not_before);
        self.withhold_votes();
    }

    /// Founds the groups that this member's configuration asks for, if it leads the home group and all members know of groups. There are never
    /// fewer.
    pub(super) fn found_groups(&mut self) {
        let (count, replicas) = (self.presence.options.group_count, self.presence.options.group_replicas);
        let applied = &self.group.applied;
        let needed = if replicas == 0 { FeatureLevel::SEVERAL_GROUPS } else { FeatureLevel::HOSTS };
        if count <= applied.groups || applied.level < needed {
            return;
        }
        let is_alone = self.presence.options.founding.members.is_empty();
        let settled = self.group.membership.settled_members();
        let is_settled = is_alone || !settled.is_empty();
        let consensus = &self.group.consensus;
        let membership = consensus.membership();
        // Behind the first entry of its own a leader knows all that was ever said.
        let knows_all = applied.term() == consensus.leadership().term;
        let is_quiet = !consensus.is_changing() && !membership.is_joint();
        if is_settled
            && knows_all
            && is_quiet
            && self.group.leading.as_mut().is_some_and(|leading| leading.begins_groups(count))
        {
            // A learner that has left, and is still to be told, begins no group.
            let is_left = |id: &u64| !is_alone && !settled.iter().any(|member| raft_id(member.id) == *id);
            let learners = membership.learners.iter().copied().filter(|id| !is_left(id)).collect();
            let founders = Membership::new(membership.voters.clone(), learners);
            self.group.consensus.propose(ConfigurationEntry::Groups { count, founders, replicas }.encode());
        }
    }

    /// Clock of the stamps that zxids are where this member leads; `None` if zxids are counted, as they are in a home group without others.
    pub(super) fn stamp_clock(&self) -> Option<StampClock> {
        if !self.group.is_home() || self.group.applied.groups > 1 {
            return Some(self.presence.clocks.clock());
        }
        self.presence.options.stamps.then_some(StampClock::Own)
    }

    /// Tells the other members the time that this one's clock shows, if zxids are made of it.
    pub(super) fn tell_clock(&mut self, now: Now) {
        if self.group.applied.groups > 1 {
            self.tell_others(&PeerMessage::Clock { wall_ms: now.wall_ms });
        }
    }

    /// Judges the members' clocks anew, if zxids are made of them.
    pub(super) fn judge_clocks(&mut self, now: Now) {
        if self.group.applied.groups > 1 {
            let voters = &self.group.consensus.membership().voters;
            self.presence.clocks.judge(self.presence.options.member, voters, now);
        }
    }

    /// The home group has come to the entry with which groups are founded.
    pub(super) fn apply_groups(
        &mut self,
        index: u64,
        (count, founders, replicas): (u32, &Membership, u32),
        tree: &mut Tree,
    ) {
        if !self.group.is_home() {
            return;
        }
        let before = tree.groups().count();
        found_groups(tree, count, founders, replicas);
        self.group.applied.groups = tree.groups().count();
        let stamps = self.stamp_clock();
        if let Some(leading) = &mut self.group.leading {
            leading.has_groups(self.group.applied.groups);
            leading.set_stamps(stamps);
        }
        self.note_new_groups(before, tree, index);
        self.presence.rosters.follow(tree);
    }

    /// The state says that there are more groups than `before`: the member has to make them.
    pub(super) fn note_new_groups(&mut self, before: u32, tree: &Tree, not_before: u64) {
        let count = tree.groups().count();
        if count > before {
            tracing::info!(groups = count, "number of Raft groups raised");
        }
        self.note_own_groups(before, tree, Some(not_before));
    }

    /// Notes which groups from the `first` on this member is to have by the home group's state: it makes those that it lacks.
    pub(super) fn note_own_groups(&mut self, first: u32, tree: &Tree, not_before: Option<u64>) {
        let own = member_number(self.presence.options.member).expect("the options name a member");
        self.presence.placement.follow(own, tree);
        for number in (first..tree.groups().count()).filter(|number| tree.has_replica(*number, own)) {
            let founders = founders_of(tree, number).expect("the state says who founds its groups");
            self.presence.new_groups.push(NewGroup { number, founders, not_before });
        }
    }

    /// A snapshot has taken the place of log and state in a group that is not the home group.
    pub(super) fn installed_in_other(&mut self, state: &Replicated) {
        let last_batch = state.tree().applied_batch(self.group.requests.origin());
        self.group.requests.forget_through(last_batch);
        self.group.applied.level = state.tree().feature_level();
        self.take_roster(state.tree());
    }

    /// True if the home group's state says that this member is to have no replica of this group.
    pub(super) fn is_replica_needless(&self) -> bool {
        self.presence.placement.is_needless(self.group.number)
    }

    /// The start of the member's process by which batches are numbered in this group, and the number of the last one that something was submitted for.
    pub fn submitted(&self) -> (Origin, u64) {
        (self.group.requests.origin(), self.group.requests.submitted())
    }

    /// Takes a request of a connection that was led to this group. Gates of connections are the home group's affair.
    pub fn take_routed(&mut self, now: Now, input: ClientInput) {
        self.take(now, Input::Client(input));
    }

    /// Submits a command that no connection waits for.
    pub fn submit(&mut self, command: &[u8]) {
        self.group.requests.submit(command, QueuedItem::Abandoned);
    }

    /// Asks for the lead of this group, if it should be this member's and is another one's.
    pub(super) fn seek_lead(&mut self, now: Now) {
        let slot = u64::from(self.group.number) % SEEK_SLOTS * (SEEK_TICKS / SEEK_SLOTS);
        let own = self.presence.options.member;
        let is_time = now.monotonic_ms / Replica::TICK_MS % SEEK_TICKS == slot;
        let Some(leader) = self.group.consensus.leadership().leader.filter(|leader| *leader != own) else {
            return;
        };
        let has_all = self.group.applied.index() == self.group.consensus.committed();
        if is_time && has_all && !self.group.joining.is_silent() && self.is_preferred(now) {
            self.group.outgoing.messages.push((leader, PeerMessage::WantsLead.encode()));
        }
    }

    /// True if this member is the first of those that are there in the order in which the group's voters are to lead.
    fn is_preferred(&self, now: Now) -> bool {
        let own = self.presence.options.member;
        // A member that is to leave has just handed the lead over.
        let voters = self.group.consensus.membership().voters.iter().copied();
        let voters: Vec<u64> = voters.filter(|id| self.group.membership.may_vote(*id)).collect();
        let first = self.presence.rosters.first_to_lead(self.group.number).map(raft_id);
        let order = leading_order(self.group.number, &voters, first);
        let first = order
            .into_iter()
            .find(|id| *id == own || self.presence.processes.is_there(*id, now.monotonic_ms));
        first == Some(own) && !self.presence.is_disk_full
    }
}

/// The members that begin a group, as the home group's state says.
pub fn founders_of(tree: &Tree, group: u32) -> Option<Membership> {
    let GroupFounders { learners, .. } = tree.groups().founders(group)?;
    // No observer has a group that not all members have.
    let learners = if tree.placed(group).is_some() { &[][..] } else { learners };
    let ids = |members: &[u32]| members.iter().map(|member| raft_id(*member)).collect();
    Some(Membership::new(ids(&tree.founding_voters(group)?), ids(learners)))
}

/// The voters of a group in the order in which they are to lead it. The first ones go round the voters, and so do the second ones of the groups with
/// the same first one. Where groups are on some of the voters, each begins with the `first` of its own, which go round all.
pub fn leading_order(group: u32, voters: &[u64], first: Option<u64>) -> Vec<u64> {
    let mut order = voters.to_vec();
    if let Some(first) = first.and_then(|first| order.iter().position(|voter| *voter == first)) {
        order.rotate_left(first);
        return order;
    }
    if let Some(others) = order.len().checked_sub(1).filter(|others| *others > 0) {
        let (first, round) = (group as usize % order.len(), group as usize / order.len());
        order.rotate_left(first);
        order[1..].rotate_left(round % others);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use paddock_tree::RaisedLevel;

    use super::*;

    #[test]
    fn leads_are_spread_and_spread_again_when_a_member_is_away() {
        let voters = [1, 2, 3, 4];
        let count = |away: &[u64]| {
            let mut leads = BTreeMap::new();
            for group in 0..24 {
                let order = leading_order(group, &voters, None);
                let first = order.into_iter().find(|id| !away.contains(id)).unwrap();
                *leads.entry(first).or_insert(0) += 1;
            }
            leads
        };
        assert_eq!(count(&[]), BTreeMap::from([(1, 6), (2, 6), (3, 6), (4, 6)]));
        assert_eq!(count(&[2]), BTreeMap::from([(1, 8), (3, 8), (4, 8)]));
        assert_eq!(leading_order(7, &[5], None), [5]);
        assert!(leading_order(7, &[], None).is_empty());
    }

    #[test]
    fn each_of_five_members_leads_one_of_five_groups_that_are_on_three() {
        let founders = GroupFounders { voters: vec![1, 2, 3, 4, 5], learners: Vec::new() };
        let mut tree = Tree::new();
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        tree.found_groups_with(6, founders, 3);
        let first = |group: u32| {
            let voters = founders_of(&tree, group).unwrap().voters;
            leading_order(group, &voters, tree.first_placed(group).map(raft_id))[0]
        };
        assert_eq!((1..6).map(first).collect::<Vec<_>>(), [2, 3, 4, 5, 1]);
    }
}
