//! Statistics of the watch table, for those who operate a member.

use paddock_proto::EventKind;

/// Changes of one kind that fired watches since the member was started: their number, and how many connections each one told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FiredWatches {
    pub changes: u64,
    /// Connections that were told, of all changes together.
    pub told: u64,
    /// The fewest that one change told, 0 while there was none, and the most.
    pub told_min: u64,
    pub told_max: u64,
}

impl FiredWatches {
    fn add(&mut self, told: u64) {
        self.told_min = if self.changes == 0 { told } else { self.told_min.min(told) };
        self.told_max = self.told_max.max(told);
        self.changes += 1;
        self.told += told;
    }
}

/// Events of the watch table since the member was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchStatistics {
    pub created: FiredWatches,
    pub deleted: FiredWatches,
    pub data_changed: FiredWatches,
    pub children_changed: FiredWatches,
    /// Connections with watches that have ended.
    pub gone_watchers: u64,
    /// Watchers whose watches are all removed from the table.
    pub forgotten_watchers: u64,
}

impl WatchStatistics {
    /// A change of a kind has fired watches of `told` connections.
    pub(super) fn fired(&mut self, kind: EventKind, told: usize) {
        let fired = match kind {
            EventKind::NodeCreated => &mut self.created,
            EventKind::NodeDeleted => &mut self.deleted,
            EventKind::NodeDataChanged => &mut self.data_changed,
            EventKind::NodeChildrenChanged => &mut self.children_changed,
        };
        if told > 0 {
            fired.add(told as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_nobody_is_told_of_does_not_count() {
        let mut statistics = WatchStatistics::default();
        for told in [0, 3, 1] {
            statistics.fired(EventKind::NodeDeleted, told);
        }
        assert_eq!(statistics.deleted, FiredWatches { changes: 2, told: 4, told_min: 1, told_max: 3 });
        assert_eq!(statistics.created, FiredWatches::default());
    }
}
