//! Parts that a member has for each Raft group: order, durability, requests under way.

use paddock_state::{Garbage, Now};
use paddock_tree::Origin;

use crate::applied_position::AppliedPosition;
use crate::consensus::{Consensus, Leadership};
use crate::digests::Digests;
use crate::durability::Durability;
use crate::effects::QueuedEffects;
use crate::leading::Leading;
use crate::membership_change::MembershipChange;
use crate::presence::Presence;
use crate::raft_id::member_number;
use crate::read_only::ReadOnly;
use crate::requests::Requests;
use crate::snapshot_transfer::SnapshotTransfer;
use crate::{Recovered, Replicated};

/// A member's part in one group. Each part has its own file, and does not know the others.
#[derive(Debug)]
pub struct Group {
    pub(crate) consensus: Consensus,
    /// Leader and term, as the parts have been told.
    pub(crate) leadership: Leadership,
    /// Present only while this member leads, with its lease and its offers of snapshots.
    pub(crate) leading: Option<Leading>,
    pub(crate) applied: AppliedPosition,
    pub(crate) durability: Durability,
    pub(crate) requests: Requests,
    pub(crate) read_only: ReadOnly,
    pub(crate) membership: MembershipChange,
    pub(crate) transfer: SnapshotTransfer,
    pub(crate) digests: Digests,
    pub(crate) garbage: Garbage,
    pub(crate) outgoing: QueuedEffects,
}

impl Group {
    /// A group as the member's disk describes it, for which `Recovered::begin` was called. `state` is that of the newest snapshot.
    pub fn new(presence: &Presence, recovered: Recovered, state: &Replicated, now: Now) -> Group {
        assert!(state.applied() == recovered.snapshot, "the state is the snapshot's");
        let (options, written) = (&presence.options, recovered.hard_state);
        let member = member_number(options.member).expect("the options name a member");
        let origin = Origin { member, incarnation: written.incarnation };
        Group {
            consensus: Consensus::new(options.member, options.seed, options.entry_bytes_kept, recovered),
            leadership: Leadership::default(),
            leading: None,
            applied: AppliedPosition::new(state.applied()),
            durability: Durability::new(written),
            requests: Requests::new(origin),
            read_only: ReadOnly::default(),
            membership: MembershipChange::default(),
            transfer: SnapshotTransfer::default(),
            digests: Digests::default(),
            garbage: Garbage::new(options.garbage_interval_ms, options.garbage_max, now),
            outgoing: QueuedEffects::default(),
        }
    }
}
