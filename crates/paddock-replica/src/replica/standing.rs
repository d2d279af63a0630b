//! Standing of a member in its ensemble, for those who operate it.

use paddock_proto::MemberNumber;
use paddock_tree::FeatureLevel;

use crate::group::Group;
use crate::presence::Presence;
use crate::proposal_sizes::ProposalSizes;
use crate::raft_id::member_number;
use crate::read_only::ReadOnlyReason;

/// Part of a member in its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There are no other members.
    Alone,
    Leader,
    Follower,
    /// The member follows and has no vote.
    Observer,
    /// No leader is known: writes wait. Or the member was removed.
    Looking,
    /// Nothing can be written: there is no quorum, or no room on its disk.
    ReadOnly,
}

/// Facts about a member and, if it leads, about those who follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub term: u64,
    /// Reason for which the member cannot write; `None` if it can.
    pub read_only: Option<ReadOnlyReason>,
    /// True while the others have not admitted the member since it came without its data, or with older data.
    pub awaits_admission: bool,
    /// True for a newcomer that is to vote and has no vote yet. To stop another member now may take the quorum away.
    pub awaits_vote: bool,
    /// The leader, as far as the member knows.
    pub leader: Option<MemberNumber>,
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
    pub profiles: Vec<(MemberNumber, Vec<u8>)>,
    /// Level of the features that the ensemble may use.
    pub feature_level: FeatureLevel,
    /// The levels that other members have told over links that have not ended since.
    pub told_levels: Vec<(MemberNumber, FeatureLevel)>,
    /// Sizes of the entries that this leader has proposed in its term; `None` if it does not lead, or has proposed none.
    pub proposals: Option<ProposalSizes>,
    /// Sessions that this member, as leader, has found expired since it was started.
    pub sessions_expired: u64,
    /// Raft groups that this member has, with the home group, to which all else here belongs.
    pub groups: u32,
    /// Raft groups that this member leads.
    pub groups_led: u32,
    /// Raft groups beside the home group in which this member has no say yet: it learns, is not admitted, or is to vote and has no vote.
    pub groups_joining: u32,
    /// Raft groups beside the home group of which this member knows no leader.
    pub groups_without_leader: u32,
    /// Raft groups beside the home group for which a change of members waits, as its leader has been told; 0 if it does not lead.
    pub groups_changing: u32,
    /// Commands of the home group that this member has applied since it was started, those of clients and its own.
    pub home_commands: u64,
    /// The groups beside the home group, by rising number.
    pub other_groups: Vec<OtherGroup>,
    /// Items for other groups that the home group does not know to be applied there.
    pub group_items_pending: u64,
    /// Members whose clocks are too far ahead of those of a quorum to count for zxids; known where there are several groups.
    pub clocks_ahead: u32,
    /// Times that this member has asked another voter to lead, since it was started, because its disk was much slower than that of another voter.
    pub slow_disk_handovers: u64,
    /// Likewise, because its way to a quorum was much longer.
    pub slow_link_handovers: u64,
}

/// A member as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerStanding {
    pub member: MemberNumber,
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

/// Part of a member in one of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStanding {
    /// Number of the group; 0 is the home group.
    pub number: u32,
    /// True if this member leads the group.
    pub leads: bool,
    /// The leader, as far as the member knows.
    pub leader: Option<MemberNumber>,
    pub term: u64,
    /// The last entry in its log.
    pub last_entry: u64,
    /// Up to here everything is committed, as far as the member knows.
    pub committed: u64,
    pub applied: u64,
    /// True while the member keeps out of the group's elections: it learns, or the others have not admitted it.
    pub is_silent: bool,
    /// True if the member is to vote in the group, and has no vote yet.
    pub awaits_vote: bool,
}

/// A group beside the home group, as a member has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherGroup {
    pub standing: GroupStanding,
    /// Number of its znodes, those that every state has included.
    pub znodes: u64,
    /// Characters of their paths and bytes of their data.
    pub data_bytes: u64,
    /// Number of the last item of the home group's stream that it has applied.
    pub received_items: u64,
    /// Commands that the member has applied since it was started, those of clients and the group's own.
    pub commands: u64,
}

/// Facts that a member knows of itself in one of its groups.
#[derive(Clone, Copy, Debug)]
pub struct MemberFacts<'a> {
    presence: &'a Presence,
    group: &'a Group,
}

impl<'a> MemberFacts<'a> {
    pub fn of(presence: &'a Presence, group: &'a Group) -> MemberFacts<'a> {
        MemberFacts { presence, group }
    }
}

impl MemberFacts<'_> {
    /// Part of this member in its ensemble, as far as it knows.
    pub fn role(&self) -> Role {
        if self.group.read_only.refuses_reads() || self.group.joining.awaits_admission() {
            return Role::Looking;
        }
        if self.group.read_only.is_active() {
            return Role::ReadOnly;
        }
        if self.presence.options.founding.members.is_empty() {
            return Role::Alone;
        }
        let own = self.presence.options.member;
        match self.group.consensus.leadership().leader {
            Some(leader) if leader == own => Role::Leader,
            Some(_) if self.group.consensus.membership().learners.contains(&own) => Role::Observer,
            Some(_) => Role::Follower,
            None => Role::Looking,
        }
    }

    /// Time of this member's last contact with a quorum, in milliseconds of its monotonic clock: every session that was heard
    /// here before was known then to a leader that a quorum followed. A member alone has no other that could know more: the end
    /// of time.
    pub fn confirmed_ms(&self) -> u64 {
        if self.group.consensus.is_alone() { u64::MAX } else { self.presence.contact.confirmed_ms() }
    }

    /// The member's part in the group.
    pub fn group_standing(&self) -> GroupStanding {
        let leadership = self.group.consensus.leadership();
        GroupStanding {
            number: self.group.number,
            leads: self.group.consensus.is_leader(),
            leader: leadership.leader.and_then(member_number),
            term: leadership.term,
            last_entry: self.group.consensus.last_entry(),
            committed: self.group.consensus.committed(),
            applied: self.group.applied.index(),
            is_silent: self.group.joining.is_silent(),
            awaits_vote: self.awaits_vote(),
        }
    }

    /// Number of groups for which a change of members waits, if this member leads the home group, which this one has to be.
    fn groups_changing(&self) -> u32 {
        if self.group.consensus.is_leader() { self.presence.rosters.late().count() as u32 } else { 0 }
    }

    /// True if the member is to vote in the group, and has no vote yet.
    fn awaits_vote(&self) -> bool {
        let (own, membership) = (self.presence.options.member, self.group.consensus.membership());
        self.group.membership.awaits_vote(own, membership)
    }

    /// The last entry in its log.
    pub fn last_entry(&self) -> u64 {
        self.group.consensus.last_entry()
    }

    /// Entry up to which everything is committed, as far as the member knows.
    pub fn committed_entry(&self) -> u64 {
        self.group.consensus.committed()
    }

    /// The member's standing now.
    pub fn standing(&self) -> Standing {
        let leadership = self.group.consensus.leadership();
        let membership = self.group.consensus.membership();
        let others =
            self.group.consensus.is_leader().then(|| self.group.consensus.followers()).into_iter().flatten();
        let others = others.filter(|(member, _)| *member != self.presence.options.member);
        let others = others.filter_map(|(id, follower)| Some((id, member_number(id)?, follower)));
        let followers = others.map(|(id, member, follower)| FollowerStanding {
            member,
            has_vote: !membership.learners.contains(&id),
            is_heard: follower.is_heard,
            gets_snapshot: follower.gets_snapshot,
            matched: follower.matched,
            lag_ms: self
                .group
                .leading
                .as_ref()
                .map_or(0, |leading| leading.log_ends.lag_ms(follower.matched)),
        });
        let (snapshot, snapshot_term) = self.group.consensus.snapshot();
        let profiles = self.presence.processes.profiles.of_others(membership).into_iter();
        Standing {
            last_term: self.group.consensus.last_term(),
            snapshot,
            snapshot_term,
            term: leadership.term,
            read_only: self.group.read_only.reason(),
            awaits_admission: self.group.joining.awaits_admission(),
            awaits_vote: self.awaits_vote(),
            leader: leadership.leader.and_then(member_number),
            last_entry: self.group.consensus.last_entry(),
            committed: self.group.consensus.committed(),
            applied: self.group.applied.get().0,
            followers: followers.collect(),
            profiles: profiles.filter_map(|(id, profile)| Some((member_number(id)?, profile))).collect(),
            feature_level: self.group.applied.level,
            told_levels: self
                .presence
                .levels
                .all_told()
                .filter_map(|(id, level)| Some((member_number(id)?, level)))
                .collect(),
            proposals: self.group.leading.as_ref().and_then(|leading| leading.proposals),
            sessions_expired: self.presence.sessions.expired,
            groups: 1,
            groups_led: self.group.consensus.is_leader().into(),
            groups_joining: 0,
            groups_without_leader: 0,
            groups_changing: self.groups_changing(),
            home_commands: 0,
            other_groups: Vec::new(),
            group_items_pending: 0,
            clocks_ahead: self.presence.clocks.ignored() as u32,
            slow_disk_handovers: self.presence.lead_times.handed_over().slow_disk,
            slow_link_handovers: self.presence.lead_times.handed_over().slow_links,
        }
    }
}
