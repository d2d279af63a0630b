//! The one order that the sessions have to agree on.
//!
//! Paddock promises one order of all writes of which every session sees a growing prefix. A world notes what each session
//! saw and what it did not see yet; each such sight puts some writes before others. As long as these edges have no circle,
//! an order exists that explains everything that was seen. Invariant: edges are only ever added.

/// A set of writes, one bit each.
pub(super) type Writes = u16;

/// The most writes that a world may have.
const WRITES_MAX: usize = 8;

/// Edges between writes: `after[w]` holds the writes that must come behind `w`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WriteOrder {
    after: [Writes; WRITES_MAX],
}

impl WriteOrder {
    /// Puts every write of `earlier` before every write of `later`. A write in both is a circle of its own.
    pub(super) fn put_before(&mut self, earlier: Writes, later: Writes) {
        for (write, after) in self.after.iter_mut().enumerate() {
            if earlier & (1 << write) != 0 {
                *after |= later;
            }
        }
    }

    /// A session that has seen `seen` looked where the writes `lacking` belong, and they were not there.
    pub(super) fn sees(&mut self, seen: Writes, lacking: Writes) {
        self.put_before(seen, lacking);
    }

    /// True if no order explains what was seen.
    pub(super) fn has_circle(&self) -> bool {
        let mut after = self.after;
        for through in 0..WRITES_MAX {
            for from in 0..WRITES_MAX {
                if after[from] & (1 << through) != 0 {
                    after[from] |= after[through];
                }
            }
        }
        (0..WRITES_MAX).any(|write| after[write] & (1 << write) != 0)
    }
}

/// The sight of one session: the writes, and the largest stamp of each group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sight {
    pub(super) writes: Writes,
    pub(super) stamps: [u8; 3],
}

impl Sight {
    /// The largest stamp that was seen in this group.
    pub(super) fn here(&self, group: usize) -> u8 {
        self.stamps[group]
    }

    /// The largest stamp that was seen in any other group.
    pub(super) fn elsewhere(&self, group: usize) -> u8 {
        (0..self.stamps.len())
            .filter(|&other| other != group)
            .map(|other| self.stamps[other])
            .max()
            .unwrap_or(0)
    }
}
