//! States of a member's groups when nothing is under way: together they are the tree that one order comes to, and no group has what is another's.

use std::collections::BTreeMap;

use paddock_model::{Dump, Znode, dump};
use paddock_proto::{Zxid, is_at_or_below};
use paddock_tree::Tree;

use super::super::{Checked, ensure};
use super::order::OneOrder;

const CHECKER: &str = "states in one order";

#[derive(Debug)]
pub(crate) struct MemberStates<'a> {
    pub(crate) home: &'a Tree,
    /// The other groups, by their numbers.
    pub(crate) groups: BTreeMap<u32, Dump>,
}

impl MemberStates<'_> {
    /// Compares them with the tree at the end of the order.
    pub(crate) fn check(&self, member: u8, order: &OneOrder) -> Checked {
        let map = self.home.split_points();
        let leads_to_split_point = |path: &str| {
            // There may be no split point left.
            let is_everywhere = path == "/" || path.starts_with("/zookeeper");
            is_everywhere || map.iter().any(|(point, _)| is_at_or_below(point, path))
        };
        let home = dump(self.home);
        let mut found: BTreeMap<&str, Znode> = BTreeMap::new();
        let home_znodes = home.znodes.iter().map(|(path, znode)| (0, path, znode));
        let others = self
            .groups
            .iter()
            .flat_map(|(group, dump)| dump.znodes.iter().map(|(path, znode)| (*group, path, znode)));
        for (group, path, znode) in home_znodes.chain(others) {
            if map.group_of(path) == group {
                found.insert(path, masked(path, znode, order));
                continue;
            }
            ensure!(
                group > 0 && leads_to_split_point(path),
                CHECKER,
                "member {member} has {path} in group {group}; it belongs to group {}",
                map.group_of(path)
            );
        }
        let end = order.state(order.len()).dump();
        let expected: BTreeMap<&str, Znode> =
            end.znodes.iter().map(|(path, znode)| (path.as_str(), masked(path, znode, order))).collect();
        let mut paths: Vec<&&str> = found.keys().chain(expected.keys()).collect();
        paths.sort_unstable();
        let differing = paths.into_iter().find(|path| found.get(**path) != expected.get(**path));
        ensure!(
            differing.is_none(),
            CHECKER,
            "member {member} has {differing:?} in the end as {:?}; in one order it is {:?}",
            differing.and_then(|path| found.get(*path)),
            differing.and_then(|path| expected.get(*path))
        );
        ensure!(
            home.sessions == end.sessions,
            CHECKER,
            "member {member} has the sessions {:?} in the end; in one order they are {:?}",
            home.sessions,
            end.sessions
        );
        Ok(())
    }
}

/// A znode without what its own group alone does not know.
fn masked(path: &str, znode: &Znode, order: &OneOrder) -> Znode {
    let mut masked = znode.clone();
    if order.split_points().iter().any(|point| is_at_or_below(path, point)) {
        masked.stat.pzxid = Zxid(0);
    }
    if order.split_points().iter().any(|point| point == path) {
        (masked.stat.cversion, masked.stat.num_children) = (0, 0);
    }
    masked
}
