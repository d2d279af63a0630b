//! The engine of a mirror, as a state machine: another server, its *source*, orders the writes, and tells of every transaction.
//!
//! A mirror that only reads gives sessions of its own to clients that may be served so (`read_only.rs`). One that forwards sends writes,
//! syncs and sessions to the source, and answers them when they come back among what it tells (`forwarding.rs`); a member may take its
//! place without its clients noticing.

mod contract;
mod forwarding;
mod mirror;
mod read_only;

pub use contract::{Effects, Held, Input, MirrorMode, SourceRequest};
pub use mirror::{MirrorEngine, Retired};
