//! The home group's streams to the other groups: all members have the same items, each group applies each once and in order, and nothing is
//! acknowledged that a group's log does not have.

use std::collections::BTreeMap;

use paddock_proto::{GroupsCommand, Write, Zxid};
use paddock_replica::LogEntry;
use paddock_tree::Streams;

use super::{Checked, ensure};

const CHECKER: &str = "streams";

/// The zxid of the decision, and the item, encoded.
type DecidedItem = (Zxid, Vec<u8>);

/// Knowledge of the streams, by the numbers of their groups.
#[derive(Debug, Default)]
pub(crate) struct StreamChecks {
    /// Each item as it was seen first.
    items: BTreeMap<(u32, u64), DecidedItem>,
    /// The last item that is applied with each entry of a group, from the first entry on.
    received: BTreeMap<u32, Vec<u64>>,
}

impl StreamChecks {
    fn check_item(&mut self, group: u32, number: u64, item: &DecidedItem) -> Checked {
        let first = self.items.entry((group, number)).or_insert_with(|| item.clone());
        ensure!(
            first == item,
            CHECKER,
            "item {number} to group {group} is {item:?}, and was {first:?} when it was seen first"
        );
        Ok(())
    }

    /// An entry of a group is applied.
    pub(crate) fn committed(&mut self, group: u32, entry: &LogEntry) -> Checked {
        let known = self.received.entry(group).or_default();
        if entry.index <= known.len() as u64 {
            return Ok(());
        }
        let mut received = known.last().copied().unwrap_or_default();
        let mut items = Vec::new();
        for command in entry.batches().flat_map(|batch| batch.commands()) {
            if let Ok(Write::BetweenGroups(GroupsCommand::Item { number, decided, item })) = command.write {
                let mut bytes = Vec::new();
                item.encode(&mut bytes);
                items.push((number, (decided, bytes)));
                received = if number == received + 1 { number } else { received };
            }
        }
        known.push(received);
        items.iter().try_for_each(|(number, item)| self.check_item(group, *number, item))
    }

    /// A member has these streams in its state of the home group.
    pub(crate) fn check_home(&mut self, member: u8, streams: &Streams) -> Checked {
        for (group, stream) in streams.iter() {
            let received = self.received.get(&group).and_then(|known| known.last().copied());
            let (acknowledged, received) = (stream.acknowledged(), received.unwrap_or_default());
            ensure!(
                acknowledged <= received,
                CHECKER,
                "item {acknowledged} to group {group} is acknowledged on member {member}; the group's log has those up to {received}"
            );
            for (number, item) in stream.behind(0) {
                self.check_item(group, number, &(item.decided, item.bytes.to_vec()))?;
            }
        }
        Ok(())
    }

    /// After an entry of a group a member has applied the items up to this one.
    pub(crate) fn check_group(&mut self, member: u8, group: u32, (index, found): (u64, u64)) -> Checked {
        let known = self.received.get(&group).and_then(|known| known.get((index as usize).checked_sub(1)?));
        ensure!(
            known.is_none_or(|known| *known == found),
            CHECKER,
            "member {member} has applied item {found} after entry {index} of group {group}; its log has {known:?}"
        );
        Ok(())
    }
}
