//! Stamps that a session was shown.

use std::collections::BTreeMap;

use paddock_proto::Zxid;

/// The largest stamp that a session was shown of each group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownStamps {
    by_group: BTreeMap<u32, Zxid>,
    /// Shown by another member or in read-only mode, of a group that is not known. It counts as shown by every other group.
    elsewhere: Zxid,
}

impl ShownStamps {
    /// A session that comes with a stamp that any member may have shown.
    pub(crate) fn elsewhere(zxid: Zxid) -> ShownStamps {
        ShownStamps { elsewhere: zxid, ..ShownStamps::default() }
    }

    /// A stamp was shown of a group that does not count.
    pub(crate) fn note_elsewhere(&mut self, zxid: Zxid) {
        self.elsewhere = self.elsewhere.max(zxid);
    }

    pub(crate) fn note(&mut self, group: u32, zxid: Zxid) {
        let known = self.by_group.entry(group).or_default();
        *known = (*known).max(zxid);
    }

    /// The largest stamp that was shown of other groups: a group has to be at it before the session looks or writes there.
    pub(crate) fn of_others(&self, group: u32) -> Zxid {
        let others = self.by_group.iter().filter(|(other, _)| **other != group);
        others.map(|(_, zxid)| *zxid).max().unwrap_or_default().max(self.elsewhere)
    }

    /// The largest stamp that was shown at all.
    pub(crate) fn of_all(&self) -> Zxid {
        self.by_group.values().copied().max().unwrap_or_default().max(self.elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_has_shown_itself_is_not_awaited_there() {
        let mut shown = ShownStamps::elsewhere(Zxid(3));
        shown.note(1, Zxid(7));
        shown.note(2, Zxid(5));
        shown.note(1, Zxid(4));
        assert_eq!([0, 1, 2].map(|group| shown.of_others(group)), [Zxid(7), Zxid(5), Zxid(7)]);
        assert_eq!(shown.of_all(), Zxid(7));
        assert_eq!(ShownStamps::elsewhere(Zxid(3)).of_others(1), Zxid(3));
    }
}
