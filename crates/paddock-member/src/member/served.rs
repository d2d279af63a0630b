//! Replicas from which a member serves clients, as its router and its hosting look at them.

use std::cell::OnceCell;
use std::fmt;

use paddock_groups::{Carrier, GroupView, Replicas};
use paddock_proto::Zxid;
use paddock_replica::{Presence, Replicated};
use paddock_storage::GroupNumber;
use parking_lot::MutexGuard;

use super::group::MemberGroup;

/// Replicas of the member. The state of each but the home group's is locked when it is asked for, and until all of this is dropped: with many groups most are not
/// looked at in a round.
pub(super) struct ServedReplicas<'a> {
    home: &'a Replicated,
    /// The home group is the first.
    groups: &'a [MemberGroup],
    presence: &'a Presence,
    carrier: &'a Carrier,
    looks: Vec<OnceCell<Option<Looked<'a>>>>,
}

/// A replica that was looked at.
struct Looked<'a> {
    group: &'a MemberGroup,
    state: MutexGuard<'a, Replicated>,
    settled: Zxid,
}

impl<'a> ServedReplicas<'a> {
    pub(super) fn new(
        home: &'a Replicated,
        groups: &'a [MemberGroup],
        presence: &'a Presence,
        carrier: &'a Carrier,
    ) -> ServedReplicas<'a> {
        let looks = (0..home.tree().groups().count()).map(|_| OnceCell::new()).collect();
        ServedReplicas { home, groups, presence, carrier, looks }
    }

    fn group(&self, number: u32) -> Option<&'a MemberGroup> {
        // Clients are not served from a replica that only learns, nor from one that is to go. The home group's replica here may not know all groups yet whose
        // replicas are.
        if number >= self.count() || !self.presence.serves(number) {
            return None;
        }
        let at = self.groups.binary_search_by_key(&GroupNumber(number), |group| group.number).ok()?;
        self.groups.get(at)
    }

    fn look_first(&self, number: u32) -> Option<Looked<'a>> {
        let group = self.group(number)?;
        let state = group.own_state.as_ref()?.look();
        Some(Looked { group, state, settled: self.carrier.settled(number, self.home.tree().zxid()) })
    }
}

impl Replicas for ServedReplicas<'_> {
    fn count(&self) -> u32 {
        self.looks.len() as u32
    }

    fn has(&self, group: u32) -> bool {
        group == 0 || self.group(group).is_some()
    }

    fn look(&self, group: u32) -> Option<GroupView<'_>> {
        if group == 0 {
            let origin = self.groups[0].group.origin();
            return Some(GroupView { state: self.home.state(), settled: Zxid(i64::MAX), origin });
        }
        let place = self.looks.get(group as usize)?;
        let look = place.get_or_init(|| self.look_first(group)).as_ref()?;
        let origin = look.group.group.origin();
        Some(GroupView { state: look.state.state(), settled: look.settled, origin })
    }
}

impl fmt::Debug for ServedReplicas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServedReplicas {{ of: {} }}", self.groups.len())
    }
}
