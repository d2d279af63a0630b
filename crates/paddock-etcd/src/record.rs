//! Values of keys, as docs/formats.md says.
//!
//! A value is written before the revision is known that it gets, so a field that holds this revision holds a mark.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, DecodeError, Id, SessionId, SessionSecret};
use paddock_tree::{Znode, ZnodeKind};

/// First byte of every value.
const FORMAT: u8 = 1;
/// The transaction that wrote a value. A front end knows its own by it, whatever became of etcd's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// A number that the front end draws when it starts.
    pub front: u64,
    /// Number of the transaction among those of the front end.
    pub number: u32,
}

impl Tag {
    fn encode(self, out: &mut Vec<u8>) {
        out.put_i64(self.front as i64);
        out.put_i32(self.number as i32);
    }

    fn decode(r: &mut Reader<'_>) -> Result<Tag, DecodeError> {
        Ok(Tag { front: r.i64()? as u64, number: r.i32()? as u32 })
    }
}

/// Value of the key of a front end.
pub fn encode_mark(tag: Tag) -> Vec<u8> {
    let mut out = vec![FORMAT];
    tag.encode(&mut out);
    out
}

pub fn decode_mark(value: &[u8]) -> Result<Tag, RecordError> {
    let mut r = open(value)?;
    let tag = Tag::decode(&mut r)?;
    close(&r)?;
    Ok(tag)
}

/// Stands for the revision that the value was written in.
const THIS_REVISION: i64 = -1;
/// Bytes of a znode's value beside its data, if its ACL is the open one.
const ZNODE_BYTES: usize = 82;
/// Number of entries of the ACL that lets everybody do everything.
const OPEN: i32 = -1;

/// Reason why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("decode value")]
    Decode(#[from] DecodeError),
    #[error("value has format {0}, not {FORMAT}: it was written by another version of Paddock")]
    Format(u8),
    #[error("value is followed by {0} bytes of something else")]
    Trailing(usize),
    #[error("secret has {0} bytes, not {want}", want = SessionSecret::BYTES)]
    Secret(usize),
    #[error("value has the zxid {0}, which is not before its own revision")]
    Zxid(i64),
}

/// The zxids above this one are those of a transaction that has no revision yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending(pub i64);

impl Pending {
    fn mark(self, zxid: i64) -> i64 {
        if zxid > self.0 { THIS_REVISION } else { zxid }
    }
}

pub fn encode_znode(znode: &Znode, pending: Pending, tag: Tag) -> Vec<u8> {
    // An ACL of one entry that is not open has some bytes more.
    let mut out = Vec::with_capacity(ZNODE_BYTES + znode.data.as_deref().map_or(0, <[u8]>::len));
    out.push(FORMAT);
    tag.encode(&mut out);
    out.put_buffer(znode.data.as_deref());
    match &znode.acl[..] {
        [only] if *only == Acl::open() => out.put_i32(OPEN),
        list => {
            out.put_count(list.len());
            list.iter().for_each(|acl| acl.encode(&mut out));
        }
    }
    let (tag, of_kind) = match znode.kind {
        ZnodeKind::Persistent => (0, 0),
        ZnodeKind::Ephemeral(session) => (1, session.0),
        ZnodeKind::Container => (2, 0),
        ZnodeKind::Ttl { ms } => (3, ms),
    };
    out.push(tag);
    out.put_i64(of_kind);
    for zxid in [znode.czxid, znode.mzxid, znode.pzxid] {
        out.put_i64(pending.mark(zxid));
    }
    out.put_i64(znode.ctime_ms);
    out.put_i64(znode.mtime_ms);
    for number in [znode.version, znode.children_created, znode.aversion] {
        out.put_i32(number);
    }
    out
}

pub fn decode_znode(value: &[u8], revision: i64) -> Result<(Znode, Tag), RecordError> {
    let mut r = open(value)?;
    let tag = Tag::decode(&mut r)?;
    let data = r.buffer()?.map(<[u8]>::to_vec);
    let acl = if Reader::new(r.rest()).i32()? == OPEN {
        r.i32()?;
        [Acl::open()].into()
    } else {
        r.list(Acl::decode)?.into()
    };
    let kind = match (r.u8()?, r.i64()?) {
        (0, _) => ZnodeKind::Persistent,
        (1, session) => ZnodeKind::Ephemeral(SessionId(session)),
        (2, _) => ZnodeKind::Container,
        (3, ms) => ZnodeKind::Ttl { ms },
        (tag, _) => Err(DecodeError::UnknownValue { field: "znode kind", value: tag.into() })?,
    };
    let mut zxid = || match r.i64()? {
        THIS_REVISION => Ok(revision),
        earlier if (0..revision).contains(&earlier) => Ok(earlier),
        other => Err(RecordError::Zxid(other)),
    };
    let (czxid, mzxid, pzxid) = (zxid()?, zxid()?, zxid()?);
    let znode = Znode {
        data,
        acl,
        kind,
        czxid,
        mzxid,
        pzxid,
        ctime_ms: r.i64()?,
        mtime_ms: r.i64()?,
        version: r.i32()?,
        children_created: r.i32()?,
        aversion: r.i32()?,
    };
    close(&r)?;
    Ok((znode, tag))
}

/// First byte of a session's value. Sessions of builds that knew ZooKeeper's passwords only begin like every value.
const SESSION_FORMAT: u8 = 2;
const HAS_LEASE: u8 = 1;
const IS_KEYED: u8 = 2;
const IS_BOUND: u8 = 4;

/// Value of the key that holds the secret.
pub fn encode_secret(secret: &SessionSecret) -> Vec<u8> {
    [&[FORMAT], &secret.0[..]].concat()
}

pub fn decode_secret(value: &[u8]) -> Result<SessionSecret, RecordError> {
    let rest = open(value)?.rest();
    SessionSecret::from_bytes(rest).ok_or(RecordError::Secret(rest.len()))
}

/// A session, as all front ends know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub timeout_ms: i32,
    /// Its password is made from the secret; else it is ZooKeeper's.
    pub is_keyed: bool,
    /// The identity that it is bound to.
    pub proven: Option<Id>,
    /// The transaction that wrote it last, which is one of the front end that serves the session.
    pub tag: Tag,
    /// Id of the lease that holds the key, if it is not that of the session: a client has come back with another timeout, and the
    /// time to live of a lease cannot be changed.
    pub lease: Option<i64>,
}

impl SessionRecord {
    /// A session with ZooKeeper's password, which no front end serves.
    pub fn of_zookeeper(timeout_ms: i32) -> SessionRecord {
        SessionRecord { timeout_ms, is_keyed: false, proven: None, tag: Tag::default(), lease: None }
    }

    pub fn encode(&self) -> Vec<u8> {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let mut out = vec![SESSION_FORMAT];
        out.put_i32(self.timeout_ms);
        self.tag.encode(&mut out);
        out.push(
            flag(self.lease.is_some(), HAS_LEASE)
                | flag(self.is_keyed, IS_KEYED)
                | flag(self.proven.is_some(), IS_BOUND),
        );
        self.lease.iter().for_each(|lease| out.put_i64(*lease));
        self.proven.iter().for_each(|id| id.encode(&mut out));
        out
    }

    pub fn decode(value: &[u8]) -> Result<SessionRecord, RecordError> {
        if value.first() != Some(&SESSION_FORMAT) {
            return SessionRecord::decode_of_zookeeper(value);
        }
        let mut r = Reader::new(&value[1..]);
        let (timeout_ms, tag, flags) = (r.i32()?, Tag::decode(&mut r)?, r.u8()?);
        if flags & !(HAS_LEASE | IS_KEYED | IS_BOUND) != 0 {
            return Err(DecodeError::UnknownValue { field: "flags of a session", value: flags.into() }.into());
        }
        let lease = if flags & HAS_LEASE != 0 { Some(r.i64()?) } else { None };
        let proven = if flags & IS_BOUND != 0 { Some(Id::decode(&mut r)?) } else { None };
        close(&r)?;
        Ok(SessionRecord { timeout_ms, is_keyed: flags & IS_KEYED != 0, proven, tag, lease })
    }

    fn decode_of_zookeeper(value: &[u8]) -> Result<SessionRecord, RecordError> {
        let mut r = open(value)?;
        let (timeout_ms, tag) = (r.i32()?, Tag::decode(&mut r)?);
        let lease = if r.is_empty() { None } else { Some(r.i64()?) };
        close(&r)?;
        Ok(SessionRecord { tag, lease, ..SessionRecord::of_zookeeper(timeout_ms) })
    }
}

fn open(value: &[u8]) -> Result<Reader<'_>, RecordError> {
    let mut reader = Reader::new(value);
    match reader.u8()? {
        FORMAT => Ok(reader),
        other => Err(RecordError::Format(other)),
    }
}

fn close(reader: &Reader<'_>) -> Result<(), RecordError> {
    if reader.is_empty() { Ok(()) } else { Err(RecordError::Trailing(reader.rest().len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paddock_proto::{Id, Perms};
    use proptest::prelude::*;

    const TAG: Tag = Tag { front: u64::MAX - 1, number: 7 };

    fn znode(kind: ZnodeKind, acl: Vec<Acl>) -> Znode {
        Znode {
            data: Some(b"data".to_vec()),
            acl: acl.into(),
            kind,
            czxid: 3,
            mzxid: 8,
            pzxid: 9,
            ctime_ms: 5,
            mtime_ms: 6,
            version: -7,
            children_created: 8,
            aversion: 9,
        }
    }

    #[test]
    fn a_znode_comes_back_with_its_revision_in_place_of_the_marks() {
        let digest = || Acl { perms: Perms::READ, id: Id::new("digest", "ann:1") };
        for acl in [vec![], vec![Acl::open()], vec![digest()], vec![Acl::open(), digest()]] {
            for kind in [
                ZnodeKind::Persistent,
                ZnodeKind::Ephemeral(SessionId(-4)),
                ZnodeKind::Container,
                ZnodeKind::Ttl { ms: 10 },
            ] {
                let written = znode(kind, acl.clone());
                let read = decode_znode(&encode_znode(&written, Pending(7), TAG), 50);
                assert_eq!(read, Ok((Znode { mzxid: 50, pzxid: 50, ..written }, TAG)));
            }
        }
        let none = Znode { data: None, ..znode(ZnodeKind::Persistent, vec![]) };
        assert_eq!(decode_znode(&encode_znode(&none, Pending(20), TAG), 50), Ok((none, TAG)));
    }

    #[test]
    fn a_value_that_is_cut_longer_or_of_another_version_is_refused() {
        let value = encode_znode(&znode(ZnodeKind::Persistent, vec![Acl::open()]), Pending(20), TAG);
        assert!((0..value.len()).all(|end| decode_znode(&value[..end], 50).is_err()));
        let longer = [&value[..], b"x"].concat();
        assert_eq!(decode_znode(&longer, 50), Err(RecordError::Trailing(1)));
        let newer = [&[2], &value[1..]].concat();
        assert_eq!(decode_znode(&newer, 50), Err(RecordError::Format(2)));
        assert_eq!(decode_znode(&value, 9), Err(RecordError::Zxid(9)));
    }

    #[test]
    fn a_session_comes_back_as_written() {
        let session = SessionRecord { tag: TAG, ..SessionRecord::of_zookeeper(4000) };
        let moved = SessionRecord { lease: Some(i64::MAX), ..session.clone() };
        let keyed = SessionRecord { is_keyed: true, ..session.clone() };
        let bound = SessionRecord { proven: Some(Id::new("sasl", "ann")), is_keyed: true, ..moved.clone() };
        for session in [session, moved, keyed, bound] {
            let value = session.encode();
            assert_eq!(SessionRecord::decode(&value), Ok(session));
            assert!((0..value.len()).all(|end| SessionRecord::decode(&value[..end]).is_err()));
            assert!(SessionRecord::decode(&[&value[..], b"x"].concat()).is_err());
        }
        assert_eq!(decode_mark(&encode_mark(TAG)), Ok(TAG));
    }

    /// As builds wrote them that knew ZooKeeper's passwords only.
    #[test]
    fn a_session_of_before_is_read() {
        let mut value = vec![FORMAT];
        value.put_i32(4000);
        TAG.encode(&mut value);
        let expected = SessionRecord { tag: TAG, ..SessionRecord::of_zookeeper(4000) };
        assert_eq!(SessionRecord::decode(&value), Ok(expected.clone()));
        value.put_i64(77);
        assert_eq!(SessionRecord::decode(&value), Ok(SessionRecord { lease: Some(77), ..expected }));
        assert!(SessionRecord::decode(&value[..20]).is_err());
    }

    #[test]
    fn a_secret_comes_back_as_written() {
        let secret = SessionSecret([5; SessionSecret::BYTES]);
        assert_eq!(decode_secret(&encode_secret(&secret)), Ok(secret));
        assert_eq!(decode_secret(&encode_secret(&secret)[..20]), Err(RecordError::Secret(19)));
    }

    proptest! {
        #[test]
        fn bytes_that_are_read_are_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let bytes = [&[FORMAT, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0], &bytes[..]].concat();
            if let Ok((znode, tag)) = decode_znode(&bytes, i64::MAX) {
                let again = encode_znode(&znode, Pending(i64::MAX - 1), tag);
                prop_assert_eq!(decode_znode(&again, i64::MAX), Ok((znode, tag)));
            }
        }
    }
}
