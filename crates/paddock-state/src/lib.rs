//! State of one member, and the contract between those who answer clients from it and an engine that orders its writes.
//!
//! [`State`] is the tree together with this member's watches. A front reads it and hands [`ClientInput`]s to an engine. The
//! engine applies writes to the state, in the one order that all members have, and leaves replies and watch events in
//! [`Outboxes`]. Neither knows how the other one works: nothing here names sockets, threads, files or Raft.
//!
//! [`Liveness`], [`Serving`] and [`Garbage`] are what every engine needs beside it.

mod computed;
mod conn;
mod contact;
mod garbage;
mod input;
mod list_copy;
mod liveness;
mod outbox;
mod serving;
mod state;
mod watches;

pub use computed::{API_VERSION, MemberFacts, feature_flags};
pub use conn::{Client, ConnId, Now};
pub use contact::{CONTACT_MAX_LEAST_MS, TOUCH_DELAY_MS, contact_max_ms};
pub use garbage::Garbage;
pub use input::{ClientInput, ProvenIds, QueuedRead, RequestId, Resumption, Slot};
pub use list_copy::{ChildrenCopy, ListPortion, ListReply, LongList, LongListStep, is_list_of_children};
pub use liveness::Liveness;
pub use outbox::{Connected, EventMail, Outbox, Outboxes, Parcel};
pub use serving::Serving;
pub use state::State;
pub use watches::{
    FiredWatches, RefusedWatches, WatchLimits, WatchStatistics, WatchSummary, WatchTable, Woken, ZnodeMarks,
    guest_event,
};
