//! A look into the files of a member that does not run, which changes nothing: everything is read to its end, and checked.
//!
//! A directory that a start would refuse is refused here with the same words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use paddock_proto::MemberNumber;
use paddock_replica::{Cluster, HardState, LogEntry, Membership};
use paddock_state::Now;
use paddock_storage::disk::{Access, Disk};
use paddock_storage::log::Inspection;
use paddock_storage::snapshot::{self, SnapshotFile, SnapshotTotals};
use paddock_storage::{GroupNumber, Index, Log, Record, SnapshotError, SnapshotMeta, SnapshotReader};
use paddock_tree::Tree;

use crate::config::{HOME, LOG_DIR, SNAPSHOT_DIR, snapshot_dir};
use crate::entry_span::{EntrySpan, for_each_entry};
use crate::identity;
use crate::incoming;
use crate::offline::{OfflineError, is_data_dir};
use crate::recovery::{self, RecoveryError};

/// The identity of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InspectedIdentity {
    pub member: MemberNumber,
    pub cluster: Cluster,
    /// False in a file of an earlier build.
    pub has_checksum: bool,
}

/// A snapshot file that is whole, or the reason for which it is not.
#[derive(Debug)]
pub struct InspectedSnapshot {
    pub path: PathBuf,
    pub content: Result<SnapshotContent, SnapshotError>,
}

/// Content of a snapshot file, as far as it need not be decompressed.
#[derive(Clone, Debug)]
pub struct SnapshotContent {
    /// Bytes of the file.
    pub bytes: u64,
    pub meta: SnapshotMeta,
    pub totals: SnapshotTotals,
    pub membership: Option<Membership>,
}

/// A log that was read to its end.
#[derive(Debug)]
pub struct InspectedLog {
    pub dir: PathBuf,
    pub files: Inspection,
    pub hard_state: HardState,
    group: GroupNumber,
    span: EntrySpan,
}

impl InspectedLog {
    /// The first entry that counts: those that a later leader replaced do not.
    pub fn first(&self) -> Option<Index> {
        self.span.first()
    }

    /// The last entry that counts.
    pub fn last(&self) -> Option<Index> {
        self.span.last()
    }

    /// Reads the log once more, and gives the entries that count to `take`, by rising index.
    pub fn for_each_entry(
        &self,
        disk: &dyn Disk,
        take: &mut dyn FnMut(&LogEntry),
    ) -> Result<(), OfflineError> {
        let spans = BTreeMap::from([(self.group, &self.span)]);
        Ok(for_each_entry(disk, &self.dir, &spans, &mut |_, entry| take(entry))?)
    }
}

/// Everything that a directory holds.
#[derive(Debug)]
pub struct DirectoryLook {
    pub identity: InspectedIdentity,
    pub snapshots: Vec<InspectedSnapshot>,
    pub log: InspectedLog,
    /// Index of the snapshot from which the tree was read; 0 without one.
    pub base: Index,
    /// State as of that snapshot.
    pub tree: Tree,
}

/// Reads the identity of a data directory.
pub fn inspect_identity(disk: &dyn Disk, dir: &Path) -> Result<InspectedIdentity, OfflineError> {
    let found = identity::read(disk, dir)?;
    let found = found.ok_or_else(|| OfflineError::NotADataDir { path: dir.to_owned() })?;
    let identity::Identity { member, cluster } = found.identity;
    Ok(InspectedIdentity { member, cluster, has_checksum: found.has_checksum })
}

/// Verifies the snapshots of a data directory, the oldest first.
pub fn inspect_snapshots(disk: &dyn Disk, dir: &Path) -> Result<Vec<InspectedSnapshot>, OfflineError> {
    inspect_snapshots_in(disk, dir.join(SNAPSHOT_DIR))
}

fn inspect_snapshots_in(disk: &dyn Disk, dir: PathBuf) -> Result<Vec<InspectedSnapshot>, OfflineError> {
    if disk.list(&dir).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let files = snapshot::list(disk, &dir)?;
    Ok(files.into_iter().map(|file| verified(disk, file.path, SnapshotReader::open)).collect())
}

/// Verifies one snapshot file, whatever its name.
pub fn inspect_snapshot(disk: &dyn Disk, path: &Path) -> InspectedSnapshot {
    verified(disk, path.to_owned(), SnapshotReader::open_any_name)
}

fn verified(
    disk: &dyn Disk,
    path: PathBuf,
    open: fn(&dyn Disk, &Path) -> Result<SnapshotReader, SnapshotError>,
) -> InspectedSnapshot {
    let content = open(disk, &path).and_then(|mut reader| {
        while reader.next_block()?.is_some() {}
        let file = disk.open(&path, Access::Read);
        let bytes = file.and_then(|file| file.len());
        let action = "read length of";
        let bytes = bytes.map_err(|source| SnapshotError::Io { action, path: path.clone(), source })?;
        let meta = reader.meta().clone();
        let membership = Membership::decode(&meta.app);
        Ok(SnapshotContent { bytes, meta, totals: reader.totals(), membership })
    });
    InspectedSnapshot { path, content }
}

/// Reads the log of a group in a directory: that of a data directory, or its `log` alone. The home group is number 0.
pub fn inspect_log(disk: &dyn Disk, dir: &Path, number: u32) -> Result<InspectedLog, OfflineError> {
    let (number, mut span, mut hard_state) =
        (GroupNumber(number), EntrySpan::default(), HardState::default());
    let files = Log::inspect(disk, dir, &mut |record: Record<'_>| match record {
        Record::Entry { group, .. } | Record::HardState { group, .. } | Record::Base { group, .. }
            if group != number => {}
        Record::Entry { term, index, .. } => span.put(term, index),
        Record::Base { .. } => span.clear(),
        Record::HardState { payload, .. } => {
            hard_state = HardState::decode(payload).unwrap_or(hard_state);
        }
    })?;
    Ok(InspectedLog { dir: dir.to_owned(), files, hard_state, group: number, span })
}

/// Reads all that a directory has of a group; the home group is number 0. The tree is that of the newest snapshot that is whole, or of the
/// oldest one behind which the log goes on (`is_oldest`), so that more of what the log holds can be applied.
pub fn inspect_directory(
    disk: &dyn Disk,
    dir: &Path,
    log_dir: Option<&Path>,
    number: u32,
    is_oldest: bool,
) -> Result<DirectoryLook, OfflineError> {
    let group = GroupNumber(number);
    if !is_data_dir(disk, dir) {
        return Err(OfflineError::NotADataDir { path: dir.to_owned() });
    }
    let identity = inspect_identity(disk, dir)?;
    let snapshot_dir = snapshot_dir(dir, group);
    let snapshots = inspect_snapshots_in(disk, snapshot_dir.clone())?;
    let log = inspect_log(disk, &log_dir.unwrap_or(dir).join(LOG_DIR), number)?;
    let whole =
        snapshots.iter().filter_map(|file| Some((&file.path, file.content.as_ref().ok()?.meta.index)));
    let follows = |index: Index| log.files.check_follows(group, (index != Index(0)).then_some(index));
    let newest = whole.clone().next_back();
    let (_, newest_index) = newest.map_or((None, Index(0)), |(path, index)| (Some(path), index));
    // A start would let the log begin anew behind a snapshot that came from the leader and was being installed.
    let is_being_installed =
        !snapshots.is_empty() && incoming::unfinished(disk, &snapshot_dir)? == Some(newest_index);
    if !is_being_installed {
        follows(newest_index).map_err(|source| RecoveryError::Gap {
            log_dir: log.dir.clone(),
            snapshot_dir,
            source,
        })?;
        let last = log.files.last_index(group).unwrap_or_default();
        if let Some((path, _)) = newest.filter(|(_, index)| last < *index) {
            return Err(RecoveryError::LogLost { log_dir: log.dir, last, snapshot: path.clone() }.into());
        }
    }
    let has_no_state = newest.is_none() && log.span.is_empty();
    // Of a group that was let go the log has the number of the last start.
    if has_no_state && group != HOME {
        return Err(OfflineError::NoSuchGroup { path: dir.to_owned(), group: number });
    }
    if has_no_state && log.hard_state.incarnation == 0 {
        return Err(RecoveryError::LogMissing { data_dir: dir.to_owned(), log_dir: log.dir }.into());
    }
    let begins_anew = is_oldest && follows(Index(0)).is_ok();
    let base = match (is_oldest, begins_anew) {
        (_, true) => None,
        (true, false) => whole.clone().find(|(_, index)| follows(*index).is_ok()),
        (false, _) => newest,
    };
    let (tree, base) = match base {
        None => (Tree::new(), Index(0)),
        Some((path, index)) => {
            let file = SnapshotFile { index, path: path.clone() };
            (recovery::load(disk, &file, &Now::default())?.0, index)
        }
    };
    Ok(DirectoryLook { identity, snapshots, log, base, tree })
}
