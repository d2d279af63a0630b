//! Rosters of the home group, and how far the other groups have come with the newest one.
//!
//! A member notes each roster of the home group when it has applied it. Where it leads another group, it brings that group there, and tells all
//! members now and then how far the group is (`replica/rosters.rs`). The leader of the home group waits for all groups before it goes on: before the
//! first vote changes, and again before the change is over. So a newcomer learns in every group before it votes in any, and a member that leaves is
//! let go when no group needs it. A group that does not get ready, or whose leader says nothing, ends a change that has not changed any vote yet; behind
//! that it is waited for.
//!
//! Groups that not all members have go to rosters of their own, and their leaders' reports go over the links of the home group.

use std::collections::BTreeMap;

use paddock_proto::MemberNumber;
use paddock_tree::{FoundedGroups, Roster, Tree};

/// Ticks in which a group may come no nearer to a change, once the home group is prepared for it.
const STILL_TICKS_MAX: u32 = 600;

/// A group's way to a roster, as its leader tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RosterReport {
    /// Number of the roster.
    pub(crate) number: u64,
    /// True if the group is prepared for the roster's change, or has its members.
    pub(crate) is_ready: bool,
    /// Rises while the group comes nearer.
    pub(crate) progress: u64,
}

/// The groups beside the home group, as seen by a leader that changes members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherGroups {
    /// This group is not the home group: it waits for no other.
    NotAwaited,
    /// All are where the home group's leader waits for them. If there are none, that is always so.
    Ready,
    /// Some are on the way.
    OnTheWay,
    /// Some come no nearer.
    Stuck,
}

#[derive(Debug, Default)]
pub(crate) struct Rosters {
    /// As of the last entry of the home group that this member has applied; `None` if there never was one.
    home: Option<Roster>,
    /// True while the home group changes its members.
    is_changing: bool,
    /// Groups as the home group's state has them.
    groups: FoundedGroups,
    /// True while this member has a say in the home group: it has applied, or has in its log, all that it ever knew of it.
    knows_home: bool,
    /// The rosters of groups that not all members have, and the voter with which each placement begins.
    placed: BTreeMap<u32, (Option<Roster>, Option<MemberNumber>)>,
    /// Reports of groups that this member leads, for all members.
    passed_on: Vec<(u32, RosterReport)>,
    /// The last reports about the newest roster, by groups.
    told: BTreeMap<u32, RosterReport>,
    /// Ticks since a group has come nearer.
    still_ticks: BTreeMap<u32, u32>,
}

impl Rosters {
    /// Takes the roster from the home group's state.
    pub(crate) fn follow(&mut self, home: &Tree) {
        let roster = Roster::of_home(home);
        if self.number() != roster.as_ref().map_or(0, |roster| roster.number) {
            self.begin_anew();
        }
        self.home = roster;
        let placed = (1..home.groups().count()).filter(|group| home.groups().replicas(*group).is_some());
        let placed = placed.map(|group| (group, (Roster::of_group(home, group), home.first_placed(group))));
        self.placed = placed.collect();
        self.groups.clone_from(home.groups());
        self.is_changing = home.ensemble().is_some_and(|ensemble| ensemble.target.is_some());
    }

    fn number(&self) -> u64 {
        self.home.as_ref().map_or(0, |roster| roster.number)
    }

    /// The home group's roster, if it is newer than this one.
    pub(crate) fn newer_than(&self, number: u64) -> Option<&Roster> {
        self.home.as_ref().filter(|roster| roster.number > number)
    }

    /// The roster that a group beside the home group is to have, if it is newer than this one.
    pub(crate) fn newer_for(&self, group: u32, number: u64) -> Option<&Roster> {
        let roster = self.placed.get(&group).map_or(self.home.as_ref(), |(roster, _)| roster.as_ref());
        roster.filter(|roster| roster.number > number)
    }

    /// The member that is the first to lead a group, if not all members have it.
    pub(crate) fn first_to_lead(&self, group: u32) -> Option<MemberNumber> {
        self.placed.get(&group).and_then(|(_, first)| *first)
    }

    /// True if not all members have a group.
    pub(crate) fn is_placed(&self, group: u32) -> bool {
        self.placed.contains_key(&group)
    }

    /// All members are to hear how far a group is.
    pub(crate) fn pass_on(&mut self, group: u32, report: RosterReport) {
        self.passed_on.push((group, report));
    }

    /// Reports for all members, of groups that this one leads; they are told once.
    pub(crate) fn take_passed_on(&mut self) -> Vec<(u32, RosterReport)> {
        std::mem::take(&mut self.passed_on)
    }

    /// True while leaders of groups have to tell how far these are.
    pub(crate) fn is_told(&self) -> bool {
        self.is_changing && self.home.is_some()
    }

    /// This member has a say in the home group, or has none: then it may not know yet that groups were founded by others.
    pub(crate) fn set_knows_home(&mut self, knows: bool) {
        self.knows_home = knows;
    }

    /// True if no member has founded a group, for all that the home group says, and this one may.
    pub(crate) fn may_found(&self, group: u32) -> bool {
        self.knows_home && self.may_be_new(group)
    }

    /// True if the home group does not say that all founders of a group have it.
    pub(crate) fn may_be_new(&self, group: u32) -> bool {
        group >= self.groups.established()
    }

    /// Reports from before are old: another roster counts, or another member leads the home group.
    pub(crate) fn begin_anew(&mut self) {
        self.told.clear();
        self.still_ticks.clear();
    }

    /// The leader of a group tells how far it is.
    pub(crate) fn hear(&mut self, group: u32, report: RosterReport) {
        if report.number != self.number() {
            return;
        }
        let before = self.told.insert(group, report);
        if before != Some(report) {
            self.still_ticks.remove(&group);
        }
    }

    /// A tick of the home group's leader, which is prepared itself.
    pub(crate) fn tick_prepared(&mut self) {
        for group in self.late().collect::<Vec<u32>>() {
            *self.still_ticks.entry(group).or_default() += 1;
        }
    }

    /// Groups that are not where the home group's leader waits for them.
    pub(crate) fn late(&self) -> impl Iterator<Item = u32> {
        let is_ready = |group: &u32| self.told.get(group).is_some_and(|report| report.is_ready);
        let groups = if self.is_told() { self.groups.count() } else { 1 };
        (1..groups).filter(move |group| !is_ready(group))
    }

    /// The groups beside the home group, as its leader sees them.
    pub(crate) fn others(&self) -> OtherGroups {
        let mut late = self.late().peekable();
        if late.peek().is_none() {
            OtherGroups::Ready
        } else if self.still_ticks.values().any(|ticks| *ticks > STILL_TICKS_MAX) {
            OtherGroups::Stuck
        } else {
            OtherGroups::OnTheWay
        }
    }

    /// True now and then while groups come no nearer: it is time to tell the operator.
    pub(crate) fn is_time_to_tell(&self) -> bool {
        self.still_ticks.values().any(|ticks| *ticks > 0 && ticks.is_multiple_of(STILL_TICKS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paddock_proto::{IdList, Reconfig, SessionId, Write};
    use paddock_tree::{Command, FeatureLevel, GroupFounders, RaisedLevel};

    /// State of a home group with three groups whose members change.
    fn changing() -> Tree {
        let mut tree = Tree::new();
        tree.refound_ensemble(7, "server.1=a:1:2\n");
        tree.raise_level(&RaisedLevel::known(FeatureLevel::SEVERAL_GROUPS));
        tree.found_groups(3, GroupFounders::default());
        let write = Ok(Write::Reconfig(Reconfig {
            joining: None,
            leaving: None,
            new_members: Some("server.1=a:1:2,server.2=b:1:2"),
            version: -1,
        }));
        let (session, ids) = (SessionId::NONE, IdList::NONE);
        tree.apply(&Command { session, time_ms: 5, member: 1, ids, enforces_quotas: false, write });
        assert!(tree.ensemble().is_some_and(|ensemble| ensemble.target.is_some()));
        tree
    }

    fn report(number: u64, is_ready: bool, progress: u64) -> RosterReport {
        RosterReport { number, is_ready, progress }
    }

    #[test]
    fn the_home_group_waits_for_all_groups_and_for_this_roster() {
        let mut tree = changing();
        let mut rosters = Rosters::default();
        assert_eq!(rosters.others(), OtherGroups::Ready, "nothing changes");
        rosters.follow(&tree);
        assert_eq!(rosters.newer_than(0).map(|roster| roster.number), Some(1));
        assert_eq!(rosters.newer_than(1), None);
        rosters.hear(1, report(1, true, 0));
        rosters.hear(2, report(2, true, 0));
        assert_eq!(rosters.others(), OtherGroups::OnTheWay, "2 tells of another roster");
        rosters.hear(2, report(1, true, 0));
        assert_eq!(rosters.others(), OtherGroups::Ready);
        assert!(tree.promote(1));
        rosters.follow(&tree);
        assert_eq!(rosters.late().collect::<Vec<_>>(), [1, 2], "that was for the roster before");
        rosters.hear(1, report(2, true, 0));
        rosters.hear(2, report(2, true, 0));
        assert_eq!(rosters.others(), OtherGroups::Ready);
        rosters.begin_anew();
        assert_eq!(rosters.others(), OtherGroups::OnTheWay, "another member leads");
    }

    #[test]
    fn a_group_that_not_all_members_have_has_a_roster_of_its_own() {
        let mut tree = changing();
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        tree.found_groups_with(4, GroupFounders { voters: vec![1], learners: vec![] }, 1);
        let mut rosters = Rosters::default();
        rosters.follow(&tree);
        let members = |roster: Option<&Roster>| {
            let numbers =
                |list: &[paddock_proto::EnsembleMember]| list.iter().map(|one| one.id).collect::<Vec<_>>();
            roster.map(|roster| (numbers(&roster.members), roster.target.as_deref().map(numbers)))
        };
        assert_eq!(members(rosters.newer_for(1, 0)), Some((vec![1], Some(vec![1, 2]))));
        assert_eq!(members(rosters.newer_for(3, 0)), Some((vec![1], Some(vec![2]))));
        assert_eq!(rosters.newer_for(3, 1), None);
        assert_eq!((1..4).map(|group| rosters.is_placed(group)).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!((rosters.first_to_lead(1), rosters.first_to_lead(3)), (None, Some(1)));
        rosters.pass_on(3, report(1, true, 0));
        assert_eq!(rosters.take_passed_on(), [(3, report(1, true, 0))]);
        assert_eq!(rosters.take_passed_on(), []);
    }

    #[test]
    fn a_group_that_comes_no_nearer_or_says_nothing_is_stuck() {
        let mut rosters = Rosters::default();
        rosters.follow(&changing());
        rosters.hear(1, report(1, true, 0));
        let mut progress = 0;
        for _ in 0..3 {
            progress += 1;
            rosters.hear(2, report(1, false, progress));
            for _ in 0..STILL_TICKS_MAX {
                rosters.hear(2, report(1, false, progress));
                rosters.tick_prepared();
                assert_eq!(rosters.others(), OtherGroups::OnTheWay);
            }
            assert!(rosters.is_time_to_tell());
        }
        rosters.tick_prepared();
        assert_eq!(rosters.others(), OtherGroups::Stuck);
        assert!(!rosters.is_time_to_tell());
        rosters.hear(2, report(1, true, progress));
        assert_eq!(rosters.others(), OtherGroups::Ready);
    }

    #[test]
    fn a_group_is_founded_by_a_member_that_knows_that_none_has_done_so() {
        let mut tree = changing();
        let mut rosters = Rosters::default();
        rosters.follow(&tree);
        assert!(!rosters.may_found(1), "the home group has not told all");
        rosters.set_knows_home(true);
        assert!(rosters.may_found(1));
        assert!(tree.promote(1));
        tree.found_groups(4, GroupFounders::default());
        rosters.follow(&tree);
        assert_eq!([1, 2, 3].map(|group| rosters.may_found(group)), [false, false, true]);
    }
}
