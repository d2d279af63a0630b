//! Standing of a member in its ensemble, for those who operate it.

use super::Replica;
use crate::proposal_sizes::ProposalSizes;
use crate::read_only::ReadOnlyReason;

/// Facts about a member and, if it leads, about those who follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub term: u64,
    /// Reason for which the member cannot write; `None` if it can.
    pub read_only: Option<ReadOnlyReason>,
    /// True while the others have not admitted the member since it came without its data, or with older data.
    pub awaits_admission: bool,
    /// The leader, as far as the member knows.
    pub leader: Option<u64>,
    /// The last entry in its log, and its term.
    pub last_entry: u64,
    pub last_term: u64,
    /// The last entry in its newest snapshot, and its term; 0 while there is none.
    pub snapshot: u64,
    pub snapshot_term: u64,
    /// Up to here everything is committed, as far as the member knows.
    pub committed: u64,
    pub applied: u64,
    /// The other members, as this leader sees them. A member that does not lead knows nothing of them.
    pub followers: Vec<FollowerStanding>,
    /// The profiles that other members have told last.
    pub profiles: Vec<(u64, Vec<u8>)>,
    /// Sizes of the entries that this leader has proposed in its term; `None` if it does not lead, or has proposed none.
    pub proposals: Option<ProposalSizes>,
    /// Sessions that this member, as leader, has found expired since it was started.
    pub sessions_expired: u64,
}

/// A member as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerStanding {
    pub member: u64,
    pub has_vote: bool,
    /// True if it was heard within the election timeout that runs, or the one before.
    pub is_heard: bool,
    /// True if it lacks so much that it is sent a snapshot.
    pub gets_snapshot: bool,
    /// Entry up to which it has everything on disk.
    pub matched: u64,
    /// Time in milliseconds for which the leader has had an entry that it lacks, as of the last tick and to a tick; 0 if it lacks none. An
    /// entry from before this leader's term counts from the term's beginning.
    pub lag_ms: u64,
}

impl Replica {
    /// The last entry in its log.
    pub fn last_entry(&self) -> u64 {
        self.consensus.last_entry()
    }

    /// Entry up to which everything is committed, as far as the member knows.
    pub fn committed_entry(&self) -> u64 {
        self.consensus.committed()
    }

    /// The member's standing now.
    pub fn standing(&self) -> Standing {
        let leadership = self.consensus.leadership();
        let membership = self.consensus.membership();
        let others = self.consensus.is_leader().then(|| self.consensus.followers()).into_iter().flatten();
        let others = others.filter(|(member, _)| *member != self.options.member);
        let followers = others.map(|(member, follower)| FollowerStanding {
            member,
            has_vote: !membership.learners.contains(&member),
            is_heard: follower.is_heard,
            gets_snapshot: follower.gets_snapshot,
            matched: follower.matched,
            lag_ms: self.leading.as_ref().map_or(0, |leading| leading.log_ends.lag_ms(follower.matched)),
        });
        let (snapshot, snapshot_term) = self.consensus.snapshot();
        Standing {
            last_term: self.consensus.last_term(),
            snapshot,
            snapshot_term,
            term: leadership.term,
            read_only: self.read_only.reason(),
            awaits_admission: self.joining.awaits_admission(),
            leader: leadership.leader,
            last_entry: self.consensus.last_entry(),
            committed: self.consensus.committed(),
            applied: self.applied.get().0,
            followers: followers.collect(),
            profiles: self.profiles.of_others(membership),
            proposals: self.leading.as_ref().and_then(|leading| leading.proposals),
            sessions_expired: self.sessions.expired,
        }
    }
}
