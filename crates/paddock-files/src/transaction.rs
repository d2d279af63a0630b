//! A transaction of the log: every type that ZooKeeper 3.4 to 3.9 writes.

use paddock_proto::jute::Reader;
use paddock_proto::{AclList, DecodeError, SessionId, Zxid};
use paddock_tree::ZnodeKind;

use crate::error::Problem;
use crate::snapshot::WrittenDigest;

/// Parent's cversion of a create in an old log, which does not say it.
pub(crate) const CVERSION_UNKNOWN: i32 = -1;
const DIGEST_BYTES: usize = 12;
const ERROR: i32 = -1;
const CREATE: i32 = 1;

#[derive(Debug, PartialEq)]
pub(crate) struct Transaction<'a> {
    pub(crate) session: SessionId,
    pub(crate) zxid: Zxid,
    pub(crate) time_ms: i64,
    pub(crate) body: Body<'a>,
    /// Digest of the tree after it.
    pub(crate) digest: Option<WrittenDigest>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Body<'a> {
    CreateSession {
        timeout_ms: i32,
    },
    /// With the ephemerals that go with it, as far as the log says them.
    CloseSession {
        paths: Vec<&'a str>,
    },
    Create {
        path: &'a str,
        data: Option<&'a [u8]>,
        acl: AclList<'a>,
        kind: ZnodeKind,
        parent_cversion: i32,
    },
    Delete {
        path: &'a str,
    },
    SetData {
        path: &'a str,
        data: Option<&'a [u8]>,
        version: i32,
    },
    SetAcl {
        path: &'a str,
        acl: AclList<'a>,
        version: i32,
    },
    Multi(Vec<Body<'a>>),
    /// A refusal, or a check alone: nothing but a zxid.
    Nothing,
}

impl<'a> Transaction<'a> {
    pub(crate) fn decode(entry: &'a [u8]) -> Result<Transaction<'a>, Problem> {
        let mut reader = Reader::new(entry);
        let (session, _xid) = (SessionId(reader.i64()?), reader.i32()?);
        let (zxid, time_ms, kind) = (Zxid(reader.i64()?), reader.i64()?, reader.i32()?);
        let body = decode_body(kind, session, &mut reader)?;
        let digest = decode_digest(zxid, &mut reader)?;
        match reader.rest().len() {
            0 => Ok(Transaction { session, zxid, time_ms, body, digest }),
            // The record of an error is never read strictly: it may hold the request that failed.
            _ if body == Body::Nothing => Ok(Transaction { session, zxid, time_ms, body, digest: None }),
            rest => Err(Problem::TransactionRest(rest)),
        }
    }
}

/// True for a transaction, as a log holds it, that an ensemble without clients has, too: sessions end, containers and TTLs go, and a refusal
/// changes nothing.
pub fn needs_no_client(entry: &[u8]) -> bool {
    Transaction::decode(entry).is_ok_and(|Transaction { session, body, .. }| {
        session == SessionId::NONE || matches!(body, Body::CloseSession { .. } | Body::Nothing)
    })
}

fn decode_digest(zxid: Zxid, reader: &mut Reader<'_>) -> Result<Option<WrittenDigest>, DecodeError> {
    if reader.rest().len() != DIGEST_BYTES {
        return Ok(None);
    }
    let (version, value) = (reader.i32()?, reader.i64()? as u64);
    Ok(Some(WrittenDigest { zxid, version, value }))
}

fn decode_body<'a>(kind: i32, session: SessionId, r: &mut Reader<'a>) -> Result<Body<'a>, Problem> {
    Ok(match kind {
        ERROR | 13 => Body::Nothing,
        -10 => Body::CreateSession { timeout_ms: r.i32()? },
        -11 => Body::CloseSession { paths: decode_closed_paths(r)? },
        CREATE | 15 => decode_create(session, r)?,
        19 => decode_special_create(r, |_| Ok(ZnodeKind::Container))?,
        21 => decode_special_create(r, |r| Ok(ZnodeKind::Ttl { ms: r.i64()? }))?,
        2 | 20 => Body::Delete { path: r.string()? },
        5 | 16 => Body::SetData { path: r.string()?, data: r.buffer()?, version: r.i32()? },
        7 => Body::SetAcl { path: r.string()?, acl: AclList::decode(r)?, version: r.i32()? },
        14 => decode_multi(session, r)?,
        other => return Err(Problem::TransactionType(other)),
    })
}

/// Before 3.6, and where it is switched off, the list is not there at all.
fn decode_closed_paths<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a str>, Problem> {
    let mut listed = *reader;
    match listed.strings() {
        Ok(paths) if matches!(listed.rest().len(), 0 | DIGEST_BYTES) => {
            *reader = listed;
            Ok(paths)
        }
        _ if matches!(reader.rest().len(), 0 | DIGEST_BYTES) => Ok(Vec::new()),
        Ok(_) => Err(Problem::TransactionRest(listed.rest().len())),
        Err(error) => Err(error.into()),
    }
}

fn decode_create<'a>(session: SessionId, r: &mut Reader<'a>) -> Result<Body<'a>, Problem> {
    let (path, data, acl, is_ephemeral) = (r.string()?, r.buffer()?, AclList::decode(r)?, r.bool()?);
    let kind = if is_ephemeral { ZnodeKind::Ephemeral(session) } else { ZnodeKind::Persistent };
    let parent_cversion = if r.is_empty() { CVERSION_UNKNOWN } else { r.i32()? };
    Ok(Body::Create { path, data, acl, kind, parent_cversion })
}

fn decode_special_create<'a>(
    r: &mut Reader<'a>,
    kind: impl FnOnce(&mut Reader<'a>) -> Result<ZnodeKind, DecodeError>,
) -> Result<Body<'a>, Problem> {
    let (path, data, acl, parent_cversion) = (r.string()?, r.buffer()?, AclList::decode(r)?, r.i32()?);
    Ok(Body::Create { path, data, acl, kind: kind(r)?, parent_cversion })
}

/// A multi that failed holds an error, whose record may be anything, and does nothing.
fn decode_multi<'a>(session: SessionId, r: &mut Reader<'a>) -> Result<Body<'a>, Problem> {
    let parts = r.list(|r| Ok((r.i32()?, r.buffer()?.unwrap_or_default())))?;
    if parts.iter().any(|&(kind, _)| kind == ERROR) {
        return Ok(Body::Nothing);
    }
    let mut bodies = Vec::with_capacity(parts.len());
    for (kind, record) in parts {
        if kind == 14 {
            return Err(Problem::TransactionType(kind));
        }
        bodies.push(decode_body(kind, session, &mut Reader::new(record))?);
    }
    Ok(Body::Multi(bodies))
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Writer;

    use super::*;

    fn entry(kind: i32, record: &[u8], digest: bool) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_i64(7);
        out.put_i32(1);
        out.put_i64(0x1_0000_0002);
        out.put_i64(99);
        out.put_i32(kind);
        out.extend_from_slice(record);
        if digest {
            out.put_i32(2);
            out.put_i64(0x1234);
        }
        out
    }

    fn created(parent_cversion: Option<i32>) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string("/a");
        out.put_buffer(Some(b"x"));
        out.extend_from_slice(AclList::OPEN.wire());
        out.put_bool(true);
        parent_cversion.into_iter().for_each(|cversion| out.put_i32(cversion));
        out
    }

    #[test]
    fn creates_of_every_version_are_read() {
        for (cversion, digest) in [(None, false), (Some(5), false), (Some(5), true)] {
            let bytes = entry(1, &created(cversion), digest);
            let transaction = Transaction::decode(&bytes).unwrap();
            let Body::Create { kind, parent_cversion, .. } = transaction.body else { panic!("no create") };
            assert_eq!(kind, ZnodeKind::Ephemeral(SessionId(7)));
            assert_eq!(parent_cversion, cversion.unwrap_or(CVERSION_UNKNOWN));
            assert_eq!(transaction.digest.is_some(), digest);
        }
    }

    #[test]
    fn an_ensemble_without_clients_still_ends_sessions_and_removes_containers() {
        let mut path = Vec::new();
        path.put_string("/a");
        let of_leader = |kind| {
            let mut bytes = entry(kind, &path, true);
            bytes[..8].fill(0);
            bytes
        };
        assert!(needs_no_client(&of_leader(20)));
        assert!(needs_no_client(&entry(-11, &[], true)));
        assert!(needs_no_client(&entry(-1, &[0; 4], false)));
        assert!(!needs_no_client(&entry(2, &path, true)));
        assert!(!needs_no_client(&entry(-10, &[0; 4], true)));
    }

    #[test]
    fn a_closed_session_may_list_its_ephemerals() {
        let mut listed = Vec::new();
        listed.put_count(1);
        listed.put_string("/a");
        for (record, paths) in [(&listed[..], &["/a"][..]), (&[0; 4][..], &[]), (&[][..], &[])] {
            for digest in [false, true] {
                let bytes = entry(-11, record, digest);
                let transaction = Transaction::decode(&bytes).unwrap();
                assert_eq!(transaction.body, Body::CloseSession { paths: paths.to_vec() });
                assert_eq!(transaction.digest.is_some(), digest);
            }
        }
    }

    #[test]
    fn a_failed_multi_is_nothing_whatever_its_errors_hold() {
        let mut record = Vec::new();
        record.put_count(2);
        record.put_i32(1);
        record.put_buffer(Some(&created(Some(1))));
        record.put_i32(-1);
        record.put_buffer(Some(&[9; 550]));
        assert_eq!(Transaction::decode(&entry(14, &record, false)).unwrap().body, Body::Nothing);
    }

    #[test]
    fn what_is_unknown_or_cut_is_refused() {
        assert!(matches!(Transaction::decode(&entry(99, &[], false)), Err(Problem::TransactionType(99))));
        let bytes = entry(5, &created(None), false);
        assert!(Transaction::decode(&bytes).is_err());
        let bytes = entry(1, &created(Some(1)), false);
        for end in (0..bytes.len()).filter(|end| *end != bytes.len() - 4) {
            assert!(Transaction::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
