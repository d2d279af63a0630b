//! The members to which a member has links, as far as the world has to know them: letters of others do not reach it.

use std::collections::BTreeSet;

use paddock_proto::MemberNumber;
use paddock_replica::{Replicated, SoughtMembers};

use crate::numbering::machine_of;

#[derive(Debug)]
pub(crate) struct SimLinks {
    /// Members in its configuration: an operator has told it of all that there may be.
    configured: Vec<MemberNumber>,
    sought: SoughtMembers,
    linked: BTreeSet<MemberNumber>,
}

impl SimLinks {
    pub(super) fn new(configured: Vec<MemberNumber>, state: &Replicated) -> SimLinks {
        let sought = SoughtMembers::default();
        let mut links = SimLinks { configured, sought, linked: BTreeSet::new() };
        links.follow(state);
        links
    }

    /// The state may name other members now.
    pub(super) fn follow(&mut self, state: &Replicated) {
        self.linked = state.linked_members(self.configured.iter().copied(), &self.sought);
    }

    pub(super) fn seek(&mut self, sought: SoughtMembers) {
        self.sought = sought;
    }

    pub(crate) fn lead_to(&self, machine: u8) -> bool {
        self.linked.iter().any(|member| machine_of(*member) == machine)
    }
}
