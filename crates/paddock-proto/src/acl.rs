//! Access control lists and identities, owned and as they lie in a frame.

use std::fmt;
use std::ops::BitOr;

use crate::jute::{DecodeError, Reader, Writer};

/// A set of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Perms(pub i32);

impl Perms {
    /// To read data and children.
    pub const READ: Perms = Perms(1);
    /// To change the data.
    pub const WRITE: Perms = Perms(2);
    /// To make children.
    pub const CREATE: Perms = Perms(4);
    /// To remove children.
    pub const DELETE: Perms = Perms(8);
    /// To change the ACL.
    pub const ADMIN: Perms = Perms(16);
    /// All five.
    pub const ALL: Perms = Perms(31);

    /// True if the two sets share a permission.
    pub fn any_of(self, wanted: Perms) -> bool {
        self.0 & wanted.0 != 0
    }
}

impl BitOr for Perms {
    type Output = Perms;
    fn bitor(self, other: Perms) -> Perms {
        Perms(self.0 | other.0)
    }
}

/// Identity under one scheme: `digest` `user:hash`, `ip` `10.0.0.1`, `world` `anyone`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Kind of identity: `world`, `digest`, `ip`, `sasl`, `x509`, or `auth` in a request.
    pub scheme: String,
    /// The identity, in its scheme's form.
    pub id: String,
}

impl Id {
    /// An identity of these two parts, unchecked.
    pub fn new(scheme: impl Into<String>, id: impl Into<String>) -> Id {
        Id { scheme: scheme.into(), id: id.into() }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(&self.scheme);
        out.put_string(&self.id);
    }

    /// Reads it from a request or a reply, in jute.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Id, DecodeError> {
        Ok(Id::new(decode_field(reader)?, decode_field(reader)?))
    }
}

/// A scheme or an id. Some clients send an empty one as null.
fn decode_field<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    Ok(reader.nullable_string()?.unwrap_or_default())
}

/// One entry of an ACL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acl {
    /// The permissions that it gives.
    pub perms: Perms,
    /// The identity that has them.
    pub id: Id,
}

impl Acl {
    /// Everybody may do everything: what nearly all znodes carry.
    pub fn open() -> Acl {
        Acl { perms: Perms::ALL, id: Id::new("world", "anyone") }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(self.perms.0);
        self.id.encode(out);
    }

    /// Reads it from a request or a reply, in jute.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Acl, DecodeError> {
        Ok(Acl { perms: Perms(reader.i32()?), id: Id::decode(reader)? })
    }
}

/// The ACL of a request, checked to be well-formed and left where it lies. Most are the open ACL, which
/// `is_open` recognises without building a single entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AclList<'a> {
    wire: &'a [u8],
}

/// `world:anyone` with all permissions, as every client encodes it.
const OPEN_ACL_WIRE: &[u8] = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone";

impl<'a> AclList<'a> {
    pub const OPEN: AclList<'static> = AclList { wire: OPEN_ACL_WIRE };

    pub fn decode(reader: &mut Reader<'a>) -> Result<AclList<'a>, DecodeError> {
        let all = reader.rest();
        if all.starts_with(OPEN_ACL_WIRE) {
            return Ok(AclList { wire: reader.bytes(OPEN_ACL_WIRE.len())? });
        }
        for _ in 0..reader.count()? {
            reader.i32()?;
            decode_field(reader)?;
            decode_field(reader)?;
        }
        Ok(AclList { wire: &all[..all.len() - reader.rest().len()] })
    }

    pub fn is_open(&self) -> bool {
        self.wire == OPEN_ACL_WIRE
    }

    /// The list as it came, ready to be written into another record.
    pub fn wire(&self) -> &'a [u8] {
        self.wire
    }

    pub fn to_vec(&self) -> Vec<Acl> {
        Reader::new(self.wire).list(Acl::decode).expect("the list was checked when it was decoded")
    }
}

impl fmt::Debug for AclList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_vec().fmt(f)
    }
}

/// The identities of a connection as they travel with a write, checked and left where they lie: they are needed
/// only where an ACL is not open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdList<'a> {
    wire: &'a [u8],
}

impl<'a> IdList<'a> {
    /// No identities.
    pub const NONE: IdList<'static> = IdList { wire: &[0, 0, 0, 0] };

    /// Checks what may have come from anywhere.
    pub fn decode(reader: &mut Reader<'a>) -> Result<IdList<'a>, DecodeError> {
        let all = reader.rest();
        for _ in 0..reader.count()? {
            reader.buffer()?;
            reader.buffer()?;
        }
        let list = IdList { wire: &all[..all.len() - reader.rest().len()] };
        // Nearly all are ASCII, lengths included: that is seen at a glance.
        if !list.wire.is_ascii() {
            list.check()?;
        }
        Ok(list)
    }

    /// Checks each field. One that is null is not ASCII by its length, and is good.
    #[cold]
    fn check(&self) -> Result<(), DecodeError> {
        let mut reader = Reader::new(self.wire);
        for _ in 0..reader.count()? {
            decode_field(&mut reader)?;
            decode_field(&mut reader)?;
        }
        Ok(())
    }

    /// The list in a wire form that [`IdList::encode`] has made, which is not checked again: of any other it panics later.
    #[inline]
    pub fn of_encoded(wire: &'a [u8]) -> IdList<'a> {
        IdList { wire }
    }

    /// The wire form of `ids`, for `decode` and `of_encoded`.
    pub fn encode(ids: &[Id]) -> Vec<u8> {
        let mut wire = Vec::new();
        wire.put_count(ids.len());
        ids.iter().for_each(|id| id.encode(&mut wire));
        wire
    }

    #[inline]
    pub fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// `(scheme, id)` of each identity.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut reader = Reader::new(self.wire);
        let count = reader.count().expect("the list was checked when it was decoded");
        (0..count).map(move |_| {
            let mut field = || decode_field(&mut reader).expect("the list was checked when it was decoded");
            (field(), field())
        })
    }
}

impl fmt::Debug for IdList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire_of(acls: &[Acl]) -> Vec<u8> {
        let mut wire = Vec::new();
        wire.put_count(acls.len());
        acls.iter().for_each(|acl| acl.encode(&mut wire));
        wire
    }

    #[test]
    fn the_open_acl_is_recognised_on_the_wire() {
        let wire = wire_of(&[Acl::open()]);
        let list = AclList::decode(&mut Reader::new(&wire)).unwrap();
        assert!(list.is_open());
        assert_eq!(list.to_vec(), [Acl::open()]);
        assert_eq!(list, AclList::OPEN);
    }

    #[test]
    fn a_list_leaves_what_follows_it() {
        let other = Acl { perms: Perms::READ, id: Id::new("ip", "::1") };
        let mut wire = wire_of(&[Acl::open(), other.clone()]);
        wire.push(9);
        let mut reader = Reader::new(&wire);
        let list = AclList::decode(&mut reader).unwrap();
        assert!(!list.is_open());
        assert_eq!(list.to_vec(), [Acl::open(), other]);
        assert_eq!(reader.rest(), [9]);
    }

    #[test]
    fn a_null_id_is_an_empty_one() {
        // kazoo's CREATOR_ALL_ACL.
        let wire = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x04auth\xff\xff\xff\xff";
        let list = AclList::decode(&mut Reader::new(wire)).unwrap();
        assert_eq!(list.to_vec(), [Acl { perms: Perms::ALL, id: Id::new("auth", "") }]);
    }

    #[test]
    fn identities_come_back_in_order() {
        let wire = IdList::encode(&[Id::new("ip", "127.0.0.1"), Id::new("digest", "a:b")]);
        let list = IdList::decode(&mut Reader::new(&wire)).unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [("ip", "127.0.0.1"), ("digest", "a:b")]);
        assert_eq!(IdList::NONE.iter().count(), 0);
    }

    #[test]
    fn identities_that_are_not_ascii_are_checked_field_by_field() {
        let wire = IdList::encode(&[Id::new("ip", "127.0.0.1"), Id::new("digest", "jürgen:x")]);
        let list = IdList::decode(&mut Reader::new(&wire)).unwrap();
        assert_eq!(list, IdList::of_encoded(&wire));
        assert!(list.iter().eq([("ip", "127.0.0.1"), ("digest", "jürgen:x")]));
        let mut bad = wire.clone();
        *bad.iter_mut().find(|byte| !byte.is_ascii()).unwrap() = b'x';
        assert_eq!(IdList::decode(&mut Reader::new(&bad)), Err(DecodeError::NotUtf8));
        assert_eq!(IdList::decode(&mut Reader::new(&wire[..wire.len() - 1])), Err(DecodeError::Truncated));
        let null = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert!(IdList::decode(&mut Reader::new(&null)).unwrap().iter().eq([("", "")]));
    }
}
