//! Outcome of a write: the same on every member.

use std::borrow::Cow;
use std::sync::Arc;

use paddock_proto::{Acl, ErrorCode, EventKind, WriteReply, Zxid};
use smallvec::SmallVec;

/// The changes of one write. Nearly every write changes a znode and its parent at most.
pub type Changes<'a> = SmallVec<[Change<'a>; 2]>;

/// The outcome of one command. A refusal is an outcome too, and has its own zxid.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<'a> {
    pub zxid: Zxid,
    /// The reply's body, or the error of its header. A failed multi is a reply: it carries its errors within.
    pub result: Result<WriteReply<'a>, ErrorCode>,
    /// Changes that watches may fire for, in the order in which ZooKeeper fires them. Empty for every refusal.
    pub changes: Changes<'a>,
}

/// One znode that watchers may want to hear of.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    pub kind: EventKind,
    pub path: Cow<'a, str>,
    /// The ACL that decides who may hear of it; `None` when all the world may read. For a deleted znode it is the
    /// one it had, for a change of children the parent's.
    pub readers: Option<Arc<[Acl]>>,
}
