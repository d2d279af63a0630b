//! Znodes and sessions as keys of an etcd cluster, which orders the writes.
//!
//! This is the etcd engine without its sockets, threads and clock: the keys and values, one transaction for some writes, the
//! changes that a revision of etcd makes to the state (`Mirror`), and the state machine above them (`Engine`). Talking to etcd is
//! left to its user. The zxid is etcd's revision.

mod batch;
mod calls;
mod contact;
mod contract;
mod engine;
mod filling;
mod flights;
mod keys;
mod lanes;
mod leases;
mod mirror;
mod page_size;
mod plan;
mod record;
mod revisions;
pub mod rpc;
mod space;
mod syncs;
mod zetcd;

pub use contract::{Answer, Call, CallError, CallId, Effects, Input, WatchMessage, WatchOrder};
pub use engine::{Engine, EngineCounts, EngineOptions};
pub use filling::{fill_session, fill_znodes};
pub use keys::{Key, Keys};
pub use mirror::{Installed, Mirror, MirrorError};
pub use page_size::PageSize;
pub use plan::{Compare, Limits, Operation, Plan, PlanError, PlannedReply, Reply, Transaction};
pub use record::{
    Pending, RecordError, SessionRecord, Tag, decode_mark, decode_secret, decode_znode, encode_mark,
    encode_secret, encode_znode,
};
pub use revisions::KeyEvent;
pub use zetcd::{Pair, Zetcd, ZetcdError, ZetcdReport};
