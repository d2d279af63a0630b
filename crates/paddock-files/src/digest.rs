//! ZooKeeper's digest of all data: the sum of a CRC-32 for each znode that is not below `/zookeeper`.

use crc32fast::Hasher;
use paddock_tree::{StoredZnode, Znodes};

use crate::owner::owner_of;

/// The version of the digest that this is.
pub(crate) const DIGEST_VERSION: i32 = 2;

pub(crate) fn digest(mut znodes: Znodes<'_>) -> u64 {
    let mut sum = 0u64;
    while let Some((path, znode)) = znodes.next_znode() {
        sum = sum.wrapping_add(digest_of(path, &znode));
    }
    sum
}

fn digest_of(path: &str, znode: &StoredZnode<'_>) -> u64 {
    if path.starts_with("/zookeeper/") {
        return 0;
    }
    let mut crc = Hasher::new();
    crc.update(if path == "/" { b"" } else { path.as_bytes() });
    crc.update(znode.data.unwrap_or_default());
    let longs = [znode.czxid, znode.mzxid, znode.pzxid, znode.ctime_ms, znode.mtime_ms];
    let mut facts = Vec::with_capacity(60);
    longs.iter().for_each(|long| facts.extend_from_slice(&long.to_be_bytes()));
    let ints = [znode.version, znode.cversion, znode.aversion];
    ints.iter().for_each(|int| facts.extend_from_slice(&int.to_be_bytes()));
    facts.extend_from_slice(&owner_of(znode.kind).to_be_bytes());
    crc.update(&facts);
    crc.finalize().into()
}
