//! Statistics of quotas: how many znodes and bytes there are below a path.
//!
//! A quota on `/a` is the znode `/zookeeper/quota/a/zookeeper_limits`; its statistics are the data of `zookeeper_stats`
//! beside it. They are kept up to date with every write, as if nobody had written them: no version, no zxid, no event.
//! Which quotas there are is always read from the znodes themselves. Nothing is enforced here.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::store::NodeId;
use crate::tree::{QUOTA, Tree};

const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

impl Tree {
    /// `data_len` is what the client wrote, which statistics made just now do not hold any more.
    pub(crate) fn quota_after_create(&mut self, node: NodeId, path: &str, data_len: usize) {
        if !self.has_quotas() {
            return;
        }
        if let Some(subject) = subject_of_stats(path) {
            self.count_afresh(subject, node);
        }
        self.add_to_quota(path, 1, data_len as i64);
    }

    pub(crate) fn quota_after_delete(&mut self, path: &str, data_len: usize) {
        if self.has_quotas() {
            self.add_to_quota(path, -1, -(data_len as i64));
        }
    }

    pub(crate) fn quota_after_set_data(&mut self, path: &str, bytes_before: usize, bytes_now: usize) {
        if self.has_quotas() {
            self.add_to_quota(path, 0, bytes_now as i64 - bytes_before as i64);
        }
    }

    /// Counts the statistics of all quotas afresh.
    pub(crate) fn count_all_quotas(&mut self) {
        let is_limit = |id: &NodeId| self.store.name(*id) == LIMITS.as_bytes();
        let quotas: Vec<NodeId> =
            self.store.subtree(self.quota).filter(is_limit).map(|id| self.store.parent(id)).collect();
        for quota in quotas {
            let Some(stats) = self.store.child(quota, STATS) else { continue };
            let path = self.store.path(stats);
            if let Some(subject) = subject_of_stats(&path) {
                self.count_afresh(subject, stats);
            }
        }
    }

    fn has_quotas(&self) -> bool {
        self.store.child_count(self.quota) > 0
    }

    fn add_to_quota(&mut self, path: &str, nodes: i64, bytes: i64) {
        let Some(stats) = self.nearest_quota(path).and_then(|quota| self.store.child(quota, STATS)) else {
            return;
        };
        let data = self.store.data(stats).unwrap_or_default();
        // Statistics that somebody has written over are no numbers to add to. ZooKeeper stops at them.
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
        if let Some(top) = self.store.find(subject) {
            for node in self.store.subtree(top) {
                nodes += 1;
                bytes += self.store.data_len(node);
            }
        }
        self.store.replace_data(stats, format!("count={nodes},bytes={bytes}").as_bytes());
    }
}

/// The path that the znode at `path` holds the statistics of.
fn subject_of_stats(path: &str) -> Option<&str> {
    path.strip_prefix(QUOTA)?.strip_suffix(STATS)?.strip_suffix('/')
}

/// The text form of limits and statistics: `count=3,bytes=40`, then `=` and other numbers after semicolons. The odd `=`
/// keeps old readers from seeing those. What is not there counts as -1.
#[derive(Debug)]
struct Numbers(BTreeMap<String, i64>);

impl Numbers {
    fn parse(data: &[u8]) -> Option<Numbers> {
        let text = std::str::from_utf8(data).ok()?;
        let mut numbers = BTreeMap::new();
        for pair in text.split([',', ';']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            let value = value.split('=').next().unwrap_or_default();
            let value = if value.is_empty() { -1 } else { value.parse().ok()? };
            numbers.insert(name.to_owned(), value);
        }
        Some(Numbers(numbers))
    }

    fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(-1)
    }

    fn add(&mut self, name: &str, difference: i64) {
        self.0.insert(name.to_owned(), self.get(name).wrapping_add(difference));
    }
}

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "count={},bytes={}", self.get("count"), self.get("bytes"))?;
        let mut others = String::new();
        for (name, value) in self.0.iter().filter(|(name, _)| !matches!(name.as_str(), "count" | "bytes")) {
            write!(others, ";{name}={value}")?;
        }
        if !others.is_empty() {
            write!(f, "={others}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_zookeepers_order() {
        let again = |text: &str| Numbers::parse(text.as_bytes()).map(|numbers| numbers.to_string());
        assert_eq!(again("bytes=2,count=1").as_deref(), Some("count=1,bytes=2"));
        assert_eq!(again("").as_deref(), Some("count=-1,bytes=-1"));
        let limits = "count=3,bytes=-1=;byteHardLimit=5;countHardLimit=-1";
        assert_eq!(again(limits).as_deref(), Some(limits));
        assert_eq!(again("count=x"), None);
        assert_eq!(again("count"), None);
    }
}
