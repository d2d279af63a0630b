//! The groups of a member, as a request sees them: their states, and how far each of them has come.

use paddock_proto::{MemberNumber, SessionId, Zxid};
use paddock_state::State;
use paddock_tree::{Origin, SplitPoint, SplitPoints, Tree};

/// A group's replica on this member.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'a> {
    pub state: &'a State,
    /// Stamp up to which the replica lacks nothing: neither a transaction of its group nor a decision of the home group.
    pub level: Zxid,
    /// This start of the member's process, as it numbers its batches in the group.
    pub origin: Origin,
}

impl<'a> GroupView<'a> {
    pub(crate) fn tree(&self) -> &'a Tree {
        self.state.tree()
    }
}

/// All groups of a member by their numbers; the home group is the first.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    pub groups: &'a [GroupView<'a>],
    pub member: MemberNumber,
}

impl<'a> Groups<'a> {
    pub(crate) fn home(&self) -> GroupView<'a> {
        self.groups[0]
    }

    pub(crate) fn points(&self) -> &'a SplitPoints {
        self.home().tree().split_points()
    }

    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.groups.len() as u32
    }

    pub(crate) fn get(&self, group: u32) -> Option<GroupView<'a>> {
        self.groups.get(group as usize).copied()
    }

    /// Level of a group's replica; 0 for a group that this member does not have yet.
    pub(crate) fn level(&self, group: u32) -> Zxid {
        self.get(group).map_or(Zxid(0), |group| group.level)
    }

    /// True if a group takes writes of a session through this member, as far as its replica here knows, from the present owner on.
    pub(crate) fn has_owner_in(&self, session: SessionId, group: u32) -> bool {
        let (home, Some(other)) = (self.home().tree(), self.get(group)) else { return false };
        other.tree().session_owner(session) == Some(self.member)
            && other.tree().session_moves(session) == home.session_moves(session)
    }

    /// True if each group has the slots of a split point that are its own by the map, and no others, and none is on its way. The home group's replica, whose
    /// map it is, may be behind the others.
    pub(crate) fn have_slots_of(&self, path: &str, point: &SplitPoint) -> bool {
        let has_run = |(first, last, group): (u16, u16, u32)| {
            group == 0 || self.get(group).is_some_and(|view| view.tree().has_slots(path, first..=last))
        };
        let has_no_others = |group: u32| {
            self.get(group).is_none_or(|view| view.tree().slot_count(path) == point.slots().count(group))
        };
        point.leaving().is_none()
            && point.slots().runs().all(has_run)
            && self.numbers().skip(1).all(has_no_others)
    }

    /// True if the group has applied something of this start of the process: it takes nothing of an earlier one any more.
    pub(crate) fn knows_start_in(&self, group: u32) -> bool {
        self.get(group).is_some_and(|group| group.tree().applied_batch(group.origin) > 0)
    }
}
