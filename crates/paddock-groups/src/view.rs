//! The groups of an ensemble, as a request sees them on one member: the states of those that are here, and how far each of all has come.

use std::fmt::Debug;

use paddock_proto::{MemberNumber, SessionId, Zxid};
use paddock_state::State;
use paddock_tree::{FeatureLevel, MultiOutcome, Origin, SplitPoint, SplitPoints, Tree};

use crate::away::{Guests, LineName};
use crate::parts::has_own_slots;

/// Milliseconds by which the home group's stamps are ahead of the clock behind an entry that was asked for. Until they have passed, what waits for the home group asks for no other.
const HOME_AHEAD_MS: i64 = 50;

/// A stamp that is `ms` milliseconds behind another one.
fn later(stamp: Zxid, ms: i64) -> Zxid {
    Zxid(stamp.0.saturating_add(ms << Zxid::STAMP_COUNTER_BITS))
}

/// A group's replica on this member.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'a> {
    pub state: &'a State,
    /// Stamp up to which the replica lacks no decision of the home group.
    pub settled: Zxid,
    /// This start of the member's process, as it numbers its batches in the group.
    pub origin: Origin,
}

impl<'a> GroupView<'a> {
    pub(crate) fn tree(&self) -> &'a Tree {
        self.state.tree()
    }

    /// Stamp up to which the replica lacks nothing: neither a transaction of its group nor a decision of the home group.
    pub(crate) fn level(&self) -> Zxid {
        self.tree().zxid().min(self.settled)
    }
}

/// Replicas of a member, by the numbers of their groups. Each is looked at when it is asked for: a turn concerns few of many groups.
pub trait Replicas: Debug {
    /// Number of the ensemble's groups, with the home group.
    fn count(&self) -> u32;

    /// True if the member serves clients from a replica of the group.
    fn has(&self, group: u32) -> bool;

    /// The replica from which the member serves clients of a group; `None` where [`Replicas::has`] is false. Every member has the home group's.
    fn look(&self, group: u32) -> Option<GroupView<'_>>;
}

/// All groups by their numbers; the home group is the first, and every member has a replica of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups<'a> {
    /// Replicas of this member.
    replicas: &'a dyn Replicas,
    pub(crate) member: MemberNumber,
    /// Groups that hosts have for this member.
    guests: &'a Guests,
    /// Stamp of this moment by the members' clocks; 0 if it is not known.
    clock: Zxid,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(replicas: &'a dyn Replicas, member: MemberNumber, guests: &'a Guests) -> Groups<'a> {
        Groups { replicas, member, guests, clock: Zxid(0) }
    }

    /// With the stamp of this moment, for those who ask for entries.
    pub(crate) fn at(self, clock: Zxid) -> Groups<'a> {
        Groups { clock, ..self }
    }

    pub(crate) fn home(&self) -> GroupView<'a> {
        self.get(0).expect("every member has the home group")
    }

    pub(crate) fn points(&self) -> &'a SplitPoints {
        self.home().tree().split_points()
    }

    /// True if all groups know the limits of quotas, and keep statistics of their own.
    pub(crate) fn know_quotas(&self) -> bool {
        self.home().tree().feature_level() >= FeatureLevel::QUOTAS
    }

    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.replicas.count()
    }

    /// True for a group whose replica is here.
    pub(crate) fn is_here(&self, group: u32) -> bool {
        self.replicas.has(group)
    }

    /// The replica of a group that is here.
    pub(crate) fn get(&self, group: u32) -> Option<GroupView<'a>> {
        self.replicas.look(group)
    }

    /// Replicas that are here, by their groups' numbers.
    pub(crate) fn replicas(&self) -> impl Iterator<Item = (u32, GroupView<'a>)> {
        let groups = *self;
        self.numbers().filter_map(move |group| Some((group, groups.get(group)?)))
    }

    /// True for a group that a host has for this member.
    pub(crate) fn is_away(&self, group: u32) -> bool {
        self.guests.has(group) && !self.is_here(group)
    }

    /// True if a group can be asked: it is here, or has a host.
    pub(crate) fn can_ask(&self, group: u32) -> bool {
        self.is_here(group) || self.guests.has(group)
    }

    /// Level of a group's replica, here or at its host; 0 for a group that this member has neither yet.
    pub(crate) fn level(&self, group: u32) -> Zxid {
        self.get(group).map_or_else(|| self.guests.level(group), |group| group.level())
    }

    /// Zxid of a group's replica, here or at its host.
    pub(crate) fn zxid(&self, group: u32) -> Zxid {
        self.get(group).map_or_else(|| self.guests.zxid(group), |group| group.tree().zxid())
    }

    /// Stamp up to which no group lacks anything.
    pub(crate) fn least_level(&self) -> Zxid {
        self.numbers().map(|group| self.level(group)).min().unwrap_or_default()
    }

    /// True if the group of a write, whose replica is here, may be given it behind all that was shown up to a stamp: the replica lacks no decision up to there, so that none comes behind the
    /// write that belongs before it. Home makes its decisions itself.
    pub(crate) fn takes_writes(&self, group: u32, shown: Zxid) -> bool {
        group == 0 || self.get(group).is_some_and(|view| view.settled >= shown)
    }

    /// Stamp to which the home group is to be brought, for one who waits until it has come to `awaited`; `None` if it is far enough. Entries of the home group are asked for in advance: what goes
    /// from group to group waits for each.
    pub(crate) fn home_mark(&self, awaited: Zxid) -> Option<Zxid> {
        let (home, ahead) = (self.zxid(0), later(self.clock, HOME_AHEAD_MS));
        let soon = later(awaited, HOME_AHEAD_MS / 2).min(ahead);
        (home < awaited.max(soon)).then_some(awaited.max(ahead))
    }

    /// Outcome of the last multi over groups of a session in a group, as far as it is known here.
    pub(crate) fn multi_outcome(&self, group: u32, session: SessionId) -> Option<&'a MultiOutcome> {
        match self.get(group) {
            Some(view) => view.tree().multi_outcome(session),
            None => self.guests.multi_outcome(group, session),
        }
    }

    /// True if a letter to a group's host was answered, or can never be carried out any more: where the member has a replica again, once the group takes nothing through the host.
    pub(crate) fn is_letter_over(&self, group: u32, line: LineName, number: u64) -> bool {
        match self.get(group) {
            Some(view) => view.tree().host_here(self.member).is_none(),
            None => self.guests.is_over(group, line, number),
        }
    }

    /// True if the member is told what writes come to that are relayed to a group: it has a replica, or the group's host knows of it.
    pub(crate) fn tells_answers(&self, group: u32) -> bool {
        self.is_here(group) || self.guests.is_welcome(group)
    }

    /// True if a group, which is not here, is known to take this member's writes through a host.
    pub(crate) fn takes_through_host(&self, group: u32) -> bool {
        self.guests.is_welcome(group)
    }

    /// True if a group, whose replica is here, knows a session as this member's, from the present owner on.
    pub(crate) fn is_owner_in(&self, session: SessionId, group: u32) -> bool {
        let moves = self.home().tree().session_moves(session);
        self.get(group).is_some_and(|view| {
            let tree = view.tree();
            let is_owner = tree.session_owner(session) == Some(self.member);
            is_owner && tree.session_moves(session) == moves && tree.host_here(self.member).is_none()
        })
    }

    /// True if a group takes writes of a session through this member, or its host, as far as is known here, from the present owner on.
    pub(crate) fn has_owner_in(&self, session: SessionId, group: u32) -> bool {
        match self.get(group) {
            Some(view) => self.is_owner_in(session, group) && view.tree().has_come(session),
            None => {
                let moves = self.home().tree().session_moves(session);
                self.guests.attends(group, session, moves)
            }
        }
    }

    /// True if each group that is here has the slots of a split point that are its own by the map, and no others, and none is on its way. The home group's
    /// replica, whose map it is, may be behind the others.
    pub(crate) fn have_slots_of(&self, path: &str, point: &SplitPoint) -> bool {
        point.leaving().is_none()
            && self.replicas().all(|(group, view)| has_own_slots(group, view.tree(), path, point))
    }

    /// True if the group has applied something of this start of the process: it takes nothing of an earlier one any more.
    pub(crate) fn knows_start_in(&self, group: u32) -> bool {
        match self.get(group) {
            Some(group) => group.tree().applied_batch(group.origin) > 0,
            // Its host sees to that.
            None => true,
        }
    }
}
