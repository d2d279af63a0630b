//! Inputs of a member.

use paddock_state::ClientInput;

use crate::Membership;
use crate::effects::SnapshotRead;

/// Something that has happened: the only way in which a member learns of anything.
#[derive(Debug)]
pub enum Input {
    /// Request or report of a connection of this member.
    Client(ClientInput),
    /// Message of another member, as that member's `Effects::messages` gave it. Messages may be lost and come late.
    Peer { from: u64, bytes: Vec<u8> },
    /// End of the link to another member: no message comes from it before there is another link.
    LinkLost { peer: u64 },
    /// Snapshot file of this member up to this entry, with the membership of that moment.
    SnapshotTaken { index: u64, term: u64, membership: Membership },
    /// Answer to `Effects::snapshot_reads`: the bytes, and true if the snapshot ends with them; `None` if the snapshot is
    /// not there any more.
    SnapshotRead { read: SnapshotRead, piece: Option<(Vec<u8>, bool)> },
    /// Answer to `Effects::snapshot_writes`: `offset` bytes of the snapshot are written; with the last piece it is synced and
    /// has been checked. If it is not good, nothing of it is left.
    SnapshotWritten { index: u64, offset: u64, is_last: bool, is_good: bool },
    /// Report that everything in the log up to and including this round is on disk.
    Persisted { round: u64 },
    /// True: the disk is full, and nothing reaches it. False: there is room again.
    DiskFull(bool),
    /// Notice that this member is about to stop: if it leads, it hands the lead over.
    StepDown,
    /// Wish of this member's operator that it leads: it asks the leader to hand the lead over.
    RequestLead,
    /// Command between groups that this member's operator orders, for the home group, as its body.
    BetweenGroups(Vec<u8>),
    /// Members of which this member's configuration file speaks from now on, as lines of `/zookeeper/config`.
    FileMembers(String),
    /// Facts of this member that the other members are told now and then, for those who operate the ensemble. More than
    /// 992 bytes are not told.
    Profile(Vec<u8>),
    /// Passing of [`crate::Replica::TICK_MS`].
    Tick,
}
