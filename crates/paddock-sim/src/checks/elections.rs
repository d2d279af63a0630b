//! No member votes twice in a term, or disturbs an ensemble that is well: a member asks for votes, and raises the term with
//! that, only when another one has said that it would vote.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, ensure};

const CHECKER: &str = "elections";

#[derive(Debug, Default)]
pub(crate) struct Elections {
    /// Members that have promised a vote since it stood for election last. A promise for an earlier term that comes late counts for
    /// the library, too.
    promised: BTreeSet<u8>,
    campaigns: BTreeSet<(u8, u64)>,
    /// For whom a member has voted in a term.
    votes: BTreeMap<(u8, u64), u8>,
}

impl Elections {
    pub(crate) fn promised(&mut self, member: u8) {
        self.promised.insert(member);
    }

    /// A member's process ends, and with it all that it only knew.
    pub(crate) fn ends(&mut self, member: u8) {
        self.promised.remove(&member);
    }

    /// Each answer to a request for a vote is looked at.
    pub(crate) fn check_vote(&mut self, member: u8, term: u64, candidate: u8) -> Checked {
        let chosen = *self.votes.entry((member, term)).or_insert(candidate);
        ensure!(
            chosen == candidate,
            CHECKER,
            "member {member} votes for {candidate} in term {term}, in which it has voted for {chosen}"
        );
        Ok(())
    }

    /// A member that has lost its data has no say before it has all that any member had applied by then: it may have promised to
    /// keep that. Its log ends with `last`.
    pub(crate) fn check_has_learned(member: u8, last: Option<u64>, forgot: u64) -> Checked {
        ensure!(
            forgot == 0 || last.is_some_and(|last| last >= forgot),
            CHECKER,
            "member {member} votes with a log up to {last:?}; entry {forgot} was there when it lost its data"
        );
        Ok(())
    }

    /// A member has a new disk, or a damaged one: it is not known for whom it has voted.
    pub(crate) fn forgets(&mut self, member: u8) {
        self.votes.retain(|(voter, _), _| *voter != member);
    }

    /// Each of its requests for a vote in `term` is looked at. A member that was told to by a leader needs no other word.
    pub(crate) fn check_campaign(&mut self, member: u8, term: u64, is_told: bool) -> Checked {
        self.check_vote(member, term, member)?;
        if is_told {
            return Ok(());
        }
        let is_first = self.campaigns.insert((member, term));
        ensure!(
            !is_first || self.promised.remove(&member),
            CHECKER,
            "member {member} stands for election in term {term}, and nobody has said that it would vote for it"
        );
        Ok(())
    }
}
