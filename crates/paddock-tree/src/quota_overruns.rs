//! Writes that went above a limit of a quota, for the operator of a member.

use std::collections::BTreeMap;

/// Namespaces that are told apart; the writes of all others are counted under no name.
const NAMESPACES_MAX: usize = 1000;
/// Limits whose newest overrun is kept until it is taken.
const RECENT_MAX: usize = 100;

/// The kind of limit that a quota has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaLimit {
    /// The number of znodes.
    Count,
    /// The bytes of data.
    Bytes,
}

/// A write that went above a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaOverrun {
    /// The path that has the quota.
    pub path: String,
    pub limit: QuotaLimit,
    /// True if the write was refused.
    pub is_hard: bool,
    /// Znodes or bytes that there were with the write, or would have been.
    pub value: i64,
    pub max: i64,
}

impl QuotaOverrun {
    /// The child of the root that the quota is on, or below.
    fn namespace(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }
}

/// Overruns of one member's tree.
#[derive(Clone, Debug, Default)]
pub struct QuotaOverruns {
    /// Number of refused writes, and of others that were told of, by namespace.
    counts: BTreeMap<String, (u64, u64)>,
    recent: BTreeMap<(String, QuotaLimit), QuotaOverrun>,
}

impl QuotaOverruns {
    pub(crate) fn note(&mut self, overrun: QuotaOverrun) {
        let namespace = overrun.namespace();
        let is_named = self.counts.len() < NAMESPACES_MAX || self.counts.contains_key(namespace);
        let namespace = if is_named { namespace } else { "" };
        let (refused, told) = self.counts.entry(namespace.to_owned()).or_default();
        *(if overrun.is_hard { refused } else { told }) += 1;
        let limit = (overrun.path.clone(), overrun.limit);
        if self.recent.len() < RECENT_MAX || self.recent.contains_key(&limit) {
            self.recent.insert(limit, overrun);
        }
    }

    /// Number of refused writes by namespace.
    pub fn refused(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(namespace, (refused, _))| (namespace.as_str(), *refused)).filter(is_some)
    }

    /// Number of writes above a soft limit by namespace.
    pub fn told(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(namespace, (_, told))| (namespace.as_str(), *told)).filter(is_some)
    }

    /// The newest overrun of each limit that was not taken.
    pub fn recent(&self) -> impl Iterator<Item = &QuotaOverrun> {
        self.recent.values()
    }

    /// True if the operator should be told.
    pub fn is_news(&self) -> bool {
        !self.recent.is_empty()
    }

    pub(crate) fn take_recent(&mut self) -> Vec<QuotaOverrun> {
        std::mem::take(&mut self.recent).into_values().collect()
    }
}

fn is_some((_, count): &(&str, u64)) -> bool {
    *count > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrun(path: &str, is_hard: bool, value: i64) -> QuotaOverrun {
        QuotaOverrun { path: path.into(), limit: QuotaLimit::Count, is_hard, value, max: 1 }
    }

    #[test]
    fn overruns_are_counted_and_the_newest_of_each_limit_is_kept() {
        let mut overruns = QuotaOverruns::default();
        overruns.note(overrun("/a/b", true, 2));
        overruns.note(overrun("/a/b", true, 3));
        overruns.note(overrun("/a", false, 9));
        assert!(overruns.is_news());
        assert_eq!(overruns.refused().collect::<Vec<_>>(), [("a", 2)]);
        assert_eq!(overruns.told().collect::<Vec<_>>(), [("a", 1)]);
        assert_eq!(overruns.take_recent(), [overrun("/a", false, 9), overrun("/a/b", true, 3)]);
        assert!(!overruns.is_news());
    }

    #[test]
    fn namespaces_without_end_take_no_memory_without_end() {
        let mut overruns = QuotaOverruns::default();
        for number in 0..2 * NAMESPACES_MAX {
            overruns.note(overrun(&format!("/{number}"), true, 2));
        }
        assert!(overruns.counts.len() <= NAMESPACES_MAX + 1);
        assert_eq!(overruns.refused().map(|(_, count)| count).sum::<u64>(), 2 * NAMESPACES_MAX as u64);
        assert_eq!(overruns.take_recent().len(), RECENT_MAX);
    }
}
