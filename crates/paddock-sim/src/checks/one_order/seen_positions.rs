//! Positions in the order that clients had seen by a moment of the history.

use std::collections::BTreeMap;

/// Knowledge that clients had by some time.
#[derive(Debug, Default)]
pub(super) struct SeenPositions {
    /// Moments at which the position that any client was shown rose, and that position.
    rises: Vec<(usize, usize)>,
    /// Likewise of each group, with its own writes that were acknowledged.
    acknowledged: BTreeMap<u32, Vec<(usize, usize)>>,
}

impl SeenPositions {
    fn rise(rises: &mut Vec<(usize, usize)>, moment: usize, position: usize) {
        if rises.last().is_none_or(|(_, last)| *last < position) {
            rises.push((moment, position));
        }
    }

    fn at(rises: &[(usize, usize)], moment: usize) -> usize {
        let behind = rises.partition_point(|(shown, _)| *shown < moment);
        behind.checked_sub(1).map_or(0, |last| rises[last].1)
    }

    /// The position that any client was shown before a moment.
    pub(super) fn before(&self, moment: usize) -> usize {
        SeenPositions::at(&self.rises, moment)
    }

    /// The last write of a group that was acknowledged before a moment.
    pub(super) fn acknowledged_before(&self, group: u32, moment: usize) -> usize {
        self.acknowledged.get(&group).map_or(0, |rises| SeenPositions::at(rises, moment))
    }

    /// A client has seen this position by now.
    pub(super) fn note(&mut self, moment: usize, position: usize) {
        SeenPositions::rise(&mut self.rises, moment, position);
    }

    pub(super) fn acknowledge(&mut self, group: u32, moment: usize, position: usize) {
        SeenPositions::rise(self.acknowledged.entry(group).or_default(), moment, position);
    }
}
