//! The members to which a member has links, as far as the world has to know them: letters of others do not reach it.

use std::collections::BTreeSet;

use paddock_proto::{EnsembleMember, MemberNumber};
use paddock_replica::{Membership, Replicated, member_number};

use crate::numbering::machine_of;

#[derive(Debug)]
pub(crate) struct SimLinks {
    /// Members in its configuration, which count while the state names none.
    configured: Vec<MemberNumber>,
    /// Members of whom others have told.
    told: Vec<MemberNumber>,
    linked: BTreeSet<MemberNumber>,
}

impl SimLinks {
    pub(super) fn new(founding: &Membership, state: &Replicated) -> SimLinks {
        let configured = founding.all().filter_map(member_number).collect();
        let mut links = SimLinks { configured, told: Vec::new(), linked: BTreeSet::new() };
        links.follow(state);
        links
    }

    /// The state may name other members now.
    pub(super) fn follow(&mut self, state: &Replicated) {
        self.linked = state.linked_members(self.configured.iter().copied(), self.told.iter().copied());
    }

    pub(super) fn hear(&mut self, told: &[EnsembleMember]) {
        self.told = told.iter().map(|member| member.id).collect();
    }

    pub(crate) fn lead_to(&self, machine: u8) -> bool {
        self.linked.iter().any(|member| machine_of(*member) == machine)
    }
}
