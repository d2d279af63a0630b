//! The joining of a member's groups: items of the home group's streams go into the logs of the groups that this member leads.

use paddock_replica::{OtherGroup, Replicated};
use paddock_storage::GroupNumber;

use super::Member;

impl Member {
    /// The home group's state, as of the last entry that was applied here.
    pub(super) fn follow_home_streams(&mut self, home: &Replicated) {
        self.carrier.follow_home(home.tree().streams());
    }

    /// A group has applied something, or its state is another one.
    pub(super) fn follow_received(&mut self, at: usize) {
        let group = &self.groups[at];
        if let Some(state) = &group.own_state {
            self.carrier.follow_group(group.number.0, state.received_items());
        }
    }

    /// Proposes what the groups that this member leads are to have of each other. To be called when one of them has applied something, and with each tick.
    pub(super) fn carry_between_groups(&mut self) {
        for at in 1..self.groups.len() {
            let GroupNumber(number) = self.groups[at].number;
            let Some(term) = self.replica(at).joining_term() else { continue };
            let Member { presence, groups, carrier, .. } = self;
            let mut replica = paddock_replica::Replica::new(presence, &mut groups[at].group);
            carrier.propose_items(number, term, |command| replica.announce_between_groups(command));
        }
        if let Some(term) = self.replica(0).joining_term() {
            let Member { presence, groups, carrier, .. } = self;
            let mut replica = paddock_replica::Replica::new(presence, &mut groups[0].group);
            carrier.propose_acknowledgements(term, |command| replica.announce_between_groups(command));
        }
    }

    /// The groups beside the home group, as this member has them.
    pub(super) fn other_groups(&self) -> Vec<OtherGroup> {
        let others = self.group_standings().zip(&self.groups).skip(1);
        let states = others.filter_map(|(standing, group)| Some((standing, group.own_state.as_ref()?)));
        states.map(|(standing, state)| state.tell(standing)).collect()
    }
}
