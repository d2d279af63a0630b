//! One znode as it lies in memory.
//!
//! Most znodes are leaves with an open ACL that nobody ever touches again, so a node holds only what every znode needs;
//! what few of them have is in an `Extra`.

use paddock_proto::SessionId;

use super::acls::AclId;
use super::index::NameHash;

/// The number of a znode within this member's memory. It is used again after a delete, and differs between members:
/// it must never decide anything that can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) const ROOT: NodeId = NodeId(0);
    pub(super) const NONE: NodeId = NodeId(u32::MAX);

    pub(crate) fn from_number(number: u32) -> NodeId {
        NodeId(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn some(self) -> Option<NodeId> {
        (self != NodeId::NONE).then_some(self)
    }
}

impl Default for NodeId {
    fn default() -> NodeId {
        NodeId::NONE
    }
}

/// What kind of znode it is, and to whom it owes its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Persistent,
    /// Goes with its session; has no children.
    Ephemeral(SessionId),
    /// Goes some time after its last child.
    Container,
    /// Goes when it has not been written for so long and has no children.
    Ttl { ms: i64 },
}

/// The default is a vacant slot.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) blob: Blob,
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) ctime_ms: i64,
    pub(super) mtime_ms: i64,
    pub(super) version: i32,
    pub(super) acl: AclId,
    pub(super) hash: NameHash,
    /// The root is its own parent; a vacant slot has none.
    pub(super) parent: NodeId,
    pub(super) next: NodeId,
    pub(super) previous: NodeId,
    pub(super) extra: ExtraId,
}

// A row more for each of millions of znodes is a decision, not an accident.
const _: () = assert!(size_of::<Node>() == 80);

impl Node {
    pub(super) fn is_vacant(&self) -> bool {
        self.parent == NodeId::NONE
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExtraId(pub(super) u32);

impl ExtraId {
    pub(super) const NONE: ExtraId = ExtraId(u32::MAX);
}

impl Default for ExtraId {
    fn default() -> ExtraId {
        ExtraId::NONE
    }
}

/// What a znode has that ever had a child, is not persistent, or whose ACL was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Extra {
    pub(super) pzxid: i64,
    pub(super) kind: Kind,
    pub(super) first_child: NodeId,
    pub(super) children: u32,
    /// How many children were ever created here. Clients see creates and deletes together.
    pub(super) cversion: i32,
    pub(super) aversion: i32,
}

/// A name and data in one allocation: a head of one byte for nearly every name, the name, the data. The head is the
/// length of the name, seven bits to a byte, and below them one bit for data that is null, which is not the same as empty.
#[derive(Debug, Default)]
pub(super) struct Blob(Box<[u8]>);

impl Blob {
    pub(super) fn new(name: &[u8], data: Option<&[u8]>) -> Blob {
        let content = data.unwrap_or_default();
        let mut head = name.len() << 1 | usize::from(data.is_none());
        let mut bytes = Vec::with_capacity(Blob::head_len(head) + name.len() + content.len());
        while head >= 0x80 {
            bytes.push(head as u8 | 0x80);
            head >>= 7;
        }
        bytes.push(head as u8);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(content);
        Blob(bytes.into_boxed_slice())
    }

    pub(super) fn name(&self) -> &[u8] {
        self.parts().0
    }

    pub(super) fn data(&self) -> Option<&[u8]> {
        self.parts().1
    }

    fn head_len(head: usize) -> usize {
        (usize::BITS - head.leading_zeros()).div_ceil(7).max(1) as usize
    }

    fn parts(&self) -> (&[u8], Option<&[u8]>) {
        let mut head = 0;
        for (n, &byte) in self.0.iter().enumerate() {
            head |= usize::from(byte & 0x7f) << (7 * n);
            if byte < 0x80 {
                let (name, data) = self.0[n + 1..].split_at(head >> 1);
                return (name, (head & 1 == 0).then_some(data));
            }
        }
        unreachable!("only a vacant slot has no blob")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_data_is_not_empty_data() {
        for data in [None, Some(&b""[..]), Some(b"x")] {
            let blob = Blob::new(b"name", data);
            assert_eq!((blob.name(), blob.data()), (&b"name"[..], data));
        }
    }

    #[test]
    fn a_name_can_be_long() {
        for len in [0, 1, 63, 64, 8191, 8192, 3_000_000] {
            let name = vec![b'n'; len];
            let blob = Blob::new(&name, Some(b"data"));
            assert_eq!((blob.name(), blob.data()), (&name[..], Some(&b"data"[..])));
            assert_eq!(blob.0.len(), Blob::head_len(len << 1) + len + 4);
        }
    }
}
