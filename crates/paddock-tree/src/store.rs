//! The znodes in memory: where they lie, how they are found, who their children are.
//!
//! The store knows what a change does to the bookkeeping (index, lists of children, counts, users of ACLs, what a session
//! owns) and can take changes back; whether a change is allowed, and what it is called, is the tree's affair.
//! Invariants: every node but the root is in the index and in its parent's list; a node has a row in `sides` if it differs
//! in that from a fresh leaf; before a node changes, `touch` has saved it for a running scan.

mod acls;
mod ahead;
mod arena;
mod blobs;
mod change;
mod digest;
mod draft;
mod index;
mod journal;
mod long_lists;
mod look;
mod node;
mod prepared_lists;
mod record;
mod restore;
mod rewrite;
mod scan;
mod sides;
mod slab;
#[cfg(test)]
mod tests;
mod znode;

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{Acl, SessionId, Zxid};

pub(crate) use acls::{AclId, is_world};
pub(crate) use ahead::{Ahead, TOGETHER};
pub use long_lists::Copied;
pub(crate) use long_lists::{GrowingList, LONG_LIST, LongLists};
pub(crate) use node::NodeId;
pub use node::ZnodeKind;
pub(crate) use prepared_lists::{Lookup, PreparedLists};
pub(crate) use record::Record;
pub use znode::Znode;

use acls::Acls;
use blobs::Blobs;
use index::Index;
use journal::Journal;
use node::Node;
use scan::Scan;
use sides::Sides;
use slab::Slab;

#[derive(Debug)]
pub(crate) struct Store {
    nodes: Slab<Node>,
    sides: Sides,
    blobs: Blobs,
    index: Index,
    acls: Acls,
    ephemerals: BTreeMap<SessionId, BTreeSet<NodeId>>,
    /// Containers and TTL znodes: what may go without a client's deleting it.
    perishable: BTreeSet<NodeId>,
    long_lists: LongLists,
    prepared_lists: PreparedLists,
    node_count: usize,
    ephemeral_count: usize,
    data_bytes: u64,
    /// The sum of what all nodes are: see `digest.rs`.
    digest: u64,
    journal: Journal,
    scan: Option<Scan>,
}

/// A znode about to be.
#[derive(Debug)]
pub(crate) struct NewNode<'a> {
    pub(crate) parent: NodeId,
    pub(crate) path: &'a str,
    pub(crate) data: Option<&'a [u8]>,
    /// `None` for the open ACL.
    pub(crate) acl: Option<Vec<Acl>>,
    pub(crate) kind: ZnodeKind,
    pub(crate) zxid: Zxid,
    pub(crate) time_ms: i64,
}

/// Length of a path as ZooKeeper counts it, in UTF-16 units: valid paths have no character that takes two.
pub(crate) fn path_chars(path: &str) -> u64 {
    let units = if path.is_ascii() { path.len() } else { path.chars().count() };
    units as u64
}
