//! Reading znodes as values.

use paddock_proto::SessionId;

use crate::Tree;
use crate::store::{NodeId, Znode};

impl Tree {
    pub fn znode(&self, path: &str) -> Option<Znode> {
        self.store.find(path).map(|node| self.znode_of(node))
    }

    /// Paths of the ephemeral znodes of a session, in order.
    pub fn ephemerals_of(&self, session: SessionId) -> Vec<String> {
        self.sorted_paths(self.store.ephemerals_of(session))
    }

    fn znode_of(&self, node: NodeId) -> Znode {
        let stat = self.store.stat(node);
        Znode {
            data: self.store.data(node).map(<[u8]>::to_vec),
            acl: self.store.acl_list(node).clone(),
            kind: self.store.kind(node),
            czxid: stat.czxid.0,
            mzxid: stat.mzxid.0,
            pzxid: stat.pzxid.0,
            ctime_ms: stat.ctime_ms,
            mtime_ms: stat.mtime_ms,
            version: stat.version,
            children_created: self.store.cversion(node),
            aversion: stat.aversion,
        }
    }
}
