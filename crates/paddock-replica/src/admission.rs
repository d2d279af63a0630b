//! Admission of a member that was started, to an ensemble that may be there.
//!
//! A disk says nothing of how old it is: an operator may have put back a copy of it, from before what the member has acknowledged
//! since. So a member that was started asks the others. A leader knows how far the member had acknowledged, and the state knows
//! the number of its last start; by both it judges the disk (`disk_age.rs`). If the disk is older, it is as if it was lost: the
//! member learns before it votes or serves. If there is no leader, as most of the voters say, there is no member to ask, and the member
//! takes part in the election. Voters are those of the newest membership that is known: of a member that was away while others joined, the own one
//! may name more that have lost their disks than it can do without.

use std::collections::BTreeMap;

use crate::Membership;
use crate::message::{Condition, Greeting, Ruling};

/// A member that was started and has not been admitted yet: it does not vote, and serves no clients.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// Members of the ensemble that know of no leader, each with its membership, and the entry as of which that is.
    leaderless: BTreeMap<u64, (u64, Membership)>,
}

/// Result of a question for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionState {
    Waiting,
    /// The member takes part.
    Admitted,
    /// The member's disk is older than what it has acknowledged.
    Outdated,
}

impl Admission {
    /// Takes the answer of another member: how it stands with it, and perhaps a leader's ruling on this one. `applied` is the entry as of which the
    /// own membership is.
    pub(crate) fn note(
        &mut self,
        own: u64,
        (from, greeting): (u64, &Greeting),
        (applied, membership): (u64, &Membership),
    ) -> AdmissionState {
        match (greeting.ruling, greeting.leader) {
            (Some(Ruling::Admitted), _) => return AdmissionState::Admitted,
            (Some(Ruling::Outdated), _) => return AdmissionState::Outdated,
            (None, Some(_)) => drop(self.leaderless.remove(&from)),
            (None, None) if matches!(greeting.condition, Condition::Established | Condition::Founding) => {
                self.leaderless.insert(from, (greeting.applied, greeting.membership.clone()));
                if self.is_nobody_leading(own, (applied, membership)) {
                    return AdmissionState::Admitted;
                }
            }
            (None, None) => {}
        }
        AdmissionState::Waiting
    }

    /// True if most of the voters know of no leader, this member among them.
    pub(crate) fn is_nobody_leading(&self, own: u64, (applied, membership): (u64, &Membership)) -> bool {
        let are_most = |voters: &[u64]| {
            let count = voters.iter().filter(|id| **id == own || self.leaderless.contains_key(id)).count();
            voters.is_empty() || count > voters.len() / 2
        };
        let newer = self.leaderless.values().filter(|(at, _)| *at > applied);
        let newest = newer.max_by_key(|(at, _)| *at).map_or(membership, |(_, told)| told);
        are_most(&newest.voters) && are_most(&newest.voters_outgoing)
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
            let leaderless = leaderless.iter().map(|id| (*id, (0, Membership::default()))).collect();
            Admission { leaderless }.is_nobody_leading(1, (7, &membership))
        };
        assert!(is_nobody_leading(&[], &[1], &[]), "the only voter asks nobody");
        assert!(!is_nobody_leading(&[], &[1, 2, 3], &[]));
        assert!(is_nobody_leading(&[3], &[1, 2, 3], &[]));
        assert!(!is_nobody_leading(&[3, 9], &[1, 2, 3, 4, 5], &[]));
        assert!(!is_nobody_leading(&[2], &[2, 3], &[]), "an observer is not one of them");
        assert!(is_nobody_leading(&[2, 3], &[2, 3], &[]));
        assert!(!is_nobody_leading(&[3], &[1, 2, 3], &[4, 5, 6]));
    }

    #[test]
    fn voters_of_the_newest_membership_are_counted() {
        // Members 2 and 3 have lost their disks. Member 4 got its vote while this one, which is 1, was away.
        let (before, after) =
            (Membership::new(vec![1, 2, 3, 5], vec![4]), Membership::new(vec![1, 2, 3, 4, 5], vec![]));
        let told = |at: u64| [4, 5].map(|id| (id, (at, after.clone()))).into();
        let is_nobody_leading =
            |at: u64| Admission { leaderless: told(at) }.is_nobody_leading(1, (329, &before));
        assert!(is_nobody_leading(381));
        assert!(!is_nobody_leading(0), "a build that does not say as of which entry it speaks");
        assert!(!is_nobody_leading(329));
        // A membership of long ago counts no more: that member has been away itself.
        let long_ago = [(5, (99, Membership::new(vec![1, 5], vec![])))].into();
        assert!(!Admission { leaderless: long_ago }.is_nobody_leading(1, (329, &before)));
    }
}
