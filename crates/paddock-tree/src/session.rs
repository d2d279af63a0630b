//! A session, as all members know it.

use paddock_proto::SessionId;
use xxhash_rust::xxh3::xxh3_64;

/// Session as all members know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) timeout_ms: i32,
    /// The member that serves it.
    pub(crate) owner: u8,
}

impl Session {
    pub(crate) fn digest(&self, id: SessionId) -> u64 {
        let mut bytes = [0; 13];
        bytes[..8].copy_from_slice(&id.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.timeout_ms.to_le_bytes());
        bytes[12] = self.owner;
        xxh3_64(&bytes)
    }
}
