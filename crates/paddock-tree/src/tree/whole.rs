//! The states of several groups as one: the home group's, with the znodes that lie in others.
//!
//! The states have to be of one point of the order of all groups, which is for others to choose. What comes of them is the state of an ensemble that
//! has one group: no split points, no streams, all znodes with their Stats as clients see them.

use std::collections::BTreeSet;

use paddock_proto::jute::Reader;
use paddock_proto::{GroupsCommand, IdList, SessionId, StreamItem, Zxid};

use super::Tree;
use crate::Command;
use crate::store::NodeId;
use crate::streams::PendingItem;

/// The state of the home group, to which those of others are added.
#[derive(Debug)]
pub struct WholeTree {
    tree: Tree,
}

impl Tree {
    /// The smallest zxid that the next command can take.
    pub fn next_zxid(&self) -> Zxid {
        self.zxid.next().max(self.floor)
    }

    /// The other groups that have znodes, or may have some, by this state of the home group.
    pub fn groups_with_znodes(&self) -> BTreeSet<u32> {
        let points = self.split_points().iter();
        points
            .flat_map(|(_, point)| point.slots().runs())
            .map(|run| run.2)
            .filter(|group| *group != 0)
            .collect()
    }

    /// Number of the last item that the home group, whose state this is, has decided on for another group.
    pub fn last_item_to(&self, group: u32) -> u64 {
        self.streams().to_group(group).map_or(0, |stream| stream.last())
    }

    /// True if another group lacks something that this state of the home group has decided on and that changes what clients see, when it has applied
    /// the items of its stream up to this number.
    pub fn is_ahead_of(&self, group: u32, received: u64) -> bool {
        self.streams().to_group(group).is_some_and(|stream| {
            // Of items that were acknowledged it is not known any more what they change.
            received < stream.acknowledged() || stream.behind(received).any(|(_, item)| item.changes_znodes())
        })
    }

    /// Applies the items that `home` has for this group, which is another one, as the group would when it goes on. Nothing that may have been
    /// written in the group comes between.
    pub fn receive_pending(&mut self, home: &Tree, group: u32) {
        let Some(stream) = home.streams().to_group(group) else { return };
        for (number, PendingItem { decided, bytes }) in stream.behind(self.received_items()) {
            let item = StreamItem::decode(&mut Reader::new(bytes));
            let item = item.expect("a state has items that can be read");
            let (mut body, mut command) = (Vec::new(), Vec::new());
            GroupsCommand::Item { number, decided: *decided, item }.encode(&mut body);
            Command::encode(SessionId::NONE, 0, IdList::NONE, GroupsCommand::OP, &body, &mut command);
            let command = Command::decode(&command).expect("it was just encoded");
            self.apply(&command);
        }
    }
}

impl WholeTree {
    /// Begins with the home group's state.
    pub fn begin(home: Tree) -> WholeTree {
        WholeTree { tree: home }
    }

    /// Adds the znodes of another group's state.
    pub fn add(&mut self, other: &Tree) {
        let tree = &mut self.tree;
        tree.zxid = tree.zxid.max(other.zxid);
        for path in other.between_groups.own_slots.keys() {
            // A split point with slots elsewhere cannot be deleted.
            let (Some(point), Some(stub)) = (tree.store.find(path), other.store.find(path)) else { continue };
            let created = tree.store.cversion(point).wrapping_add(other.store.cversion(stub));
            let pzxid = tree.store.stat(point).pzxid.max(other.store.stat(stub).pzxid);
            for child in other.store.children(stub) {
                for node in other.store.subtree(child) {
                    tree.put(&other.store.path(node), &other.store.znode(node).to_znode());
                }
            }
            tree.store.set_child_counters(point, (created, pzxid.0));
        }
        // Znodes that have left the group, and are not in the home group yet. The group may have yet to hear that they are: then they may have changed since.
        for given in &other.between_groups.given {
            let leaving = tree.between_groups.split_points.leaving_of(&given.path);
            let is_awaited =
                leaving.is_some_and(|(since, leaving)| leaving.first == given.first && given.zxid > since);
            if is_awaited {
                given.portions.iter().for_each(|portion| tree.put_in(portion));
            }
        }
    }

    /// The state of all groups that were added, as one of a single group.
    pub fn finish(self) -> Tree {
        let mut tree = self.tree;
        tree.forget_groups();
        tree.remove_orphans();
        tree.count_all_quotas();
        tree
    }
}

impl Tree {
    /// Removes ephemerals of sessions that have ended.
    fn remove_orphans(&mut self) {
        let Tree { store, sessions, .. } = &*self;
        let ended = store.ephemerals().filter(|(owner, _)| !sessions.contains_key(owner));
        let orphans: Vec<NodeId> = ended.flat_map(|(_, nodes)| nodes).collect();
        for node in orphans {
            let path = self.store.path(node);
            self.store.delete(node, &path, self.zxid);
        }
    }
}

#[cfg(test)]
mod tests;
