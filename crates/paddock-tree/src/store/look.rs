//! Reading the store, without changing it.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use paddock_proto::{Acl, SessionId, Stat, Zxid};

use super::index::NameHash;
use super::node::{Extra, Modified};
use super::{AclId, NodeId, Store, ZnodeKind};

impl Store {
    pub(crate) fn node_count(&self) -> usize {
        self.node_count
    }

    pub(crate) fn ephemeral_count(&self) -> usize {
        self.ephemeral_count
    }

    /// The characters of all paths and the bytes of all data.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// The node at a path. A string that is no path names no node; the empty string is the root's other name.
    pub(crate) fn find(&self, path: &str) -> Option<NodeId> {
        if matches!(path, "" | "/") {
            return Some(NodeId::ROOT);
        }
        let child = |node, name| self.child_of_hash(node, name, self.index.hash(node, name));
        names_of(path)?.try_fold(NodeId::ROOT, child)
    }

    /// Finds a znode by a guess, which may be any number.
    pub(crate) fn find_guessed(&self, path: &str, guess: NodeId) -> Option<NodeId> {
        if self.is_at(guess, path) { Some(guess) } else { self.find(path) }
    }

    /// Compares names from the node upwards. The root, which has no name, is never recognised.
    fn is_at(&self, guess: NodeId, path: &str) -> bool {
        let Some(names) = names_of(path) else { return false };
        if guess.0 >= self.nodes.slots() || self.nodes[guess.0].is_vacant() {
            return false;
        }
        let mut id = guess;
        for name in names.rev() {
            if id == NodeId::ROOT || self.name(id) != name {
                return false;
            }
            id = self.parent(id);
        }
        id == NodeId::ROOT
    }

    pub(crate) fn child(&self, parent: NodeId, name: &str) -> Option<NodeId> {
        let name = name.as_bytes();
        self.child_of_hash(parent, name, self.index.hash(parent, name))
    }

    /// Finds a child by the hash of parent and name.
    pub(super) fn child_of_hash(&self, parent: NodeId, name: &[u8], hash: NameHash) -> Option<NodeId> {
        self.index.find(hash, |id| self.parent(id) == parent && self.name(id) == name)
    }

    /// Under which the index has the node.
    pub(super) fn hash(&self, id: NodeId) -> NameHash {
        self.index.hash(self.parent(id), self.name(id))
    }

    /// The children, in no particular order.
    pub(crate) fn children(&self, parent: NodeId) -> impl Iterator<Item = NodeId> {
        let first = self.extra(parent).first_child.some();
        std::iter::successors(first, |id| self.nodes[id.0].next.some())
    }

    /// The node and all below it, each after its parent, without a stack that a deep tree could exhaust.
    pub(crate) fn subtree(&self, top: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(Some(top), move |&id| self.behind_in_subtree(top, id))
    }

    /// The node behind another one in [`Store::subtree`].
    pub(crate) fn behind_in_subtree(&self, top: NodeId, id: NodeId) -> Option<NodeId> {
        if let Some(child) = self.extra(id).first_child.some() {
            return Some(child);
        }
        let mut at = id;
        while at != top {
            let node = &self.nodes[at.0];
            if let Some(next) = node.next.some() {
                return Some(next);
            }
            at = node.parent;
        }
        None
    }

    pub(crate) fn parent(&self, id: NodeId) -> NodeId {
        self.nodes[id.0].parent
    }

    pub(crate) fn path(&self, id: NodeId) -> String {
        if id == NodeId::ROOT {
            return "/".to_owned();
        }
        let up = |&at: &NodeId| Some(self.parent(at)).filter(|&parent| parent != NodeId::ROOT);
        let nodes: Vec<NodeId> = std::iter::successors(Some(id), up).collect();
        let mut path = Vec::with_capacity(nodes.iter().map(|&at| self.name(at).len() + 1).sum());
        for &at in nodes.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(self.name(at));
        }
        String::from_utf8(path).expect("names were strings when they were stored")
    }

    pub(crate) fn name(&self, id: NodeId) -> &[u8] {
        self.blobs.name(self.nodes[id.0].blob)
    }

    pub(crate) fn data(&self, id: NodeId) -> Option<&[u8]> {
        self.blobs.data(self.nodes[id.0].blob)
    }

    pub(crate) fn data_len(&self, id: NodeId) -> usize {
        self.data(id).map_or(0, <[u8]>::len)
    }

    pub(crate) fn version(&self, id: NodeId) -> i32 {
        self.modified(id).version
    }

    pub(crate) fn mtime_ms(&self, id: NodeId) -> i64 {
        self.modified(id).mtime_ms
    }

    pub(crate) fn aversion(&self, id: NodeId) -> i32 {
        self.extra(id).aversion
    }

    /// Number of children that were ever created here.
    pub(crate) fn cversion(&self, id: NodeId) -> i32 {
        self.extra(id).cversion
    }

    pub(crate) fn kind(&self, id: NodeId) -> ZnodeKind {
        self.extra(id).kind
    }

    pub(crate) fn child_count(&self, id: NodeId) -> u32 {
        self.extra(id).children
    }

    pub(crate) fn acl(&self, id: NodeId) -> AclId {
        self.nodes[id.0].acl
    }

    pub(crate) fn acl_list(&self, id: NodeId) -> &Arc<[Acl]> {
        self.acls.list(self.acl(id))
    }

    /// The list that decides who may read the node; `None` when everybody may.
    pub(crate) fn readers(&self, id: NodeId) -> Option<Arc<[Acl]>> {
        self.acls.readers(self.acl(id))
    }

    /// As clients see it.
    pub(crate) fn stat(&self, id: NodeId) -> Stat {
        self.stat_of_data(id, self.data(id))
    }

    /// Stat of a znode whose data were looked up already, as clients see it.
    pub(crate) fn stat_of_data(&self, id: NodeId, data: Option<&[u8]>) -> Stat {
        let (node, extra) = (&self.nodes[id.0], self.extra(id));
        let children = extra.children as i32;
        Stat {
            czxid: Zxid(node.czxid),
            mzxid: Zxid(extra.modified.mzxid),
            ctime_ms: node.ctime_ms,
            mtime_ms: extra.modified.mtime_ms,
            version: extra.modified.version,
            // Every child that was created and is not there any more was deleted.
            cversion: extra.cversion.wrapping_mul(2).wrapping_sub(children),
            aversion: extra.aversion,
            ephemeral_owner: match extra.kind {
                ZnodeKind::Ephemeral(session) => session,
                ZnodeKind::Persistent | ZnodeKind::Container | ZnodeKind::Ttl { .. } => SessionId::NONE,
            },
            data_length: data.map_or(0, <[u8]>::len) as i32,
            num_children: children,
            pzxid: Zxid(extra.pzxid),
        }
    }

    pub(crate) fn ephemerals_of(&self, session: SessionId) -> impl Iterator<Item = NodeId> {
        self.ephemerals.get(&session).into_iter().flatten().copied()
    }

    pub(crate) fn ephemeral_count_of(&self, session: SessionId) -> usize {
        self.ephemerals.get(&session).map_or(0, BTreeSet::len)
    }

    /// The ephemeral of a session behind one of them, in an order that differs between members.
    pub(crate) fn ephemeral_behind(&self, session: SessionId, after: Option<NodeId>) -> Option<NodeId> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.ephemerals.get(&session)?.range((after, Bound::Unbounded)).next().copied()
    }

    /// At most `max` ephemeral znodes behind a place, with the sessions that own them.
    pub(crate) fn ephemerals_behind(
        &self,
        after: Option<(SessionId, NodeId)>,
        max: usize,
    ) -> Vec<(SessionId, NodeId)> {
        let (session, node) = after.map_or((None, None), |(session, node)| (Some(session), Some(node)));
        let first = session.map_or(Bound::Unbounded, Bound::Included);
        let of = |(&owner, nodes): (&SessionId, &BTreeSet<NodeId>)| -> Vec<(SessionId, NodeId)> {
            let passed = node.filter(|_| session == Some(owner)).map_or(Bound::Unbounded, Bound::Excluded);
            nodes.range((passed, Bound::Unbounded)).take(max).map(|&node| (owner, node)).collect()
        };
        self.ephemerals.range((first, Bound::Unbounded)).flat_map(of).take(max).collect()
    }

    /// Sessions with ephemeral znodes, by id.
    pub(crate) fn ephemerals(&self) -> impl Iterator<Item = (SessionId, impl Iterator<Item = NodeId>)> {
        self.ephemerals.iter().map(|(&session, nodes)| (session, nodes.iter().copied()))
    }

    pub(crate) fn perishable(&self) -> impl Iterator<Item = NodeId> {
        self.perishable.iter().copied()
    }

    /// Containers and TTL znodes behind one of them.
    pub(crate) fn perishable_behind(&self, after: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.perishable.range((after, Bound::Unbounded)).copied()
    }

    pub(super) fn modified(&self, id: NodeId) -> Modified {
        self.sides.modified(&self.nodes[id.0])
    }

    pub(super) fn extra(&self, id: NodeId) -> Extra {
        self.sides.extra(&self.nodes[id.0])
    }
}

/// The names on the way from the root; `None` if the path does not begin there.
pub(super) fn names_of(path: &str) -> Option<impl DoubleEndedIterator<Item = &[u8]>> {
    Some(path.strip_prefix('/')?.as_bytes().split(|byte| *byte == b'/'))
}
