//! Placement of groups that were founded with fewer replicas than the ensemble has voters: which of the voters have each.
//!
//! The placement follows from the voters in the home group's state alone. A change of members begins the replicas that are needed next to those that are there. Once it is
//! settled, those that are needed no more are let go: so while it is under way a group's clients are served by the members that had it before.

use paddock_proto::{EnsembleMember, MemberNumber, MemberRole};

use crate::Tree;

/// The voters of an ensemble that have a group with this number of replicas: those from the group's place on, in the order of their numbers, around. So each has about
/// as many groups as any other.
pub fn placement(voters: &[MemberNumber], group: u32, replicas: u32) -> Vec<MemberNumber> {
    let mut placed: Vec<MemberNumber> = around(voters, group).take(replicas as usize).collect();
    placed.sort_unstable();
    placed
}

/// The voters in the order of their numbers, each once, from a group's place on.
fn around(voters: &[MemberNumber], group: u32) -> impl Iterator<Item = MemberNumber> {
    let mut voters = voters.to_vec();
    voters.sort_unstable();
    let first = (group as usize).checked_rem(voters.len()).unwrap_or(0);
    voters.rotate_left(first);
    voters.into_iter()
}

fn voters(members: &[EnsembleMember]) -> Vec<MemberNumber> {
    let voters = members.iter().filter(|member| member.role == MemberRole::Participant);
    voters.map(|member| member.id).collect()
}

/// The home group's state.
impl Tree {
    /// The voters among which groups are placed while no change of members is under way, or until it is settled.
    fn placed_among(&self, group: u32) -> Vec<MemberNumber> {
        let founders = || self.groups().founders(group).map(|founders| founders.voters.clone());
        // Before the first change the members are those that have founded the groups, whether the state names them or not.
        let has_changed = self.groups().roster() > 0;
        let ensemble = self.ensemble().filter(|_| has_changed);
        ensemble.map(|ensemble| voters(&ensemble.members)).or_else(founders).unwrap_or_default()
    }

    /// Voters that have a group and serve its clients; `None` for one that all members have.
    pub fn placed(&self, group: u32) -> Option<Vec<MemberNumber>> {
        let replicas = self.groups().replicas(group)?;
        Some(placement(&self.placed_among(group), group, replicas))
    }

    /// Voters that are to have a group when the change of members is settled which is under way; `None` if there is none, and for a group that all members have.
    pub fn placed_next(&self, group: u32) -> Option<Vec<MemberNumber>> {
        let replicas = self.groups().replicas(group)?;
        let target = self.ensemble()?.target.as_ref()?;
        Some(placement(&voters(target), group, replicas))
    }

    /// The voter from which on a group is placed, around; `None` for a group that all members have.
    pub fn first_placed(&self, group: u32) -> Option<MemberNumber> {
        self.groups().replicas(group)?;
        around(&self.placed_among(group), group).next()
    }

    /// True if a member has a group, and serves its clients.
    pub fn serves(&self, group: u32, member: MemberNumber) -> bool {
        self.placed(group).is_none_or(|placed| placed.contains(&member))
    }

    /// True if a member is to have a replica of a group, because it serves the group's clients, or is to do so.
    pub fn has_replica(&self, group: u32, member: MemberNumber) -> bool {
        self.serves(group, member) || self.placed_next(group).is_some_and(|next| next.contains(&member))
    }

    /// Voters that begin a group where there is none yet, or that are asked by a newcomer whether there is.
    pub fn founding_voters(&self, group: u32) -> Option<Vec<MemberNumber>> {
        self.placed(group).or_else(|| Some(self.groups().founders(group)?.voters.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{FeatureLevel, RaisedLevel};
    use crate::{GroupFounders, parse_members};

    const FIVE: &str = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2\nserver.5=e:1:2\n";
    const OTHERS: &str = "server.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2\nserver.5=e:1:2\nserver.6=f:1:2\nserver.7=g:1:2:observer\n";

    /// Five groups of three replicas and one that all members have.
    fn home() -> Tree {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, FIVE);
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        let founders = || GroupFounders { voters: vec![5, 4, 3, 2, 1], learners: vec![9] };
        tree.found_groups_with(6, founders(), 3);
        tree.found_groups_with(7, founders(), 0);
        tree
    }

    fn placed(tree: &Tree) -> Vec<Vec<MemberNumber>> {
        (1..6).map(|group| tree.placed(group).expect("it is placed")).collect()
    }

    #[test]
    fn groups_go_round_the_voters() {
        let tree = home();
        assert_eq!(placed(&tree), [[2, 3, 4], [3, 4, 5], [1, 4, 5], [1, 2, 5], [1, 2, 3]]);
        let first: Vec<_> = (0..8).map(|group| tree.first_placed(group)).collect();
        assert_eq!(first, [None, Some(2), Some(3), Some(4), Some(5), Some(1), None, None]);
        assert_eq!((tree.placed(0), tree.placed(6), tree.placed(7)), (None, None, None));
        for (member, count) in [(1, 3), (5, 3), (9, 0)] {
            assert_eq!((1..6).filter(|group| tree.has_replica(*group, member)).count(), count);
            assert!(tree.has_replica(0, member) && tree.has_replica(6, member));
        }
        assert_eq!(tree.founding_voters(2), Some(vec![3, 4, 5]));
        assert_eq!(tree.founding_voters(6), Some(vec![5, 4, 3, 2, 1]));
        assert_eq!((tree.founding_voters(0), tree.founding_voters(7)), (None, None));
        assert!(placement(&[], 3, 2).is_empty());
        assert_eq!(placement(&[4, 2], 3, 5), [2, 4]);
    }

    #[test]
    fn a_change_keeps_the_replicas_that_are_there_until_it_is_settled() {
        let mut tree = home();
        tree.ensemble.as_mut().expect("there is one").target = parse_members(OTHERS);
        tree.groups.begin_roster();
        let before = placed(&home());
        assert_eq!(placed(&tree), before);
        // The voters to be are 2, 3, 4, 5 and 6.
        let next = [[3, 4, 5], [4, 5, 6], [2, 5, 6], [2, 3, 6], [2, 3, 4]];
        for (group, next) in (1..).zip(next) {
            assert_eq!(tree.placed_next(group), Some(next.to_vec()));
            for member in 1..8 {
                let served = before[group as usize - 1].contains(&member);
                assert_eq!(tree.serves(group, member), served);
                assert_eq!(tree.has_replica(group, member), served || next.contains(&member));
            }
        }
        assert_eq!(tree.placed_next(6), None);
        let ensemble = tree.ensemble.as_mut().expect("there is one");
        ensemble.members = ensemble.target.take().expect("there is a change");
        tree.groups.begin_roster();
        assert_eq!(placed(&tree), next);
        assert_eq!((tree.placed_next(1), tree.first_placed(1)), (None, Some(3)));
        assert!(!tree.has_replica(3, 1));
    }
}
