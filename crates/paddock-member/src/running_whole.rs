//! Copies of the groups of a member that runs, made beside it.
//!
//! The point of the order is one that the home group has come to, chosen behind all that any group had before. When the other groups have come to it, too,
//! all that the copy needs is in the member's files: each group's newest snapshot, and the log behind it. They are read while the member goes on writing. It waits
//! for nothing, and its states are looked at for moments. A group that the member does not have is copied by another one, as of the same point, and its copy
//! comes as a file.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use paddock_proto::Zxid;
use paddock_replica::{LogEntry, Membership, Replicated, apply_offline, apply_while};
use paddock_state::Now;
use paddock_storage::snapshot::{self, SnapshotFile};
use paddock_storage::{
    Disk, GroupNumber, Index, LiveEntries, LiveLogError, SnapshotError, SnapshotMeta, Term,
};
use paddock_tree::{Tree, WholeTree};

use crate::config::{HOME, snapshot_dir};
use crate::group_state::GroupState;
use crate::offline::write_snapshot;
use crate::recovery::{self, RecoveryError};
use crate::whole::{Cut, CutInLog, GroupCut};

/// A copy of all groups lies in the data directory as the snapshot of this index, which none of its groups' has, until it is open. That of one group
/// lies there as the snapshot with the group's number.
const WHOLE: Index = Index(0);

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

    /// Number of the group.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Zxid of the group's state.
    pub fn zxid(&self) -> Zxid {
        self.state.look().tree().zxid()
    }
}

/// Reason for which a copy was not made.
#[derive(Debug, thiserror::Error)]
pub enum WholeCopyError {
    /// A snapshot has taken the place of what was needed: a later point may be had.
    #[error("Raft group {group} has gone on meanwhile")]
    Passed {
        /// Number of the group.
        group: u32,
        /// Zxid of the snapshot.
        at: Zxid,
    },
    #[error(transparent)]
    Log(#[from] LiveLogError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

/// Index and term of an entry.
type Applied = (u64, u64);

/// Files of a member that goes on writing them.
#[derive(Clone, Debug)]
pub struct RunningFiles {
    pub disk: Arc<dyn Disk>,
    pub data_dir: PathBuf,
    pub log_dir: PathBuf,
}

/// A point of the order of all groups, and the places that this member's groups have come to.
#[derive(Debug)]
pub struct WholeCopy {
    membership: Membership,
    stamp: Zxid,
    home: Applied,
    /// Copies of the groups that this member has.
    groups: Vec<GroupCopy>,
    /// Points in the others.
    away: Vec<GroupCut>,
}

impl WholeCopy {
    /// The point behind the home group's state. `None` while that is in the middle of an entry. The `handles` are those of the other groups that the
    /// member has.
    pub fn begin(home: &Replicated, handles: &[GroupHandle]) -> Option<WholeCopy> {
        if home.is_within_entry() {
            return None;
        }
        let (tree, cut) = (home.tree(), Cut::behind(home.tree()));
        let (mut groups, mut away) = (Vec::new(), Vec::new());
        for group in tree.groups_with_znodes() {
            let (handle, cut) = (handles.iter().find(|handle| handle.number == group), cut.in_group(group));
            match handle {
                Some(handle) => groups.push(GroupCopy::begin(cut, handle.clone())),
                None => away.push(cut),
            }
        }
        let membership = home.membership().clone();
        Some(WholeCopy { membership, stamp: tree.zxid(), home: home.applied(), groups, away })
    }

    /// Zxid that all groups have to come to.
    pub fn stamp(&self) -> Zxid {
        self.stamp
    }

    /// The points in groups that this member does not have: other members copy them.
    pub fn away(&self) -> &[GroupCut] {
        &self.away
    }

    /// Groups of this member that have not come to the point yet. Each of them needs a transaction with a zxid that is not below it.
    pub fn await_groups(&mut self) -> BTreeSet<u32> {
        let awaited =
            self.groups.iter_mut().filter_map(|copy| (!copy.is_reached()).then_some(copy.cut.group));
        awaited.collect()
    }

    /// Reads the states of this member's groups at the point from its files. The copies of the others are still to be added.
    ///
    /// # Panics
    /// If a group has not come to it.
    pub fn read(&self, files: &RunningFiles) -> Result<WholeTree, WholeCopyError> {
        let (mut home, last) = files.snapshot(HOME, self.home.0)?;
        files.replay(HOME, last, self.home, &mut |entry| {
            apply_offline(&mut home, entry);
            true
        })?;
        let mut whole = WholeTree::begin(home);
        for copy in &self.groups {
            whole.add(&copy.read(files)?);
        }
        Ok(whole)
    }

    /// Writes the state as a snapshot file in a data directory, which no log follows. To be removed with [`remove_copies`].
    pub fn write(&self, files: &RunningFiles, tree: &mut Tree) -> Result<PathBuf, SnapshotError> {
        let app = self.membership.encode();
        let meta = SnapshotMeta { group: HOME, term: Term(0), index: WHOLE, zxid: tree.zxid().0, app };
        write_copy(files, meta, tree)
    }
}

/// The copy of one group at a point.
#[derive(Debug)]
pub struct GroupCopy {
    cut: GroupCut,
    handle: GroupHandle,
    /// The last entry that is needed, once the group has come to the point.
    reached: Option<Applied>,
}

impl GroupCopy {
    pub fn begin(cut: GroupCut, handle: GroupHandle) -> GroupCopy {
        GroupCopy { cut, handle, reached: None }
    }

    /// True if the group has come to the point. If not, it needs a transaction with a zxid that is not below it.
    pub fn is_reached(&mut self) -> bool {
        if self.reached.is_none() {
            let state = self.handle.state.look();
            let is_reached = !state.is_within_entry() && self.cut.is_reached_by(state.tree());
            self.reached = is_reached.then(|| state.applied());
        }
        self.reached.is_some()
    }

    /// Reads the state at the point from the member's files.
    ///
    /// # Panics
    /// If the group has not come to it.
    pub fn read(&self, files: &RunningFiles) -> Result<Tree, WholeCopyError> {
        let (group, applied) = (self.cut.group, self.reached.expect("the group has come so far"));
        let (mut tree, last) = files.snapshot(GroupNumber(group), applied.0)?;
        if self.cut.is_passed_by(&tree) {
            return Err(WholeCopyError::Passed { group, at: tree.zxid() });
        }
        let mut cut = CutInLog::new(self.cut);
        files.replay(GroupNumber(group), last, applied, &mut |entry| {
            cut.look_at(entry);
            true
        })?;
        files.replay(GroupNumber(group), last, applied, &mut |entry| {
            apply_while(&mut tree, entry, &mut |tree, command| cut.has(tree, command))
        })?;
        Ok(tree)
    }

    /// Writes the state as a snapshot file in a data directory. To be removed with [`remove_copies`].
    pub fn write(&self, files: &RunningFiles, tree: &mut Tree) -> Result<PathBuf, SnapshotError> {
        let (group, index) = (GroupNumber(self.cut.group), Index(self.cut.group.into()));
        let meta = SnapshotMeta { group, term: Term(0), index, zxid: tree.zxid().0, app: Vec::new() };
        write_copy(files, meta, tree)
    }
}

/// Path at which the copy of a group lies that another member has made.
pub fn copy_path(data_dir: &Path, group: u32) -> PathBuf {
    snapshot::snapshot_path(data_dir, Index(group.into()))
}

/// Reads the copy of a group that another member has made.
pub fn read_copy(disk: &dyn Disk, path: PathBuf, group: u32) -> Result<Tree, WholeCopyError> {
    let file = SnapshotFile { index: Index(group.into()), path };
    Ok(recovery::load(disk, &file, &Now::default())?.0)
}

fn write_copy(files: &RunningFiles, meta: SnapshotMeta, tree: &mut Tree) -> Result<PathBuf, SnapshotError> {
    let index = meta.index;
    write_snapshot(&files.disk, &files.data_dir, meta, tree)?;
    Ok(snapshot::snapshot_path(&files.data_dir, index))
}

/// Removes a copy, whole or not, if it is there.
pub fn remove_copy(disk: &dyn Disk, path: &Path) -> Result<(), SnapshotError> {
    for path in [snapshot::unfinished_path(path), path.to_owned()] {
        match disk.remove(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(SnapshotError::Io { action: "remove", path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes the copies from a data directory that a process has left there, whole or not.
pub fn remove_copies(disk: &dyn Disk, data_dir: &Path) -> Result<(), SnapshotError> {
    snapshot::remove_unfinished(disk, data_dir)?;
    snapshot::list(disk, data_dir)?.iter().try_for_each(|file| remove_copy(disk, &file.path))
}

impl RunningFiles {
    /// State of a group's newest snapshot up to an entry, and the last entry in it.
    fn snapshot(&self, group: GroupNumber, last: u64) -> Result<(Tree, Index), WholeCopyError> {
        let (disk, dir) = (self.disk.as_ref(), snapshot_dir(&self.data_dir, group));
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
        let found = LiveEntries::find(&self.disk, &self.log_dir, group, behind.next(), through)?;
        Ok(found.read(&mut |index, term, payload| {
            let payload = Bytes::copy_from_slice(payload);
            goes_on(&LogEntry { index: index.0, term: term.0, payload })
        })?)
    }
}
