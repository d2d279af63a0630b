//! Copying a long list of children in portions, with other work on the tree between them.

use paddock_proto::ErrorCode;
use paddock_proto::jute::Writer;

use crate::store::{LONG_LIST, NodeId};
use crate::{Asker, Tree};

/// Names of children that were copied so far, and the place where the copying goes on.
#[derive(Debug)]
pub struct ListCopy {
    parent: NodeId,
    /// Changes of the list when the copying began.
    changes: u64,
    next: Option<NodeId>,
    /// As a list on the wire, behind room for what comes in front of it.
    bytes: Vec<u8>,
}

/// Result of copying a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// There are more children.
    Portion,
    /// The copy is the list as it is now.
    All,
    /// Children have come or gone, or the znode has, since the copying began. The copy is worth nothing any more.
    Outdated,
}

impl ListCopy {
    /// Size of the memory that it takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The list as it goes over the wire, behind the room that was asked for.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Tree {
    /// Number of children of a znode above which its list can be copied in portions, if no other one was set.
    pub const LONG_LIST: u32 = LONG_LIST;

    /// Lets lists of more children than this be copied in portions. It is no part of the state: to be set before anything is read.
    pub fn set_long_list(&mut self, above: u32) {
        self.store.set_long_list(above);
    }

    /// True if the list of a znode's children is so long that it is to be copied in portions.
    pub fn has_long_list(&self, path: &str) -> bool {
        self.store.node_count() > self.store.long_list() as usize && self.long_list_at(path).is_some()
    }

    /// An error if the asker may not see the list of children at a path.
    pub fn check_list(&self, path: &str, asker: &Asker<'_>) -> Result<(), ErrorCode> {
        self.find_readable(path, asker).map(drop)
    }

    /// Begins to copy a long list, with `room` bytes of room in front. `None` if there is none, or none that is long.
    pub fn begin_list_copy(&self, path: &str, room: usize) -> Option<ListCopy> {
        let parent = self.long_list_at(path)?;
        let mut bytes = vec![0; room];
        bytes.put_count(self.store.child_count(parent) as usize);
        let (changes, next) = (self.store.list_changes(parent), self.store.first_child(parent));
        Some(ListCopy { parent, changes, next, bytes })
    }

    /// Copies at most `max` children.
    pub fn copy_list(&self, path: &str, copy: &mut ListCopy, max: usize) -> Copied {
        let is_it = self.long_list_at(path) == Some(copy.parent);
        if !is_it || self.store.list_changes(copy.parent) != copy.changes {
            return Copied::Outdated;
        }
        for _ in 0..max {
            let Some(child) = copy.next else { return Copied::All };
            copy.bytes.put_buffer(Some(self.store.name(child)));
            copy.next = self.store.next_sibling(child);
        }
        if copy.next.is_none() { Copied::All } else { Copied::Portion }
    }

    fn long_list_at(&self, path: &str) -> Option<NodeId> {
        self.store.find(path).filter(|&node| self.store.child_count(node) > self.store.long_list())
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{CreateMode, IdList, OpCode, Read, SessionId, encode};

    use super::*;
    use crate::Command;

    fn apply(tree: &mut Tree, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
        let (mut bytes, mut command) = (Vec::new(), Vec::new());
        body(&mut bytes);
        Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, &bytes, &mut command);
        tree.apply(&Command::decode(&command).expect("it was encoded"));
    }

    fn create(tree: &mut Tree, path: &str) {
        apply(tree, OpCode::Create, |out| encode::create_open(out, path, None, CreateMode::Persistent));
    }

    fn delete(tree: &mut Tree, path: &str) {
        apply(tree, OpCode::Delete, |out| encode::path_and_version(out, path, -1));
    }

    /// Two znodes with `children` children each.
    fn tree(children: u32) -> Tree {
        let mut tree = Tree::new();
        for parent in ["/a", "/b"] {
            create(&mut tree, parent);
            (0..children).for_each(|number| create(&mut tree, &format!("{parent}/child-{number}")));
        }
        tree
    }

    fn begun(tree: &Tree) -> ListCopy {
        let mut copy = tree.begin_list_copy("/a", 0).expect("the list is long");
        assert_eq!(tree.copy_list("/a", &mut copy, 1500), Copied::Portion);
        copy
    }

    #[test]
    fn a_list_in_portions_is_the_list() {
        let mut tree = tree(LONG_LIST + 500);
        let mut copy = begun(&tree);
        create(&mut tree, "/b/another");
        apply(&mut tree, OpCode::SetData, |out| encode::set_data(out, "/a/child-7", Some(b"new"), -1));
        assert_eq!(tree.copy_list("/a", &mut copy, 1000), Copied::All);
        let mut at_once = Vec::new();
        tree.read(&Read::GetChildren { path: "/a", watch: false }, &Asker::NOBODY, &mut at_once).unwrap();
        assert!(copy.into_bytes() == at_once);
    }

    #[test]
    fn whatever_comes_or_goes_outdates_a_copy() {
        let change: [fn(&mut Tree); 5] = [
            |tree| create(tree, "/a/another"),
            |tree| delete(tree, "/a/child-7"),
            // A multi creates one, deletes one, and is taken back.
            |tree| {
                apply(tree, OpCode::Multi, |out| {
                    encode::multi_operation(out, OpCode::Delete);
                    encode::path_and_version(out, "/a/child-7", -1);
                    encode::multi_operation(out, OpCode::Delete);
                    encode::path_and_version(out, "/no-such-znode", -1);
                    encode::multi_end(out);
                });
            },
            |tree| {
                (0..LONG_LIST + 500).for_each(|number| delete(tree, &format!("/a/child-{number}")));
                delete(tree, "/a");
            },
            // Another znode takes its place, with children that do not differ.
            |tree| {
                (0..LONG_LIST + 500).for_each(|number| delete(tree, &format!("/a/child-{number}")));
                delete(tree, "/a");
                create(tree, "/a");
                (0..LONG_LIST + 500).for_each(|number| create(tree, &format!("/a/child-{number}")));
            },
        ];
        for (number, change) in change.into_iter().enumerate() {
            let mut tree = tree(LONG_LIST + 500);
            let mut copy = begun(&tree);
            change(&mut tree);
            assert_eq!(tree.copy_list("/a", &mut copy, 5000), Copied::Outdated, "change {number}");
        }
    }

    #[test]
    fn a_short_list_is_not_copied_in_portions() {
        let tree = tree(LONG_LIST);
        assert!(!tree.has_long_list("/a") && tree.begin_list_copy("/a", 0).is_none());
        assert!(!tree.has_long_list("/no-such-znode"));
    }
}
