//! One znode as it lies in memory.
//!
//! Most znodes are leaves that are never touched again, so a node holds only what every znode needs; what few of them
//! have is in rows of other tables, a `Modified` or an `Extra`.

use paddock_proto::SessionId;

use super::acls::AclId;
use super::blobs::BlobId;
use super::sides::SideId;

/// The number of a znode within this member's memory. It is used again after a delete, and differs between members:
/// it must never decide anything that can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) const ROOT: NodeId = NodeId(0);
    pub(crate) const NONE: NodeId = NodeId(u32::MAX);

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

/// Kind of a znode, with the owner of its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZnodeKind {
    #[default]
    Persistent,
    /// Goes with its session; has no children.
    Ephemeral(SessionId),
    /// Goes some time after its last child.
    Container,
    /// Goes when it has not been written for this time and has no children.
    Ttl { ms: i64 },
}

/// The default is a vacant slot. The order of the fields is theirs in memory, which `look_ahead` relies on.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Node {
    pub(super) blob: BlobId,
    /// The root is its own parent; a vacant slot has none.
    pub(super) parent: NodeId,
    pub(super) next: NodeId,
    pub(super) previous: NodeId,
    pub(super) acl: AclId,
    pub(super) side: SideId,
    pub(super) czxid: i64,
    pub(super) ctime_ms: i64,
}

// A row more for each of millions of znodes is a decision, not an accident.
const _: () = assert!(size_of::<Node>() == 40);
const _: () = assert!(size_of::<Modified>() == 24);
const _: () = assert!(size_of::<Extra>() == 64);

impl Node {
    pub(super) fn is_vacant(&self) -> bool {
        self.parent == NodeId::NONE
    }
}

/// Fields of a znode whose data was set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Modified {
    pub(super) mzxid: i64,
    pub(super) mtime_ms: i64,
    pub(super) version: i32,
}

/// Fields of a znode that ever had a child, is not persistent, or whose ACL was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Extra {
    pub(super) modified: Modified,
    pub(super) pzxid: i64,
    pub(super) kind: ZnodeKind,
    pub(super) first_child: NodeId,
    pub(super) children: u32,
    /// Number of children that were ever created here. Clients see creates and deletes together.
    pub(super) cversion: i32,
    pub(super) aversion: i32,
}

impl Modified {
    /// Fields of a leaf that is as it was created.
    pub(super) fn of_leaf(node: &Node) -> Modified {
        Modified { mzxid: node.czxid, mtime_ms: node.ctime_ms, version: 0 }
    }
}

impl Extra {
    /// Fields of a leaf that is as it was created.
    pub(super) fn of_leaf(node: &Node) -> Extra {
        Extra { modified: Modified::of_leaf(node), pzxid: node.czxid, ..Extra::default() }
    }
}
