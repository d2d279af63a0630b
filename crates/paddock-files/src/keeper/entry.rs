//! An entry of ClickHouse Keeper's log: a request of a client, with what the leader decided about it.

use paddock_proto::jute::Reader;
use paddock_proto::{OpCode, SessionId, Zxid};

use crate::error::Problem;

/// Bytes of a request's length that its header takes: xid and operation.
const HEADER_BYTES: usize = 8;
const XID_BYTES: usize = 4;
/// Keeper's own operation that begins a session.
pub(super) const SESSION_ID: i32 = 997;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangelogEntry<'a> {
    pub(super) session: SessionId,
    /// Code of the operation.
    pub(super) op: i32,
    pub(super) body: &'a [u8],
    pub(super) time_ms: i64,
    /// Zero if Keeper took the index of the entry for it.
    pub(super) zxid: i64,
    /// Version and value of the digest of all znodes after the request, if Keeper computed it.
    pub(super) digest: Option<(u8, u64)>,
}

impl<'a> ChangelogEntry<'a> {
    /// The request is as it came from the client, big-endian; what stands around it is little-endian.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<ChangelogEntry<'a>, Problem> {
        let mut r = Reader::new(bytes);
        let session = SessionId(long(&mut r)?);
        let len = r.i32()?;
        let body_len = usize::try_from(len).ok().and_then(|len| len.checked_sub(HEADER_BYTES));
        let body_len = body_len.ok_or(Problem::Length(len))?;
        r.bytes(XID_BYTES)?;
        let (op, body) = (r.i32()?, r.bytes(body_len)?);
        if r.is_empty() {
            return Err(Problem::NoTime);
        }
        let time_ms = long(&mut r)?;
        let (mut zxid, mut digest) = (0, None);
        if !r.is_empty() {
            zxid = long(&mut r)?;
            let version = r.u8()?;
            let value = if version != 0 || !r.is_empty() { long(&mut r)? } else { 0 };
            digest = (version != 0).then_some((version, value as u64));
        }
        // Behind it may stand the upper half of the xid, and where a trace goes on.
        Ok(ChangelogEntry { session, op, body, time_ms, zxid, digest })
    }

    /// Zxid of the entry at this index of the log.
    pub(super) fn zxid_at(&self, index: u64) -> Zxid {
        Zxid(if self.zxid == 0 { index as i64 } else { self.zxid })
    }

    /// True if the digest is that of the state after the request: Keeper computes none for these two.
    pub(super) fn has_own_digest(&self) -> bool {
        self.op != SESSION_ID && self.op != OpCode::Reconfig.code()
    }
}

fn long(r: &mut Reader<'_>) -> Result<i64, Problem> {
    let bytes = r.bytes(size_of::<i64>())?;
    Ok(i64::from_le_bytes(bytes.try_into().expect("so many were asked for")))
}
