//! Moments: the one order of what happens in all groups, as far as a client is told of it.

use paddock_proto::Zxid;
use paddock_tree::{AppliedItem, ChildChange};

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

/// Order of what has one place. Nothing stands between the parts of a decision, home's own one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A change of another group that has this stamp by chance.
    Other,
    /// A change of the home group.
    Home,
    /// A change that comes before a decision, because it stands before the decision's item in its group.
    Before,
    /// A change that a decision has made, in another group or in the home group.
    Decision,
    /// An answer that shows something of this place.
    Shown,
}

impl OrderMoment {
    /// The moment of a change, as long as no decision behind it is known.
    pub(crate) fn of_change(group: u32, stamp: Zxid) -> OrderMoment {
        let rank = if group == 0 { Rank::Home } else { Rank::Other };
        OrderMoment { place: stamp, rank, group, stamp }
    }

    /// The moment of a change of a znode's children, whose place is known.
    pub(crate) fn of_child_change(group: u32, change: ChildChange) -> OrderMoment {
        let ChildChange { place, stamp, is_of_decision } = change;
        if place == stamp {
            return OrderMoment::of_change(group, stamp);
        }
        let rank = if is_of_decision { Rank::Decision } else { Rank::Before };
        OrderMoment { place, rank, group, stamp }
    }

    /// The moment of a change that a decision of the home group has made in another group.
    pub(crate) fn of_decision(group: u32, stamp: Zxid, decided: Zxid) -> OrderMoment {
        OrderMoment { place: decided, rank: Rank::Decision, group, stamp }
    }

    /// The moment behind all that has happened up to a stamp.
    pub(crate) fn of_sight(stamp: Zxid) -> OrderMoment {
        OrderMoment { place: stamp, rank: Rank::Shown, group: u32::MAX, stamp }
    }

    /// The moment behind a multi over several groups, whose own part in the home group has this zxid: it is that of the decision, which has the zxid before. Another group may have the zxid of the part
    /// by chance, and what it changes there comes later.
    pub(crate) fn of_multi(own: Zxid) -> OrderMoment {
        OrderMoment { place: Zxid(own.0 - 1), ..OrderMoment::of_sight(own) }
    }

    /// The stamp of a change in its group; of a sight, the largest one that is shown.
    pub(crate) fn stamp(self) -> Zxid {
        self.stamp
    }

    /// True for a change, and false for what shows several.
    pub(crate) fn is_of_change(self) -> bool {
        self.rank != Rank::Shown
    }

    /// True if an item that a group has applied moves it forward.
    fn is_pulled_by(self, group: u32, item: AppliedItem) -> bool {
        let is_behind = self.place > item.decided;
        self.is_of_change() && self.group == group && is_behind && self.stamp <= item.zxid
    }

    /// The moment to which it is moved by that.
    fn pulled_by(self, item: AppliedItem) -> OrderMoment {
        let rank = if self.stamp == item.zxid { Rank::Decision } else { Rank::Before };
        OrderMoment { place: item.decided, rank, ..self }
    }
}

/// Items that a group has applied one behind the other, and what they move forward.
#[derive(Debug)]
pub(crate) struct NewItems<'a> {
    group: u32,
    /// By rising zxids.
    items: &'a [AppliedItem],
    /// For each, the zxid of the earliest decision from there on.
    earliest: Vec<Zxid>,
}

impl<'a> NewItems<'a> {
    pub(crate) fn new(group: u32, items: &'a [AppliedItem]) -> NewItems<'a> {
        let mut earliest: Vec<Zxid> = items.iter().map(|item| item.decided).collect();
        for at in (1..earliest.len()).rev() {
            earliest[at - 1] = earliest[at - 1].min(earliest[at]);
        }
        NewItems { group, items, earliest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The moment to which they move one forward, if they do.
    pub(crate) fn pull(&self, moment: OrderMoment) -> Option<OrderMoment> {
        let first = self.items.partition_point(|item| item.zxid < moment.stamp);
        if moment.group != self.group || *self.earliest.get(first)? >= moment.place {
            return None;
        }
        let mut pulled = moment;
        for item in &self.items[first..] {
            if pulled.is_pulled_by(self.group, *item) {
                pulled = pulled.pulled_by(*item);
            }
        }
        (pulled != moment).then_some(pulled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_together_move_what_each_of_them_does() {
        let item = |zxid, decided| AppliedItem { zxid: Zxid(zxid), decided: Zxid(decided) };
        let items = [item(12, 5), item(14, 8), item(20, 3), item(25, 22)];
        let together = NewItems::new(1, &items);
        for (group, stamp) in (0..3).flat_map(|group| (1..30).map(move |stamp| (group, stamp))) {
            let moment = OrderMoment::of_change(group, Zxid(stamp));
            let mut expected = moment;
            for item in items {
                if expected.is_pulled_by(1, item) {
                    expected = expected.pulled_by(item);
                }
            }
            assert_eq!(together.pull(moment).unwrap_or(moment), expected, "{group} {stamp}");
        }
        assert!(NewItems::new(1, &[]).pull(OrderMoment::of_change(1, Zxid(4))).is_none());
    }

    #[test]
    fn what_comes_before_an_item_comes_before_its_decision() {
        let item = AppliedItem { zxid: Zxid(12), decided: Zxid(5) };
        let [before, own, behind] = [10, 12, 13].map(|stamp| OrderMoment::of_change(1, Zxid(stamp)));
        assert!(before.is_pulled_by(1, item) && own.is_pulled_by(1, item));
        assert!(!behind.is_pulled_by(1, item) && !before.is_pulled_by(2, item));
        assert!(!OrderMoment::of_change(1, Zxid(4)).is_pulled_by(1, item), "it is earlier anyway");
        let by_chance = [1, 2].map(|group| OrderMoment::of_change(group, Zxid(5)));
        assert!(!by_chance[0].is_pulled_by(1, item), "it stands in front of all of that place");
        let (before, own) = (before.pulled_by(item), own.pulled_by(item));
        let home = |stamp| OrderMoment::of_change(0, Zxid(stamp));
        let [first, second] = by_chance;
        let all = [first, second, home(5), before, own, OrderMoment::of_sight(Zxid(5)), home(6), behind];
        assert!(all.is_sorted(), "{all:?}");
        // Home's own part has the next zxid, which another group may have by chance.
        let part = home(6).pulled_by(AppliedItem { zxid: Zxid(6), decided: Zxid(5) });
        assert!(before < part && part < OrderMoment::of_change(2, Zxid(6)));
        let answer = OrderMoment::of_multi(Zxid(6));
        assert!(part < answer && answer < OrderMoment::of_change(2, Zxid(6)));
        // Another decision was made earlier, and its item comes behind.
        let earlier = AppliedItem { zxid: Zxid(20), decided: Zxid(3) };
        assert!(before.is_pulled_by(1, earlier) && before.pulled_by(earlier) < home(5));
    }
}
