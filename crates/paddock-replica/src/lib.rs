//! One member of an ensemble, without its sockets, files and clock: the engine that orders writes by Raft.
//!
//! [`Replica`] takes every [`Input`] through `step` and leaves what is to be done in [`Effects`]: records for the
//! log, entries to apply. [`Replicated`] is the state with its place in the log. Answers and watch events leave through
//! `paddock_state::Outboxes`. Time comes in as `paddock_state::Now`; the Raft library is known to this crate alone.

mod batch;
mod cluster;
mod configuration;
mod consensus;
mod effects;
mod entry_log;
mod hard_state;
mod input;
mod liveness;
mod log_entry;
mod membership;
mod message;
mod options;
mod question;
mod recovered;
mod replica;
mod replicated;
mod serving;
pub mod testing;

pub use batch::Batch;
pub use cluster::Cluster;
pub use effects::{Applied, Effects, Install, SnapshotRead, SnapshotWrite};
pub use hard_state::HardState;
pub use input::Input;
pub use log_entry::LogEntry;
pub use membership::Membership;
pub use message::is_of_log;
pub use options::{Founding, ReplicaOptions};
pub use recovered::Recovered;
pub use replica::{Replica, Role};
pub use replicated::Replicated;
pub use testing::{MessageFacts as Glimpse, describe};
