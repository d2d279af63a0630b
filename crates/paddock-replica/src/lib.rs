//! One member, without its sockets, files and clock: what it orders, when it applies, whom it answers.
//!
//! [`Replica`] takes every [`Input`] through `step` and leaves what is to be done in [`Effects`]: records for the
//! log, entries to apply. [`State`] is the replicated tree together with this member's watches. Answers and watch
//! events leave through [`Outboxes`]. Time comes in as [`Now`]; the Raft library is known to this crate alone.

mod batch;
mod cluster;
mod computed;
mod conn;
mod consensus;
mod entry_log;
mod liveness;
mod membership;
mod message;
mod outbox;
mod payload;
mod question;
mod replica;
mod serving;
mod state;
mod watches;

pub use batch::Batch;
pub use cluster::Cluster;
pub use computed::MemberFacts;
pub use conn::{Client, ConnId, Now};
pub use consensus::{HardState, Install, LogEntry, Recovered};
pub use membership::Membership;
pub use message::{Glimpse, describe, is_of_log};
pub use outbox::{Outbox, Outboxes, Parcel};
pub use replica::{
    Applied, CONTACT_MAX_LEAST_MS, Effects, Founding, Input, Local, Replica, ReplicaOptions, Role,
    SnapshotRead, SnapshotWrite, contact_max_ms,
};
pub use state::State;
pub use watches::WatchSummary;
