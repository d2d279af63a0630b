//! A copy of all groups of a member that runs, made beside it.
//!
//! The point of the order is one that the home group has come to, chosen behind all that any group had before. When the other groups have come to it, too,
//! all that the copy needs is in the member's files: each group's newest snapshot, and the log behind it. They are read while the member goes on writing. It waits
//! for nothing, and its states are looked at for moments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use paddock_proto::Zxid;
use paddock_replica::{LogEntry, Membership, Replicated, apply_offline, apply_while};
use paddock_state::Now;
use paddock_storage::snapshot;
use paddock_storage::{
    Disk, GroupNumber, Index, LiveEntries, LiveLogError, SnapshotError, SnapshotMeta, Term,
};
use paddock_tree::{Tree, WholeTree};

use crate::config::{HOME, snapshot_dir};
use crate::group_state::GroupState;
use crate::offline::write_snapshot;
use crate::recovery::{self, RecoveryError};
use crate::whole::Cut;

/// A copy lies in the data directory as the snapshot of this index, which no group has, until it is open.
const INDEX: Index = Index(0);

/// The state of a group beside the home group, to be looked at by another thread than the member's.
#[derive(Clone, Debug)]
pub struct GroupHandle {
    number: u32,
    state: GroupState,
}

impl GroupHandle {
    pub(crate) fn new(number: u32, state: GroupState) -> GroupHandle {
        GroupHandle { number, state }
    }

    /// Zxid of the group's state.
    pub fn zxid(&self) -> Zxid {
        self.state.look().tree().zxid()
    }
}

/// Reason for which a copy was not made.
#[derive(Debug, thiserror::Error)]
pub enum WholeCopyError {
    #[error("this member has no replica of Raft group {group}")]
    NoReplica { group: u32 },
    /// A snapshot has taken the place of what was needed: a later point may be had.
    #[error("Raft group {group} has gone on meanwhile")]
    Passed { group: u32 },
    #[error(transparent)]
    Log(#[from] LiveLogError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

/// Index and term of an entry.
type Applied = (u64, u64);

/// A point of the order of all groups, and the places that they have come to.
#[derive(Debug)]
pub struct WholeCopy {
    cut: Cut,
    membership: Membership,
    home: Applied,
    /// Groups that have not come to the point.
    awaited: BTreeSet<u32>,
    /// Last entries of the others that are needed.
    reached: BTreeMap<u32, Applied>,
}

impl WholeCopy {
    /// The point behind the home group's state. `None` while that is in the middle of an entry.
    pub fn begin(home: &Replicated) -> Option<WholeCopy> {
        if home.is_within_entry() {
            return None;
        }
        let tree = home.tree();
        Some(WholeCopy {
            cut: Cut::behind(tree),
            membership: home.membership().clone(),
            home: home.applied(),
            awaited: tree.groups_with_znodes(),
            reached: BTreeMap::new(),
        })
    }

    /// Zxid that all groups have to come to.
    pub fn stamp(&self) -> Zxid {
        self.cut.stamp()
    }

    /// Groups that have not come to the point yet. Each of them needs a transaction with a zxid that is not below it.
    pub fn await_groups(&mut self, handles: &[GroupHandle]) -> Result<BTreeSet<u32>, WholeCopyError> {
        for group in self.awaited.clone() {
            let handle = handles.iter().find(|handle| handle.number == group);
            let state = &handle.ok_or(WholeCopyError::NoReplica { group })?.state.look();
            if !state.is_within_entry() && self.cut.is_reached_by(group, state.tree()) {
                self.awaited.remove(&group);
                self.reached.insert(group, state.applied());
            }
        }
        Ok(self.awaited.clone())
    }

    /// Reads the state of all groups at the point from the member's files.
    ///
    /// # Panics
    /// If a group has not come to it.
    pub fn read(
        &self,
        disk: &Arc<dyn Disk>,
        data_dir: &Path,
        log_dir: &Path,
    ) -> Result<Tree, WholeCopyError> {
        assert!(self.awaited.is_empty(), "groups {:?} have not come so far", self.awaited);
        let files = RunningFiles { disk, data_dir, log_dir };
        let (mut home, last) = files.snapshot(HOME, self.home.0)?;
        files.replay(HOME, last, self.home, &mut |entry| {
            apply_offline(&mut home, entry);
            true
        })?;
        let mut whole = WholeTree::begin(home);
        for (group, applied) in &self.reached {
            let number = GroupNumber(*group);
            let (mut tree, last) = files.snapshot(number, applied.0)?;
            if self.cut.is_passed_by(*group, &tree) {
                return Err(WholeCopyError::Passed { group: *group });
            }
            files.replay(number, last, *applied, &mut |entry| {
                apply_while(&mut tree, entry, &mut |tree, command| self.cut.has(*group, tree, command))
            })?;
            whole.add(&tree);
        }
        Ok(whole.finish())
    }

    /// Writes the state as a snapshot file in a data directory, which no log follows: its index is 0. To be removed with [`remove_whole_copy`].
    pub fn write(
        &self,
        disk: &Arc<dyn Disk>,
        data_dir: &Path,
        tree: &mut Tree,
    ) -> Result<PathBuf, SnapshotError> {
        let app = self.membership.encode();
        let meta = SnapshotMeta { group: HOME, term: Term(0), index: INDEX, zxid: tree.zxid().0, app };
        write_snapshot(disk, data_dir, meta, tree)?;
        Ok(snapshot::snapshot_path(data_dir, INDEX))
    }
}

/// Removes the file of a copy from a data directory, if there is one, whole or not.
pub fn remove_whole_copy(disk: &dyn Disk, data_dir: &Path) -> Result<(), SnapshotError> {
    let path = snapshot::snapshot_path(data_dir, INDEX);
    for path in [snapshot::unfinished_path(&path), path] {
        match disk.remove(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(SnapshotError::Io { action: "remove", path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Files of a member that goes on writing them.
struct RunningFiles<'a> {
    disk: &'a Arc<dyn Disk>,
    data_dir: &'a Path,
    log_dir: &'a Path,
}

impl RunningFiles<'_> {
    /// State of a group's newest snapshot up to an entry, and the last entry in it.
    fn snapshot(&self, group: GroupNumber, last: u64) -> Result<(Tree, Index), WholeCopyError> {
        let (disk, dir) = (self.disk.as_ref(), snapshot_dir(self.data_dir, group));
        // A group without a directory has never had a snapshot.
        let files = if disk.list(&dir).is_ok() { snapshot::list(disk, &dir)? } else { Vec::new() };
        match files.iter().rev().find(|file| file.index.0 <= last) {
            Some(file) => Ok((recovery::load(disk, file, &Now::default())?.0, file.index)),
            None => Ok((Tree::new(), Index(0))),
        }
    }

    /// Shows the entries of a group behind one of them, up to the one that was applied, for as long as `goes_on` says so.
    fn replay(
        &self,
        group: GroupNumber,
        behind: Index,
        (last, term): Applied,
        goes_on: &mut dyn FnMut(&LogEntry) -> bool,
    ) -> Result<(), WholeCopyError> {
        if behind.0 >= last {
            return Ok(());
        }
        let through = (Index(last), Term(term));
        let found = LiveEntries::find(self.disk, self.log_dir, group, behind.next(), through)?;
        Ok(found.read(&mut |index, term, payload| {
            let payload = Bytes::copy_from_slice(payload);
            goes_on(&LogEntry { index: index.0, term: term.0, payload })
        })?)
    }
}
