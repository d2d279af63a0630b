//! Znodes and sessions as keys of an etcd cluster, which orders the writes.
//!
//! This is the part of an etcd engine that has no socket: the keys and values, one transaction for some writes, and the
//! changes that a revision of etcd makes to the state. Talking to etcd is left to its user. The zxid is etcd's revision.

mod keys;
mod mirror;
mod plan;
mod record;
mod revisions;

pub use keys::{Key, Keys};
pub use mirror::{Mirror, MirrorError};
pub use plan::{Compare, Limits, Operation, Plan, PlanError, Transaction};
pub use record::{Pending, RecordError, SessionRecord, decode_znode, encode_znode};
pub use revisions::KeyEvent;
