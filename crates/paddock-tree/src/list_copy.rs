//! Copying a long list of children in portions, with other work on the tree between them.

use std::sync::{Arc, Mutex};

use paddock_proto::ErrorCode;
use paddock_proto::jute::Writer;

use crate::read::Guess;
use crate::store::{Copied, GrowingList, LONG_LIST, Lookup, NodeId};
use crate::{Asker, Tree};

/// Children that are looked at to tell about how long a list is on the wire.
const SAMPLE: usize = 100;

/// A long list of which a part was copied. Others may share it.
#[derive(Debug)]
pub struct ListCopy {
    parent: NodeId,
    progress: CopyProgress,
    /// Bytes of the names that were copied, with their lengths.
    bytes: usize,
    /// Bytes up to which the list is kept; 0 if it was not asked for before.
    kept_max: usize,
}

#[derive(Debug)]
enum CopyProgress {
    Growing(Arc<Mutex<GrowingList>>),
    Whole(NameList),
}

/// Names of all children of a znode as they go over the wire. Others may send the same bytes.
#[derive(Debug)]
pub struct NameList {
    pub count: u32,
    /// The names, each behind its length, in pieces.
    pub names: Vec<Arc<Vec<u8>>>,
}

impl ListCopy {
    /// Bytes of the names that were copied, with their lengths.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The list, once all of it was copied.
    pub fn into_list(self) -> NameList {
        match self.progress {
            CopyProgress::Whole(list) => list,
            CopyProgress::Growing(_) => panic!("a list is taken when all of it was copied"),
        }
    }
}

impl NameList {
    /// Bytes of the names, with their lengths.
    pub fn bytes(&self) -> usize {
        self.names.iter().map(|names| names.len()).sum()
    }

    /// The list as it goes over the wire, in one piece.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + self.bytes());
        bytes.put_count(self.count as usize);
        self.names.iter().for_each(|names| bytes.extend_from_slice(names));
        bytes
    }
}

impl Tree {
    /// Number of children of a znode above which its list can be copied in portions, if no other one was set.
    pub const LONG_LIST: u32 = LONG_LIST;

    /// Lets lists of more children than this be copied in portions. It is no part of the state: to be set before anything is read.
    pub fn set_long_list(&mut self, above: u32) {
        self.store.set_long_list(above);
    }

    /// True if there are so many znodes that some list may be long.
    #[inline]
    pub fn may_have_long_list(&self) -> bool {
        self.store.node_count() > self.store.long_list() as usize
    }

    /// True if the list of a znode's children is so long that it is to be copied in portions. Also returns where the znode is, as a guess for
    /// the read that follows.
    pub fn has_long_list(&self, path: &str, guess: Guess) -> (bool, Guess) {
        let found = self.store.find_guessed(path, guess.0);
        found.map_or((false, guess), |node| {
            (self.store.child_count(node) > self.store.long_list(), Guess(node))
        })
    }

    /// An error if the asker may not see the list of children at a path.
    pub fn check_list(&self, path: &str, asker: &Asker<'_>) -> Result<(), ErrorCode> {
        self.find_readable(path, asker).map(drop)
    }

    /// Bytes that a long list takes on the wire, by the length of some of its names. `None` if there is none, or none that is long.
    pub fn list_bytes_expected(&self, path: &str) -> Option<usize> {
        let parent = self.long_list_at(path)?;
        let sample = self.store.children(parent).take(SAMPLE).map(|child| 4 + self.store.name(child).len());
        let (looked_at, bytes) = sample.fold((0, 0), |(children, sum), bytes| (children + 1, sum + bytes));
        Some(self.store.child_count(parent) as usize * bytes / looked_at)
    }

    /// Begins to copy a long list, which takes about `expected` bytes. One that takes more than `bytes_max` is not answered, and so is not kept. `None` if
    /// there is none, or none that is long.
    pub fn begin_list_copy(&self, path: &str, expected: usize, bytes_max: usize) -> Option<ListCopy> {
        let parent = self.long_list_at(path)?;
        let whole = |names: Vec<Arc<Vec<u8>>>| {
            let list = NameList { count: self.store.child_count(parent), names };
            ListCopy { parent, bytes: list.bytes(), progress: CopyProgress::Whole(list), kept_max: 0 }
        };
        Some(match self.store.prepared_list(parent) {
            Lookup::One(names) => whole(vec![names]),
            Lookup::Many(names) => whole(names),
            Lookup::Missing { is_wanted } => {
                let progress = CopyProgress::Growing(self.store.growing_list(parent, expected));
                ListCopy { parent, progress, bytes: 0, kept_max: if is_wanted { bytes_max } else { 0 } }
            }
        })
    }

    /// Copies at most `max` children. A copy that was whole when it was begun is to be taken in the same moment.
    pub fn copy_list(&self, path: &str, copy: &mut ListCopy, max: usize) -> Copied {
        let CopyProgress::Growing(growing) = &copy.progress else { return Copied::All };
        if self.long_list_at(path) != Some(copy.parent) {
            return Copied::Outdated;
        }
        let (copied, bytes, names) = self.store.grow_list(copy.parent, growing, max);
        copy.bytes = bytes;
        if let Some(names) = names {
            let count = self.store.child_count(copy.parent);
            if bytes <= copy.kept_max {
                self.store.keep_list(copy.parent, names.clone());
            }
            copy.progress = CopyProgress::Whole(NameList { count, names: names.into_buckets() });
        }
        copied
    }

    /// Bytes of memory in lists of children that are kept as they go over the wire, because they are asked for again and again.
    pub fn prepared_list_bytes(&self) -> usize {
        self.store.prepared_list_bytes()
    }

    /// Lists may be kept in this many bytes from now on. It is no part of the state.
    pub fn set_prepared_list_bytes_max(&mut self, bytes: usize) {
        self.store.set_prepared_list_bytes_max(bytes);
    }

    fn long_list_at(&self, path: &str) -> Option<NodeId> {
        self.store.find(path).filter(|&node| self.store.child_count(node) > self.store.long_list())
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Reader;
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

    fn begin(tree: &Tree) -> ListCopy {
        tree.begin_list_copy("/a", 40_000, usize::MAX).expect("the list is long")
    }

    /// A copy of which 1500 children were copied.
    fn begun(tree: &Tree) -> ListCopy {
        let mut copy = begin(tree);
        assert_eq!(tree.copy_list("/a", &mut copy, 1500), Copied::Portion);
        copy
    }

    fn at_once(tree: &Tree) -> Vec<u8> {
        let mut out = Vec::new();
        tree.read(&Read::GetChildren { path: "/a", watch: false }, &Asker::NOBODY, &mut out).unwrap();
        out
    }

    fn sorted(list: &[u8]) -> Vec<String> {
        let mut names: Vec<String> =
            Reader::new(list).strings().unwrap().into_iter().map(str::to_owned).collect();
        names.sort();
        names
    }

    #[test]
    fn a_list_in_portions_is_the_list() {
        let mut tree = tree(LONG_LIST + 500);
        let mut copy = begun(&tree);
        create(&mut tree, "/b/another");
        apply(&mut tree, OpCode::SetData, |out| encode::set_data(out, "/a/child-7", Some(b"new"), -1));
        assert_eq!(tree.copy_list("/a", &mut copy, 1000), Copied::All);
        assert!(copy.into_list().to_bytes() == at_once(&tree));
    }

    #[test]
    fn a_copy_keeps_up_with_what_comes_and_goes() {
        // The last child is the first to be copied: those up to number 1000 are still to be.
        let changes: [fn(&mut Tree); 7] = [
            |tree| create(tree, "/a/another"),
            |tree| delete(tree, "/a/child-7"),
            |tree| delete(tree, "/a/child-2400"),
            // The next to be copied.
            |tree| (900..1100).for_each(|number| delete(tree, &format!("/a/child-{number}"))),
            |tree| {
                for number in [7, 2400] {
                    delete(tree, &format!("/a/child-{number}"));
                    create(tree, &format!("/a/child-{number}"));
                }
            },
            // A multi creates one, deletes three, and is taken back.
            |tree| {
                apply(tree, OpCode::Multi, |out| {
                    encode::multi_operation(out, OpCode::Create);
                    encode::create_open(out, "/a/new", None, CreateMode::Persistent);
                    for path in ["/a/child-7", "/a/child-999", "/a/child-2400", "/no-such-znode"] {
                        encode::multi_operation(out, OpCode::Delete);
                        encode::path_and_version(out, path, -1);
                    }
                    encode::multi_end(out);
                });
            },
            |_| {},
        ];
        for first in 0..changes.len() {
            let mut tree = tree(LONG_LIST + 500);
            let (mut copy, mut other) = (begun(&tree), begin(&tree));
            for change in changes[first..].iter().chain(&changes[..first]) {
                change(&mut tree);
                assert_eq!(tree.copy_list("/a", &mut copy, 1), Copied::Portion);
            }
            while tree.copy_list("/a", &mut copy, 100) == Copied::Portion {}
            let expected = at_once(&tree);
            assert_eq!(sorted(&copy.into_list().to_bytes()), sorted(&expected), "from change {first} on");
            // Another who asks shares the copy, and sees what has changed since.
            create(&mut tree, "/a/last");
            assert_eq!(tree.copy_list("/a", &mut other, 1), Copied::All);
            assert_eq!(sorted(&other.into_list().to_bytes()), sorted(&at_once(&tree)));
        }
    }

    #[test]
    fn a_copy_is_outdated_when_its_znode_goes_or_too_much_changes() {
        let delete_all = |tree: &mut Tree| {
            (0..LONG_LIST + 500).for_each(|number| delete(tree, &format!("/a/child-{number}")));
            delete(tree, "/a");
        };
        let mut first = tree(LONG_LIST + 500);
        let mut copy = begun(&first);
        delete_all(&mut first);
        assert_eq!(first.copy_list("/a", &mut copy, 5000), Copied::Outdated);

        // Names of 20 bytes, of more than 64 KiB together.
        let mut second = tree(LONG_LIST + 500);
        let mut copy = begun(&second);
        (0..4000).for_each(|number| create(&mut second, &format!("/a/another-child-{number:06}")));
        assert_eq!(second.copy_list("/a", &mut copy, 5000), Copied::Outdated);
        let mut again = begin(&second);
        assert_eq!(second.copy_list("/a", &mut again, 10_000), Copied::All);
        assert_eq!(sorted(&again.into_list().to_bytes()), sorted(&at_once(&second)));
    }

    /// Another znode takes the place of the one that is listed, with the same number.
    #[test]
    fn a_copy_is_that_of_whatever_is_at_the_path_at_its_end() {
        let mut tree = tree(LONG_LIST + 500);
        let mut copy = begun(&tree);
        (0..LONG_LIST + 500).for_each(|number| delete(&mut tree, &format!("/a/child-{number}")));
        delete(&mut tree, "/a");
        create(&mut tree, "/a");
        (0..LONG_LIST + 500).for_each(|number| create(&mut tree, &format!("/a/{number}")));
        while tree.copy_list("/a", &mut copy, 200) == Copied::Portion {}
        assert_eq!(sorted(&copy.into_list().to_bytes()), sorted(&at_once(&tree)));
    }

    #[test]
    fn a_short_list_is_not_copied_in_portions() {
        let tree = tree(LONG_LIST);
        assert!(
            !tree.has_long_list("/a", Guess::NONE).0 && tree.begin_list_copy("/a", 0, usize::MAX).is_none()
        );
        assert!(!tree.has_long_list("/no-such-znode", Guess::NONE).0);
    }
}
