//! Giving a znode fields that were decided elsewhere.

use paddock_proto::Acl;

use super::node::Modified;
use super::{AclId, NodeId, Store, Znode};

impl Store {
    /// Makes the znode what `znode` says, but for its kind and its creation, which never change.
    pub(crate) fn rewrite(&mut self, id: NodeId, znode: &Znode) {
        assert!(self.journal.writing().is_none(), "what others decided is not taken back");
        assert!(self.nodes[id.0].czxid == znode.czxid, "a znode keeps the zxid of its creation");
        let modified = Modified { mzxid: znode.mzxid, mtime_ms: znode.mtime_ms, version: znode.version };
        if self.data(id) != znode.data.as_deref() || self.modified(id) != modified {
            self.put_data(id, znode.data.as_deref(), modified);
        }
        self.put_acl(id, &znode.acl, znode.aversion);
        self.set_child_counters(id, (znode.children_created, znode.pzxid));
    }

    /// Sets the number of children that were ever created, and the zxid of the last one that came or went.
    pub(crate) fn set_child_counters(&mut self, id: NodeId, (cversion, pzxid): (i32, i64)) {
        let extra = self.extra(id);
        if (extra.cversion, extra.pzxid) == (cversion, pzxid) {
            return;
        }
        self.touch(id);
        let before = self.standing_digest(id);
        let extra = self.extra_mut(id);
        (extra.cversion, extra.pzxid) = (cversion, pzxid);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.standing_digest(id));
    }

    fn put_acl(&mut self, id: NodeId, list: &[Acl], aversion: i32) {
        if self.aversion(id) == aversion && self.acl_list(id)[..] == *list {
            return;
        }
        self.touch(id);
        let before = self.standing_digest(id);
        let acl: AclId = self.acls.intern(list.to_vec());
        let old = std::mem::replace(&mut self.nodes[id.0].acl, acl);
        self.acls.release(old);
        if self.aversion(id) != aversion {
            self.extra_mut(id).aversion = aversion;
        }
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.standing_digest(id));
    }
}
