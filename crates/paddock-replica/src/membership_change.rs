//! Change of the membership from what it is to what the replicated state says it should be, one step at a time, by the leader.
//!
//! The target stands in the replicated state, so that the next leader goes on where this one stopped. A newcomer learns first
//! and votes when it has everything, and most of the voters to be have to be there. A member that leaves has no vote first and is
//! removed when it knows that it left. A leader that is to have no vote hands the lead over before. When the voters are those of
//! the target, the change is settled, which is what its client waits for.
//!
//! In an ensemble with several groups each of them has such a target. A change first prepares: newcomers learn in all groups, and no vote changes. When
//! all groups are prepared, the home group says so, and is the last one to change its voters (`rosters.rs`).

mod target;

use paddock_proto::EnsembleMember;
use paddock_state::{ConnId, RequestId};
use paddock_tree::{Ensemble, Tree};

use crate::Membership;
use crate::raft_id::raft_id;
use target::{ChangeStage, Target};
pub(crate) use target::{LeaderView, MembershipAction};

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
    /// Number of the roster to which a group beside the home group has come; 0 if it has none.
    roster: u64,
}

impl MembershipChange {
    /// Takes the target from the home group's state as of entry `applied`.
    pub(crate) fn follow(&mut self, own: u64, tree: &Tree, applied: u64) {
        let is_change = tree.ensemble().is_some_and(|ensemble| ensemble.target.is_some());
        let stage = match tree.groups() {
            groups if groups.count() == 1 || !is_change => ChangeStage::Whole,
            groups if groups.is_promoted() => ChangeStage::Voting,
            _ => ChangeStage::Preparing,
        };
        self.take(own, tree, applied, stage);
    }

    /// Takes the target from the roster in the state of another group as of entry `applied`.
    pub(crate) fn follow_roster(&mut self, own: u64, tree: &Tree, applied: u64) {
        let is_target = tree.ensemble().is_some_and(|ensemble| ensemble.target.is_some());
        self.take(own, tree, applied, if is_target { ChangeStage::Preparing } else { ChangeStage::Voting });
        self.roster = tree.followed_roster();
    }

    fn take(&mut self, own: u64, tree: &Tree, applied: u64, stage: ChangeStage) {
        self.target = Target::of(tree, applied, stage);
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

    /// Number of the roster to which a group beside the home group has come; 0 if it has none.
    pub(crate) fn roster(&self) -> u64 {
        self.roster
    }

    /// True if the group has come as far as its part of a change goes, and the ticks in which it has come nearer.
    pub(crate) fn progress(&self) -> (bool, u64) {
        self.target.as_ref().map_or((false, 0), |target| (target.is_ready, target.progress_ticks))
    }

    /// True while votes change for a change of members of several groups.
    pub(crate) fn is_voting(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.is_voting() && target.is_change)
    }

    /// True unless the state wants the member to have no vote.
    pub(crate) fn may_vote(&self, member: u64) -> bool {
        self.target.as_ref().is_none_or(|target| target.voters.contains(&member))
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
            target.reconsider();
        }
    }

    /// Actions of the leader for this tick.
    pub(crate) fn tick(&mut self, view: &LeaderView<'_>) -> Vec<MembershipAction> {
        let Some(target) = &mut self.target else { return Vec::new() };
        target.tick(view)
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::ErrorCode;

    use super::target::{FAREWELL_TICKS, IDLE_TICKS_MAX, SILENT_TICKS_MAX};
    use super::*;
    use crate::membership::{Follower, StepTo};
    use crate::rosters::OtherGroups;

    const FOLLOWER: Follower =
        Follower { matched: 100, is_active: true, is_heard: true, gets_snapshot: false };

    fn change(voters: &[u64], is_change: bool) -> MembershipChange {
        let target = Target { voters: voters.to_vec(), is_change, since: 90, ..Target::default() };
        MembershipChange { target: Some(target), ..MembershipChange::default() }
    }

    fn view<'a>(membership: &'a Membership, followers: &[(u64, Follower)]) -> LeaderView<'a> {
        let (followers, others) = (followers.iter().copied().collect(), OtherGroups::Ready);
        LeaderView { own: 1, membership, committed: 100, followers, others }
    }

    #[test]
    fn member_0_belongs_where_raft_has_it() {
        let mut tree = Tree::new();
        let members = "server.0=a:1:2\nserver.1=b:1:2\nserver.257=c:1:2:observer\n";
        tree.refound_ensemble(7, members);
        let target = Target::of(&tree, 90, ChangeStage::Whole).expect("there is an ensemble");
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
    fn a_leader_that_is_to_leave_hands_the_lead_to_no_voter_that_would_not_vote() {
        let mut change = change(&[2, 3, 4], true);
        change.note_ready(2);
        change.note_ready(4);
        let membership = Membership::new(vec![1, 2, 3, 4], vec![]);
        let less = Follower { matched: 99, ..FOLLOWER };
        let followers = [(2, less), (3, FOLLOWER), (4, Follower { matched: 98, ..FOLLOWER })];
        let actions = change.tick(&view(&membership, &followers));
        assert!(actions.contains(&MembershipAction::HandOver { transferee: 2 }), "{actions:?}");
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

    /// A change to these voters, for which member 2 is ready.
    fn staged(voters: &[u64], stage: ChangeStage) -> MembershipChange {
        let target =
            Target { voters: voters.to_vec(), is_change: true, since: 90, stage, ..Target::default() };
        let mut change = MembershipChange { target: Some(target), ..MembershipChange::default() };
        change.note_ready(2);
        change
    }

    #[test]
    fn with_several_groups_votes_change_when_all_are_prepared() {
        let mut change = staged(&[1, 2], ChangeStage::Preparing);
        let learning = Membership::new(vec![1], vec![2]);
        let view = |others| LeaderView { others, ..view(&learning, &[(2, FOLLOWER)]) };
        assert_eq!(change.tick(&view(OtherGroups::OnTheWay)), []);
        assert_eq!(change.progress(), (true, 0));
        assert_eq!(change.tick(&view(OtherGroups::Ready)), [MembershipAction::Promote]);
        assert_eq!(change.tick(&view(OtherGroups::Stuck)), [], "that is on its way");
        let failed = MembershipAction::Settle(Some(ErrorCode::NewConfigNoQuorum));
        change.reconsider();
        assert_eq!(change.tick(&view(OtherGroups::Stuck)), [failed]);
        assert_eq!(change.tick(&view(OtherGroups::Ready)), [], "it was given up");
    }

    #[test]
    fn the_home_groups_voters_change_last_and_a_newcomer_that_is_gone_is_not_waited_for() {
        let mut change = staged(&[1, 2, 3], ChangeStage::Voting);
        let learning = Membership::new(vec![1, 2], vec![3]);
        let gone = Follower { is_active: false, ..FOLLOWER };
        let now = |membership, others| LeaderView { others, ..view(membership, &[(2, FOLLOWER), (3, gone)]) };
        for others in [OtherGroups::OnTheWay, OtherGroups::Stuck] {
            assert_eq!(change.tick(&now(&learning, others)), []);
        }
        let voter = MembershipAction::Propose(vec![(3, StepTo::Voter)]);
        assert_eq!(change.tick(&now(&learning, OtherGroups::Ready)), std::slice::from_ref(&voter));
        let all = Membership::new(vec![1, 2, 3], vec![]);
        assert_eq!(change.tick(&now(&all, OtherGroups::OnTheWay)), [], "another group is not so far");
        assert_eq!(change.tick(&now(&all, OtherGroups::Ready)), [MembershipAction::Settle(None)]);
        // Another group waits for none.
        let mut other = staged(&[1, 2, 3], ChangeStage::Voting);
        assert_eq!(other.tick(&now(&learning, OtherGroups::NotAwaited)), [voter]);
    }

    #[test]
    fn another_group_gives_nothing_up_and_tells_if_it_comes_nearer() {
        let mut change = staged(&[1, 2], ChangeStage::Preparing);
        let learning = Membership::new(vec![1], vec![2]);
        let now =
            |follower| LeaderView { others: OtherGroups::NotAwaited, ..view(&learning, &[(2, follower)]) };
        let silent = Follower { is_active: false, matched: 3, ..FOLLOWER };
        for _ in 0..2 * IDLE_TICKS_MAX {
            assert_eq!(change.tick(&now(silent)), []);
        }
        assert_eq!(change.progress(), (false, 1));
        change.tick(&now(Follower { gets_snapshot: true, ..silent }));
        assert_eq!(change.progress(), (false, 2));
        change.tick(&now(FOLLOWER));
        assert_eq!(change.progress(), (true, 2));
    }
}
