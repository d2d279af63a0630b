//! One member of an ensemble, without its sockets, files and clock: the engine that orders writes by Raft.
//!
//! [`Replica`] takes every [`Input`] through `step` and leaves what is to be done in [`Effects`]: records for the
//! log, entries to apply. [`Replicated`] is the state with its place in the log. Answers and watch events leave through
//! `paddock_state::Outboxes`. Time comes in as `paddock_state::Now`; the Raft library is known to this crate alone.

mod batch;
mod cluster;
mod consensus;
mod entry_log;
mod liveness;
mod membership;
mod message;
mod payload;
mod question;
mod replica;
mod replicated;
mod serving;

pub use batch::Batch;
pub use cluster::Cluster;
pub use consensus::{HardState, Install, LogEntry, Recovered};
pub use membership::Membership;
pub use message::{Glimpse, describe, is_of_log};
pub use replica::{
    Applied, Effects, Founding, Input, Replica, ReplicaOptions, Role, SnapshotRead, SnapshotWrite,
};
pub use replicated::Replicated;
