//! One member of an ensemble, without its sockets, files and clock: the engine that orders writes by Raft.
//!
//! [`Replica`] takes every [`Input`] through `step` and leaves what is to be done in [`Effects`]: records for the
//! log, entries to apply. [`Replicated`] is the state with its place in the log. Answers and watch events leave through
//! `paddock_state::Outboxes`. Time comes in as `paddock_state::Now`; the Raft library is known to this crate alone.

mod admission;
mod applied_log;
mod applied_position;
mod batch;
mod cluster;
mod configuration;
mod confirming;
mod consensus;
mod contact;
mod digests;
mod disk_age;
mod durability;
mod effects;
mod entry_log;
mod feature_levels;
mod file_lists;
mod founding;
mod gates;
mod group;
mod hard_state;
mod held_state;
mod input;
mod inquiry;
mod joining;
mod lead_times;
mod leading;
mod lease;
mod link_times;
mod log_ends;
mod log_entry;
mod member_profiles;
mod membership;
mod membership_change;
mod message;
mod offline;
mod options;
mod outstanding;
mod own_cluster;
mod own_placement;
mod presence;
mod processes;
mod proposal_sizes;
mod question;
mod queued_item;
mod raft_id;
mod read_only;
mod recovered;
mod replayed;
mod replica;
mod replicated;
mod requests;
mod rosters;
mod sessions;
mod single_group;
mod snapshot_transfer;
mod stamps;
#[cfg(feature = "testing")]
pub mod testing;
mod told_members;

pub use applied_log::{AppliedEntry, AppliedLog, NotKept};
pub use batch::Batch;
pub use cluster::Cluster;
pub use effects::{Applied, Effects, Install, SnapshotRead, SnapshotWrite};
pub use group::Group;
pub use hard_state::HardState;
pub use held_state::{HeldState, OwnState, WORK_AT_ONCE};
pub use input::Input;
pub use log_entry::LogEntry;
pub use membership::Membership;
pub use message::is_of_log;
pub use offline::{EntryPart, apply_and_tell, apply_offline, apply_while, tell_unapplied};
pub use options::{Founding, ReplicaOptions};
pub use presence::{NewGroup, Presence};
pub use proposal_sizes::ProposalSizes;
pub use raft_id::{member_number, raft_id};
pub use read_only::ReadOnlyReason;
pub use recovered::Recovered;
pub use replayed::{Replayed, ReplayedState};
pub use replica::{
    FollowerStanding, GroupStanding, MemberFacts, OtherGroup, Replica, Role, Standing, founders_of,
    leading_order,
};
pub use replicated::Replicated;
pub use single_group::SingleGroup;
pub use told_members::SoughtMembers;
