//! Moments: the one order of what happens in all groups, as far as a client is told of it.

use paddock_proto::Zxid;
use paddock_tree::AppliedItem;

/// A moment of the one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderMoment {
    /// The stamp of a change, or that of a decision of the home group whose item comes behind it in its group, if that is smaller.
    pub(crate) place: Zxid,
    rank: Rank,
    pub(crate) group: u32,
    /// Stamp in the group, whose changes keep their order.
    stamp: Zxid,
}

/// Order of what has one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A change of the home group.
    Home,
    /// A change that comes before a decision, because it stands before the decision's item in its group.
    Before,
    /// A change of another group that a decision has made.
    Decision,
    /// A change of another group that has this stamp by chance.
    Other,
    /// An answer that shows something of this place.
    Shown,
}

impl OrderMoment {
    /// The moment of a change, as long as no decision behind it is known.
    pub(crate) fn of_change(group: u32, stamp: Zxid) -> OrderMoment {
        let rank = if group == 0 { Rank::Home } else { Rank::Other };
        OrderMoment { place: stamp, rank, group, stamp }
    }

    /// The moment behind all that has happened up to a stamp.
    pub(crate) fn of_sight(stamp: Zxid) -> OrderMoment {
        OrderMoment { place: stamp, rank: Rank::Shown, group: u32::MAX, stamp }
    }

    /// The stamp of a change in its group; of a sight, the largest one that is shown.
    pub(crate) fn stamp(self) -> Zxid {
        self.stamp
    }

    /// True for a change, and false for what shows several.
    pub(crate) fn is_of_change(self) -> bool {
        self.rank != Rank::Shown
    }

    /// True if an item that a group has applied moves it forward. What has the stamp of the decision by chance comes before it, too, if it stands before the
    /// item.
    pub(crate) fn is_pulled_by(self, group: u32, item: AppliedItem) -> bool {
        let is_behind = self.place > item.decided || self.place == item.decided && self.rank == Rank::Other;
        self.is_of_change() && self.group == group && is_behind && self.stamp <= item.zxid
    }

    /// The moment to which it is moved by that.
    pub(crate) fn pulled_by(self, item: AppliedItem) -> OrderMoment {
        let rank = if self.stamp == item.zxid { Rank::Decision } else { Rank::Before };
        OrderMoment { place: item.decided, rank, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_an_item_comes_before_its_decision() {
        let item = AppliedItem { zxid: Zxid(12), decided: Zxid(5) };
        let [before, own, behind] = [10, 12, 13].map(|stamp| OrderMoment::of_change(1, Zxid(stamp)));
        assert!(before.is_pulled_by(1, item) && own.is_pulled_by(1, item));
        assert!(!behind.is_pulled_by(1, item) && !before.is_pulled_by(2, item));
        assert!(!OrderMoment::of_change(1, Zxid(4)).is_pulled_by(1, item), "it is earlier anyway");
        let by_chance = OrderMoment::of_change(1, Zxid(5));
        assert!(by_chance.is_pulled_by(1, item) && by_chance.pulled_by(item) < own.pulled_by(item));
        let (before, own) = (before.pulled_by(item), own.pulled_by(item));
        let home = |stamp| OrderMoment::of_change(0, Zxid(stamp));
        let all = [home(5), before, own, OrderMoment::of_sight(Zxid(5)), home(6), behind];
        assert!(all.is_sorted(), "{all:?}");
        // Another decision was made earlier, and its item comes behind.
        let earlier = AppliedItem { zxid: Zxid(20), decided: Zxid(3) };
        assert!(before.is_pulled_by(1, earlier) && before.pulled_by(earlier) < home(5));
    }
}
