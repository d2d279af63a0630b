//! Settings of a member.

use paddock_proto::SessionSecret;
use paddock_tree::{FeatureLevel, SplitPaths};

use crate::Membership;

/// Settings of one member. They stay the same as long as its process runs.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Raft id of this member: see `raft_id`.
    pub member: u64,
    /// Ensemble that this member founds with others, if it has no data and there is none yet.
    pub founding: Founding,
    /// Length of a session tick in milliseconds: sessions expire at whole ticks.
    pub tick_ms: u64,
    /// Time between two searches for empty containers and expired TTL znodes, in milliseconds.
    pub garbage_interval_ms: u64,
    /// Number of such znodes that one search removes at most.
    pub garbage_max: usize,
    /// Bytes of applied entries that are kept in memory for followers that lag a little. One that lags more gets a snapshot.
    pub entry_bytes_kept: usize,
    /// True if every read sees all that was written anywhere before it was asked, and not only its own session's writes.
    pub linearizable_reads: bool,
    /// Bound on the clocks for leases: no clock of the ensemble runs ahead of another one by more than this many milliseconds
    /// in a second. A leader with a lease answers syncs without asking its quorum. `None` does without leases.
    pub lease_clock_bound_ms: Option<u64>,
    /// Znodes that a transaction removes at most where a command removes more: the same on every member, always.
    pub removed_at_once: usize,
    /// Commands and changes of znodes that are applied before others may have the state; see [`crate::WORK_AT_ONCE`].
    pub work_at_once: usize,
    /// Zxids are stamps of the leader's clock, and not counted, though there is one group; with several they always are. What an entry of the log
    /// says counts, so members may differ in it, and it may change from start to start.
    pub stamps: bool,
    /// Level of the features that this program knows: a state of a higher one is refused.
    pub known_level: FeatureLevel,
    /// Level of the features up to which this member lets its ensemble rise, if that is lower.
    pub level_max: FeatureLevel,
    /// Number of Raft groups, with the home group, that the ensemble is to have: while this member leads, it founds those that are missing.
    pub group_count: u32,
    /// Replicas of each group that is founded, beside the home group; 0 for one on each member.
    pub group_replicas: u32,
    /// Split points that the ensemble is to have: while this member leads, it adds those that are missing once there are several groups.
    pub split_points: SplitPaths,
    /// Seed of the election timeouts: the same seed makes the same choices.
    pub seed: u64,
    /// Secret for passwords of sessions, drawn at each start: it becomes the ensemble's if this member leads one that has none.
    pub secret: SessionSecret,
    /// Number of this process of the member, which no other process has, here or elsewhere.
    pub process: u64,
}

/// The ensemble that the configuration describes: a member without data founds it with these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    pub membership: Membership,
    /// Lines of `/zookeeper/config`; empty for a member alone, which has no ensemble.
    pub members: String,
    /// Most of the voters without data are enough, though the others were never heard. One of those may have the data that all are
    /// looking for.
    pub by_majority: bool,
    /// Configuration files say who the members are, and clients may not: a list on which the files of most voters agree is brought about.
    pub files_change_members: bool,
}

/// Time between two ticks of a member, in milliseconds: a tenth of an election timeout.
pub(crate) const TICK_MS: u64 = 100;
