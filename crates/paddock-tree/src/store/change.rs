//! What can happen to the store, with all the bookkeeping.

use paddock_proto::{Acl, Zxid};

use super::journal::Undo;
use super::node::{Blob, Extra, ExtraId, Node};
use super::{AclId, Kind, NewNode, NodeId, Store, path_chars};

impl Store {
    pub(crate) fn create(&mut self, new: NewNode<'_>) -> NodeId {
        let (_, name) = new.path.rsplit_once('/').expect("a path has a slash");
        let parent = new.parent;
        self.touch(parent);
        self.touch(NodeId(self.nodes.next_id()));

        let mut node = Node {
            blob: Blob::new(name.as_bytes(), new.data),
            czxid: new.zxid.0,
            mzxid: new.zxid.0,
            ctime_ms: new.time_ms,
            mtime_ms: new.time_ms,
            acl: new.acl.map_or(AclId::OPEN, |list| self.acls.intern(list)),
            parent,
            ..Node::default()
        };
        if new.kind != Kind::Persistent {
            let extra = Extra { pzxid: new.zxid.0, kind: new.kind, ..Extra::default() };
            node.extra = ExtraId(self.extras.insert(extra));
        }
        let id = NodeId(self.nodes.insert(node));
        let parent_before = self.standing_digest(parent);
        self.attach(id);
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
        let extra = (node.extra != ExtraId::NONE).then(|| self.extras.remove(node.extra.0));

        let pzxid = std::mem::replace(&mut self.extra_mut(parent).pzxid, zxid.0);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.standing_digest(parent));
        match &mut self.journal {
            Some(journal) => journal.push(Undo::Delete { id, node, extra, pzxid }),
            None => self.acls.release(node.acl),
        }
    }

    pub(crate) fn set_data(&mut self, id: NodeId, data: Option<&[u8]>, zxid: Zxid, time_ms: i64) {
        let before = self.content_digest(id);
        let old = self.put_data(id, data);
        let node = &mut self.nodes[id.0];
        let undo = Undo::SetData {
            id,
            blob: old,
            version: node.version,
            mzxid: node.mzxid,
            mtime_ms: node.mtime_ms,
        };
        node.version = node.version.wrapping_add(1);
        node.mzxid = zxid.0;
        node.mtime_ms = time_ms;
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.content_digest(id));
        self.note(undo);
    }

    /// Sets the data and all that tells of it.
    pub(crate) fn overwrite(&mut self, id: NodeId, data: &[u8], version: i32, zxid: i64, time_ms: i64) {
        assert!(self.journal.is_none(), "no client writes in this way, so no multi does");
        let before = self.content_digest(id);
        self.put_data(id, Some(data));
        let node = &mut self.nodes[id.0];
        (node.version, node.mzxid, node.mtime_ms) = (version, zxid, time_ms);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.content_digest(id));
    }

    /// Changes the data and nothing else that shows: for quota statistics.
    pub(crate) fn replace_data(&mut self, id: NodeId, data: &[u8]) {
        let before = self.content_digest(id);
        let old = self.put_data(id, Some(data));
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.content_digest(id));
        let node = &self.nodes[id.0];
        let undo = Undo::SetData {
            id,
            blob: old,
            version: node.version,
            mzxid: node.mzxid,
            mtime_ms: node.mtime_ms,
        };
        self.note(undo);
    }

    pub(crate) fn set_acl(&mut self, id: NodeId, list: Option<Vec<Acl>>) {
        assert!(self.journal.is_none(), "a multi has no setACL, so none is ever taken back");
        self.touch(id);
        let before = self.standing_digest(id);
        let acl = list.map_or(AclId::OPEN, |list| self.acls.intern(list));
        let old = std::mem::replace(&mut self.nodes[id.0].acl, acl);
        self.acls.release(old);
        let extra = self.extra_mut(id);
        extra.aversion = extra.aversion.wrapping_add(1);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.standing_digest(id));
    }

    fn put_data(&mut self, id: NodeId, data: Option<&[u8]>) -> Blob {
        self.touch(id);
        self.data_bytes -= self.data_len(id) as u64;
        let blob = Blob::new(self.name(id), data);
        let old = std::mem::replace(&mut self.nodes[id.0].blob, blob);
        self.data_bytes += self.data_len(id) as u64;
        old
    }

    pub(super) fn extra_mut(&mut self, id: NodeId) -> &mut Extra {
        let node = &mut self.nodes[id.0];
        if node.extra == ExtraId::NONE {
            let fresh = Extra { pzxid: node.czxid, ..Extra::default() };
            node.extra = ExtraId(self.extras.insert(fresh));
        }
        &mut self.extras[node.extra.0]
    }

    /// Enters a node, whose parent and name are set, into everything that must know of it.
    pub(super) fn attach(&mut self, id: NodeId) {
        let parent = self.parent(id);
        let hash = self.index.hash(parent, self.name(id));
        self.nodes[id.0].hash = hash;
        self.index.insert(hash, id, |other| self.nodes[other.0].hash);

        let extra = self.extra_mut(parent);
        extra.children += 1;
        let second = std::mem::replace(&mut extra.first_child, id);
        self.nodes[id.0].next = second;
        self.nodes[id.0].previous = NodeId::NONE;
        if second != NodeId::NONE {
            self.nodes[second.0].previous = id;
        }
        self.enroll(id);
        self.node_count += 1;
    }

    /// The opposite of `attach`.
    pub(super) fn detach(&mut self, id: NodeId) {
        let node = &self.nodes[id.0];
        let (hash, parent, next, previous) = (node.hash, node.parent, node.next, node.previous);
        self.index.remove(hash, id);

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

    fn enroll(&mut self, id: NodeId) {
        let is_new = match self.kind(id) {
            Kind::Persistent => true,
            Kind::Ephemeral(session) => {
                self.ephemeral_count += 1;
                self.ephemerals.entry(session).or_default().insert(id)
            }
            Kind::Container | Kind::Ttl { .. } => self.perishable.insert(id),
        };
        assert!(is_new, "a node is enrolled once");
    }

    fn dismiss(&mut self, id: NodeId) {
        let was_there = match self.kind(id) {
            Kind::Persistent => true,
            Kind::Ephemeral(session) => {
                self.ephemeral_count -= 1;
                let owned = self.ephemerals.get_mut(&session).expect("an owner has a list");
                let was_there = owned.remove(&id);
                if owned.is_empty() {
                    self.ephemerals.remove(&session);
                }
                was_there
            }
            Kind::Container | Kind::Ttl { .. } => self.perishable.remove(&id),
        };
        assert!(was_there, "a node is dismissed once");
    }
}
