//! One order of the writes of all groups, of which every session sees a growing prefix.
//!
//! No zxid names a state any more where znodes are spread over groups: what home decides reaches other groups later. So a run is judged when it is over. The commands in the logs
//! of all groups are put into the order that decision 0123 promises, and carried out in it on one tree without groups, where each has to come to what it came to in its group. Then
//! everything that clients were told is held against that order.

mod answers;
mod counted_names;
pub(crate) mod group_log;
pub(crate) mod history;
mod judge;
mod multi_results;
pub(crate) mod order;
mod relayed_replies;
mod seen_positions;
mod sessions;
pub(crate) mod states;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use paddock_proto::Zxid;
use paddock_replica::LogEntry;

use super::Checked;
use group_log::GroupLog;
use history::History;
use order::{Logged, LoggedWrite, OneOrder};

/// Logs of all groups and what clients did, of a run in which znodes are spread.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    logs: BTreeMap<u32, GroupLog>,
    /// Moments of the history at which zxids were first applied by any member; of several groups' equal ones the last.
    applied_at: BTreeMap<Zxid, usize>,
    pub(crate) history: History,
}

impl Spread {
    /// An entry of a group is applied for the first time. Returns the commands in it that counted.
    pub(crate) fn committed(&mut self, group: u32, entry: &LogEntry) -> Vec<LoggedWrite> {
        let log = self.logs.entry(group).or_insert_with(|| GroupLog::new(group));
        let before = log.logged().len();
        let writes = log.apply(entry);
        let zxids = log.logged()[before..].iter().filter_map(Logged::zxid);
        self.applied_at.extend(zxids.map(|zxid| (zxid, self.history.len())));
        writes
    }

    /// Zxid of a group's state after an entry.
    pub(crate) fn zxid_after(&self, group: u32, index: u64) -> Option<Zxid> {
        self.logs.get(&group)?.zxid_after(index)
    }

    /// Number of entries in the logs of all groups.
    pub(crate) fn entry_count(&self) -> usize {
        self.logs.values().map(GroupLog::entry_count).sum()
    }

    /// The largest zxid that any group has come to.
    pub(crate) fn last_zxid(&self) -> Zxid {
        self.logs.values().map(GroupLog::last_zxid).max().unwrap_or_default()
    }

    /// The run is over: puts all commands into one order.
    pub(crate) fn order(&self, split_points: &[&str]) -> Checked<OneOrder> {
        let logs: BTreeMap<u32, &[Logged]> =
            self.logs.iter().map(|(group, log)| (*group, log.logged())).collect();
        Ok(OneOrder::new(&logs, split_points)?.applied_at(self.applied_at.clone()))
    }

    /// Judges all that clients were told by it.
    pub(crate) fn judge(&self, order: &OneOrder) -> Checked {
        judge::judge(order, &self.history)
    }
}
