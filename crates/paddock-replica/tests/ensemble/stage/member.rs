//! A running member: its replica, its state, and the effects that concern snapshots.

use paddock_replica::{Effects, Input, Install, Replicated, SingleGroup};
use paddock_state::{Now, Outboxes};

use super::disk::{Disk, is_whole, load, save};

/// Snapshots travel in pieces of this many bytes.
const PIECE_BYTES: usize = 1000;

pub(super) struct Member {
    pub(super) replica: SingleGroup,
    pub(super) state: Replicated,
    pub(super) out: Outboxes,
    pub(super) wants_snapshot: bool,
    /// Members whose state was seen to be another one.
    pub(super) differing: Vec<u64>,
    /// Peers that were refused, since they belong to another ensemble.
    pub(super) foreign: Vec<u64>,
}

impl Member {
    pub(super) fn move_pieces(&mut self, now: Now, effects: &mut Effects, disk: &mut Disk) {
        self.wants_snapshot |= std::mem::take(&mut effects.wants_snapshot);
        for read in effects.snapshot_reads.drain(..) {
            let found = disk.snapshot.as_ref().filter(|((index, _), ..)| *index == read.index);
            let piece = found.map(|(.., bytes)| {
                let rest = &bytes[read.offset as usize..];
                (rest[..rest.len().min(PIECE_BYTES)].to_vec(), rest.len() <= PIECE_BYTES)
            });
            self.replica.step(now, Input::SnapshotRead { read, piece });
        }
        for write in effects.snapshot_writes.drain(..) {
            disk.partial.truncate(write.offset as usize);
            assert_eq!(disk.partial.len() as u64, write.offset, "pieces come one after the other");
            disk.partial.extend(write.bytes);
            let (index, offset, is_last) = (write.index, disk.partial.len() as u64, write.is_last);
            let is_good = !is_last || is_whole(&disk.partial);
            self.replica.step(now, Input::SnapshotWritten { index, offset, is_last, is_good });
        }
    }

    pub(super) fn install(&mut self, now: Now, disk: &mut Disk, install: &Install) {
        let bytes = std::mem::take(&mut disk.partial);
        let (applied, membership) = ((install.index, install.term), install.membership.clone());
        self.state = Replicated::new(load(&bytes), applied, membership.clone());
        disk.snapshot = Some((applied, membership, bytes));
        disk.entries.clear();
        self.replica.replica().installed(now, &self.state, &mut self.out);
    }

    pub(super) fn take_snapshot(&mut self, now: Now, disk: &mut Disk) {
        self.wants_snapshot = false;
        let (index, term) = self.state.applied();
        let mut bytes = Vec::new();
        for block in save(self.state.tree_mut()) {
            bytes.extend_from_slice(&(block.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&block);
        }
        let membership = self.state.membership().clone();
        disk.snapshot = Some(((index, term), membership.clone(), bytes));
        disk.entries.retain(|entry| entry.index > index);
        self.replica.step(now, Input::SnapshotTaken { index, term, membership });
    }
}
