//! The `Stat` of a znode, as clients see it.

use crate::jute::{DecodeError, Reader, Writer};
use crate::{SessionId, Zxid};

/// Stat of a znode, as a server tells it: 68 bytes on the wire.
///
/// `cversion` here is creates plus deletes of children, and `ephemeral_owner` is 0 for containers and TTL znodes;
/// how the tree stores them is its own affair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub czxid: Zxid,
    pub mzxid: Zxid,
    pub ctime_ms: i64,
    pub mtime_ms: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub ephemeral_owner: SessionId,
    pub data_length: i32,
    pub num_children: i32,
    pub pzxid: Zxid,
}

impl Stat {
    pub const BYTES: usize = 68;

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i64(self.czxid.0);
        out.put_i64(self.mzxid.0);
        out.put_i64(self.ctime_ms);
        out.put_i64(self.mtime_ms);
        out.put_i32(self.version);
        out.put_i32(self.cversion);
        out.put_i32(self.aversion);
        out.put_i64(self.ephemeral_owner.0);
        out.put_i32(self.data_length);
        out.put_i32(self.num_children);
        out.put_i64(self.pzxid.0);
    }

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
