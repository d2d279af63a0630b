//! Building a store from records, in the order in which they come: a child may come before its parent.
//!
//! First all nodes are placed, then each is given to its parent, then all come into the index, then the whole is weighed. The last two take most of the time, and as many
//! threads as there are processors where the store is large.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

use paddock_proto::Acl;
use smallvec::SmallVec;

use super::acls::Acls;
use super::ahead::{Ahead, TOGETHER};
use super::blobs::Blobs;
use super::index::{Index, IndexPart, NameHash};
use super::journal::Journal;
use super::node::{Node, NodeId};
use super::sides::Sides;
use super::slab::Slab;
use super::{AclId, Record, Store, ZnodeKind, path_chars};

/// Nodes of a store below which a second thread is not worth its while.
const NODES_PER_THREAD: u32 = 500_000;
/// Threads that are of use: they wait for the same memory.
const THREADS_MAX: usize = 4;
/// Nodes that are weighed at a time, so that what is read once is in the caches.
const WEIGHED_TOGETHER: u32 = 1024;

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

    /// Makes a placed node a child of another one. It is not in the index until `fill_index`.
    pub(crate) fn bind(&mut self, id: NodeId, parent: NodeId) {
        self.nodes[id.0].parent = parent;
        self.link(id);
    }

    /// Puts all nodes into the index; fails with one whose parent has another child of its name.
    pub(crate) fn fill_index(&mut self) -> Result<(), NodeId> {
        let threads = self.threads();
        self.fill_index_with(threads)
    }

    pub(super) fn fill_index_with(&mut self, threads: usize) -> Result<(), NodeId> {
        let Store { nodes, blobs, index, .. } = self;
        let (nodes, blobs) = (&*nodes, &*blobs);
        let mut parts = index.parts(threads);
        let own = parts.pop().expect("there is a part for each thread");
        thread::scope(|scope| {
            let begun: Vec<_> =
                parts.into_iter().map(|part| scope.spawn(move || fill(part, nodes, blobs))).collect();
            let filled = fill(own, nodes, blobs);
            begun.into_iter().map(|one| one.join().expect("filling does not panic")).fold(filled, Result::and)
        })
    }

    /// Threads that build this store together.
    fn threads(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        processors.min((self.nodes.slots() / NODES_PER_THREAD) as usize).max(1)
    }

    /// Counts the data and sums the digest, when every node has its parent; false when a node hangs on a ring of parents without
    /// a root. Goes through the nodes as they lie in memory, which a walk along the children would not.
    #[must_use]
    pub(crate) fn weigh(&mut self) -> bool {
        let threads = self.threads();
        self.weigh_with(threads)
    }

    #[must_use]
    pub(super) fn weigh_with(&mut self, threads: usize) -> bool {
        let (store, slots) = (&*self, self.nodes.slots());
        let mut lengths = PathLengths::new(slots);
        let (bytes, digest) = thread::scope(|scope| {
            // Lengths are a matter of one thread: those of parents come first. The others sum the digest; one alone does both.
            let share = slots.div_ceil(threads.saturating_sub(1).max(1) as u32).max(1);
            let shares = (0..slots).step_by(share as usize).map(|first| first..slots.min(first + share));
            let summing: Vec<_> =
                shares.take(threads - 1).map(|ids| scope.spawn(move || store.digest_of(ids))).collect();
            let (mut bytes, mut digest) = (Some(0), 0u64);
            for first in (0..slots).step_by(WEIGHED_TOGETHER as usize) {
                let ids = first..slots.min(first + WEIGHED_TOGETHER);
                bytes = bytes.zip(store.bytes_of(ids.clone(), &mut lengths)).map(|(sum, more)| sum + more);
                if threads == 1 {
                    digest = digest.wrapping_add(store.digest_of(ids));
                }
            }
            let sums = summing.into_iter().map(|one| one.join().expect("summing does not panic"));
            (bytes, sums.fold(digest, u64::wrapping_add))
        });
        self.digest = digest;
        self.data_bytes = bytes.unwrap_or_default();
        bytes.is_some()
    }

    fn ids(&self, slots: Range<u32>) -> impl Iterator<Item = NodeId> {
        slots.map(NodeId).filter(|id| !self.nodes[id.0].is_vacant())
    }

    fn digest_of(&self, slots: Range<u32>) -> u64 {
        self.ids(slots).fold(0, |sum, id| sum.wrapping_add(self.whole_digest(id)))
    }

    /// Characters of paths and bytes of data; `None` if a node is not below the root.
    fn bytes_of(&self, slots: Range<u32>, lengths: &mut PathLengths) -> Option<u64> {
        let mut bytes = 0;
        for id in self.ids(slots) {
            // The root's path has a character too, but its children's paths do not hold it.
            bytes += lengths.of(self, id)?.max(1) + self.data_len(id) as u64;
        }
        Some(bytes)
    }

    fn name_chars(&self, id: NodeId) -> u64 {
        path_chars(std::str::from_utf8(self.name(id)).expect("a record's name is a string"))
    }

    /// True if the node lives with a session, so that it must not have children.
    pub(crate) fn is_ephemeral(&self, id: NodeId) -> bool {
        matches!(self.kind(id), ZnodeKind::Ephemeral(_))
    }
}

/// Puts the nodes of a part into it.
fn fill(mut part: IndexPart<'_>, nodes: &Slab<Node>, blobs: &Blobs) -> Result<(), NodeId> {
    let key = |id: NodeId| (nodes[id.0].parent, blobs.name(nodes[id.0].blob));
    let is_double = |id: NodeId, other: NodeId| key(id) == key(other);
    let mut due = Ahead::new();
    for id in (0..nodes.slots()).map(NodeId).filter(|id| *id != NodeId::ROOT && !nodes[id.0].is_vacant()) {
        let (parent, name) = key(id);
        due.extend(part.hash(parent, name).map(|hash| (id, hash)));
        if due.len() == TOGETHER {
            part.insert_all(&due, is_double)?;
            due.clear();
        }
    }
    part.insert_all(&due, is_double)
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
