//! Entries that were asked for: empty ones, so that idle groups are at a stamp, and those that attach sessions.

use std::collections::BTreeMap;

use paddock_proto::{MemberNumber, SessionId, Zxid};

/// Ticks after which an entry is asked for again: a member that was not taken notice of may have asked.
const LOST_TICKS: u32 = 20;

/// A session with the number of its moves: what was asked for it before it moved on is refused, or does not count any more.
type MovedSession = (SessionId, u32);

/// The entry that was asked of each group, and is not here yet.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    by_group: BTreeMap<u32, AskedMark>,
    /// Groups that are to hear of this start of the member's process, with the ticks since that was asked for.
    starting: BTreeMap<u32, u32>,
    /// Sessions that are about to write in another group, with the ticks since that was asked for.
    attaching: BTreeMap<(MovedSession, u32), u32>,
    /// Sessions that are to come to a group, with the ticks since that was asked for.
    coming: BTreeMap<(MovedSession, u32), u32>,
    /// Groups that are to get a host, and which, with the ticks since that was asked for.
    hosts: BTreeMap<(u32, MemberNumber), u32>,
}

#[derive(Clone, Copy, Debug)]
struct AskedMark {
    at_least: Zxid,
    ticks: u32,
}

impl Marks {
    /// True if an entry with this stamp is to be asked for; it has been now. While one is under way no other is: its stamp is that of its group's
    /// clock, and nearly always large enough for all who wait by then.
    pub(crate) fn is_due(&mut self, group: u32, at_least: Zxid) -> bool {
        let is_due = self.by_group.get(&group).is_none_or(|asked| asked.ticks >= LOST_TICKS);
        if is_due {
            self.by_group.insert(group, AskedMark { at_least, ticks: 0 });
        }
        is_due
    }

    /// Groups' replicas have come so far; `zxid` is that of a group whose replica is here.
    pub(crate) fn follow(&mut self, zxid: impl Fn(u32) -> Option<Zxid>) {
        self.by_group.retain(|group, asked| zxid(*group).is_none_or(|zxid| zxid < asked.at_least));
    }

    /// True if it was not asked for yet that a session may write in a group; it has been now.
    pub(crate) fn is_attach_due(&mut self, session: MovedSession, group: u32) -> bool {
        is_new(&mut self.attaching, (session, group))
    }

    /// True if it was not asked for yet that a session comes to a group; it has been now.
    pub(crate) fn is_coming_due(&mut self, session: MovedSession, group: u32) -> bool {
        is_new(&mut self.coming, (session, group))
    }

    /// True if it was not asked for yet that a group gets this host; it has been now.
    pub(crate) fn is_host_due(&mut self, group: u32, host: MemberNumber) -> bool {
        is_new(&mut self.hosts, (group, host))
    }

    /// True if a group was not told yet of this start of the process; it has been now.
    pub(crate) fn is_start_due(&mut self, group: u32) -> bool {
        is_new(&mut self.starting, group)
    }

    pub(crate) fn tick(&mut self) {
        let is_recent = |ticks: &mut u32| {
            *ticks += 1;
            *ticks <= LOST_TICKS
        };
        self.attaching.retain(|_, ticks| is_recent(ticks));
        self.coming.retain(|_, ticks| is_recent(ticks));
        self.starting.retain(|_, ticks| is_recent(ticks));
        self.hosts.retain(|_, ticks| is_recent(ticks));
        self.by_group.values_mut().for_each(|asked| asked.ticks = asked.ticks.saturating_add(1));
    }
}

/// Stamps above which everything is stamped that is handed to a group in the rest of a turn. What was asked for in another turn may be lost.
#[derive(Debug, Default)]
pub(crate) struct RaisedStamps {
    by_group: BTreeMap<u32, Zxid>,
}

impl RaisedStamps {
    /// True if a mark has to stand in front of a write that is to be stamped above `shown`; it does from now on. A group that has come as far, to `zxid`, stamps it so anyway.
    pub(crate) fn needs_mark(&mut self, group: u32, zxid: Zxid, shown: Zxid) -> bool {
        let raised = self.by_group.entry(group).or_default();
        let needs_mark = zxid.max(*raised) < shown;
        *raised = shown.max(*raised);
        needs_mark
    }
}

/// True if a key was not there; it is now, with no ticks.
fn is_new<K: Ord>(asked: &mut BTreeMap<K, u32>, key: K) -> bool {
    let is_new = !asked.contains_key(&key);
    if is_new {
        asked.insert(key, 0);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_asked_for_once_until_it_seems_to_be_lost() {
        let mut marks = Marks::default();
        assert!(marks.is_due(1, Zxid(5)) && !marks.is_due(1, Zxid(5)) && !marks.is_due(1, Zxid(6)));
        assert!(marks.is_due(2, Zxid(5)));
        (0..LOST_TICKS).for_each(|_| marks.tick());
        assert!(marks.is_due(1, Zxid(5)));
        assert!(marks.is_start_due(1) && !marks.is_start_due(1));
        let session = (SessionId(7), 0);
        assert!(marks.is_attach_due(session, 1) && !marks.is_attach_due(session, 1));
        for _ in 0..LOST_TICKS {
            assert!(!marks.is_start_due(1) && !marks.is_attach_due(session, 1));
            marks.tick();
        }
        marks.tick();
        assert!(marks.is_start_due(1) && marks.is_attach_due(session, 1));
        assert!(marks.is_due(1, Zxid(5)));
        marks.follow(|group| (group == 1).then_some(Zxid(4)));
        assert!(!marks.is_due(1, Zxid(5)));
        marks.follow(|group| (group == 1).then_some(Zxid(5)));
        assert!(marks.is_due(1, Zxid(5)));
    }

    #[test]
    fn a_session_that_comes_back_and_a_host_in_the_place_of_another_are_asked_for_at_once() {
        let mut marks = Marks::default();
        for moves in 0..3 {
            let session = (SessionId(7), moves);
            assert!(marks.is_coming_due(session, 1) && !marks.is_coming_due(session, 1));
            assert!(marks.is_attach_due(session, 1) && !marks.is_attach_due(session, 1));
        }
        assert!(marks.is_host_due(1, 2) && !marks.is_host_due(1, 2) && marks.is_host_due(1, 3));
    }
}
