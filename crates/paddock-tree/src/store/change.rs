//! Changes of the store, with all the bookkeeping.

use paddock_proto::{Acl, Zxid, split_name};

use super::index::NameHash;
use super::journal::Undo;
use super::node::{Extra, Modified, Node};
use super::{AclId, NewNode, NodeId, Store, ZnodeKind, path_chars};

impl Store {
    pub(crate) fn create(&mut self, new: NewNode<'_>) -> NodeId {
        let (_, name) = split_name(new.path).expect("a path has a slash");
        let parent = new.parent;
        self.touch(parent);
        self.touch(NodeId(self.nodes.next_id()));

        let mut node = Node {
            blob: self.blobs.insert(name.as_bytes(), new.data),
            parent,
            acl: new.acl.map_or(AclId::OPEN, |list| self.acls.intern(list)),
            czxid: new.zxid.0,
            ctime_ms: new.time_ms,
            ..Node::default()
        };
        let extra = Extra { kind: new.kind, ..Extra::of_leaf(&node) };
        self.sides.insert(&mut node, extra);
        let id = NodeId(self.nodes.insert(node));
        let parent_before = self.standing_digest(parent);
        self.attach(id, self.hash(id));
        self.data_bytes += path_chars(new.path) + self.data_len(id) as u64;

        let extra = self.extra_mut(parent);
        let undo = Undo::Create { id, cversion: extra.cversion, pzxid: extra.pzxid };
        extra.cversion = extra.cversion.wrapping_add(1);
        extra.pzxid = new.zxid.0;
        self.note(undo);
        let after = self.whole_digest(id).wrapping_add(self.standing_digest(parent));
        self.digest = self.digest.wrapping_add(after).wrapping_sub(parent_before);
        id
    }

    /// Removes a leaf.
    pub(crate) fn delete(&mut self, id: NodeId, path: &str, zxid: Zxid) {
        assert!(self.child_count(id) == 0, "only a leaf is deleted");
        assert!(id != NodeId::ROOT, "the root is never deleted");
        let parent = self.parent(id);
        self.touch(parent);
        self.touch(id);

        let before = self.whole_digest(id).wrapping_add(self.standing_digest(parent));
        self.data_bytes -= path_chars(path) + self.data_len(id) as u64;
        self.detach(id);
        let node = self.nodes.remove(id.0);
        let pzxid = std::mem::replace(&mut self.extra_mut(parent).pzxid, zxid.0);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.standing_digest(parent));
        match self.journal.writing() {
            Some(journal) => journal.push(Undo::Delete { id, node, pzxid }),
            None => self.release(node),
        }
    }

    pub(crate) fn set_data(&mut self, id: NodeId, data: Option<&[u8]>, zxid: Zxid, time_ms: i64) {
        let version = self.version(id).wrapping_add(1);
        self.put_data(id, data, Modified { mzxid: zxid.0, mtime_ms: time_ms, version });
    }

    /// Sets the data and all that tells of it.
    pub(crate) fn overwrite(&mut self, id: NodeId, data: &[u8], version: i32, zxid: i64, time_ms: i64) {
        self.put_data(id, Some(data), Modified { mzxid: zxid, mtime_ms: time_ms, version });
    }

    /// Changes the data and nothing else that shows: for quota statistics.
    pub(crate) fn replace_data(&mut self, id: NodeId, data: &[u8]) {
        self.put_data(id, Some(data), self.modified(id));
    }

    pub(crate) fn set_acl(&mut self, id: NodeId, list: Option<Vec<Acl>>) {
        self.touch(id);
        let before = self.standing_digest(id);
        let acl = list.map_or(AclId::OPEN, |list| self.acls.intern(list));
        let old = std::mem::replace(&mut self.nodes[id.0].acl, acl);
        let aversion = self.aversion(id);
        self.extra_mut(id).aversion = aversion.wrapping_add(1);
        match self.journal.writing() {
            Some(journal) => journal.push(Undo::SetAcl { id, acl: old, aversion }),
            None => self.acls.release(old),
        }
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.standing_digest(id));
    }

    pub(super) fn put_data(&mut self, id: NodeId, data: Option<&[u8]>, modified: Modified) {
        self.touch(id);
        let before = self.content_digest(id);
        self.data_bytes -= self.data_len(id) as u64;
        let old = (self.nodes[id.0].blob, self.modified(id));
        self.nodes[id.0].blob = match self.journal.writing() {
            Some(journal) => {
                journal.push(Undo::SetData { id, blob: old.0, modified: old.1 });
                self.blobs.insert_with_name_of(old.0, data)
            }
            None => self.blobs.replace_data(old.0, data),
        };
        self.sides.set_modified(&mut self.nodes[id.0], modified);
        self.data_bytes += self.data_len(id) as u64;
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.content_digest(id));
    }

    /// Lets go of what a node has that is no node any more.
    pub(super) fn release(&mut self, node: Node) {
        self.acls.release(node.acl);
        self.sides.remove(node.side);
        self.blobs.remove(node.blob);
    }

    pub(super) fn extra_mut(&mut self, id: NodeId) -> &mut Extra {
        self.sides.extra_mut(&mut self.nodes[id.0])
    }

    /// Enters a node, whose parent and name are set and have this hash, into everything that must know of it.
    pub(super) fn attach(&mut self, id: NodeId, hash: NameHash) {
        self.index.insert(hash, id);
        self.link(id);
    }

    /// Enters a node, whose parent and name are set, into everything that must know of it but the index.
    pub(super) fn link(&mut self, id: NodeId) {
        let parent = self.parent(id);
        let extra = self.extra_mut(parent);
        extra.children += 1;
        let second = std::mem::replace(&mut extra.first_child, id);
        self.nodes[id.0].next = second;
        self.nodes[id.0].previous = NodeId::NONE;
        if second != NodeId::NONE {
            self.nodes[second.0].previous = id;
        }
        self.enroll(id);
        self.note_in_lists(parent, id, true);
        self.node_count += 1;
    }

    /// The opposite of `attach`.
    pub(super) fn detach(&mut self, id: NodeId) {
        let &Node { parent, next, previous, .. } = &self.nodes[id.0];
        self.note_in_lists(parent, id, false);
        self.index.remove(self.hash(id), id);

        match previous {
            NodeId::NONE => self.extra_mut(parent).first_child = next,
            previous => self.nodes[previous.0].next = next,
        }
        if next != NodeId::NONE {
            self.nodes[next.0].previous = previous;
        }
        self.extra_mut(parent).children -= 1;
        self.dismiss(id);
        self.node_count -= 1;
    }

    /// Notes in the lists that are kept or being copied that a child is about to go, or has just come.
    #[inline]
    fn note_in_lists(&mut self, parent: NodeId, child: NodeId, has_come: bool) {
        self.note_in_growing_lists(parent, child, has_come);
        self.note_in_prepared_list(parent, child, has_come);
    }

    fn enroll(&mut self, id: NodeId) {
        let is_new = match self.kind(id) {
            ZnodeKind::Persistent => true,
            ZnodeKind::Ephemeral(session) => {
                self.ephemeral_count += 1;
                self.ephemerals.entry(session).or_default().insert(id)
            }
            ZnodeKind::Container | ZnodeKind::Ttl { .. } => self.perishable.insert(id),
        };
        assert!(is_new, "a node is enrolled once");
    }

    fn dismiss(&mut self, id: NodeId) {
        let was_there = match self.kind(id) {
            ZnodeKind::Persistent => true,
            ZnodeKind::Ephemeral(session) => {
                self.ephemeral_count -= 1;
                let owned = self.ephemerals.get_mut(&session).expect("an owner has a list");
                let was_there = owned.remove(&id);
                if owned.is_empty() {
                    self.ephemerals.remove(&session);
                }
                was_there
            }
            ZnodeKind::Container | ZnodeKind::Ttl { .. } => self.perishable.remove(&id),
        };
        assert!(was_there, "a node is dismissed once");
    }
}
