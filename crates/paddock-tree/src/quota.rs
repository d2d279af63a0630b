//! Quotas: how many znodes and bytes there are below a path, and how many there may be.
//!
//! A quota on `/a` is the znode `/zookeeper/quota/a/zookeeper_limits`; its statistics are the data of `zookeeper_stats`
//! beside it. They are kept up to date with every write, as if no client had written them: no version, no zxid, no event.
//! The quotas are always read from the znodes themselves. Limits count for the writes of a member that enforces
//! them, which says so in the command: a hard one refuses the write, a soft one is told of.

mod numbers;

use std::collections::BTreeMap;

use paddock_proto::{ErrorCode, StreamItem, Write, Zxid, is_at_or_below};

use crate::features::FeatureLevel;
use crate::quota_overruns::{QuotaLimit, QuotaOverrun, QuotaOverruns};
use crate::store::NodeId;
use crate::tree::{Circumstances, QUOTA, Tree};
use crate::write_paths::for_each_path;
use numbers::Numbers;

const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

/// Limits and use of the quotas below one child of the root, added up. A limit that is not set counts as -1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUse {
    pub count_limit: i64,
    pub bytes_limit: i64,
    pub count: i64,
    pub bytes: i64,
}

impl Tree {
    /// Refuses a write that would bring the nearest quota above a hard limit. A hard limit takes the place of a soft one.
    pub(crate) fn check_quota(
        &mut self,
        at: &Circumstances<'_>,
        path: &str,
        nodes: i64,
        bytes: i64,
    ) -> Result<(), ErrorCode> {
        if !at.enforces_quotas || !self.has_quotas() {
            return Ok(());
        }
        let Some(quota) = self.nearest_quota(path) else { return Ok(()) };
        let Some(stats) = self.numbers(quota, STATS) else { return Ok(()) };
        let Some(limits) = self.numbers(quota, LIMITS) else { return Ok(()) };
        let asked = [
            (QuotaLimit::Count, nodes, stats.get("count"), limits.get("count"), limits.get("countHardLimit")),
            (QuotaLimit::Bytes, bytes, stats.get("bytes"), limits.get("bytes"), limits.get("byteHardLimit")),
        ];
        for (limit, difference, used, soft, hard) in asked {
            let is_hard = hard > -1;
            let max = if is_hard { hard } else { soft };
            let value = used.saturating_add(difference);
            if difference == 0 || max < 0 || value <= max {
                continue;
            }
            let path = self.store.path(quota)[QUOTA.len()..].to_owned();
            self.overruns.note(QuotaOverrun { path, limit, is_hard, value, max });
            if is_hard {
                return Err(ErrorCode::QuotaExceeded);
            }
        }
        Ok(())
    }

    /// Writes that went above a limit since the tree was made or loaded. They are no part of the replicated state.
    pub fn quota_overruns(&self) -> &QuotaOverruns {
        &self.overruns
    }

    /// Counts writes that went above a limit when they were tried out, now that they are carried out or refused.
    pub fn note_quota_overruns(&mut self, overruns: Vec<QuotaOverrun>) {
        overruns.into_iter().for_each(|overrun| self.overruns.note(overrun));
    }

    /// The newest overrun of each limit since they were taken before.
    pub fn take_quota_overruns(&mut self) -> Vec<QuotaOverrun> {
        self.overruns.take_recent()
    }

    /// Limits and use of all quotas by the child of the root that they are below, as ZooKeeper adds them up.
    pub fn quota_use(&self) -> BTreeMap<String, QuotaUse> {
        let mut namespaces: BTreeMap<String, QuotaUse> = BTreeMap::new();
        for node in self.store.subtree(self.quota).filter(|&node| self.store.child_count(node) == 0) {
            let path = self.store.path(node);
            let Some((subject, kind)) = path[QUOTA.len()..].rsplit_once('/') else { continue };
            let Some(namespace) = subject.split('/').nth(1) else { continue };
            let Some(numbers) = self.store.data(node).and_then(Numbers::parse) else { continue };
            let used = namespaces.entry(namespace.to_owned());
            match kind {
                LIMITS => {
                    let used = used.or_default();
                    let limit = |hard, soft| {
                        if numbers.get(hard) > -1 { numbers.get(hard) } else { numbers.get(soft) }
                    };
                    used.count_limit = used.count_limit.saturating_add(limit("countHardLimit", "count"));
                    used.bytes_limit = used.bytes_limit.saturating_add(limit("byteHardLimit", "bytes"));
                }
                STATS => {
                    let used = used.or_default();
                    used.count = used.count.saturating_add(numbers.get("count"));
                    used.bytes = used.bytes.saturating_add(numbers.get("bytes"));
                }
                _ => {}
            }
        }
        namespaces
    }

    /// The numbers in a child of a quota's znode. Text that a client has written over them is no numbers.
    fn numbers(&self, quota: NodeId, name: &str) -> Option<Numbers> {
        let node = self.store.child(quota, name)?;
        Numbers::parse(self.store.data(node).unwrap_or_default())
    }

    /// `data_len` is what the client wrote, which statistics made just now do not hold any more.
    pub(crate) fn quota_after_create(&mut self, node: NodeId, path: &str, data_len: usize) {
        if !self.has_quotas() {
            return;
        }
        if let Some(subject) = subject_of_stats(path) {
            self.count_afresh(subject, node);
        }
        self.note_limits(path);
        self.add_to_quota(path, 1, data_len as i64);
    }

    /// A znode has come from another group.
    pub(crate) fn quota_after_put(&mut self, path: &str, data_len: usize) {
        if self.has_quotas() {
            self.add_to_quota(path, 1, data_len as i64);
        }
    }

    pub(crate) fn quota_after_delete(&mut self, path: &str, data_len: usize) {
        if self.has_quotas() {
            self.note_limits(path);
            self.add_to_quota(path, -1, -(data_len as i64));
        }
    }

    pub(crate) fn quota_after_set_data(&mut self, path: &str, bytes_before: usize, bytes_now: usize) {
        if self.has_quotas() {
            self.note_limits(path);
            self.add_to_quota(path, 0, bytes_now as i64 - bytes_before as i64);
        }
    }

    /// Counts the statistics of all quotas afresh.
    pub(crate) fn count_all_quotas(&mut self) {
        let quotas: Vec<NodeId> = self.all_limits().map(|id| self.store.parent(id)).collect();
        for quota in quotas {
            let Some(stats) = self.store.child(quota, STATS) else { continue };
            let path = self.store.path(stats);
            if let Some(subject) = subject_of_stats(&path) {
                self.count_afresh(subject, stats);
            }
        }
    }

    /// Znodes of the limits of all quotas.
    fn all_limits(&self) -> impl Iterator<Item = NodeId> {
        self.store.subtree(self.quota).filter(|id| self.store.name(*id) == LIMITS.as_bytes())
    }

    fn has_quotas(&self) -> bool {
        self.store.child_count(self.quota) > 0
    }

    fn add_to_quota(&mut self, path: &str, nodes: i64, bytes: i64) {
        let Some(stats) = self.nearest_quota(path).and_then(|quota| self.store.child(quota, STATS)) else {
            return;
        };
        let data = self.store.data(stats).unwrap_or_default();
        // Statistics that a client has written over are no numbers to add to. ZooKeeper stops at them.
        let Some(mut numbers) = Numbers::parse(data) else { return };
        numbers.add("count", nodes);
        numbers.add("bytes", bytes);
        self.store.replace_data(stats, numbers.to_string().as_bytes());
    }

    /// The quota with the longest path that `path` is, or is below.
    fn nearest_quota(&self, path: &str) -> Option<NodeId> {
        let (mut quota, mut nearest) = (self.quota, None);
        for name in path.split('/').skip(1) {
            let Some(next) = self.store.child(quota, name) else { break };
            quota = next;
            if self.store.child(quota, LIMITS).is_some() {
                nearest = Some(quota);
            }
        }
        nearest
    }

    fn count_afresh(&mut self, subject: &str, stats: NodeId) {
        let (mut nodes, mut bytes) = (0, 0);
        for top in self.own_tops(subject) {
            for node in self.store.subtree(top) {
                nodes += 1;
                bytes += self.store.data_len(node);
            }
        }
        self.store.replace_data(stats, format!("count={nodes},bytes={bytes}").as_bytes());
    }

    /// Znodes below which lies what this group has of a path: of a split point, or one above, it has a stub, and only children are its own.
    fn own_tops(&self, subject: &str) -> Vec<NodeId> {
        let own = &self.between_groups.own_slots;
        let is_home = self.between_groups.received == 0;
        if is_home || !own.is_empty() && self.has_place_of(subject) {
            return self.store.find(subject).into_iter().collect();
        }
        let stubs = own.keys().filter(|point| is_at_or_below(point, subject));
        let stubs = stubs.filter_map(|point| self.store.find(point));
        stubs.flat_map(|stub| self.store.children(stub)).collect()
    }
}

/// Quotas of an ensemble whose znodes lie in several groups: the home group has them, and tells the others of their limits, each of which keeps statistics of its own.
impl Tree {
    /// Notes limits that may have changed.
    fn note_limits(&mut self, path: &str) {
        if self.is_among_groups && subject_of(path, LIMITS).is_some() {
            self.changed_limits.push(path.to_owned());
        }
    }

    /// A command has been carried out: the other groups are told of the limits that it has changed, as decided at this zxid.
    pub(crate) fn tell_changed_limits(&mut self, decided: Zxid) {
        for path in std::mem::take(&mut self.changed_limits) {
            self.tell_limits(&path, 1, decided);
        }
    }

    /// Tells the groups from `first` on of all quotas.
    pub(crate) fn tell_all_limits(&mut self, first: u32, decided: Zxid) {
        let paths: Vec<String> = self.all_limits().map(|node| self.store.path(node)).collect();
        paths.iter().for_each(|path| self.tell_limits(path, first, decided));
    }

    /// There is no split point any more, and other groups are told of no limits from now on: they forget all of them.
    pub(crate) fn end_limits(&mut self, decided: Zxid) {
        if self.has_quotas() {
            self.push_limits("", None, 1, decided);
        }
    }

    fn tell_limits(&mut self, path: &str, first: u32, decided: Zxid) {
        let Some(subject) = subject_of(path, LIMITS).filter(|subject| !subject.is_empty()) else { return };
        let node = self.store.find(path);
        let limits =
            node.map(|node| Numbers::limits_in(self.store.data(node).unwrap_or_default()).to_string());
        self.push_limits(subject, limits.as_deref().map(str::as_bytes), first, decided);
    }

    /// Refuses another change of limits while a group has too much to catch up on: what it is to be told would pile up.
    pub(crate) fn check_room_for_limits(&self, write: &Write<'_>) -> Result<(), ErrorCode> {
        let mut changes_limits = false;
        for_each_path(write, &mut |path| changes_limits |= subject_of(path, LIMITS).is_some());
        let is_full = || (1..self.groups.count()).any(|group| !self.has_room_for(group));
        if changes_limits && self.raised.level >= FeatureLevel::QUOTAS && is_full() {
            return Err(ErrorCode::ThrottledOp);
        }
        Ok(())
    }

    fn push_limits(&mut self, path: &str, limits: Option<&[u8]>, first: u32, decided: Zxid) {
        if self.raised.level >= FeatureLevel::QUOTAS {
            for group in first..self.groups.count() {
                self.between_groups.streams.push(group, decided, &StreamItem::Limits { path, limits });
            }
        }
    }

    /// The home group has told this one of the limits of a quota.
    pub(crate) fn put_limits(&mut self, at: &Circumstances<'_>, path: &str, limits: Option<&[u8]>) {
        let Some(limits) = limits else { return self.remove_quotas(at, path) };
        let quota = format!("{QUOTA}{path}");
        let node = self.put_path(at, &format!("{quota}/{LIMITS}"));
        self.store.replace_data(node, limits);
        let stats = self.put_path(at, &format!("{quota}/{STATS}"));
        self.count_afresh(path, stats);
    }

    /// There is no quota on a path any more, or, if it is empty, none at all.
    fn remove_quotas(&mut self, at: &Circumstances<'_>, path: &str) {
        let removed: Vec<String> = if path.is_empty() {
            let children = self.store.subtree(self.quota).filter(|node| self.store.child_count(*node) == 0);
            children.filter(|node| *node != self.quota).map(|node| self.store.path(node)).collect()
        } else {
            [LIMITS, STATS].map(|name| format!("{QUOTA}{path}/{name}")).to_vec()
        };
        removed.iter().for_each(|path| self.remove_stub(at, path));
    }

    /// Share of this group in the quota whose statistics are the znode at `path`: znodes, and bytes.
    pub fn counted_for(&self, path: &str) -> Option<(i64, i64)> {
        let numbers = Numbers::parse(self.store.data(self.store.find(path)?)?)?;
        Some((numbers.get("count"), numbers.get("bytes")))
    }
}

/// Statistics of a quota with what other groups have counted for it; `None` if they are no numbers.
pub fn add_to_statistics(data: &[u8], (count, bytes): (i64, i64)) -> Option<Vec<u8>> {
    let mut numbers = Numbers::parse(data)?;
    numbers.add("count", count);
    numbers.add("bytes", bytes);
    Some(numbers.to_string().into_bytes())
}

/// True for the znode that has the statistics of a quota.
pub fn is_statistics(path: &str) -> bool {
    subject_of_stats(path).is_some()
}

/// The path that the znode at `path` holds the statistics of.
fn subject_of_stats(path: &str) -> Option<&str> {
    subject_of(path, STATS)
}

fn subject_of<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    path.strip_prefix(QUOTA)?.strip_suffix(name)?.strip_suffix('/')
}

#[cfg(test)]
mod tests;
