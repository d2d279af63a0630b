//! The `Stat` of a znode, as clients see it.

use crate::jute::{DecodeError, Reader};
use crate::{SessionId, Zxid};

/// Stat of a znode, as a server tells it: 68 bytes on the wire.
///
/// `cversion` here is creates plus deletes of children, and `ephemeral_owner` is 0 for containers and TTL znodes;
/// how the tree stores them is its own affair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Transaction that made the znode.
    pub czxid: Zxid,
    /// Transaction that last changed its data.
    pub mzxid: Zxid,
    /// Time at which it was made, in milliseconds since 1970, by the leader's clock.
    pub ctime_ms: i64,
    /// Time at which its data were last changed, in milliseconds since 1970.
    pub mtime_ms: i64,
    /// Number of changes of the data.
    pub version: i32,
    /// Number of changes of the children.
    pub cversion: i32,
    /// Number of changes of the ACL.
    pub aversion: i32,
    /// Session with which an ephemeral znode ends; 0 for every other.
    pub ephemeral_owner: SessionId,
    /// Bytes of data.
    pub data_length: i32,
    /// Number of children.
    pub num_children: i32,
    /// Transaction that last made or removed a child.
    pub pzxid: Zxid,
}

impl Stat {
    /// Bytes on the wire.
    pub const BYTES: usize = 68;

    /// Appends it in jute.
    pub fn encode(&self, out: &mut Vec<u8>) {
        // Room is asked for once, not for each field.
        let mut wire = [0; Stat::BYTES];
        wire[..8].copy_from_slice(&self.czxid.0.to_be_bytes());
        wire[8..16].copy_from_slice(&self.mzxid.0.to_be_bytes());
        wire[16..24].copy_from_slice(&self.ctime_ms.to_be_bytes());
        wire[24..32].copy_from_slice(&self.mtime_ms.to_be_bytes());
        wire[32..36].copy_from_slice(&self.version.to_be_bytes());
        wire[36..40].copy_from_slice(&self.cversion.to_be_bytes());
        wire[40..44].copy_from_slice(&self.aversion.to_be_bytes());
        wire[44..52].copy_from_slice(&self.ephemeral_owner.0.to_be_bytes());
        wire[52..56].copy_from_slice(&self.data_length.to_be_bytes());
        wire[56..60].copy_from_slice(&self.num_children.to_be_bytes());
        wire[60..].copy_from_slice(&self.pzxid.0.to_be_bytes());
        out.extend_from_slice(&wire);
    }

    /// Reads it from a reply, in jute.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Stat, DecodeError> {
        Ok(Stat {
            czxid: Zxid(reader.i64()?),
            mzxid: Zxid(reader.i64()?),
            ctime_ms: reader.i64()?,
            mtime_ms: reader.i64()?,
            version: reader.i32()?,
            cversion: reader.i32()?,
            aversion: reader.i32()?,
            ephemeral_owner: SessionId(reader.i64()?),
            data_length: reader.i32()?,
            num_children: reader.i32()?,
            pzxid: Zxid(reader.i64()?),
        })
    }
}
