//! Membership that a group's state wants, and the next step on the way there.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{ErrorCode, MemberRole};
use paddock_tree::Tree;

use crate::Membership;
use crate::membership::{Follower, MembershipStep, StepTo};
use crate::raft_id::{all_logged, logged, raft_id};
use crate::rosters::OtherGroups;

/// Ticks for which a newcomer may be silent before a change is given up.
pub(super) const SILENT_TICKS_MAX: u32 = 100;
/// Ticks for which newcomers may make no progress before a change is given up.
pub(super) const IDLE_TICKS_MAX: u32 = 600;
/// Ticks that members that left may take to learn of it.
pub(super) const FAREWELL_TICKS: u32 = 50;
/// Entries that a voter to be may lag.
const LAG_MAX: u64 = 64;

/// Part of a change of members that may be carried out now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChangeStage {
    /// All of it: there is one group.
    #[default]
    Whole,
    /// Newcomers learn, and no vote changes, until all groups have come so far.
    Preparing,
    /// Votes change. All groups were prepared: a newcomer that is gone since then is not waited for.
    Voting,
}

/// Membership that the state wants.
#[derive(Debug, Default)]
pub(super) struct Target {
    pub(super) voters: Vec<u64>,
    pub(super) learners: Vec<u64>,
    pub(super) stage: ChangeStage,
    /// True if the group has come as far as its stage goes, as of the last tick in which it led.
    pub(super) is_ready: bool,
    /// Ticks in which the newcomers have come nearer.
    pub(super) progress_ticks: u64,
    /// True if a client waits for it.
    pub(super) is_change: bool,
    /// The entry with which the state came to want it.
    pub(super) since: u64,
    /// Ticks since then.
    pub(super) ticks: u32,
    /// True if the end of the change or of its stage is on its way into the log.
    pub(super) is_settled: bool,
    /// Ticks in which the newcomers that have to catch up have not been heard.
    pub(super) silent_ticks: u32,
    /// Ticks in which they have not come nearer.
    pub(super) idle_ticks: u32,
    /// Sum of the entries up to which they have everything.
    pub(super) progress: u64,
    /// Members that say that they would vote. Those that would not are in the way of the next election.
    pub(super) ready: BTreeSet<u64>,
}

/// The ensemble as its leader sees it.
#[derive(Debug)]
pub(crate) struct LeaderView<'a> {
    pub(crate) own: u64,
    pub(crate) membership: &'a Membership,
    pub(crate) committed: u64,
    pub(crate) followers: BTreeMap<u64, Follower>,
    pub(crate) others: OtherGroups,
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
    /// Propose that votes change, since all groups are prepared.
    Promote,
    /// Announce that the change is in force, or has failed.
    Settle(Option<ErrorCode>),
    /// Ask a member whether it would vote.
    AskReadiness {
        member: u64,
    },
}

impl Target {
    /// Target in the state of a group as of entry `since`, and the stage of the change; `None` while there is no ensemble.
    pub(super) fn of(tree: &Tree, since: u64, stage: ChangeStage) -> Option<Target> {
        let ensemble = tree.ensemble()?;
        let with = |role| {
            let members = ensemble.wanted().iter().filter(move |member| member.role == role);
            members.map(|member| raft_id(member.id)).collect::<Vec<u64>>()
        };
        // Sorted by Raft ids, which is another order than that of numbers.
        let Membership { voters, learners, .. } =
            Membership::new(with(MemberRole::Participant), with(MemberRole::Observer));
        let is_change = ensemble.target.is_some();
        Some(Target { voters, learners, stage, is_change, since, ..Target::default() })
    }

    /// True while votes change, or may.
    pub(super) fn is_voting(&self) -> bool {
        self.stage == ChangeStage::Voting
    }

    /// Another member leads: what the leader before had settled may not have come into the log.
    pub(super) fn reconsider(&mut self) {
        (self.is_settled, self.ticks, self.silent_ticks, self.idle_ticks) = (false, 0, 0, 0);
        self.is_ready = false;
    }

    /// Actions of the leader for this tick.
    pub(super) fn tick(&mut self, view: &LeaderView<'_>) -> Vec<MembershipAction> {
        self.ticks += 1;
        let mut actions = Vec::new();
        self.next_step(view, &mut actions);
        actions
    }

    fn contains(&self, member: u64) -> bool {
        self.voters.contains(&member) || self.learners.contains(&member)
    }

    fn next_step(&mut self, view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) {
        let now = view.membership;
        self.is_ready = false;
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
        if self.stage == ChangeStage::Preparing {
            return self.prepare(view, actions);
        }
        // The home group's voters change last: it needs the members that leave for as long as another group does.
        let is_awaited = matches!(view.others, OtherGroups::OnTheWay | OtherGroups::Stuck);
        if self.is_voting() && is_awaited {
            return;
        }
        if now.voters != self.voters {
            return self.change_voters(view, actions);
        }
        self.is_ready = true;
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

    /// Brings the group so far that its voters could change.
    fn prepare(&mut self, view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) {
        let missing = self.missing(view, actions);
        if self.is_lacking(&missing, view) {
            return self.wait_for(&missing, view, actions);
        }
        self.is_ready = true;
        match view.others {
            OtherGroups::Ready if !self.is_settled => {
                self.is_settled = true;
                actions.push(MembershipAction::Promote);
            }
            OtherGroups::Stuck => self.give_up("other groups do not get ready", &[], actions),
            _ => {}
        }
    }

    /// True if newcomers are missing that are waited for, or most of the voters to be.
    fn is_lacking(&self, missing: &[u64], view: &LeaderView<'_>) -> bool {
        let is_newcomer = |id: &u64| !view.membership.voters.contains(id);
        let has_quorum = 2 * (self.voters.len() - missing.len()) > self.voters.len();
        !has_quorum || !self.is_voting() && missing.iter().any(is_newcomer)
    }

    fn change_voters(&mut self, view: &LeaderView<'_>, actions: &mut Vec<MembershipAction>) {
        let voters = &view.membership.voters;
        let missing = self.missing(view, actions);
        if self.is_lacking(&missing, view) {
            return self.wait_for(&missing, view, actions);
        }
        let mut goal = self.voters.clone();
        if !goal.contains(&view.own) {
            // A voter that would not vote does not take the lead, and nothing is proposed while it is asked to.
            let may_lead = |id: &u64| voters.contains(id) && !missing.contains(id);
            let candidates = goal.iter().copied().filter(may_lead);
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
        self.progress_ticks += u64::from(is_progressing);
        self.progress = progress;
        let is_over = self.silent_ticks > SILENT_TICKS_MAX || self.idle_ticks > IDLE_TICKS_MAX;
        // Once votes change there is no way back. Of the other groups the home group's leader judges.
        let may_give_up = self.is_change && !self.is_voting();
        if is_over && may_give_up && view.others != OtherGroups::NotAwaited {
            let reason = if is_silent { "members cannot be reached" } else { "members do not catch up" };
            self.give_up(reason, late, actions);
        }
    }

    fn give_up(&mut self, reason: &str, late: &[u64], actions: &mut Vec<MembershipAction>) {
        if !self.is_settled {
            tracing::error!(members = ?all_logged(late), "change of members given up: {reason}");
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
