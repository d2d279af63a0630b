//! What a member is told, as far as it concerns neither clients nor the network.

use std::path::PathBuf;

use paddock_replica::Founding;
#[cfg(test)]
use paddock_replica::Membership;
use paddock_storage::Group;

/// The only Raft group of a member, as the transaction log numbers it.
pub(crate) const GROUP: Group = Group(0);

/// The settings of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Snapshots, and the transaction log unless `log_dir` says otherwise.
    pub data_dir: PathBuf,
    /// The transaction log, if it has a disk of its own.
    pub log_dir: Option<PathBuf>,
    /// This member's number in the ensemble, 1 to 255.
    pub member: u8,
    /// With whom this member begins an ensemble, if there is none yet.
    pub founding: Founding,
    /// Begins a new ensemble of this member alone, with the data that is there: for a quorum that is lost for good. These
    /// are its lines in `/zookeeper/config`.
    pub refounding: Option<String>,
    /// The unit of session expiry, in milliseconds.
    pub tick_ms: u64,
    /// How often empty containers and expired TTL znodes are looked for, in milliseconds.
    pub garbage_interval_ms: u64,
    /// How many of them are removed each time at most.
    pub garbage_max: usize,
    /// A snapshot is taken after so many writes,
    pub snapshot_writes: u64,
    /// or after so many bytes of log, whichever comes first.
    pub snapshot_log_bytes: u64,
    /// How many snapshots are kept, at least 1.
    pub snapshots_kept: usize,
    /// So many znodes of a snapshot are copied before the writers get their turn.
    pub znodes_per_slice: usize,
    /// A snapshot travels to another member in pieces of so many bytes.
    pub piece_bytes: u64,
    /// The size of a file of the transaction log.
    pub segment_bytes: u64,
    /// Whether what is written to the log from now on is compressed.
    pub log_compression: bool,
    /// How many bytes of applied entries stay in memory for members that lag a little.
    pub entry_bytes_kept: usize,
    /// Every read sees what was written anywhere before it was asked.
    pub linearizable_reads: bool,
    /// How far clocks may drift apart, in milliseconds in a second, if leaders may answer without asking. See
    /// `ReplicaOptions`.
    pub lease_clock_bound_ms: Option<u64>,
    /// Chance, for elections and for the number that tells this process from all others: the same seed makes the same
    /// choices.
    pub seed: u64,
}

impl Config {
    /// The number that tells the process with these settings from all others that have run or run with its member number.
    pub fn process(&self) -> u64 {
        self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(u32::from(self.member)) | 1
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.log_dir.clone().unwrap_or_else(|| self.data_dir.clone()).join("log")
    }

    pub(crate) fn snapshot_dir(&self) -> PathBuf {
        self.data_dir.join("snapshots")
    }

    /// A member alone with a data directory of its own, and small files.
    #[cfg(test)]
    pub(crate) fn small() -> Config {
        Config {
            data_dir: "/data".into(),
            log_dir: None,
            member: 1,
            founding: Founding { membership: Membership::new(vec![1], vec![]), members: String::new() },
            refounding: None,
            tick_ms: 2000,
            garbage_interval_ms: 60_000,
            garbage_max: 100,
            snapshot_writes: 10,
            snapshot_log_bytes: 1 << 20,
            snapshots_kept: 2,
            znodes_per_slice: 3,
            piece_bytes: 100,
            segment_bytes: 4096,
            log_compression: false,
            entry_bytes_kept: 1000,
            linearizable_reads: false,
            lease_clock_bound_ms: None,
            seed: 1,
        }
    }
}
