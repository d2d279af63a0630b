//! The committed log of one group, with stamps.
//!
//! Consensus inside a group is taken for granted: an entry here is committed. Members apply it at their own pace, so a
//! reader may meet any prefix. A world says what an entry of its own does to staged parts.

/// The effect of an entry on the parts that are staged in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartEffect {
    None,
    Stages(u8),
    Ends(u8),
}

pub(super) trait StampedEntry {
    fn staging(&self) -> PartEffect;
    /// The stamp of home's entry that decided what this entry releases.
    fn decided_at(&self) -> Option<u8> {
        None
    }
    /// An entry that is there for its stamp alone.
    fn is_empty(&self) -> bool;
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StampedLog<E> {
    /// Entries with their stamps, which rise.
    pub(super) entries: Vec<(u8, E)>,
}

impl<E> Default for StampedLog<E> {
    fn default() -> Self {
        StampedLog { entries: Vec::new() }
    }
}

impl<E: StampedEntry + Clone> StampedLog<E> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn last_stamp(&self) -> u8 {
        self.entries.last().map_or(0, |entry| entry.0)
    }

    /// Logs an entry with a stamp above its own log's and above `floor`; returns the stamp.
    pub(super) fn append(&mut self, floor: u8, entry: E) -> u8 {
        let stamp = self.last_stamp().max(floor) + 1;
        self.entries.push((stamp, entry));
        stamp
    }

    /// Logs an empty entry that brings the group to `stamp`. One at the end is replaced: a session that could read behind the
    /// former can read behind this one, and finds the same.
    pub(super) fn append_empty(&mut self, stamp: u8, entry: E) {
        if self.entries.last().is_some_and(|last| last.1.is_empty()) {
            self.entries.pop();
        }
        self.entries.push((stamp, entry));
    }

    /// The stamp that a replica is at when it has applied the first `applied` entries: the last one's, but no more than
    /// the stamp of the oldest part that is staged in them and not released.
    pub(super) fn at(&self, applied: usize) -> u8 {
        let at = self.entries[..applied].last().map_or(0, |entry| entry.0);
        self.open_parts(applied).map(|part| part.0).fold(at, u8::min)
    }

    /// The place of an entry in the one order of all groups' changes: its stamp, and whether it comes behind all that have
    /// that stamp. A change behind a staged part comes before that part's release, however large its own stamp. The
    /// parts of one decision have one place in all groups, below all that was logged after any of them.
    pub(super) fn place(&self, index: usize) -> (u8, bool) {
        let mut place = (0, false);
        for through in 0..=index {
            let (stamp, entry) = &self.entries[through];
            let behind = self.open_parts(through + 1).map(|part| part.0).min();
            let own = match (entry.decided_at(), behind) {
                (Some(decided), _) => (decided, true),
                (None, Some(part)) => (part, true),
                (None, None) => (*stamp, false),
            };
            place = place.max(own);
        }
        place
    }

    /// Parts that are staged in the first `applied` entries and neither released nor given up, with their stamps.
    pub(super) fn open_parts(&self, applied: usize) -> impl Iterator<Item = (u8, u8)> {
        let entries = &self.entries[..applied];
        entries.iter().enumerate().filter_map(move |(index, (stamp, entry))| {
            let PartEffect::Stages(part) = entry.staging() else { return None };
            let ended = entries[index..].iter().any(|(_, later)| later.staging() == PartEffect::Ends(part));
            (!ended).then_some((*stamp, part))
        })
    }
}
