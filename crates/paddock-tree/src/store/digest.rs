//! A number that says what the znodes are: members with the same znodes have the same one, however these lie in memory.
//!
//! The digest is the sum of a hash of every znode, so a change costs the hashes of the znodes it changes, twice. A znode counts in
//! two parts, because a parent changes with every child and its data does not.

use paddock_proto::Acl;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::node::Modified;
use super::{AclId, NodeId, Store, ZnodeKind};

impl Store {
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Name and data, and who wrote them when.
    pub(super) fn content_digest(&self, id: NodeId) -> u64 {
        let node = &self.nodes[id.0];
        let (name, data) = self.blobs.parts(node.blob);
        let data = match data {
            None => 1,
            Some(data) => xxh3_64(data),
        };
        let parent = self.nodes[node.parent.0].czxid;
        let Modified { mzxid, mtime_ms, version } = self.modified(id);
        let numbers = [data as i64, parent, node.czxid, mzxid, node.ctime_ms, mtime_ms];
        hash(&numbers, xxh3_64_with_seed(name, version as u64))
    }

    /// Digest of the facts that change with the children, and of the znode's owner.
    pub(super) fn standing_digest(&self, id: NodeId) -> u64 {
        let (node, extra) = (&self.nodes[id.0], self.extra(id));
        let (kind, of_kind) = match extra.kind {
            ZnodeKind::Persistent => (0, 0),
            ZnodeKind::Ephemeral(session) => (1, session.0),
            ZnodeKind::Container => (2, 0),
            ZnodeKind::Ttl { ms } => (3, ms),
        };
        let acl = match node.acl {
            AclId::OPEN => 0,
            _ => acl_digest(self.acl_list(id)),
        };
        let versions = i64::from(extra.cversion) << 32 | i64::from(extra.aversion) & 0xffff_ffff;
        hash(&[extra.pzxid, versions, kind, of_kind, acl as i64], xxh3_64(self.name(id)))
    }

    pub(super) fn whole_digest(&self, id: NodeId) -> u64 {
        self.content_digest(id).wrapping_add(self.standing_digest(id))
    }
}

fn hash<const N: usize>(numbers: &[i64; N], seed: u64) -> u64 {
    let bytes = numbers.map(i64::to_le_bytes);
    xxh3_64_with_seed(bytes.as_flattened(), seed)
}

fn acl_digest(list: &[Acl]) -> u64 {
    let mut bytes = Vec::new();
    list.iter().for_each(|acl| acl.encode(&mut bytes));
    xxh3_64(&bytes)
}
