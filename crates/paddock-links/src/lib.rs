//! The links between the members of an ensemble: one TCP connection for each pair, which carries messages of bytes both
//! ways. What a message means is not known here.
//!
//! Owned here: dialling and accepting, the greeting that tells members from strangers, frames with checksums,
//! heartbeats, queues and their bounds. Left to the engine: what to send, and what to do about a message that was lost.
//! A message arrives whole and unchanged, after those sent before it on the same link, or not at all; what was queued
//! or under way when a link ends is lost.
//!
//! The member with the higher number dials. A fixed side leaves one connection for a pair without an agreement about
//! which of two to keep, and each side can say who has to act when there is none. The other side knocks: it dials too,
//! says who it is and hangs up, so that a member that has just come back is called at once and not when the caller's
//! pause ends. A caller that does not reach it takes its call instead: one direction that works is enough.
//!
//! All links live on one thread. A lone message does not wait for it: its sender writes to the socket. In a burst the
//! thread writes what has gathered.

mod accept;
mod backoff;
mod chunks;
mod dial;
mod frame;
mod greeting;
mod hub;
mod inflow;
mod link;
mod links;
mod outbox;
mod peer;
mod quorum_port;
mod settings;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod tls_stream;

pub use greeting::VERSION as LINK_VERSION;
pub use inflow::Received;
pub use links::Links;
pub use settings::{LinkOptions, MESSAGE_BYTES_MAX, PeerAddress, Timing};
pub use shared::LinkEvent;
