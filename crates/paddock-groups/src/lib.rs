//! The part that joins the Raft groups of a member, as a state machine without Raft, sockets, files and the clock.
//!
//! A group knows nothing of the others. The home group decides for all of them: what it has decided for another one stands in that group's stream, which
//! is a part of the home group's state ([`paddock_tree::Streams`]). [`Carrier`] carries items from there into the logs of the groups that the member
//! leads, and acknowledgements back. A member has all groups, so nothing of that goes over a link.

mod carrier;

pub use carrier::Carrier;
