//! The entries of a group that count in the log of a member that does not run. They stay on the disk: the log is read once to see which they are, and again to use
//! them, one after the other. So a log of any length takes no memory.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use paddock_replica::LogEntry;
use paddock_storage::{Disk, GroupNumber, Index, Log, LogError, Record, Term};

/// Entries of one group that follow each other. An index and its term name an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntrySpan {
    /// The first and the last index; `None` if there is no entry.
    bounds: Option<(u64, u64)>,
    /// Each term with the first index that has it.
    terms: Vec<(u64, u64)>,
}

impl EntrySpan {
    pub(crate) fn first(&self) -> Option<Index> {
        self.bounds.map(|(first, _)| Index(first))
    }

    pub(crate) fn last(&self) -> Option<Index> {
        self.bounds.map(|(_, last)| Index(last))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bounds.is_none()
    }

    /// The log has a further entry, which replaces all that stood at its index and after it.
    pub(crate) fn put(&mut self, term: Term, Index(index): Index) {
        self.cut(index);
        if self.terms.last().is_none_or(|(_, last)| *last != term.0) {
            self.terms.push((index, term.0));
        }
        self.bounds = Some((self.bounds.map_or(index, |(first, _)| first), index));
    }

    /// A snapshot has taken the place of all that stood before it, and of what the leader did not have.
    pub(crate) fn clear(&mut self) {
        *self = EntrySpan::default();
    }

    /// Drops the entries from an index on.
    pub(crate) fn cut(&mut self, index: u64) {
        self.bounds =
            self.bounds.filter(|(first, _)| *first < index).map(|(first, last)| (first, last.min(index - 1)));
        self.terms.retain(|(from, _)| *from < index);
    }

    fn has(&self, index: u64, term: u64) -> bool {
        let later = self.terms.partition_point(|(from, _)| *from <= index);
        let is_inside = self.bounds.is_some_and(|(first, last)| (first..=last).contains(&index));
        is_inside && later > 0 && self.terms[later - 1].1 == term
    }
}

/// Reads a log, and gives the entries of these spans to `take`: those of one group by rising index.
pub(crate) fn for_each_entry(
    disk: &dyn Disk,
    log_dir: &Path,
    spans: &BTreeMap<GroupNumber, &EntrySpan>,
    take: &mut dyn FnMut(GroupNumber, &LogEntry),
) -> Result<(), LogError> {
    let first = |span: &EntrySpan| span.first().map(|Index(index)| index);
    let mut next: BTreeMap<GroupNumber, u64> =
        spans.iter().filter_map(|(group, span)| Some((*group, first(span)?))).collect();
    Log::inspect(disk, log_dir, &mut |record: Record<'_>| {
        let Record::Entry { group, term: Term(term), index: Index(index), payload } = record else { return };
        let Some(next) = next.get_mut(&group).filter(|next| **next == index) else { return };
        if spans[&group].has(index, term) {
            *next += 1;
            take(group, &LogEntry { index, term, payload: Bytes::copy_from_slice(payload) });
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paddock_storage::{LogOptions, MemDisk};

    use super::*;

    const GROUP: GroupNumber = GroupNumber(3);

    fn span(entries: &[(u64, u64)]) -> EntrySpan {
        let mut span = EntrySpan::default();
        entries.iter().for_each(|(index, term)| span.put(Term(*term), Index(*index)));
        span
    }

    #[test]
    fn an_entry_replaces_all_that_stood_at_its_index_and_after_it() {
        assert_eq!(span(&[(4, 1), (5, 1), (6, 2), (5, 3), (6, 3)]), span(&[(4, 1), (5, 3), (6, 3)]));
        assert_eq!(span(&[(4, 1), (5, 2), (4, 3)]), span(&[(4, 3)]));
        assert_eq!(span(&[(4, 1), (5, 1), (6, 1), (5, 1)]), span(&[(4, 1), (5, 1)]));
        let mut cut = span(&[(4, 1), (5, 2)]);
        cut.cut(5);
        assert_eq!(cut, span(&[(4, 1)]));
        cut.cut(4);
        assert!(cut.is_empty() && cut == EntrySpan::default());
    }

    #[test]
    fn entries_that_count_are_found_again_in_their_order() {
        let (disk, dir): (Arc<dyn Disk>, _) = (Arc::new(MemDisk::new(1)), Path::new("/log"));
        let mut log = Log::open(disk.clone(), dir, LogOptions::default(), &mut |_: Record<'_>| {}).unwrap();
        let written = [(1, 1), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (5, 3), (4, 4), (5, 4)];
        for (index, term) in written {
            let payload = format!("{index} of {term}");
            for group in [GroupNumber(0), GROUP] {
                let (term, index) = (Term(term), Index(index));
                log.append(Record::Entry { group, term, index, payload: payload.as_bytes() });
            }
        }
        log.sync().unwrap();
        let (span, mut found) = (span(&written), Vec::new());
        let spans = BTreeMap::from([(GROUP, &span)]);
        for_each_entry(disk.as_ref(), dir, &spans, &mut |group, entry| {
            assert_eq!(group, GROUP);
            found.push(String::from_utf8(entry.payload.to_vec()).unwrap());
        })
        .unwrap();
        assert_eq!(found, ["1 of 1", "2 of 1", "3 of 2", "4 of 4", "5 of 4"]);
    }
}
