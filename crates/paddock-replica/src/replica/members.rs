//! From the members that are to those that are wanted: what the leader does about it, one step at a time.
//!
//! What is wanted stands in the replicated state, so that the next leader goes on where this one stopped. A newcomer
//! learns first and votes when it has everything, and most of those who are to vote have to be there; who leaves has no vote first and is let go when it knows that it left;
//! a leader that is to have no vote hands the lead over before. When the voters are those wanted, the change is settled,
//! which is what its client waits for.

use std::collections::BTreeSet;

use paddock_proto::{ErrorCode, MemberRole, OpCode};
use paddock_tree::{Ensemble, Tree};

use super::Replica;
use crate::membership::{MembershipStep as Step, StepTo};

/// So many ticks a newcomer may be silent, or make no progress, before a change is given up.
const SILENT_TICKS_MAX: u32 = 100;
const IDLE_TICKS_MAX: u32 = 600;
/// So many ticks those who left may take to learn of it.
const FAREWELL_TICKS: u32 = 50;
/// A voter to be may lag so many entries.
const LAG_MAX: u64 = 64;

/// Who is to take part, as the state says.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    voters: Vec<u64>,
    learners: Vec<u64>,
    /// Whether a client waits for it.
    is_change: bool,
    /// The entry with which it was wanted.
    since: u64,
    /// Ticks since then.
    ticks: u32,
    /// The change was settled, and that is on its way.
    is_settled: bool,
    /// How long the newcomers that have to catch up have not been heard, or have not come nearer.
    silent_ticks: u32,
    idle_ticks: u32,
    progress: u64,
    /// Members that say that they would vote. Those that would not are in the way of the next election.
    ready: BTreeSet<u64>,
}

impl Wanted {
    pub(super) fn of(tree: &Tree, since: u64) -> Option<Wanted> {
        let ensemble = tree.ensemble()?;
        let with = |role| {
            let members = ensemble.wanted().iter().filter(move |member| member.role == role);
            members.map(|member| u64::from(member.id)).collect()
        };
        Some(Wanted {
            voters: with(MemberRole::Participant),
            learners: with(MemberRole::Observer),
            is_change: ensemble.target.is_some(),
            since,
            ..Wanted::default()
        })
    }

    fn contains(&self, member: u64) -> bool {
        self.voters.contains(&member) || self.learners.contains(&member)
    }
}

impl Replica {
    /// Takes notice of what the state says of the members.
    pub(super) fn follow_ensemble(&mut self, tree: &Tree) {
        self.wanted = Wanted::of(tree, self.applied);
        if let Some(ensemble) = tree.ensemble() {
            self.note_cluster(ensemble.cluster);
        }
        let belongs = |ensemble: &Ensemble| {
            ensemble.all_members().any(|member| u64::from(member.id) == self.options.member)
        };
        let is_removed = tree.ensemble().is_some_and(|ensemble| !belongs(ensemble));
        if is_removed && !self.is_removed {
            tracing::error!(
                "this member was removed from the ensemble: it serves no clients any more; stop it, or add it again"
            );
        }
        self.is_removed = is_removed;
    }

    /// What a leader does about the members, each tick.
    pub(super) fn reconcile(&mut self) {
        let is_ready = self.consensus.takes_proposals() && !self.consensus.is_changing();
        let Some(mut wanted) = self.wanted.take_if(|_| is_ready) else { return };
        wanted.ticks += 1;
        self.next_step(&mut wanted);
        self.wanted = Some(wanted);
    }

    fn next_step(&mut self, wanted: &mut Wanted) {
        let now = self.consensus.membership().clone();
        if now.is_joint() {
            return self.consensus.change(&Step::new());
        }
        if !now.voters.contains(&self.options.member) {
            // It was elected before it knew that it has no vote any more.
            return self.step_down();
        }
        let all = wanted.voters.iter().chain(&wanted.learners);
        let absent: Step = all.filter(|id| !now.contains(**id)).map(|id| (*id, StepTo::Learner)).collect();
        if !absent.is_empty() {
            tracing::info!(members = ?ids(&absent), "new members begin to learn");
            return self.consensus.change(&absent);
        }
        if now.voters != wanted.voters {
            return self.change_voters(&now.voters, wanted);
        }
        if wanted.is_change {
            if !wanted.is_settled {
                wanted.is_settled = true;
                self.settle_reconfig(None);
            }
            return;
        }
        let gone: Step = now
            .learners
            .iter()
            .filter(|id| !wanted.contains(**id))
            .filter(|id| wanted.ticks >= FAREWELL_TICKS || self.has(**id, wanted.since + 1))
            .map(|id| (*id, StepTo::Removed))
            .collect();
        if !gone.is_empty() {
            tracing::info!(members = ?ids(&gone), "members that left are let go");
            self.consensus.change(&gone);
        }
    }

    fn change_voters(&mut self, voters: &[u64], wanted: &mut Wanted) {
        let missing = self.missing(wanted);
        let is_newcomer = |id: &u64| !voters.contains(id);
        let has_quorum = 2 * (wanted.voters.len() - missing.len()) > wanted.voters.len();
        if missing.iter().any(is_newcomer) || !has_quorum {
            return self.wait_for(&missing, wanted);
        }
        let own = self.options.member;
        let mut goal = wanted.voters.clone();
        if !goal.contains(&own) {
            let heirs = goal.iter().copied().filter(|id| voters.contains(id));
            if let Some(heir) = heirs.max_by_key(|id| self.consensus.follower(*id).map(|heir| heir.matched)) {
                tracing::info!(to = heir, "this leader is to leave: it hands the lead over");
                return self.hand_over(heir);
            }
            // Nobody who stays can lead yet.
            goal.push(own);
        }
        let joining = goal.iter().filter(|id| !voters.contains(id)).map(|id| (*id, StepTo::Voter));
        let leaving = voters.iter().filter(|id| !goal.contains(id)).map(|id| (*id, StepTo::Learner));
        let step: Step = joining.chain(leaving).collect();
        tracing::info!(from = ?voters, to = ?goal, "the voters change");
        self.consensus.change(&step);
    }

    /// The voters to be that are not there, have not caught up, or would not vote. Whoever has caught up is asked that.
    fn missing(&mut self, wanted: &Wanted) -> Vec<u64> {
        let others = wanted.voters.iter().copied().filter(|id| *id != self.options.member);
        let (present, mut missing): (Vec<u64>, Vec<u64>) = others.partition(|id| self.has_caught_up(*id));
        for member in present.into_iter().filter(|id| !wanted.ready.contains(id)) {
            self.letters.push((member, self.greeting(true, None)));
            missing.push(member);
        }
        missing
    }

    /// A member says that it votes.
    pub(super) fn note_ready(&mut self, member: u64) {
        if let Some(wanted) = &mut self.wanted {
            wanted.ready.insert(member);
        }
    }

    fn has_caught_up(&self, member: u64) -> bool {
        let nearly_all = self.consensus.committed().saturating_sub(LAG_MAX).max(1);
        self.consensus.follower(member).is_some_and(|follower| follower.is_active)
            && self.has(member, nearly_all)
    }

    /// Whether the member has everything up to `index`.
    fn has(&self, member: u64, index: u64) -> bool {
        self.consensus.follower(member).is_some_and(|follower| follower.matched >= index)
    }

    /// Who is not there, or does not get on, is not waited for for ever.
    fn wait_for(&mut self, late: &[u64], wanted: &mut Wanted) {
        let followers: Vec<_> = late.iter().filter_map(|id| self.consensus.follower(*id)).collect();
        let is_silent = followers.len() < late.len() || followers.iter().any(|follower| !follower.is_active);
        let progress = followers.iter().map(|follower| follower.matched).sum();
        wanted.silent_ticks = if is_silent { wanted.silent_ticks + 1 } else { 0 };
        let gets_on = progress > wanted.progress || followers.iter().any(|follower| follower.gets_snapshot);
        wanted.idle_ticks = if gets_on { 0 } else { wanted.idle_ticks + 1 };
        wanted.progress = progress;
        let is_over = wanted.silent_ticks > SILENT_TICKS_MAX || wanted.idle_ticks > IDLE_TICKS_MAX;
        if is_over && wanted.is_change && !wanted.is_settled {
            let why = if is_silent { "cannot be reached" } else { "do not catch up" };
            tracing::error!(members = ?late, "change of members given up: members {why}");
            wanted.is_settled = true;
            self.settle_reconfig(Some(ErrorCode::NewConfigNoQuorum));
        }
    }

    fn settle_reconfig(&mut self, error: Option<ErrorCode>) {
        let body = error.map_or(0, ErrorCode::code).to_be_bytes();
        self.say(OpCode::SettleReconfig, &body);
    }

    /// Leadership changed: what the leader before had settled may not have come into the log.
    pub(super) fn reconsider_members(&mut self) {
        if let Some(wanted) = &mut self.wanted {
            (wanted.is_settled, wanted.ticks, wanted.silent_ticks, wanted.idle_ticks) = (false, 0, 0, 0);
        }
    }

    /// Asks another voter to lead. It may do so any time later, and nobody waits for a lease to be over then.
    pub(super) fn hand_over(&mut self, heir: u64) {
        (self.lease_until_ms, self.handed_over_in) = (0, Some(self.consensus.leadership().term));
        self.consensus.transfer(heir);
    }

    /// The voter that would lose the least time as leader, if there is another one that is there.
    pub(super) fn heir(&self) -> Option<u64> {
        let others = self.consensus.membership().voters.iter().filter(|id| **id != self.options.member);
        let followers = others.filter_map(|id| Some((*id, self.consensus.follower(*id)?)));
        let active = followers.filter(|(_, follower)| follower.is_active);
        active.max_by_key(|(_, follower)| follower.matched).map(|(id, _)| id)
    }
}

fn ids(step: &Step) -> Vec<u64> {
    step.iter().map(|(id, _)| *id).collect()
}
