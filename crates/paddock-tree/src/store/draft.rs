//! Changes of a store that is being put together from the outside: they set what they are told, and weigh nothing.
//!
//! Counts of bytes and the digest are wrong until `weigh`, so none of this is for a store that serves.

use paddock_proto::Acl;

use super::node::Modified;
use super::{AclId, NodeId, Record, Store};

impl Store {
    /// Places a record as a child; its name must be free there.
    pub(crate) fn graft(&mut self, parent: NodeId, record: &Record<'_>, acl: AclId) -> NodeId {
        let id = self.place(record, acl);
        let adopted = self.adopt(&[(id, parent)]);
        assert!(adopted.is_ok(), "the name of a grafted node is free");
        id
    }

    /// Removes a node and all below it.
    pub(crate) fn prune(&mut self, top: NodeId) {
        assert!(top != NodeId::ROOT, "the root stays");
        let doomed: Vec<NodeId> = self.subtree(top).collect();
        for id in doomed.into_iter().rev() {
            self.detach(id);
            let node = self.nodes.remove(id.0);
            self.release(node);
        }
    }

    pub(crate) fn put_content(
        &mut self,
        id: NodeId,
        data: Option<&[u8]>,
        version: i32,
        mzxid: i64,
        mtime_ms: i64,
    ) {
        self.nodes[id.0].blob = self.blobs.replace_data(self.nodes[id.0].blob, data);
        self.sides.set_modified(&mut self.nodes[id.0], Modified { mzxid, mtime_ms, version });
    }

    pub(crate) fn put_acl_list(&mut self, id: NodeId, list: Vec<Acl>, aversion: i32) {
        let acl = self.acls.intern(list);
        let old = std::mem::replace(&mut self.nodes[id.0].acl, acl);
        self.acls.release(old);
        self.extra_mut(id).aversion = aversion;
    }

    /// Sets the facts of the root, which is there from the beginning.
    pub(crate) fn put_root(&mut self, record: &Record<'_>, acl: AclId) {
        self.acls.retain(acl);
        let old = std::mem::replace(&mut self.nodes[NodeId::ROOT.0].acl, acl);
        self.acls.release(old);
        let node = &mut self.nodes[NodeId::ROOT.0];
        (node.czxid, node.ctime_ms) = (record.czxid, record.ctime_ms);
        self.put_content(NodeId::ROOT, record.data, record.version, record.mzxid, record.mtime_ms);
        let extra = self.extra_mut(NodeId::ROOT);
        (extra.cversion, extra.aversion, extra.pzxid) = (record.cversion, record.aversion, record.pzxid);
    }

    pub(crate) fn put_cversion(&mut self, id: NodeId, cversion: i32) {
        self.extra_mut(id).cversion = cversion;
    }

    pub(crate) fn put_pzxid(&mut self, id: NodeId, pzxid: i64) {
        self.extra_mut(id).pzxid = pzxid;
    }

    pub(crate) fn pzxid(&self, id: NodeId) -> i64 {
        self.extra(id).pzxid
    }
}
