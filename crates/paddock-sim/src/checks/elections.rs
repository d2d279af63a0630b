//! Nobody disturbs an ensemble that is well: a member asks for votes, and raises the term with that, only when another one
//! has said that it would vote.

use std::collections::BTreeSet;

use super::{Checked, ensure};

const CHECKER: &str = "elections";

#[derive(Debug, Default)]
pub(crate) struct Elections {
    /// Who was promised a vote in which term.
    promised: BTreeSet<(u8, u64)>,
}

impl Elections {
    pub(crate) fn promised(&mut self, member: u8, term: u64) {
        self.promised.insert((member, term));
    }

    pub(crate) fn check_campaign(&self, member: u8, term: u64) -> Checked {
        ensure!(
            self.promised.contains(&(member, term)),
            CHECKER,
            "member {member} stands for election in term {term}, and nobody has said that it would vote for it"
        );
        Ok(())
    }
}
