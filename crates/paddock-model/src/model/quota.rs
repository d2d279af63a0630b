//! Quotas: statistics that follow every write, and hard limits.

use std::collections::BTreeMap;

use paddock_proto::ErrorCode;

use super::Model;
use crate::Call;

type Numbers = BTreeMap<String, i64>;

impl Model {
    /// The nearest path with a quota.
    fn quota_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let has_quota =
            |top: &&str| self.nodes.contains_key(&*format!("/zookeeper/quota{top}/zookeeper_limits"));
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).skip(1);
        ends.map(|end| &path[..end]).filter(has_quota).last()
    }

    /// Only hard limits refuse.
    pub(super) fn fits_quota(
        &self,
        call: &Call,
        path: &str,
        count: i64,
        bytes: i64,
    ) -> Result<(), ErrorCode> {
        let Some(top) = self.quota_of(path).filter(|_| call.enforces_quotas) else { return Ok(()) };
        let Some(stats) = self.numbers(&format!("/zookeeper/quota{top}/zookeeper_stats")) else {
            return Ok(());
        };
        let Some(limits) = self.numbers(&format!("/zookeeper/quota{top}/zookeeper_limits")) else {
            return Ok(());
        };
        let is_above = |name, hard, difference: i64| {
            let max = get(&limits, hard);
            difference != 0 && max >= 0 && get(&stats, name) + difference > max
        };
        let refused = is_above("count", "countHardLimit", count) || is_above("bytes", "byteHardLimit", bytes);
        if refused { Err(ErrorCode::QuotaExceeded) } else { Ok(()) }
    }

    pub(super) fn count_for_quota(&mut self, path: &str, count: i64, bytes: i64) {
        let Some(top) = self.quota_of(path) else { return };
        let stats_path = format!("/zookeeper/quota{top}/zookeeper_stats");
        let Some(mut numbers) = self.numbers(&stats_path) else { return };
        let count = get(&numbers, "count") + count;
        let bytes = get(&numbers, "bytes") + bytes;
        numbers.retain(|name, _| name != "count" && name != "bytes");
        let others: String = numbers.iter().map(|(name, value)| format!(";{name}={value}")).collect();
        let sign = if others.is_empty() { "" } else { "=" };
        self.change(&stats_path).data =
            Some(format!("count={count},bytes={bytes}{sign}{others}").into_bytes());
    }

    /// The numbers in a znode, unless something else is in it.
    fn numbers(&self, path: &str) -> Option<Numbers> {
        let data = self.nodes.get(path)?.data.as_deref().unwrap_or_default();
        let text = String::from_utf8(data.to_vec()).ok()?;
        let pairs = text.split([',', ';']).filter(|pair| !pair.is_empty());
        let number = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.trim_end_matches('=').parse().ok()?))
        };
        pairs.map(number).collect()
    }
}

fn get(numbers: &Numbers, name: &str) -> i64 {
    numbers.get(name).copied().unwrap_or(-1)
}
