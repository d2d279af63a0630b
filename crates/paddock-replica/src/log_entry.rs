//! One entry of the Raft log, and the first byte of its payload, which tells what the rest is.

use bytes::Bytes;

/// An entry of the Raft log, as it goes to the transaction log. Its payload is empty in the entry with which a leader begins its
/// term; otherwise its first byte is one of the constants below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub index: u64,
    pub term: u64,
    pub payload: Bytes,
}

impl LogEntry {
    /// The largest payload, in bytes: that of a record of the transaction log.
    pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
}

/// Batches of commands: see `batch.rs`.
pub(crate) const COMMANDS: u8 = 2;
/// A floor for the zxids of these commands, as a big-endian i64, and batches: see `batch.rs`.
pub(crate) const COMMANDS_WITH_FLOOR: u8 = 6;
pub(crate) const FOUNDING: u8 = 3;
pub(crate) const CHANGE: u8 = 4;
pub(crate) const REFOUNDING: u8 = 5;
/// A feature level for the ensemble: see `feature_levels.rs`.
pub(crate) const LEVEL: u8 = 7;
/// Groups that the home group founds: see `replica/groups.rs`.
pub(crate) const GROUPS: u8 = 8;
/// A roster to which a group beside the home group comes: see `rosters.rs`.
pub(crate) const ROSTER: u8 = 9;
/// Word in the home group that all groups are prepared for a roster: see `rosters.rs`.
pub(crate) const PROMOTION: u8 = 10;
/// The payload's first byte is this: groups are founded with fewer replicas than there are members.
pub(crate) const PLACED_GROUPS: u8 = 11;
