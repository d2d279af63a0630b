//! What a member without data asks before it listens to any leader: which term it is.
//!
//! It may have promised others not to listen to an old leader any more, and has forgotten it. An old leader that has slept
//! would find it, take it for half of its quorum, and commit other entries than the new one. So a member without data first
//! hears from so many of the voters that every quorum which may have heard its promise has one among them: a majority,
//! without itself. The newest of their terms is its own from then on. It follows that a member of three whose disk was
//! replaced comes back when both others are there.

use std::collections::{BTreeMap, BTreeSet};

use super::Replica;
use crate::Membership;
use crate::message::{Condition, Greeting};

#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// What those said that belong to the ensemble: their term, and who takes part as far as they know.
    answers: BTreeMap<u64, (u64, Membership)>,
    /// Leaders that spoke to this member. Its configuration may not name them.
    leaders: BTreeSet<u64>,
}

impl Inquiry {
    /// The newest term, once enough have answered.
    fn term(&self, own: u64) -> Option<u64> {
        let (term, membership) = self.answers.values().max_by_key(|(term, _)| *term)?;
        let have_answered = |voters: &[u64]| {
            let count = voters.iter().filter(|id| **id != own && self.answers.contains_key(id)).count();
            voters.is_empty() || count > voters.len() / 2
        };
        let enough = have_answered(&membership.voters) && have_answered(&membership.voters_outgoing);
        enough.then_some(*term)
    }

    /// Who is to be asked, besides those that the configuration names.
    fn known(&self) -> impl Iterator<Item = u64> {
        let members = self.answers.values().flat_map(|(_, membership)| membership.all());
        members.chain(self.leaders.iter().copied())
    }
}

impl Replica {
    /// Whether this member does not know yet whom it may listen to.
    pub(super) fn is_inquiring(&self) -> bool {
        self.inquiry.is_some()
    }

    /// A leader has spoken, and will again.
    pub(super) fn note_unheard_leader(&mut self, leader: u64) {
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.leaders.insert(leader);
        }
    }

    /// Everybody whom a member without data asks.
    pub(super) fn asked(&self) -> BTreeSet<u64> {
        let configured = self.options.founding.membership.all();
        let known = self.inquiry.iter().flat_map(Inquiry::known);
        configured.chain(known).filter(|id| *id != self.options.member).collect()
    }

    pub(super) fn on_inquiry_answered(&mut self, from: u64, greeting: Greeting) {
        let Some(inquiry) = &mut self.inquiry else { return };
        if greeting.condition == Condition::Established {
            inquiry.answers.insert(from, (greeting.term, greeting.membership));
        }
        if let Some(term) = inquiry.term(self.options.member) {
            tracing::info!(term, "this member has heard which term it is");
            self.inquiry = None;
            self.consensus.adopt_term(term);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inquiry(voters: &[u64], outgoing: &[u64], answers: &[(u64, u64)]) -> Inquiry {
        let membership =
            Membership { voters_outgoing: outgoing.to_vec(), ..Membership::new(voters.to_vec(), vec![]) };
        let answers = answers.iter().map(|&(from, term)| (from, (term, membership.clone()))).collect();
        Inquiry { answers, ..Inquiry::default() }
    }

    #[test]
    fn a_majority_without_the_member_itself_has_to_answer() {
        assert_eq!(inquiry(&[1, 2, 3], &[], &[]).term(3), None);
        assert_eq!(inquiry(&[1, 2, 3], &[], &[(1, 5)]).term(3), None);
        assert_eq!(inquiry(&[1, 2, 3], &[], &[(1, 5), (2, 7)]).term(3), Some(7));
        assert_eq!(inquiry(&[1, 2, 3, 4, 5], &[], &[(1, 5), (2, 7)]).term(3), None);
        assert_eq!(inquiry(&[1, 2, 3, 4, 5], &[], &[(1, 5), (2, 7), (5, 6)]).term(3), Some(7));
        // A newcomer, to an ensemble of one and to one of three.
        assert_eq!(inquiry(&[1], &[], &[(1, 5)]).term(3), Some(5));
        assert_eq!(inquiry(&[1, 2, 3], &[], &[(1, 5), (9, 8)]).term(4), None);
        assert_eq!(inquiry(&[1, 2, 3], &[], &[(1, 5), (3, 4)]).term(4), Some(5));
    }

    #[test]
    fn while_voters_change_both_majorities_have_to_answer() {
        assert_eq!(inquiry(&[1, 2, 3], &[4, 5, 6], &[(1, 5), (2, 5)]).term(3), None);
        assert_eq!(inquiry(&[1, 2, 3], &[4, 5, 6], &[(1, 5), (2, 5), (4, 5), (6, 6)]).term(3), Some(6));
    }

    #[test]
    fn who_knows_the_newest_term_says_who_votes() {
        let mut inquiry = inquiry(&[1, 2, 3], &[], &[(1, 5), (2, 5)]);
        inquiry.answers.insert(4, (6, Membership::new(vec![4, 5, 6], vec![])));
        assert_eq!(inquiry.term(9), None);
        inquiry.answers.insert(5, (3, Membership::new(vec![1, 2, 3], vec![])));
        assert_eq!(inquiry.term(9), Some(6));
    }
}
