//! Rosters: the members that the home group's state wants all Raft groups to have.
//!
//! Each roster has a number, which rises with every change of what is wanted, so that a group never goes back to an older one. A change of members
//! has three of them. The first one only prepares: newcomers learn, and no vote changes. The second one, once all groups are prepared, changes the
//! votes; those that are to leave stay as observers, and get every entry. The third one lets them go, when no group needs them any more. If a group
//! cannot be prepared, the second one says that everything is as before.
//!
//! The roster of a group that not all members have names those on which the group is placed (`placement.rs`).
//!
//! A group beside the home group has the roster to which it has come in its own state, in the place where the home group's state has the ensemble.

use paddock_proto::{EnsembleMember, MemberNumber, MemberRole};

use crate::Tree;
use crate::ensemble::Ensemble;

/// The members that all groups are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// Rises with every roster of an ensemble, from 1 on.
    pub number: u64,
    /// Id of the ensemble.
    pub cluster: u64,
    /// Members to be, by rising number.
    pub members: Vec<EnsembleMember>,
    /// The members for which a group only prepares; `None` if `members` are to be brought about.
    pub target: Option<Vec<EnsembleMember>>,
}

impl Roster {
    /// The roster that a home group wants; `None` if there is no other group, or the members have not changed since there is one.
    pub fn of_home(tree: &Tree) -> Option<Roster> {
        let (groups, ensemble) = (tree.groups(), tree.ensemble()?);
        let number = Some(groups.roster()).filter(|number| *number > 0)?;
        let Ensemble { cluster, members, target, .. } = ensemble;
        let (members, target) = match target {
            Some(target) if groups.is_promoted() => (with_leaving(target, members), None),
            target => (members.clone(), target.clone()),
        };
        Some(Roster { number, cluster: *cluster, members, target })
    }

    /// The roster that a home group wants one other group to have; `None` as above.
    pub fn of_group(tree: &Tree, group: u32) -> Option<Roster> {
        let roster = Roster::of_home(tree)?;
        let Some(placed) = tree.placed(group) else { return Some(roster) };
        let ensemble = tree.ensemble()?;
        let those = |members: &[EnsembleMember], numbers: &[MemberNumber]| -> Vec<EnsembleMember> {
            members.iter().filter(|member| numbers.contains(&member.id)).cloned().collect()
        };
        let present = those(&ensemble.members, &placed);
        let next = ensemble.target.as_ref().zip(tree.placed_next(group));
        let (members, target) = match next.map(|(target, next)| those(target, &next)) {
            Some(target) if tree.groups().is_promoted() => (with_leaving(&target, &present), None),
            target => (present, target),
        };
        Some(Roster { members, target, ..roster })
    }
}

/// The members to be, and as observers those that are to leave.
fn with_leaving(target: &[EnsembleMember], present: &[EnsembleMember]) -> Vec<EnsembleMember> {
    let stays = |member: &&EnsembleMember| target.iter().any(|other| other.id == member.id);
    let leaving = present.iter().filter(|member| !stays(member));
    let leaving = leaving.map(|member| EnsembleMember { role: MemberRole::Observer, ..member.clone() });
    let mut members: Vec<EnsembleMember> = target.iter().cloned().chain(leaving).collect();
    members.sort_by_key(|member| member.id);
    members
}

impl Tree {
    /// Number of the roster to which a group beside the home group has come, whose state this is; 0 if it has none.
    pub fn followed_roster(&self) -> u64 {
        self.ensemble().map_or(0, |ensemble| ensemble.version as u64)
    }

    /// A group beside the home group, whose state this is, comes to a roster. False if it has come to this one or to a later one before: that stays.
    pub fn follow_roster(&mut self, roster: &Roster) -> bool {
        let Roster { number, cluster, members, target } = roster;
        if *number <= self.followed_roster() {
            return false;
        }
        let (members, target) = (members.clone(), target.clone());
        self.ensemble = Some(Ensemble { cluster: *cluster, members, version: *number as i64, target });
        true
    }

    /// All groups are prepared for the change of members whose roster has this number: votes may change. False if there is no such change, or no more.
    pub fn promote(&mut self, roster: u64) -> bool {
        let is_under_way = self.ensemble().is_some_and(|ensemble| ensemble.target.is_some());
        let is_prepared = is_under_way && self.groups.roster() == roster && !self.groups.is_promoted();
        if is_prepared {
            self.groups.promote();
        }
        is_prepared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{FeatureLevel, RaisedLevel};
    use crate::{GroupFounders, parse_members};

    fn home(members: &str) -> Tree {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, members);
        tree.raise_level(&RaisedLevel::known(FeatureLevel::SEVERAL_GROUPS));
        tree.found_groups(3, GroupFounders::default());
        tree
    }

    fn begin(tree: &mut Tree, target: Option<&str>) {
        let ensemble = tree.ensemble.as_mut().expect("there is one");
        ensemble.target = target.map(|lines| parse_members(lines).expect("lines of members"));
        tree.groups.begin_roster();
    }

    /// Numbers and roles of a roster, as *members/target*.
    fn words(roster: &Roster) -> String {
        let list = |members: &[EnsembleMember]| {
            let role = |member: &EnsembleMember| if member.role == MemberRole::Observer { "o" } else { "" };
            let words: Vec<String> =
                members.iter().map(|member| format!("{}{}", member.id, role(member))).collect();
            words.join(" ")
        };
        let target = roster.target.as_deref().map(list);
        [list(&roster.members)].into_iter().chain(target).collect::<Vec<_>>().join("/")
    }

    #[track_caller]
    fn check(tree: &Tree, expected: Option<(u64, &str)>) {
        let told = Roster::of_home(tree).map(|roster| (roster.number, words(&roster)));
        assert_eq!(told, expected.map(|(number, words)| (number, words.to_owned())));
    }

    const THREE: &str = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
    const OTHERS: &str = "server.2=b:1:2:observer\nserver.3=c:1:2\nserver.4=d:1:2\n";

    #[test]
    fn who_leaves_stays_without_a_vote_until_the_change_is_over() {
        let mut tree = home(THREE);
        check(&tree, None);
        begin(&mut tree, Some(OTHERS));
        check(&tree, Some((1, "1 2 3/2o 3 4")));
        assert!(!tree.promote(2), "that is no roster of a change");
        assert!(tree.promote(1));
        assert!(!tree.promote(1) && !tree.promote(2), "it was promoted");
        check(&tree, Some((2, "1o 2o 3 4")));
        if let Some(ensemble) = &mut tree.ensemble {
            ensemble.members = ensemble.target.take().expect("there is a change");
        }
        tree.groups.begin_roster();
        check(&tree, Some((3, "2o 3 4")));
        assert!(!tree.promote(3), "nothing changes");
    }

    #[test]
    fn a_change_that_is_given_up_has_a_roster_that_says_so() {
        let mut tree = home(THREE);
        begin(&mut tree, Some(OTHERS));
        begin(&mut tree, None);
        check(&tree, Some((2, "1 2 3")));
    }

    #[test]
    fn a_group_never_goes_back_to_an_older_roster() {
        let (mut tree, mut group) = (home(THREE), Tree::new());
        begin(&mut tree, Some(OTHERS));
        let first = Roster::of_home(&tree).expect("there is a change");
        begin(&mut tree, None);
        let second = Roster::of_home(&tree).expect("it was given up");
        assert_eq!(group.followed_roster(), 0);
        assert!(group.follow_roster(&second));
        let digest = group.digest();
        assert!(!group.follow_roster(&first) && !group.follow_roster(&second));
        assert_eq!((group.followed_roster(), group.digest()), (2, digest));
        assert_eq!(group.ensemble().map(|ensemble| ensemble.members.len()), Some(3));
    }

    #[test]
    fn a_group_that_not_all_members_have_is_placed_again() {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, THREE);
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        let founders = || GroupFounders { voters: vec![1, 2, 3], learners: vec![] };
        tree.found_groups_with(3, founders(), 2);
        tree.found_groups_with(4, founders(), 0);
        assert_eq!(Roster::of_group(&tree, 1), None);
        let check = |tree: &Tree, expected: [&str; 3]| {
            let told = [1, 2, 3].map(|group| words(&Roster::of_group(tree, group).expect("there is one")));
            assert_eq!(told, expected.map(str::to_owned));
        };
        // The voters to be are 3 and 4.
        begin(&mut tree, Some(OTHERS));
        check(&tree, ["2 3/3 4", "1 3/3 4", "1 2 3/2o 3 4"]);
        assert!(tree.promote(1));
        check(&tree, ["2o 3 4", "1o 3 4", "1o 2o 3 4"]);
        if let Some(ensemble) = &mut tree.ensemble {
            ensemble.members = ensemble.target.take().expect("there is a change");
        }
        tree.groups.begin_roster();
        check(&tree, ["3 4", "3 4", "2o 3 4"]);
        begin(&mut tree, Some(THREE));
        begin(&mut tree, None);
        check(&tree, ["3 4", "3 4", "2o 3 4"]);
    }

    #[test]
    fn one_group_has_no_rosters() {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, THREE);
        let digest = tree.digest();
        begin(&mut tree, None);
        check(&tree, None);
        assert_eq!(tree.digest(), digest);
    }
}
