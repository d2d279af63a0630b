//! Settings of a member, as far as they concern neither clients nor the network.

use std::path::{Path, PathBuf};

use paddock_proto::{MemberNumber, SessionSecret};
use paddock_replica::Founding;
#[cfg(test)]
use paddock_replica::Membership;
use paddock_storage::GroupNumber;
use paddock_tree::FeatureLevel;

use crate::MemberSettings;

/// The group that every ensemble has: sessions are its own, and with one group everything else.
pub(crate) const HOME: GroupNumber = GroupNumber(0);

/// Directories within a data directory.
pub(crate) const LOG_DIR: &str = "log";
pub(crate) const SNAPSHOT_DIR: &str = "snapshots";

/// Settings of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Directory of the snapshots, and of the transaction log unless `log_dir` says otherwise.
    pub data_dir: PathBuf,
    /// Directory of the transaction log, if it has a disk of its own.
    pub log_dir: Option<PathBuf>,
    /// This member's number in the ensemble.
    pub member: MemberNumber,
    /// Ensemble that this member founds with others, if there is none yet.
    pub founding: Founding,
    /// Lines of `/zookeeper/config` for a new ensemble of this member alone, with the data that is there: for a quorum that is lost
    /// for good.
    pub refounding: Option<String>,
    /// Settings that its operator gives, as they are.
    pub settings: MemberSettings,
    /// The unit of session expiry, in milliseconds.
    pub tick_ms: u64,
    /// Znodes that a transaction removes at most where a command removes more: the same on every member, always.
    pub removed_at_once: usize,
    /// Commands and changes of znodes that are applied before others may have the state.
    pub work_at_once: usize,
    /// Children of a znode above which its list can be copied in portions.
    pub long_list: u32,
    /// Number of znodes of a snapshot that are copied before the writers get their turn.
    pub znodes_per_slice: usize,
    /// Bytes of a piece in which a snapshot travels to another member.
    pub piece_bytes: u64,
    /// Memory in bytes for the end of the log when the member starts. What is older, and committed, is applied while the log is read.
    pub log_bytes_held: usize,
    /// True if every read sees all that was written anywhere before it was asked.
    pub linearizable_reads: bool,
    /// Zxids are stamps of the leader's clock where this member leads. See `ReplicaOptions`.
    pub stamps: bool,
    /// Level of the features that this program knows: that of its build, but in tests.
    pub known_level: FeatureLevel,
    /// Milliseconds in a second by which clocks may drift apart, if leaders may answer without asking. See
    /// `ReplicaOptions`.
    pub lease_clock_bound_ms: Option<u64>,
    /// Secret for passwords of sessions, for an ensemble that has none: a new one at each start.
    pub secret: SessionSecret,
    /// Seed of the election timeouts and of the number that tells this process from all others: the same seed makes the same
    /// choices.
    pub seed: u64,
}

/// Directory of a group's snapshots in a data directory.
pub(crate) fn snapshot_dir(data_dir: &Path, group: GroupNumber) -> PathBuf {
    let dir = data_dir.join(SNAPSHOT_DIR);
    if group == HOME { dir } else { dir.join(format!("group-{}", group.0)) }
}

impl Config {
    /// The number that tells the process with these settings from all others that have run or run with its member number.
    pub fn process(&self) -> u64 {
        self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(self.member) | 1
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.log_dir.clone().unwrap_or_else(|| self.data_dir.clone()).join(LOG_DIR)
    }

    /// Directory of the snapshots of a group. Those of the home group lie beside those of the others.
    pub(crate) fn snapshot_dir(&self, group: GroupNumber) -> PathBuf {
        snapshot_dir(&self.data_dir, group)
    }

    /// As [`Config::small`], with other settings.
    #[cfg(test)]
    pub(crate) fn small_with(change: impl FnOnce(&mut MemberSettings)) -> Config {
        let mut config = Config::small();
        change(&mut config.settings);
        config
    }

    /// A member alone with a data directory of its own, and small files.
    #[cfg(test)]
    pub(crate) fn small() -> Config {
        Config {
            data_dir: "/data".into(),
            log_dir: None,
            member: 1,
            founding: Founding {
                membership: Membership::new(vec![1], vec![]),
                members: String::new(),
                by_majority: false,
                files_change_members: false,
            },
            refounding: None,
            settings: MemberSettings {
                garbage_max: 100,
                snapshot_writes: 10,
                snapshot_log_bytes: 1 << 20,
                snapshots_kept: 2,
                segment_bytes: 4096,
                entry_bytes_kept: 1000,
                ..MemberSettings::default()
            },
            tick_ms: 2000,
            removed_at_once: paddock_tree::REMOVED_AT_ONCE,
            work_at_once: paddock_replica::WORK_AT_ONCE,
            long_list: paddock_tree::Tree::LONG_LIST,
            znodes_per_slice: 3,
            piece_bytes: 100,
            log_bytes_held: 1 << 20,
            linearizable_reads: false,
            stamps: false,
            known_level: FeatureLevel::NONE,
            lease_clock_bound_ms: None,
            secret: SessionSecret([7; SessionSecret::BYTES]),
            seed: 1,
        }
    }
}
