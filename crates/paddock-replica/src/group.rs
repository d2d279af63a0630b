//! Parts that a member has for each Raft group: order, durability, requests under way.

use paddock_state::{Garbage, Now};
use paddock_tree::Origin;

use crate::applied_position::AppliedPosition;
use crate::consensus::{Consensus, Leadership};
use crate::digests::Digests;
use crate::disk_age::DiskAge;
use crate::durability::Durability;
use crate::effects::QueuedEffects;
use crate::joining::Joining;
use crate::leading::Leading;
use crate::membership_change::MembershipChange;
use crate::presence::{NewGroup, Presence};
use crate::raft_id::member_number;
use crate::read_only::ReadOnly;
use crate::requests::Requests;
use crate::snapshot_transfer::SnapshotTransfer;
use crate::{Founding, Membership, Recovered, Replicated};

/// A member's part in one group. Each part has its own file, and does not know the others.
#[derive(Debug)]
pub struct Group {
    /// 0 for the home group, in which sessions and members are: what a member does once, it does with that one.
    pub(crate) number: u32,
    /// The members that begin the group together, if there is none yet.
    pub(crate) founding: Founding,
    /// Seed of the election timeouts in this group.
    pub(crate) seed: u64,
    /// Admission by the others of the group, of a member that has just come. Each group has its own: a disk that has all of one group may
    /// lack the last entries of another.
    pub(crate) joining: Joining,
    pub(crate) disk_age: DiskAge,
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
    /// The home group as the member's disk describes it, for which `Recovered::begin` was called. `state` is the one that it has come to.
    pub fn new(presence: &Presence, recovered: Recovered, state: &Replicated, now: Now) -> Group {
        Group::of(presence, (0, presence.options.founding.clone()), recovered, state, now)
    }

    /// Another group, which `founders` begin together.
    pub fn other(
        presence: &Presence,
        (number, founders): (u32, Membership),
        recovered: Recovered,
        state: &Replicated,
        now: Now,
    ) -> Group {
        assert!(number > 0, "the home group is not another one");
        let founding = Founding {
            membership: founders,
            members: String::new(),
            by_majority: false,
            files_change_members: false,
        };
        Group::of(presence, (number, founding), recovered, state, now)
    }

    fn of(
        presence: &Presence,
        (number, founding): (u32, Founding),
        recovered: Recovered,
        state: &Replicated,
        now: Now,
    ) -> Group {
        assert!(state.applied() == recovered.applied, "the state is the one that was recovered");
        let (options, written) = (&presence.options, recovered.hard_state);
        let member = member_number(options.member).expect("the options name a member");
        let origin = Origin { member, incarnation: written.incarnation };
        // With one seed for all groups the same member would be the first to stand in each.
        let seed = options.seed ^ u64::from(number).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Group {
            number,
            founding,
            seed,
            joining: Joining::new(options.member, written.silent_until),
            disk_age: DiskAge::new(options.member, &recovered),
            consensus: Consensus::new(options.member, seed, options.entry_bytes_kept, recovered),
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

    /// The group's number; 0 is the home group.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The member and the start that number the batches of the group.
    pub fn origin(&self) -> Origin {
        self.requests.origin()
    }

    /// True while the member takes no writes in the group.
    pub fn is_read_only(&self) -> bool {
        self.read_only.is_active()
    }

    /// True if this member does not even answer reads: its state is old, in doubt, or its own past.
    pub fn refuses_reads(&self) -> bool {
        self.read_only.refuses_reads()
    }

    /// True if this is the home group, and says that the member's replica of a group is needed no more.
    pub fn lets_go(&self, presence: &Presence, group: u32) -> bool {
        let has_come = self.applied.index() >= presence.logged_at_start && !self.joining.is_silent();
        has_come && presence.placement.is_needless(group)
    }

    /// The home group's log says who begins this group, or who is asked for it now.
    pub fn note_founders(&mut self, new: NewGroup) {
        self.founding.membership = new.founders;
        self.joining.note_not_before(new.not_before);
    }

    /// True for the group in which sessions, members and all other groups are decided.
    #[inline]
    pub(crate) fn is_home(&self) -> bool {
        self.number == 0
    }
}
