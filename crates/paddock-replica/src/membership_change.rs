//! Change of the membership from what it is to what the replicated state says it should be, one step at a time, by the leader.
//!
//! The target stands in the replicated state, so that the next leader goes on where this one stopped. A newcomer learns first
//! and votes when it has everything, and most of the voters to be have to be there. A member that leaves has no vote first and is
//! removed when it knows that it left. A leader that is to have no vote hands the lead over before. When the voters are those of
//! the target, the change is settled, which is what its client waits for.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{EnsembleMember, ErrorCode, MemberRole};
use paddock_state::{ConnId, RequestId};
use paddock_tree::{Ensemble, Tree};

use crate::Membership;
use crate::membership::{Follower, MembershipStep, StepTo};
use crate::raft_id::{all_logged, logged, raft_id};

/// Ticks for which a newcomer may be silent before a change is given up.
const SILENT_TICKS_MAX: u32 = 100;
/// Ticks for which newcomers may make no progress before a change is given up.
const IDLE_TICKS_MAX: u32 = 600;
/// Ticks that members that left may take to learn of it.
const FAREWELL_TICKS: u32 = 50;
/// Entries that a voter to be may lag.
const LAG_MAX: u64 = 64;

/// Members of the ensemble as the state wants them, and the change on the way there.
#[derive(Debug, Default)]
pub(crate) struct MembershipChange {
    /// `None` while there is no ensemble.
    target: Option<Target>,
    /// Digest of the members' addresses in the state.
    addresses: Option<u64>,
    /// The members in the state, while no change is under way.
    settled: Vec<EnsembleMember>,
    /// True if the state does not name this member.
    is_absent: bool,
    /// True if the state has named this member since it was started.
    has_belonged: bool,
    /// True if the state says something else of the members, and the shell was not told.
    has_changed: bool,
    /// The connection that waits for the change under way.
    waiting: Option<(ConnId, RequestId)>,
}

/// Membership that the state wants.
#[derive(Debug, Default)]
struct Target {
    voters: Vec<u64>,
    learners: Vec<u64>,
    /// True if a client waits for it.
    is_change: bool,
    /// The entry with which the state came to want it.
    since: u64,
    /// Ticks since then.
    ticks: u32,
    /// True if the change was settled, and that is on its way into the log.
    is_settled: bool,
    /// Ticks in which the newcomers that have to catch up have not been heard.
    silent_ticks: u32,
    /// Ticks in which they have not come nearer.
    idle_ticks: u32,
    /// Sum of the entries up to which they have everything.
    progress: u64,
    /// Members that say that they would vote. Those that would not are in the way of the next election.
    ready: BTreeSet<u64>,
}

/// The ensemble as its leader sees it.
#[derive(Debug)]
pub(crate) struct LeaderView<'a> {
    pub(crate) own: u64,
    pub(crate) membership: &'a Membership,
    pub(crate) committed: u64,
    pub(crate) followers: BTreeMap<u64, Follower>,
}

/// An action of the leader for a change of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MembershipAction {
    /// Propose a step; an empty one ends a joint membership.
    Propose(MembershipStep),
    HandOver {
        transferee: u64,
    },
    StepDown,
    /// Announce that the change is in force, or has failed.
    Settle(Option<ErrorCode>),
    /// Ask a member whether it would vote.
    AskReadiness {
        member: u64,
    },
}

impl MembershipChange {
    /// Takes the target from the state as of entry `applied`.
    pub(crate) fn follow(&mut self, own: u64, tree: &Tree, applied: u64) {
        self.target = Target::of(tree, applied);
        self.addresses = tree.ensemble().map(Ensemble::members_digest);
        let settled = tree.ensemble().filter(|ensemble| ensemble.target.is_none());
        self.settled = settled.map(|ensemble| ensemble.members.clone()).unwrap_or_default();
        let belongs = |ensemble: &Ensemble| ensemble.all_members().any(|member| raft_id(member.id) == own);
        self.is_absent = tree.ensemble().is_some_and(|ensemble| !belongs(ensemble));
        self.has_belonged |= tree.ensemble().is_some_and(belongs);
    }

    /// True if the state says who the members are.
    pub(crate) fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// Digest of the members' addresses in the state; `None` while there is no ensemble.
    pub(crate) fn addresses(&self) -> Option<u64> {
        self.addresses
    }

    /// The members in the state; none while a change is under way.
    pub(crate) fn settled_members(&self) -> &[EnsembleMember] {
        &self.settled
    }

    /// True if this member was removed from the ensemble. What a newcomer learns is older than its own addition at first, and does not
    /// name it yet.
    pub(crate) fn is_removed(&self, is_learning: bool) -> bool {
        self.is_absent && (self.has_belonged || !is_learning)
    }

    /// True if the state wants this member to vote, and `membership` does not let it yet, or still needs a majority of the voters before.
    pub(crate) fn awaits_vote(&self, own: u64, membership: &Membership) -> bool {
        let is_wanted = self.target.as_ref().is_some_and(|target| target.voters.contains(&own));
        is_wanted && (!membership.voters.contains(&own) || membership.is_joint())
    }

    /// The state has come to say something else of the members.
    pub(crate) fn note_changed(&mut self) {
        self.has_changed = true;
    }

    /// True if the shell has to be told that the members changed; it is told once.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// A connection waits for the change that it has asked for.
    pub(crate) fn await_settled(&mut self, conn: ConnId, request: RequestId) {
        self.waiting = Some((conn, request));
    }

    pub(crate) fn take_waiting(&mut self) -> Option<(ConnId, RequestId)> {
        self.waiting.take()
    }

    /// The connection waits for nothing any more.
    pub(crate) fn forget_conn(&mut self, conn: ConnId) {
        self.waiting.take_if(|(waiting, _)| *waiting == conn);
    }

    /// A member says that it would vote.
    pub(crate) fn note_ready(&mut self, member: u64) {
        if let Some(target) = &mut self.target {
            target.ready.insert(member);
        }
    }

    /// Another member leads: what the leader before had settled may not have come into the log.
    pub(crate) fn reconsider(&mut self) {
        if let Some(target) = &mut self.target {
            (target.is_settled, target.ticks, target.silent_ticks, target.idle_ticks) = (false, 0, 0, 0);
        }
    }

    /// Actions of the leader for this tick.
    pub(crate) fn tick(&mut self, view: &LeaderView<'_>) -> Vec<MembershipAction> {
        let Some(target) = &mut self.target else { return Vec::new() };
        target.ticks += 1;
        let mut actions = Vec::new();
        target.next_step(view, &mut actions);
        actions
    }
}

impl Target {
    fn of(tree: &Tree, since: u64) -> Option<Target> {
        let ensemble = tree.ensemble()?;
        let with = |role| {
            let members = ensemble.wanted().iter().filter(move |member| member.role == role);
            members.map(|member| raft_id(member.id)).collect::<Vec<u64>>()
        };
        // Sorted by Raft ids, which is another order than that of numbers.
        let Membership { voters, learners, .. } =
            Membership::new(with(MemberRole::Participant), with(MemberRole::Observer));
        Some(Target { voters, learners, is_change: ensemble.target.is_some(), since, ..Target::default() })
    }

    fn contains(&self, member: u64) -> bool {
        self.voters.contains(&member) || self.learners.contains(&member)
    }

    fn next_step(&mut self, view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) {
        let now = view.membership;
        if now.is_joint() {
            return actions.push(MembershipAction::Propose(MembershipStep::new()));
        }
        if !now.voters.contains(&view.own) {
            // The member was elected before it knew that it has no vote any more.
            return actions.push(MembershipAction::StepDown);
        }
        let all = self.voters.iter().chain(&self.learners);
        let absent: MembershipStep =
            all.filter(|id| !now.contains(**id)).map(|id| (*id, StepTo::Learner)).collect();
        if !absent.is_empty() {
            tracing::info!(members = ?ids(&absent), "adding new members as learners");
            return actions.push(MembershipAction::Propose(absent));
        }
        if now.voters != self.voters {
            return self.change_voters(view, actions);
        }
        if self.is_change {
            if !self.is_settled {
                self.is_settled = true;
                actions.push(MembershipAction::Settle(None));
            }
            return;
        }
        let is_over = |id: u64| self.ticks >= FAREWELL_TICKS || view.has(id, self.since + 1);
        let gone = now.learners.iter().filter(|id| !self.contains(**id) && is_over(**id));
        let gone: MembershipStep = gone.map(|id| (*id, StepTo::Removed)).collect();
        if !gone.is_empty() {
            tracing::info!(members = ?ids(&gone), "removing members that left");
            actions.push(MembershipAction::Propose(gone));
        }
    }

    fn change_voters(&mut self, view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) {
        let voters = &view.membership.voters;
        let missing = self.missing(view, actions);
        let is_newcomer = |id: &u64| !voters.contains(id);
        let has_quorum = 2 * (self.voters.len() - missing.len()) > self.voters.len();
        if missing.iter().any(is_newcomer) || !has_quorum {
            return self.wait_for(&missing, view, actions);
        }
        let mut goal = self.voters.clone();
        if !goal.contains(&view.own) {
            let candidates = goal.iter().copied().filter(|id| voters.contains(id));
            if let Some(transferee) =
                candidates.max_by_key(|id| view.followers.get(id).map(|follower| follower.matched))
            {
                tracing::info!(to = logged(transferee), "this leader is to leave: handing the lead over");
                return actions.push(MembershipAction::HandOver { transferee });
            }
            // No member that stays can lead yet.
            goal.push(view.own);
        }
        let joining = goal.iter().filter(|id| !voters.contains(id)).map(|id| (*id, StepTo::Voter));
        let leaving = voters.iter().filter(|id| !goal.contains(id)).map(|id| (*id, StepTo::Learner));
        tracing::info!(from = ?all_logged(voters), to = ?all_logged(&goal), "changing the voters");
        actions.push(MembershipAction::Propose(joining.chain(leaving).collect()));
    }

    /// The voters to be that are not there, have not caught up, or would not vote. Those that have caught up are asked that.
    fn missing(&self, view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) -> Vec<u64> {
        let others = self.voters.iter().copied().filter(|id| *id != view.own);
        let (present, mut missing): (Vec<u64>, Vec<u64>) = others.partition(|id| view.has_caught_up(*id));
        for member in present.into_iter().filter(|id| !self.ready.contains(id)) {
            actions.push(MembershipAction::AskReadiness { member });
            missing.push(member);
        }
        missing
    }

    /// Gives the change up if the members that it waits for are not there, or make no progress, for too long.
    fn wait_for(&mut self, late: &[u64], view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) {
        let followers: Vec<_> = late.iter().filter_map(|id| view.followers.get(id)).collect();
        let is_silent = followers.len() < late.len() || followers.iter().any(|follower| !follower.is_active);
        let progress = followers.iter().map(|follower| follower.matched).sum();
        self.silent_ticks = if is_silent { self.silent_ticks + 1 } else { 0 };
        let is_progressing =
            progress > self.progress || followers.iter().any(|follower| follower.gets_snapshot);
        self.idle_ticks = if is_progressing { 0 } else { self.idle_ticks + 1 };
        self.progress = progress;
        let is_over = self.silent_ticks > SILENT_TICKS_MAX || self.idle_ticks > IDLE_TICKS_MAX;
        if is_over && self.is_change && !self.is_settled {
            let reason = if is_silent { "cannot be reached" } else { "do not catch up" };
            tracing::error!(members = ?all_logged(late), "change of members given up: members {reason}");
            self.is_settled = true;
            actions.push(MembershipAction::Settle(Some(ErrorCode::NewConfigNoQuorum)));
        }
    }
}

impl LeaderView<'_> {
    /// True if the member has everything up to `index`.
    fn has(&self, member: u64, index: u64) -> bool {
        self.followers.get(&member).is_some_and(|follower| follower.matched >= index)
    }

    fn has_caught_up(&self, member: u64) -> bool {
        let nearly_all = self.committed.saturating_sub(LAG_MAX).max(1);
        let is_active = self.followers.get(&member).is_some_and(|follower| follower.is_active);
        is_active && self.has(member, nearly_all)
    }
}

fn ids(step: &MembershipStep) -> Vec<u64> {
    step.iter().map(|(id, _)| logged(*id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOWER: Follower =
        Follower { matched: 100, is_active: true, is_heard: true, gets_snapshot: false };

    fn change(voters: &[u64], is_change: bool) -> MembershipChange {
        let target = Target { voters: voters.to_vec(), is_change, since: 90, ..Target::default() };
        MembershipChange { target: Some(target), ..MembershipChange::default() }
    }

    fn view<'a>(membership: &'a Membership, followers: &[(u64, Follower)]) -> LeaderView<'a> {
        LeaderView { own: 1, membership, committed: 100, followers: followers.iter().copied().collect() }
    }

    #[test]
    fn member_0_belongs_where_raft_has_it() {
        let mut tree = Tree::new();
        let members = "server.0=a:1:2\nserver.1=b:1:2\nserver.257=c:1:2:observer\n";
        tree.refound_ensemble(7, members);
        let target = Target::of(&tree, 90).expect("there is an ensemble");
        let membership = Membership::new(vec![raft_id(0), 1], vec![257]);
        assert_eq!((&target.voters, &target.learners), (&membership.voters, &membership.learners));
    }

    #[test]
    fn a_newcomer_learns_is_asked_and_votes_then_the_change_is_settled() {
        let mut change = change(&[1, 2], true);
        let alone = Membership::new(vec![1], vec![]);
        let learner = MembershipAction::Propose(vec![(2, StepTo::Learner)]);
        assert_eq!(change.tick(&view(&alone, &[])), [learner]);
        let learning = Membership::new(vec![1], vec![2]);
        let late = Follower { matched: 10, ..FOLLOWER };
        assert_eq!(change.tick(&view(&learning, &[(2, late)])), []);
        let all = [(2, FOLLOWER)];
        assert_eq!(change.tick(&view(&learning, &all)), [MembershipAction::AskReadiness { member: 2 }]);
        change.note_ready(2);
        let voter = MembershipAction::Propose(vec![(2, StepTo::Voter)]);
        assert_eq!(change.tick(&view(&learning, &all)), [voter]);
        let both = Membership::new(vec![1, 2], vec![]);
        assert_eq!(change.tick(&view(&both, &all)), [MembershipAction::Settle(None)]);
        assert_eq!(change.tick(&view(&both, &all)), [], "that is on its way");
        change.reconsider();
        assert_eq!(change.tick(&view(&both, &all)), [MembershipAction::Settle(None)]);
    }

    #[test]
    fn a_newcomer_that_learns_was_not_removed_by_what_is_older_than_its_addition() {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, "server.1=a:1:2\n");
        let mut newcomer = MembershipChange::default();
        newcomer.follow(2, &tree, 5);
        assert!(!newcomer.is_removed(true));
        assert!(newcomer.is_removed(false), "it has caught up, and does not belong");
        tree.refound_ensemble(7, "server.1=a:1:2\nserver.2=b:1:2\n");
        newcomer.follow(2, &tree, 6);
        assert!(!newcomer.is_removed(true) && !newcomer.is_removed(false));
        tree.refound_ensemble(7, "server.1=a:1:2\n");
        newcomer.follow(2, &tree, 7);
        assert!(newcomer.is_removed(true), "it did belong");
    }

    #[test]
    fn a_member_that_is_to_vote_waits_for_its_vote_and_an_observer_does_not() {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2:observer\n");
        let mut change = MembershipChange::default();
        change.follow(2, &tree, 5);
        let learning = Membership::new(vec![1], vec![2, 3]);
        assert!(change.awaits_vote(2, &learning));
        assert!(!change.awaits_vote(3, &learning));
        let joint = Membership { voters_outgoing: vec![1], ..Membership::new(vec![1, 2], vec![3]) };
        assert!(change.awaits_vote(2, &joint), "member 1 is still needed");
        assert!(!change.awaits_vote(2, &Membership::new(vec![1, 2], vec![3])));
    }

    #[test]
    fn a_leader_that_is_to_leave_hands_the_lead_to_the_voter_that_has_most() {
        let mut change = change(&[2, 3], true);
        change.note_ready(2);
        change.note_ready(3);
        let membership = Membership::new(vec![1, 2, 3], vec![]);
        let less = Follower { matched: 99, ..FOLLOWER };
        let actions = change.tick(&view(&membership, &[(2, less), (3, FOLLOWER)]));
        assert_eq!(actions, [MembershipAction::HandOver { transferee: 3 }]);
    }

    #[test]
    fn a_change_whose_newcomer_is_silent_is_given_up_once() {
        let mut change = change(&[1, 2], true);
        let learning = Membership::new(vec![1], vec![2]);
        let silent = Follower { is_active: false, ..FOLLOWER };
        for _ in 0..SILENT_TICKS_MAX {
            assert_eq!(change.tick(&view(&learning, &[(2, silent)])), []);
        }
        let failed = MembershipAction::Settle(Some(ErrorCode::NewConfigNoQuorum));
        assert_eq!(change.tick(&view(&learning, &[(2, silent)])), [failed]);
        assert_eq!(change.tick(&view(&learning, &[(2, silent)])), []);
    }

    #[test]
    fn a_member_that_left_is_removed_when_it_knows_or_after_a_while() {
        let mut change = change(&[1], false);
        let leaving = Membership::new(vec![1], vec![2]);
        let removed = MembershipAction::Propose(vec![(2, StepTo::Removed)]);
        let actions = change.tick(&view(&leaving, &[(2, FOLLOWER)]));
        assert_eq!(actions, std::slice::from_ref(&removed));
        let late = Follower { matched: 90, ..FOLLOWER };
        for _ in 2..FAREWELL_TICKS {
            assert_eq!(change.tick(&view(&leaving, &[(2, late)])), []);
        }
        assert_eq!(change.tick(&view(&leaving, &[(2, late)])), [removed]);
    }

    #[test]
    fn a_joint_membership_is_ended_first() {
        let joint = Membership { voters_outgoing: vec![1, 2], ..Membership::new(vec![1, 3], vec![]) };
        let actions = change(&[1, 3], true).tick(&view(&joint, &[]));
        assert_eq!(actions, [MembershipAction::Propose(vec![])]);
    }
}
