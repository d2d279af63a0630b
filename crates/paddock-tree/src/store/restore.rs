//! Building a store from records, in the order in which they come: a child may come before its parent.
//!
//! First all nodes are placed, then each is given to its parent, then the whole is weighed.

use std::collections::BTreeMap;

use paddock_proto::Acl;
use smallvec::SmallVec;

use super::acls::Acls;
use super::blobs::Blobs;
use super::index::{Index, NameHash};
use super::journal::Journal;
use super::node::{Node, NodeId};
use super::sides::Sides;
use super::slab::Slab;
use super::{AclId, Record, Store, ZnodeKind, path_chars};

impl Store {
    /// Without a single node, not even a root: the first one placed becomes it.
    pub(crate) fn empty() -> Store {
        Store {
            nodes: Slab::new(),
            sides: Sides::new(),
            blobs: Blobs::new(),
            index: Index::new(),
            acls: Acls::new(),
            ephemerals: BTreeMap::new(),
            perishable: Default::default(),
            long_lists: Default::default(),
            prepared_lists: Default::default(),
            node_count: 0,
            ephemeral_count: 0,
            data_bytes: 0,
            digest: 0,
            journal: Journal::default(),
            scan: None,
        }
    }

    /// A use of the ACL, to be released when all nodes are placed.
    pub(crate) fn hold_acl(&mut self, list: Vec<Acl>) -> AclId {
        self.acls.intern(list)
    }

    pub(crate) fn release_acl(&mut self, acl: AclId) {
        self.acls.release(acl);
    }

    /// The ACLs in use, with their numbers.
    pub(crate) fn acls(&self) -> impl Iterator<Item = (u32, &[Acl])> {
        self.acls.iter().map(|(id, list)| (id.0, &list[..]))
    }

    /// Gives the record a place. It is in no list and not in the index until `adopt`.
    pub(crate) fn place(&mut self, record: &Record<'_>, acl: AclId) -> NodeId {
        self.acls.retain(acl);
        let mut node = Node {
            blob: self.blobs.insert(record.name.as_bytes(), record.data),
            parent: NodeId(record.parent),
            acl,
            czxid: record.czxid,
            ctime_ms: record.ctime_ms,
            ..Node::default()
        };
        self.sides.insert(&mut node, record.extra());
        let id = NodeId(self.nodes.insert(node));
        if id == NodeId::ROOT {
            self.nodes[id.0].parent = id;
            self.node_count += 1;
        }
        id
    }

    /// Makes each of some placed nodes a child of another; fails with the first one whose parent has a child of this name
    /// already.
    pub(crate) fn adopt(&mut self, nodes: &[(NodeId, NodeId)]) -> Result<(), NodeId> {
        let mut hashes = SmallVec::<[NameHash; 64]>::new();
        for &(id, parent) in nodes {
            self.nodes[id.0].parent = parent;
            hashes.push(self.hash(id));
        }
        self.look_at_index(hashes.iter());
        for (&(id, parent), hash) in nodes.iter().zip(hashes) {
            if self.child_of_hash(parent, self.name(id), hash).is_some() {
                return Err(id);
            }
            self.attach(id, hash);
        }
        Ok(())
    }

    /// Counts the data and sums the digest, when every node has its parent; false when a node hangs on a ring of parents without
    /// a root. Goes through the nodes as they lie in memory, which a walk along the children would not.
    #[must_use]
    pub(crate) fn weigh(&mut self) -> bool {
        let mut lengths = PathLengths::new(self.nodes.slots());
        let (mut bytes, mut digest) = (0, 0u64);
        let is_node = |id: &NodeId| !self.nodes[id.0].is_vacant();
        for id in (0..self.nodes.slots()).map(NodeId).filter(is_node) {
            let Some(length) = lengths.of(self, id) else { return false };
            // The root's path has a character too, but its children's paths do not hold it.
            bytes += length.max(1) + self.data_len(id) as u64;
            digest = digest.wrapping_add(self.whole_digest(id));
        }
        (self.data_bytes, self.digest) = (bytes, digest);
        true
    }

    fn name_chars(&self, id: NodeId) -> u64 {
        path_chars(std::str::from_utf8(self.name(id)).expect("a record's name is a string"))
    }

    /// True if the node lives with a session, so that it must not have children.
    pub(crate) fn is_ephemeral(&self, id: NodeId) -> bool {
        matches!(self.kind(id), ZnodeKind::Ephemeral(_))
    }
}

/// Characters in the path of each node, as far as they have been asked for; 0 for the root, which is there.
struct PathLengths {
    known: Vec<u64>,
    /// Nodes whose parents' paths are asked for before their own.
    waiting: Vec<NodeId>,
}

impl PathLengths {
    const UNKNOWN: u64 = u64::MAX;
    const ASKED: u64 = u64::MAX - 1;

    fn new(nodes: u32) -> PathLengths {
        let mut known = vec![PathLengths::UNKNOWN; nodes as usize];
        known[NodeId::ROOT.0 as usize] = 0;
        PathLengths { known, waiting: Vec::new() }
    }

    /// `None` if the node is not below the root.
    fn of(&mut self, store: &Store, id: NodeId) -> Option<u64> {
        let mut at = id;
        while self.known[at.0 as usize] == PathLengths::UNKNOWN {
            self.known[at.0 as usize] = PathLengths::ASKED;
            self.waiting.push(at);
            at = store.parent(at);
        }
        let mut length = Some(self.known[at.0 as usize]).filter(|known| *known != PathLengths::ASKED)?;
        while let Some(child) = self.waiting.pop() {
            length += 1 + store.name_chars(child);
            self.known[child.0 as usize] = length;
        }
        Some(length)
    }
}
