//! The joining of a member's groups: items of the home group's streams go into the logs of the groups that this member leads.

use paddock_replica::{OtherGroup, Replica};
use paddock_storage::GroupNumber;

use super::Member;

impl Member {
    /// A group has applied something, or its state is another one.
    pub(super) fn follow_received(&mut self, at: usize) {
        let group = &self.groups[at];
        if let Some(state) = &group.own_state {
            self.carrier.follow_group(group.number.0, state.look().tree());
        }
    }

    /// Proposes what the groups that this member leads are to have of each other, as far as there may be anything. To be called when one of them has applied
    /// something, and with each tick.
    pub(super) fn carry_between_groups(&mut self) {
        for number in self.carrier.awaited_groups() {
            if let Some(at) = self.place_of(GroupNumber(number)) {
                self.follow_received(at);
            }
        }
        for number in self.carrier.take_stirred() {
            let Some(at) = self.place_of(GroupNumber(number)).filter(|at| *at > 0) else { continue };
            self.stir(at);
            let Member { presence, groups, carrier, .. } = self;
            let (home, others) = groups.split_first_mut().expect("the home group is the first");
            let mut replica = Replica::new(presence, &mut others[at - 1].group);
            let Some(term) = replica.joining_term() else { continue };
            carrier.propose_items(number, term, |command| replica.announce_between_groups(command));
            let mut home = Replica::new(presence, &mut home.group);
            carrier.propose_answers(number, term, |command| home.submit_between_groups(command));
        }
        let Member { presence, groups, carrier, .. } = self;
        let mut home = Replica::new(presence, &mut groups[0].group);
        if let Some(term) = home.joining_term() {
            carrier.propose_missing(term, |command| home.announce_between_groups(command));
        }
    }

    /// The groups beside the home group, as this member has them.
    pub(super) fn other_groups(&self) -> Vec<OtherGroup> {
        let others = self.group_standings().zip(&self.groups).skip(1);
        others
            .filter_map(|(standing, group)| Some(group.own_state.as_ref()?.tell(standing, group.writes)))
            .collect()
    }
}
