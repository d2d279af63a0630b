//! Groups that a member has, where not all members have all groups, as its own replica of the home group says.
//!
//! A replica that is needed no more is let go with all that it has written, votes included. That is safe, because no quorum counts on it: a change of members is
//! settled when the groups have their new voters, so a member that a settled placement does not name has no vote in the group. It gets one again only after the
//! group's leader has asked whether it would vote, and a replica that is needed no more does not answer.
//!
//! The home group's state may be older than what was there at the member's end, until its log has been applied.

use std::collections::BTreeSet;

use paddock_proto::MemberNumber;
use paddock_tree::Tree;

/// The placement of groups, as far as it concerns one member. In an ensemble whose members all have all groups it says nothing.
#[derive(Debug, Default)]
pub(crate) struct OwnPlacement {
    /// Groups whose clients this member does not serve.
    away: BTreeSet<u32>,
    /// Groups among those of which it is to have no replica either.
    needless: BTreeSet<u32>,
    /// Other groups are served than when this was asked last.
    has_changed: bool,
}

impl OwnPlacement {
    /// Takes the placement from the home group's state.
    pub(crate) fn follow(&mut self, own: MemberNumber, home: &Tree) {
        let groups = 1..home.groups().count();
        let away = groups.filter(|group| !home.serves(*group, own)).collect();
        self.has_changed |= away != self.away;
        self.away = away;
        let needless = self.away.iter().copied().filter(|group| !home.has_replica(*group, own));
        self.needless = needless.collect();
    }

    /// True if the member serves clients of the group.
    pub(crate) fn serves(&self, group: u32) -> bool {
        !self.away.contains(&group)
    }

    /// True if the member serves other groups than when this was asked last.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// True if there are groups whose clients the member does not serve.
    pub(crate) fn has_away(&self) -> bool {
        !self.away.is_empty()
    }

    /// True if the member is to have no replica of the group.
    pub(crate) fn is_needless(&self, group: u32) -> bool {
        self.needless.contains(&group)
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{IdList, Reconfig, SessionId, Write};
    use paddock_tree::{Command, FeatureLevel, GroupFounders, RaisedLevel};

    use super::*;

    const OWN: MemberNumber = 1;

    #[test]
    fn a_change_brings_replicas_before_it_brings_clients_and_ends_others_when_it_is_settled() {
        let mut home = Tree::new();
        home.refound_ensemble(7, "server.1=a:1:2\nserver.2=b:1:2\n");
        home.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        let mut placement = OwnPlacement::default();
        placement.follow(OWN, &home);
        assert!(placement.serves(1) && !placement.has_away() && !placement.take_changed());
        home.found_groups_with(3, GroupFounders { voters: vec![1, 2], learners: vec![] }, 1);
        // Group 1 is on member 2, and group 2 on member 1.
        let mut check = |home: &Tree, changed: bool, serves: [bool; 2], needless: [bool; 2]| {
            placement.follow(OWN, home);
            assert_eq!(placement.take_changed(), changed);
            assert_eq!(([1, 2].map(|group| placement.serves(group))), serves);
            assert_eq!(([1, 2].map(|group| placement.is_needless(group))), needless);
        };
        check(&home, true, [false, true], [true, false]);
        // Without member 2 both are on member 1; with member 3 in its place they are where they were.
        let change = |home: &mut Tree, write: Write<'_>| {
            let (session, ids, write) = (SessionId::NONE, IdList::NONE, Ok(write));
            home.apply(&Command { session, time_ms: 5, member: OWN, ids, enforces_quotas: false, write });
        };
        let members = |lines| {
            Write::Reconfig(Reconfig { joining: None, leaving: None, new_members: Some(lines), version: -1 })
        };
        change(&mut home, members("server.1=a:1:2"));
        check(&home, false, [false, true], [false, false]);
        assert!(home.promote(1));
        check(&home, false, [false, true], [false, false]);
        change(&mut home, Write::SettleReconfig { error: None });
        check(&home, true, [true, true], [false, false]);
        change(&mut home, members("server.1=a:1:2,server.3=c:1:2"));
        check(&home, false, [true, true], [false, false]);
        change(&mut home, Write::SettleReconfig { error: None });
        check(&home, true, [false, true], [true, false]);
    }
}
