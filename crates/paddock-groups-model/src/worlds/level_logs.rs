//! The committed logs of home and the groups, as they are without open parts: home decides with one entry, and an item brings the decision to
//! each group that it concerns. Members apply each log at their own pace, so a reader may meet any prefix of each.

pub(super) const GROUPS: usize = 3;
pub(super) const HOME: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LevelEntry<E> {
    /// There for its stamp alone.
    Empty,
    Command(E),
    /// Home's entry that decides, with the groups that get an item, one bit each. Its place is its stamp, or one below that no change has.
    Decision {
        content: E,
        groups: u8,
        place: u8,
    },
    /// The next decision of home's for this group, with its place.
    Item {
        content: E,
        place: u8,
    },
}

/// The rule by which a replica has a level, and mistakes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelRule {
    Right,
    /// A group's level may be above that of the home group's replica beside it.
    WithoutHome,
    /// Items that are not applied do not count.
    WithoutItems,
    /// A level may be the stamp of a decision whose item is not applied.
    AtDecision,
    /// Home's replica knows nothing more of decisions whose items the group has acknowledged, applied here or not.
    WithoutAcknowledged,
    /// Acknowledged decisions are forgotten, and a replica that lacks one has the level of the last item that it has applied. This breaks nothing.
    LastItem,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelLogs<E> {
    /// Entries of each group with their stamps, which rise.
    pub(super) logs: [Vec<(u8, LevelEntry<E>)>; GROUPS],
}

impl<E> Default for LevelLogs<E> {
    fn default() -> Self {
        LevelLogs { logs: [const { Vec::new() }; GROUPS] }
    }
}

impl<E: Copy> LevelLogs<E> {
    pub(super) fn len(&self, group: usize) -> usize {
        self.logs[group].len()
    }

    /// The stamp of the last of the first `applied` entries.
    pub(super) fn stamp_at(&self, group: usize, applied: usize) -> u8 {
        self.logs[group][..applied].last().map_or(0, |entry| entry.0)
    }

    pub(super) fn last_stamp(&self, group: usize) -> u8 {
        self.stamp_at(group, self.len(group))
    }

    /// Logs an entry above its log and above `floor`; returns the stamp.
    pub(super) fn append(&mut self, group: usize, floor: u8, entry: LevelEntry<E>) -> u8 {
        let stamp = self.last_stamp(group).max(floor) + 1;
        self.logs[group].push((stamp, entry));
        stamp
    }

    /// Logs an empty entry that brings the group to `stamp`. One at the end is replaced: a session that could look behind the
    /// former can look behind this one, and finds the same.
    pub(super) fn append_empty(&mut self, group: usize, stamp: u8) {
        if matches!(self.logs[group].last(), Some((_, LevelEntry::Empty))) {
            self.logs[group].pop();
        }
        self.logs[group].push((stamp, LevelEntry::Empty));
    }

    /// Home decides. With a stamp to spare, the decision's place is a stamp that no change has.
    pub(super) fn decide(&mut self, content: E, groups: u8, clock: u8, spare: bool) -> u8 {
        let place = self.last_stamp(HOME).max(clock) + 1;
        self.logs[HOME].push((place + u8::from(spare), LevelEntry::Decision { content, groups, place }));
        place + u8::from(spare)
    }

    /// Places and contents of home's decisions for a group in home's first `applied` entries.
    pub(super) fn decisions(&self, group: usize, applied: usize) -> impl Iterator<Item = (u8, E)> {
        self.logs[HOME][..applied].iter().filter_map(move |(_, entry)| match entry {
            LevelEntry::Decision { content, groups, place } if groups & (1 << group) != 0 => {
                Some((*place, *content))
            }
            _ => None,
        })
    }

    /// Items in the first entries of a group.
    pub(super) fn items(&self, group: usize, applied: usize) -> usize {
        self.logs[group][..applied]
            .iter()
            .filter(|(_, entry)| matches!(entry, LevelEntry::Item { .. }))
            .count()
    }

    /// The decision that this group has to log next, behind its place.
    pub(super) fn next_item(&self, group: usize) -> Option<(u8, E)> {
        if group == HOME {
            return None;
        }
        self.decisions(group, self.len(HOME)).nth(self.items(group, self.len(group)))
    }

    /// The group logs its next item, stamped above the `floor`.
    pub(super) fn take_item(&mut self, group: usize, floor: u8) -> Option<E> {
        let (place, content) = self.next_item(group)?;
        self.append(group, floor, LevelEntry::Item { content, place });
        Some(content)
    }

    /// The place of an entry in the one order of all changes, as far as `applied` entries of its group tell: its stamp, or in front of the
    /// first decision whose item comes behind it; and whether it is a decision, which comes behind the others in its place.
    pub(super) fn place(&self, group: usize, index: usize, applied: usize) -> (u8, bool) {
        let (stamp, entry) = self.logs[group][index];
        if let LevelEntry::Decision { place, .. } | LevelEntry::Item { place, .. } = entry {
            return (place, true);
        }
        let pulls = |entry: &(u8, LevelEntry<E>)| match entry.1 {
            LevelEntry::Item { place, .. } => Some(place),
            _ => None,
        };
        let first = self.logs[group][index..applied].iter().find_map(pulls);
        (first.unwrap_or(u8::MAX).min(stamp), false)
    }

    /// The stamp up to which a replica with the first `applied` entries of a group lacks nothing, on a member whose replica of home has the
    /// first `home_applied` entries.
    pub(super) fn level(&self, rule: LevelRule, group: usize, home_applied: usize, applied: usize) -> u8 {
        self.stamp_at(group, applied).min(self.settled(rule, group, home_applied, applied))
    }

    /// The stamp up to which such a replica lacks no decision of home's. A write of a session that was shown this much elsewhere is
    /// handed to the group, which stamps it above that.
    pub(super) fn settled(&self, rule: LevelRule, group: usize, home_applied: usize, applied: usize) -> u8 {
        if group == HOME {
            return u8::MAX;
        }
        let home = if rule == LevelRule::WithoutHome { u8::MAX } else { self.stamp_at(HOME, home_applied) };
        home.min(self.most_without_items(rule, group, home_applied, applied))
    }

    /// The most that a level may be for the items that are not applied.
    fn most_without_items(&self, rule: LevelRule, group: usize, home_applied: usize, applied: usize) -> u8 {
        let (items, acknowledged) = (self.items(group, applied), self.items(group, self.len(group)));
        let lacking = match rule {
            LevelRule::WithoutItems => None,
            LevelRule::WithoutAcknowledged => self.decisions(group, home_applied).nth(acknowledged),
            LevelRule::LastItem if items < acknowledged => {
                let last =
                    items.checked_sub(1).and_then(|last| self.decisions(group, self.len(HOME)).nth(last));
                return last.map_or(0, |(place, _)| place);
            }
            _ => self.decisions(group, home_applied).nth(items),
        };
        match lacking {
            None => u8::MAX,
            Some((place, _)) if rule == LevelRule::AtDecision => place,
            Some((place, _)) => place - 1,
        }
    }

    /// The stamp of `settled` for a replica that has all that is logged.
    pub(super) fn newest_settled(&self, rule: LevelRule, group: usize) -> u8 {
        self.settled(rule, group, self.len(HOME), self.len(group))
    }
}
