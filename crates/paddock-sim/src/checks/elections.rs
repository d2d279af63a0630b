//! Nobody disturbs an ensemble that is well: a member asks for votes, and raises the term with that, only when another one
//! has said that it would vote.

use std::collections::BTreeSet;

use super::{Checked, ensure};

const CHECKER: &str = "elections";

#[derive(Debug, Default)]
pub(crate) struct Elections {
    /// Who was promised a vote since it stood for election last. A promise for an earlier term that comes late counts for the
    /// library, too.
    promised: BTreeSet<u8>,
    campaigns: BTreeSet<(u8, u64)>,
}

impl Elections {
    pub(crate) fn promised(&mut self, member: u8) {
        self.promised.insert(member);
    }

    /// What a member knew is gone with its process.
    pub(crate) fn ends(&mut self, member: u8) {
        self.promised.remove(&member);
    }

    /// Each of its requests for a vote in `term` is looked at.
    pub(crate) fn check_campaign(&mut self, member: u8, term: u64) -> Checked {
        let is_first = self.campaigns.insert((member, term));
        ensure!(
            !is_first || self.promised.remove(&member),
            CHECKER,
            "member {member} stands for election in term {term}, and nobody has said that it would vote for it"
        );
        Ok(())
    }
}
