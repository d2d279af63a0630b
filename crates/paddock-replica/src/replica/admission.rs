//! Admission of a member that was started, to an ensemble that may be there.
//!
//! A disk says nothing of how old it is: somebody may have put back a copy of it, from before what the member has acknowledged
//! since. So a member that was started asks the others. A leader knows how far the member had acknowledged, and the state knows
//! the number of its last start; by both it judges the disk. If the disk is older, it is as if it was lost: the member learns
//! before it votes or serves. If nobody leads, as most of the voters say, there is nobody to ask, and the member takes
//! part in the election.

use std::collections::BTreeSet;

use super::Replica;
use crate::Membership;
use crate::message::{Condition, FoundOnDisk, Greeting, Ruling};

/// A member that was started and has not been admitted yet: it does not vote, and serves nobody.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Members of the ensemble that know of no leader.
    leaderless: BTreeSet<u64>,
}

impl Admission {
    /// True if most of the voters know of no leader, this member among them.
    fn is_nobody_leading(&self, own: u64, membership: &Membership) -> bool {
        let are_most = |voters: &[u64]| {
            let count = voters.iter().filter(|id| **id == own || self.leaderless.contains(id)).count();
            voters.is_empty() || count > voters.len() / 2
        };
        are_most(&membership.voters) && are_most(&membership.voters_outgoing)
    }
}

impl Replica {
    /// True if this member was started and has not been told that its disk is as new as it should be.
    pub(super) fn awaits_admission(&self) -> bool {
        self.admission.is_some()
    }

    /// To be called once the member knows of which ensemble it is.
    pub(super) fn begin_admission(&mut self) {
        self.admission = Some(Admission::default());
        self.end_admission_if_nobody_leads();
    }

    fn end_admission(&mut self) {
        self.admission = None;
        self.consensus.set_silent(self.is_silent());
    }

    fn end_admission_if_nobody_leads(&mut self) {
        let (own, membership) = (self.options.member, self.consensus.membership());
        if self.admission.as_ref().is_some_and(|admission| admission.is_nobody_leading(own, membership)) {
            self.end_admission();
        }
    }

    /// Another member has said how it stands with it, and perhaps with this one.
    pub(super) fn on_admission_answered(&mut self, from: u64, greeting: &Greeting) {
        let Some(admission) = &mut self.admission else { return };
        match (greeting.ruling, greeting.leader) {
            (Some(Ruling::Admitted), _) => self.end_admission(),
            (Some(Ruling::Outdated), _) => self.on_outdated(from),
            (None, Some(_)) => drop(admission.leaderless.remove(&from)),
            (None, None) if matches!(greeting.condition, Condition::Established | Condition::Founding) => {
                admission.leaderless.insert(from);
                self.end_admission_if_nobody_leads();
            }
            (None, None) => {}
        }
    }

    /// This member's disk is older than what it has acknowledged.
    pub(super) fn on_outdated(&mut self, leader: u64) {
        tracing::error!(
            leader,
            last_entry = self.found.last.1,
            "this member's disk is older than what it has acknowledged: it learns before it votes or serves clients; do \
             not put back copies of a member's directory"
        );
        self.admission = None;
        self.await_state();
    }

    /// A leader that hears of a member again knows which entries it had acknowledged, and that it may not have them any
    /// more.
    pub(super) fn note_restart(&mut self, member: u64) {
        if self.consensus.is_leader() {
            let term = self.leadership.term;
            if let Some(matched) = self.consensus.forget_matched(member) {
                self.acknowledged_before.insert(member, (term, matched));
            }
        }
    }

    /// This leader's judgement of the disk of a member that was started; `None` from a member that does not lead.
    pub(super) fn rule(&mut self, member: u64, found: &FoundOnDisk) -> Option<Ruling> {
        if !self.consensus.takes_proposals() {
            return None;
        }
        let acknowledged = self.acknowledged_before.get(&member);
        let acknowledged =
            acknowledged.filter(|(term, _)| *term == self.leadership.term).map(|(_, last)| *last);
        let has_forgotten_entries = acknowledged.is_some_and(|(term, index)| {
            let (last_term, last) = found.last;
            last < index || term.is_some_and(|term| last_term < term)
        });
        let known_start = self.starts.get(&member).copied().unwrap_or_default();
        let has_forgotten_start = found.former_start < known_start && known_start < found.start;
        if !has_forgotten_entries && !has_forgotten_start {
            return Some(Ruling::Admitted);
        }
        if self.complaints.insert((member, found.start)) {
            tracing::error!(
                member,
                last_entry = found.last.1,
                acknowledged = acknowledged.map(|(_, index)| index),
                start = found.former_start,
                last_start = known_start,
                "a member's disk is empty, or older than what it has acknowledged: it learns before it votes"
            );
        }
        Some(Ruling::Outdated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_voters_have_to_know_of_no_leader() {
        let is_nobody_leading = |leaderless: &[u64], voters: &[u64], outgoing: &[u64]| {
            let membership =
                Membership { voters_outgoing: outgoing.to_vec(), ..Membership::new(voters.to_vec(), vec![]) };
            Admission { leaderless: leaderless.iter().copied().collect() }.is_nobody_leading(1, &membership)
        };
        assert!(is_nobody_leading(&[], &[1], &[]), "the only voter asks nobody");
        assert!(!is_nobody_leading(&[], &[1, 2, 3], &[]));
        assert!(is_nobody_leading(&[3], &[1, 2, 3], &[]));
        assert!(!is_nobody_leading(&[3, 9], &[1, 2, 3, 4, 5], &[]));
        assert!(!is_nobody_leading(&[2], &[2, 3], &[]), "an observer is not one of them");
        assert!(is_nobody_leading(&[2, 3], &[2, 3], &[]));
        assert!(!is_nobody_leading(&[3], &[1, 2, 3], &[4, 5, 6]));
    }
}
