//! Settings of what a member does by itself: its snapshots, its log, and znodes that go by themselves.

use std::ops::RangeInclusive;

use paddock_settings::{COUNT_MAX, MILLISECONDS_MAX, settings};
use paddock_tree::{FeatureLevel, SplitPaths};

settings! {
    /// Settings of a member that concern neither clients nor other members, as its operator gives them.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MemberSettings {
        /// Interval at which empty containers and expired TTL znodes are looked for.
        garbage_interval_ms: u64 = 60_000, number("milliseconds", 1..=MILLISECONDS_MAX), at_restart;
        /// Number of such znodes that are removed each time, at most.
        garbage_max: usize = 10_000, number("znodes", 1..=COUNT_MAX), at_restart;
        /// Number of writes after which a snapshot is taken.
        snapshot_writes: u64 = 1_000_000, number("writes", 1..=i64::MAX), at_restart;
        /// Bytes of log after which a snapshot is taken, if that comes before the number of writes.
        snapshot_log_bytes: u64 = 256 << 20, number("bytes", 1..=i64::MAX), at_restart;
        /// Number of snapshots that are kept.
        snapshots_kept: usize = 3, number("snapshots", 1..=COUNT_MAX), at_restart;
        /// Size that files of the log have at most. The first one of a new member has 4 MiB, and each next one twice as much until that
        /// size, with a spare one ahead: an empty member takes 12 MiB.
        segment_bytes: u64 = 64 << 20, number("bytes", MemberSettings::SEGMENT_BYTES, multiple_of 4096), at_restart;
        /// True if what is written to the log from now on is compressed; what is there is read either way.
        /// [What it costs](performance/compression.md).
        log_compression: bool = false, flag, at_restart;
        /// Bytes of applied entries that a member of an ensemble keeps in memory, for members that lag: one that lags more gets a snapshot.
        entry_bytes_kept: usize = 8 << 20, number("bytes", 0..=i64::MAX), at_restart;
        /// Bytes of changes, with what came of each, that are kept in memory for those who [follow them](backup.md#changes-as-they-come); 0 keeps
        /// none, as does a member without `admin_listen`, and there is nothing to follow.
        change_bytes_kept: usize = 16 << 20, number("bytes", 0..=i64::MAX), at_restart;
        /// Highest feature level to which this member lets its ensemble rise. [Lower it before an upgrade](upgrading.md#feature-levels) that may have
        /// to be taken back when all members have it.
        feature_level_max: u32 = FeatureLevel::KNOWN.0 as u32, number("level", 0..=FeatureLevel::KNOWN.0 as i64), at_restart;
        /// Number of Raft groups that the ensemble is to have, with the home group. Experimental. All znodes are in the home group until [slots
        /// of split points are moved](groups.md#split-points). The number never falls.
        group_count: u32 = 1, number("groups", 1..=MemberSettings::GROUPS_MAX), at_restart;
        /// Members that have each group beside the home group, if that is less than all; 0 is all members. [Writes and memory then grow with the
        /// members](groups.md#fewer-replicas-than-members). Experimental. It is for groups that are yet to be founded: those that there are keep theirs.
        group_replicas: u32 = 0, number("members", 0..=MemberSettings::REPLICAS_MAX), at_restart;
        /// Znodes whose children may be spread over the groups. Experimental. All children stay in the home group until [slots are
        /// moved](groups.md#split-points). The setting takes none away.
        split_points: SplitPaths = SplitPaths::default(), form("list of paths", "`[]`"), at_restart;
    }
}

impl MemberSettings {
    /// Largest number of Raft groups of an ensemble: each of them costs heartbeats and ticks, also while it is idle.
    pub const GROUPS_MAX: i64 = 64;
    /// Largest number of members that have a group, where not all do.
    pub const REPLICAS_MAX: i64 = 255;
    /// Sizes that files of the log can have.
    pub const SEGMENT_BYTES: RangeInclusive<i64> = 64 << 10..=1 << 30;
}
