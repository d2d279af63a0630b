//! A znode as it lies in a snapshot.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, SessionId};

use super::node::{Extra, Modified, ZnodeKind};

/// Everything about one znode; its children say themselves whose they are. The numbers of the node, its parent and its
/// ACL mean something only within the same snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Record<'a> {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    pub(crate) acl: u32,
    pub(crate) name: &'a str,
    pub(crate) data: Option<&'a [u8]>,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) pzxid: i64,
    pub(crate) ctime_ms: i64,
    pub(crate) mtime_ms: i64,
    pub(crate) version: i32,
    pub(crate) cversion: i32,
    pub(crate) aversion: i32,
    pub(crate) kind: ZnodeKind,
}

impl<'a> Record<'a> {
    /// Bytes of a record without name and data.
    const BYTES: usize = 5 * 4 + 5 * 8 + 3 * 4 + 1 + 8;

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(Record::BYTES + self.name.len() + self.data.map_or(0, <[u8]>::len));
        out.put_i32(self.id as i32);
        out.put_i32(self.parent as i32);
        out.put_i32(self.acl as i32);
        out.put_string(self.name);
        out.put_buffer(self.data);
        for long in [self.czxid, self.mzxid, self.pzxid, self.ctime_ms, self.mtime_ms] {
            out.put_i64(long);
        }
        for int in [self.version, self.cversion, self.aversion] {
            out.put_i32(int);
        }
        let (tag, value) = match self.kind {
            ZnodeKind::Persistent => (0, 0),
            ZnodeKind::Ephemeral(session) => (1, session.0),
            ZnodeKind::Container => (2, 0),
            ZnodeKind::Ttl { ms } => (3, ms),
        };
        out.push(tag);
        out.put_i64(value);
    }

    pub(crate) fn decode(r: &mut Reader<'a>) -> Result<Record<'a>, DecodeError> {
        Ok(Record {
            id: r.i32()? as u32,
            parent: r.i32()? as u32,
            acl: r.i32()? as u32,
            name: r.string()?,
            data: r.buffer()?,
            czxid: r.i64()?,
            mzxid: r.i64()?,
            pzxid: r.i64()?,
            ctime_ms: r.i64()?,
            mtime_ms: r.i64()?,
            version: r.i32()?,
            cversion: r.i32()?,
            aversion: r.i32()?,
            kind: match (r.u8()?, r.i64()?) {
                (0, _) => ZnodeKind::Persistent,
                (1, session) => ZnodeKind::Ephemeral(SessionId(session)),
                (2, _) => ZnodeKind::Container,
                (3, ms) => ZnodeKind::Ttl { ms },
                (tag, _) => {
                    return Err(DecodeError::UnknownValue { field: "znode kind", value: tag.into() });
                }
            },
        })
    }

    pub(super) fn extra(&self) -> Extra {
        let modified = Modified { mzxid: self.mzxid, mtime_ms: self.mtime_ms, version: self.version };
        Extra {
            modified,
            pzxid: self.pzxid,
            kind: self.kind,
            cversion: self.cversion,
            aversion: self.aversion,
            ..Extra::default()
        }
    }
}
