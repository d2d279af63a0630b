//! ClickHouse Keeper's digest of all znodes: the sum of a SipHash for each.

use paddock_proto::SessionId;
use paddock_tree::{StoredZnode, ZnodeKind};

use super::sip_hash::SipHash;

/// Owner of a container, as it is hashed.
const CONTAINER: i64 = i64::MIN;
/// Version since which a znode's TTL is in the digest.
const WITH_TTL: u8 = 5;

/// True for the versions that can be compared: those of Keepers since 2024. Earlier ones hashed other fields.
pub(super) fn is_known(version: u8) -> bool {
    (4..=WITH_TTL).contains(&version)
}

/// Numbers of a znode that a draft does not have as Keeper counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) cversion: i32,
    pub(super) children: i32,
}

pub(super) fn digest_of(version: u8, path: &str, znode: &StoredZnode<'_>, counters: Counters) -> u64 {
    let mut hash = SipHash::new();
    hash.update(path.as_bytes());
    hash.update(znode.data.unwrap_or_default());
    for long in [znode.czxid, znode.mzxid, znode.ctime_ms, znode.mtime_ms] {
        hash.update(&long.to_le_bytes());
    }
    for int in [znode.version, counters.cversion, znode.aversion] {
        hash.update(&int.to_le_bytes());
    }
    hash.update(&owner_of(znode.kind).to_le_bytes());
    hash.update(&counters.children.to_le_bytes());
    hash.update(&znode.pzxid.to_le_bytes());
    if version >= WITH_TTL {
        match znode.kind {
            ZnodeKind::Ttl { ms } => {
                hash.update(&[1]);
                hash.update(&ms.to_le_bytes());
            }
            _ => hash.update(&[0]),
        }
    }
    // A digest of zero would stand for one that is not known.
    hash.value().max(1)
}

fn owner_of(kind: ZnodeKind) -> i64 {
    match kind {
        ZnodeKind::Ephemeral(SessionId(session)) => session,
        ZnodeKind::Container => CONTAINER,
        ZnodeKind::Persistent | ZnodeKind::Ttl { .. } => 0,
    }
}
