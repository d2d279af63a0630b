//! Children of split points that came and went of late, so that a list can be made as of an earlier moment.
//!
//! A list over several groups is of one moment, and groups that are ahead of it have to leave out what came later. What is kept is this member's own memory of what it
//! has applied, and no part of the state.

use std::collections::VecDeque;

use paddock_proto::{EventKind, Zxid, parent_and_name};

use crate::Changes;

/// Changes that are kept.
const KEPT: usize = 16 << 10;

/// A child that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecentChild {
    /// Place in the order of all groups: the transaction's zxid, or that of a decision whose item came behind it.
    zxid: Zxid,
    /// The transaction's zxid.
    stamp: Zxid,
    /// The decision has made the change.
    is_of_decision: bool,
    path: String,
    has_come: bool,
}

impl RecentChild {
    fn is_child_of(&self, point: &str) -> bool {
        parent_and_name(&self.path).is_some_and(|(parent, _)| parent == point)
    }
}

/// A change of a znode's children, as it stands in the order of all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildChange {
    /// The transaction's zxid, or that of a decision of the home group whose item came behind it.
    pub place: Zxid,
    /// The transaction's zxid in its group.
    pub stamp: Zxid,
    /// The decision at this place has made it.
    pub is_of_decision: bool,
}

/// Children that came and went behind a zxid, in order.
#[derive(Debug, Default)]
pub(crate) struct RecentChildren {
    /// All that came later is kept.
    known_behind: Zxid,
    changes: VecDeque<RecentChild>,
}

impl RecentChildren {
    /// A transaction has made these changes.
    pub(crate) fn note(&mut self, zxid: Zxid, changes: &Changes<'_>, is_point: impl Fn(&str) -> bool) {
        if self.known_behind == Zxid(0) {
            self.known_behind = Zxid(zxid.0 - 1);
        }
        for change in changes {
            let has_come = match change.kind {
                EventKind::NodeCreated => true,
                EventKind::NodeDeleted => false,
                _ => continue,
            };
            if parent_and_name(&change.path).is_some_and(|(parent, _)| is_point(parent)) {
                let path = change.path.to_string();
                let is_of_decision = false;
                self.changes.push_back(RecentChild { zxid, stamp: zxid, is_of_decision, path, has_come });
            }
        }
        while self.changes.len() > KEPT {
            let dropped = self.changes.pop_front();
            self.known_behind = dropped.map_or(self.known_behind, |dropped| dropped.zxid);
        }
    }

    /// An item was applied with this zxid: what stands before it, or comes from it, comes no later than its decision.
    pub(crate) fn pull_forward(&mut self, zxid: Zxid, decided: Zxid) {
        for change in self.changes.iter_mut().rev().take_while(|change| change.zxid > decided) {
            change.zxid = decided;
            change.is_of_decision = change.stamp == zxid;
        }
    }

    /// The first change of a znode's children behind a zxid, as far as it is known.
    pub(crate) fn first_behind(&self, point: &str, zxid: Zxid) -> Option<ChildChange> {
        let later = self.changes.iter().rev().take_while(|change| change.zxid > zxid);
        let first = later.filter(|change| change.is_child_of(point)).last()?;
        let RecentChild { zxid: place, stamp, is_of_decision, .. } = *first;
        Some(ChildChange { place, stamp, is_of_decision })
    }

    /// All changes of children behind this zxid are known.
    pub(crate) fn reach_back_to(&self, zxid: Zxid) -> bool {
        self.known_behind != Zxid(0) && zxid >= self.known_behind
    }

    /// Zxid of the last change of a znode's children that is known until a zxid.
    pub(crate) fn last_until(&self, point: &str, zxid: Zxid) -> Option<Zxid> {
        let mut earlier = self.changes.iter().rev().skip_while(|change| change.zxid > zxid);
        earlier.find(|change| change.is_child_of(point)).map(|change| change.zxid)
    }

    /// Names of children of a znode that came (true) or went (false) behind a zxid, the latest first, with their zxids.
    pub(crate) fn behind<'a>(
        &'a self,
        point: &'a str,
        zxid: Zxid,
    ) -> impl Iterator<Item = (&'a str, bool, Zxid)> {
        let later = self.changes.iter().rev().take_while(move |change| change.zxid > zxid);
        later.filter_map(move |change| {
            let (parent, name) = parent_and_name(&change.path)?;
            (parent == point).then_some((name, change.has_come, change.zxid))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::Change;

    fn change(kind: EventKind, path: &str) -> Change<'static> {
        Change { kind, path: Cow::Owned(path.to_owned()), readers: None }
    }

    #[test]
    fn what_came_and_went_later_is_known() {
        let mut recent = RecentChildren::default();
        assert!(!recent.reach_back_to(Zxid(100)), "nothing was applied yet");
        let mut note = |zxid, kind, path: &str| {
            recent.note(Zxid(zxid), &[change(kind, path)].into_iter().collect(), |path| path == "/a");
        };
        note(5, EventKind::NodeCreated, "/a/x");
        note(6, EventKind::NodeDataChanged, "/a/x");
        note(7, EventKind::NodeCreated, "/a/x/y");
        note(8, EventKind::NodeDeleted, "/a/x");
        let behind = |zxid| recent.behind("/a", Zxid(zxid)).collect::<Vec<_>>();
        let (came, went) = (("x", true, Zxid(5)), ("x", false, Zxid(8)));
        assert_eq!((behind(4), behind(5), behind(8)), (vec![went, came], vec![went], vec![]));
        assert_eq!([3, 4, 5].map(|zxid| recent.reach_back_to(Zxid(zxid))), [false, true, true]);
        recent.pull_forward(Zxid(9), Zxid(7));
        assert_eq!(recent.behind("/a", Zxid(6)).collect::<Vec<_>>(), [("x", false, Zxid(7))]);
        let first = ChildChange { place: Zxid(7), stamp: Zxid(8), is_of_decision: false };
        assert_eq!(recent.first_behind("/a", Zxid(5)), Some(first));
        recent.pull_forward(Zxid(8), Zxid(6));
        let first = ChildChange { place: Zxid(6), stamp: Zxid(8), is_of_decision: true };
        assert_eq!(recent.first_behind("/a", Zxid(5)), Some(first));
        assert_eq!((recent.first_behind("/a", Zxid(6)), recent.first_behind("/b", Zxid(4))), (None, None));
        note_one(&mut recent, 12);
        for zxid in 13..13 + KEPT as i64 {
            note_one(&mut recent, zxid);
        }
        assert_eq!([11, 12].map(|zxid| recent.reach_back_to(Zxid(zxid))), [false, true]);
    }

    fn note_one(recent: &mut RecentChildren, zxid: i64) {
        let changes = [change(EventKind::NodeCreated, "/a/z")].into_iter().collect();
        recent.note(Zxid(zxid), &changes, |path| path == "/a");
    }
}
