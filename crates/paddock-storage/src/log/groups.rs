//! Entries that the log has of each group.

use std::collections::BTreeMap;

use super::record::Record;
use crate::{GroupNumber, Index, Term};

/// Begin and end of each group's entries.
#[derive(Debug, Default)]
pub(super) struct Groups {
    spans: BTreeMap<GroupNumber, EntryRange>,
}

#[derive(Clone, Copy, Debug)]
struct EntryRange {
    /// The first entry that is still wanted. It may be the one after `last`: then there is none yet.
    first: Index,
    last: Index,
    /// Term of the last one.
    term: Term,
    released: Option<Index>,
}

/// An entry came that does not follow the one before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) expected: Index,
}

impl Groups {
    /// Takes note of a record. The first entry of a group may have any index.
    pub(super) fn note(&mut self, record: &Record<'_>) -> Result<(), Gap> {
        match *record {
            Record::HardState { .. } => Ok(()),
            Record::Base { group, index, term } => {
                // Entries that follow a base which goes back are others than those that were released under these numbers.
                let released = self.spans.get(&group).and_then(|span| span.released.min(Some(index)));
                self.spans.insert(group, EntryRange { first: index.next(), last: index, term, released });
                Ok(())
            }
            Record::Entry { group, index, term, .. } => self.note_entry(group, index, term),
        }
    }

    fn note_entry(&mut self, group: GroupNumber, index: Index, term: Term) -> Result<(), Gap> {
        let span =
            self.spans.entry(group).or_insert(EntryRange { first: index, last: index, term, released: None });
        let expected = span.last.next();
        if index > expected {
            return Err(Gap { expected });
        }
        span.first = span.first.min(index);
        (span.last, span.term) = (index, term);
        Ok(())
    }

    /// The group of a base that stands before its last entry: nothing before that base in the log is wanted any more.
    pub(super) fn goes_back(&self, record: &Record<'_>) -> Option<GroupNumber> {
        let Record::Base { group, index, .. } = *record else { return None };
        (self.last(group) > Some(index)).then_some(group)
    }

    pub(super) fn release(&mut self, group: GroupNumber, through: Index) {
        let Some(span) = self.spans.get_mut(&group) else { return };
        span.released = span.released.max(Some(through));
        span.first = span.first.max(through.next());
    }

    pub(super) fn released(&self, group: GroupNumber) -> Option<Index> {
        self.spans.get(&group)?.released
    }

    pub(super) fn first(&self, group: GroupNumber) -> Option<Index> {
        let span = self.spans.get(&group)?;
        (span.first <= span.last).then_some(span.first)
    }

    pub(super) fn last(&self, group: GroupNumber) -> Option<Index> {
        Some(self.spans.get(&group)?.last)
    }

    /// Record that stands for the last entry of a group of which nothing is wanted any more.
    pub(super) fn base(&self, group: GroupNumber) -> Option<Record<'static>> {
        let EntryRange { last, term, released, .. } = *self.spans.get(&group)?;
        (released >= Some(last)).then_some(Record::Base { group, term, index: last })
    }

    /// True if no entry of these ranges is wanted any more.
    pub(super) fn have_released(&self, ranges: &Ranges) -> bool {
        ranges.highest.iter().all(|(group, highest)| self.released(*group) >= Some(*highest))
    }
}

/// The highest index of each group in a segment, also of entries that were replaced later.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    highest: BTreeMap<GroupNumber, Index>,
}

impl Ranges {
    pub(super) fn note(&mut self, record: &Record<'_>) {
        // A base counts as the entry it stands for: without it the entries after it would look like a gap.
        if let Record::Entry { group, index, .. } | Record::Base { group, index, .. } = *record {
            let highest = self.highest.entry(group).or_insert(index);
            *highest = index.max(*highest);
        }
    }

    /// A base that goes back stands behind what was noted here.
    pub(super) fn forget(&mut self, group: GroupNumber) {
        self.highest.remove(&group);
    }

    /// Groups that have entries, or a base, in the segment.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupNumber> {
        self.highest.keys().copied()
    }

    pub(super) fn hold(&self, group: GroupNumber) -> bool {
        self.highest.contains_key(&group)
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (group, index) in other.highest {
            let highest = self.highest.entry(group).or_insert(index);
            *highest = index.max(*highest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;

    const GROUP: GroupNumber = GroupNumber(1);

    fn entry(index: u64) -> Record<'static> {
        Record::Entry { group: GROUP, term: Term(1), index: Index(index), payload: &[] }
    }

    fn check(records: &[Record<'_>], first: Option<u64>, last: Option<u64>) {
        let mut groups = Groups::default();
        for record in records {
            groups.note(record).expect("no gap");
        }
        assert_eq!((groups.first(GROUP), groups.last(GROUP)), (first.map(Index), last.map(Index)));
    }

    #[test]
    fn entries_follow_or_replace() {
        check(&[], None, None);
        check(&[entry(5), entry(6)], Some(5), Some(6));
        check(&[entry(5), entry(6), entry(7), entry(6)], Some(5), Some(6));
        check(&[entry(5), entry(4)], Some(4), Some(4));
        let base = Record::Base { group: GROUP, term: Term(1), index: Index(100) };
        check(&[entry(5), base], None, Some(100));
        check(&[entry(5), base, entry(101)], Some(101), Some(101));
    }

    #[test]
    fn a_gap_is_noticed() {
        let mut groups = Groups::default();
        groups.note(&entry(5)).expect("the first may be any");
        assert_eq!(groups.note(&entry(7)), Err(Gap { expected: Index(6) }));
    }

    #[test]
    fn released_entries_are_not_first() {
        let mut groups = Groups::default();
        let mut ranges = Ranges::default();
        for index in 5..=7 {
            groups.note(&entry(index)).expect("no gap");
            ranges.note(&entry(index));
        }
        groups.release(GROUP, Index(6));
        assert_eq!(groups.first(GROUP), Some(Index(7)));
        assert!(!groups.have_released(&ranges));
        groups.release(GROUP, Index(3));
        assert_eq!(groups.first(GROUP), Some(Index(7)));
        groups.release(GROUP, Index(7));
        assert_eq!((groups.first(GROUP), groups.last(GROUP)), (None, Some(Index(7))));
        assert!(groups.have_released(&ranges));
    }
}
