//! Inquiry of a member without data for the current term, before it listens to any leader.
//!
//! The member may have promised others not to listen to an old leader any more, and has forgotten it. An old leader that has slept
//! would find it, take it for half of its quorum, and commit other entries than the new one. So a member without data first
//! hears from so many of the voters that every quorum which may have heard its promise has one among them: a majority,
//! without itself. The newest of their terms is its own from then on. It follows that a member of three whose disk was
//! replaced comes back when both others are there.
//!
//! These voters say to which ensemble they belong. What a single member of another one says, because an address is
//! wrong, is not enough.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::{Condition, Greeting};
use crate::{Cluster, Membership};

#[derive(Debug, Default)]
pub(crate) struct Inquiry {
    /// Answers of those that belong to an ensemble.
    answers: BTreeMap<u64, TermAnswer>,
    /// Leaders that spoke to this member. Its configuration may not name them.
    leaders: BTreeSet<u64>,
}

/// The answer of a member of an ensemble.
#[derive(Debug)]
struct TermAnswer {
    cluster: u64,
    term: u64,
    /// The membership, as far as it knows.
    membership: Membership,
}

impl Inquiry {
    /// Another member has answered.
    pub(crate) fn note(&mut self, from: u64, cluster: Cluster, greeting: Greeting) {
        let Greeting { condition, term, membership, .. } = greeting;
        if let (Condition::Established, Some(cluster)) = (condition, cluster.known()) {
            self.answers.insert(from, TermAnswer { cluster, term, membership });
        }
    }

    /// The ensemble of which enough have answered, and the newest term there.
    pub(crate) fn outcome(&self, own: u64) -> Option<(u64, u64)> {
        let clusters: BTreeSet<u64> = self.answers.values().map(|answer| answer.cluster).collect();
        clusters.into_iter().find_map(|cluster| Some((cluster, self.term(cluster, own)?)))
    }

    fn term(&self, cluster: u64, own: u64) -> Option<u64> {
        let is_of_it = |answer: &&TermAnswer| answer.cluster == cluster;
        let newest = self.answers.values().filter(is_of_it).max_by_key(|answer| answer.term)?;
        let has_answered = |id: &u64| *id != own && self.answers.get(id).as_ref().is_some_and(is_of_it);
        let have_answered = |voters: &[u64]| {
            voters.is_empty() || voters.iter().filter(|id| has_answered(id)).count() > voters.len() / 2
        };
        let enough =
            have_answered(&newest.membership.voters) && have_answered(&newest.membership.voters_outgoing);
        enough.then_some(newest.term)
    }

    /// A leader has spoken, and will again.
    pub(crate) fn note_leader(&mut self, leader: u64) {
        self.leaders.insert(leader);
    }

    /// Members to ask besides those that the configuration names.
    pub(crate) fn known(&self) -> impl Iterator<Item = u64> {
        let members = self.answers.values().flat_map(|answer| answer.membership.all());
        members.chain(self.leaders.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inquiry(voters: &[u64], outgoing: &[u64], answers: &[(u64, u64)]) -> Inquiry {
        let membership =
            Membership { voters_outgoing: outgoing.to_vec(), ..Membership::new(voters.to_vec(), vec![]) };
        let answer = |term| TermAnswer { cluster: 7, term, membership: membership.clone() };
        let answers = answers.iter().map(|&(from, term)| (from, answer(term))).collect();
        Inquiry { answers, ..Inquiry::default() }
    }

    fn term(inquiry: &Inquiry, own: u64) -> Option<u64> {
        inquiry.term(7, own)
    }

    #[test]
    fn a_majority_without_the_member_itself_has_to_answer() {
        assert_eq!(term(&inquiry(&[1, 2, 3], &[], &[]), 3), None);
        assert_eq!(term(&inquiry(&[1, 2, 3], &[], &[(1, 5)]), 3), None);
        assert_eq!(term(&inquiry(&[1, 2, 3], &[], &[(1, 5), (2, 7)]), 3), Some(7));
        assert_eq!(term(&inquiry(&[1, 2, 3, 4, 5], &[], &[(1, 5), (2, 7)]), 3), None);
        assert_eq!(term(&inquiry(&[1, 2, 3, 4, 5], &[], &[(1, 5), (2, 7), (5, 6)]), 3), Some(7));
        // A newcomer, to an ensemble of one and to one of three.
        assert_eq!(term(&inquiry(&[1], &[], &[(1, 5)]), 3), Some(5));
        assert_eq!(term(&inquiry(&[1, 2, 3], &[], &[(1, 5), (9, 8)]), 4), None);
        assert_eq!(term(&inquiry(&[1, 2, 3], &[], &[(1, 5), (3, 4)]), 4), Some(5));
    }

    #[test]
    fn while_voters_change_both_majorities_have_to_answer() {
        assert_eq!(term(&inquiry(&[1, 2, 3], &[4, 5, 6], &[(1, 5), (2, 5)]), 3), None);
        assert_eq!(term(&inquiry(&[1, 2, 3], &[4, 5, 6], &[(1, 5), (2, 5), (4, 5), (6, 6)]), 3), Some(6));
    }

    #[test]
    fn who_knows_the_newest_term_says_who_votes() {
        let mut inquiry = inquiry(&[1, 2, 3], &[], &[(1, 5), (2, 5)]);
        let answer = |term, voters: &[u64]| TermAnswer {
            cluster: 7,
            term,
            membership: Membership::new(voters.to_vec(), vec![]),
        };
        inquiry.answers.insert(4, answer(6, &[4, 5, 6]));
        assert_eq!(term(&inquiry, 9), None);
        inquiry.answers.insert(5, answer(3, &[1, 2, 3]));
        assert_eq!(term(&inquiry, 9), Some(6));
    }

    #[test]
    fn members_of_another_ensemble_do_not_count() {
        let mut inquiry = inquiry(&[1, 2, 3], &[], &[(1, 5), (2, 7)]);
        inquiry.answers.get_mut(&1).unwrap().cluster = 8;
        assert_eq!(inquiry.outcome(3), None);
        inquiry.answers.get_mut(&2).unwrap().cluster = 8;
        assert_eq!(inquiry.outcome(3), Some((8, 7)));
    }
}
