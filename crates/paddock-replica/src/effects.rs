//! Effects of a member: what its shell has to do, and in which order.

use crate::{HardState, LogEntry, Membership, SoughtMembers};

/// Encoded messages, each behind the number of the member it is for.
pub(crate) type Messages = Vec<(u64, Vec<u8>)>;

/// Work that `Replica::collect` leaves to the shell.
///
/// The shell takes the fields in this order: it stops if `diverged_at` is set; it raises the alarms and cuts the links of `differing`
/// and `foreign`; it links the member to its `sought_members`; it sends `messages`; it serves `snapshot_reads` and `snapshot_writes`; it carries out `install`; it gives
/// `committed` and `locals` to `Replica::apply`; it writes `hard_state`, then `entries`, syncs both, and reports `round`. Only when
/// [`Effects::can_answer_first`] says so may it call `apply` first. Each field is empty again when it has been carried out.
#[derive(Debug, Default)]
pub struct Effects {
    /// Entry at which most members have another state than this one: the shell stops the member, which begins anew without the
    /// data on its disk.
    pub diverged_at: Option<u64>,
    /// Members whose state differs from this one's: the shell raises an alarm for each.
    pub differing: Vec<u64>,
    /// Peers of another ensemble, each with that ensemble's id: the shell cuts their links.
    pub foreign: Vec<(u64, u64)>,
    /// Members to whom the shell links this member beside those in the state, in the place of those that were sought before.
    pub sought_members: Option<SoughtMembers>,
    /// Messages to send at once: they do not wait for this member's disk.
    pub messages: Messages,
    /// Pieces of this member's snapshot to read; each is answered by `Input::SnapshotRead`.
    pub snapshot_reads: Vec<SnapshotRead>,
    /// Pieces of the leader's snapshot to write, in order; each is answered by `Input::SnapshotWritten`.
    pub snapshot_writes: Vec<SnapshotWrite>,
    /// True if the shell should take a snapshot soon: a follower lags behind all entries that are kept in memory.
    pub wants_snapshot: bool,
    /// Snapshot to put in the place of log and state, before anything else of the round is written; then
    /// `Replica::installed` is called.
    pub install: Option<Install>,
    /// Committed entries, to be given to `Replica::apply`, which takes them.
    pub committed: Vec<LogEntry>,
    /// True if requests wait that need no entry: `Replica::apply` answers them and sets this back.
    pub locals: bool,
    /// Hard state to write in front of `entries`.
    pub hard_state: Option<HardState>,
    /// Entries to append to the transaction log behind `hard_state`.
    pub entries: Vec<LogEntry>,
    /// Number of the round, to be reported by `Input::Persisted` once `hard_state` and `entries` are synced.
    pub round: Option<u64>,
}

impl Effects {
    /// True if the shell has nothing to do.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.snapshot_reads.is_empty()
            && self.snapshot_writes.is_empty()
            && !self.wants_snapshot
            && self.round.is_none()
            && self.committed.is_empty()
            && !self.locals
            && self.differing.is_empty()
            && self.foreign.is_empty()
            && self.sought_members.is_none()
            && self.diverged_at.is_none()
    }

    /// True if clients can be answered before `messages` are sent: no member waits for this one's disk, and what the other
    /// members are to be told is less urgent.
    pub fn can_answer_first(&self) -> bool {
        !self.committed.is_empty() && self.round.is_none() && self.install.is_none()
    }
}

/// Effects that inputs have caused since the last call of `Replica::collect`, which hands them to the shell.
#[derive(Debug, Default)]
pub(crate) struct QueuedEffects {
    pub(crate) messages: Messages,
    pub(crate) snapshot_reads: Vec<SnapshotRead>,
    pub(crate) snapshot_writes: Vec<SnapshotWrite>,
}

impl QueuedEffects {
    /// Moves everything to the end of `effects`.
    pub(crate) fn move_to(&mut self, effects: &mut Effects) {
        effects.messages.append(&mut self.messages);
        effects.snapshot_reads.append(&mut self.snapshot_reads);
        effects.snapshot_writes.append(&mut self.snapshot_writes);
    }
}

/// Amount of work that a call of `Replica::apply` has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Number of entries applied.
    pub entries: usize,
    /// Number of commands in them that were applied.
    pub commands: usize,
    /// True if the state says something else of the ensemble's members than before.
    pub members_changed: bool,
}

/// A snapshot that has come from the leader and takes the place of log and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Index of the last entry that the snapshot holds.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// Membership as of that entry.
    pub membership: Membership,
}

/// A piece of this member's snapshot that another member asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRead {
    /// Member that asks.
    pub to: u64,
    /// Index of the last entry that the snapshot holds.
    pub index: u64,
    /// Offset of the piece in the snapshot's bytes.
    pub offset: u64,
}

/// A piece of the leader's snapshot that has come. The one with offset 0 begins the file anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotWrite {
    /// Index of the last entry that the snapshot holds.
    pub index: u64,
    /// Offset of the piece in the snapshot's bytes.
    pub offset: u64,
    /// The piece.
    pub bytes: Vec<u8>,
    /// True if the snapshot is whole with this piece: the shell syncs and checks it before it answers.
    pub is_last: bool,
}
