//! Data directories of members that do not run: one made from a tree, and one read into a tree.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paddock_proto::MemberNumber;
use paddock_replica::{Cluster, HardState, Membership};
use paddock_state::Now;
use paddock_storage::disk::Disk;
use paddock_storage::snapshot::{self, Newest};
use paddock_storage::{
    DirLock, GroupNumber, Index, LockError, Log, LogError, LogOptions, Record, SnapshotError, SnapshotMeta,
    SnapshotReader, SnapshotWriter, Term,
};
use paddock_tree::Tree;

use crate::config::{HOME, LOG_DIR, SNAPSHOT_DIR, snapshot_dir};
use crate::entry_span::EntrySpan;
use crate::identity::{self, IdentityError};
use crate::incoming::IncomingError;
use crate::pieces::PieceWriter;
use crate::recovery::{self, RecoveryError};
use crate::whole::{AllFiles, DirectoryState, GroupFiles};

/// Entry and term that the history of a made directory begins behind. No member without data may take its own first entry, which
/// is number 1 of term 1, for a part of that history: it has to be sent the snapshot.
const FIRST: (Index, Term) = (Index(1024), Term(2));
const UNFINISHED: &str = "unfinished";
/// Znodes that are copied at a time.
const ZNODES_PER_SLICE: usize = 4096;

/// Reason for which a directory cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error("{} is there already and not empty; nothing is written over", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{} was left by an attempt that did not end; remove it first", path.display())]
    Left { path: PathBuf },
    #[error("{} is not a data directory of Paddock", path.display())]
    NotADataDir { path: PathBuf },
    #[error(
        "{} has a part of the znodes, and other Raft groups have the rest: take the data directory as a whole, or a copy of a member that runs",
        path.display()
    )]
    Spread { path: PathBuf },
    /// The groups have no common state that can be made of their files.
    #[error(
        "the Raft groups in {} do not fit together: {behind} lacks what others have, and the newest snapshot of {snapshot_of} is behind that; start \
         the member, or take the directory of another one",
        path.display()
    )]
    Apart { path: PathBuf, behind: String, snapshot_of: String },
    #[error("{} has no Raft group {group}", path.display())]
    NoSuchGroup { path: PathBuf, group: u32 },
    #[error("{action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("log {} begins with entry {first}, but the newest whole snapshot ends with entry {last}", path.display())]
    Gap { path: PathBuf, last: Index, first: u64 },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(transparent)]
    Incoming(#[from] IncomingError),
}

/// Makes a data directory with this state, from which `member` starts as an ensemble of its own. It has its name when all of it
/// is on disk, and not before.
pub fn make_directory(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    member: MemberNumber,
    tree: &mut Tree,
) -> Result<(), OfflineError> {
    check_free(disk.as_ref(), dir)?;
    let mut name = dir.as_os_str().to_owned();
    name.push(format!(".{UNFINISHED}"));
    DirectoryInMaking::begin(disk, &PathBuf::from(name))?.finish(dir, member, tree)
}

/// A data directory for a state that is not known yet. All is there that takes long and does not depend on it.
#[derive(Debug)]
pub struct DirectoryInMaking {
    disk: Arc<dyn Disk>,
    unfinished: PathBuf,
}

impl DirectoryInMaking {
    /// Begins to make one under this name, which must be free.
    pub fn begin(disk: &Arc<dyn Disk>, unfinished: &Path) -> Result<DirectoryInMaking, OfflineError> {
        if disk.list(unfinished).is_ok() {
            return Err(OfflineError::Left { path: unfinished.to_owned() });
        }
        disk.create_dir(unfinished).map_err(io("create directory", unfinished))?;
        write_log(disk, &unfinished.join(LOG_DIR))?;
        Ok(DirectoryInMaking { disk: disk.clone(), unfinished: unfinished.to_owned() })
    }

    /// Begins a directory with the log's next file, too: the member that starts there has no need to make it while clients wait.
    pub fn begin_with_spare(
        disk: &Arc<dyn Disk>,
        unfinished: &Path,
    ) -> Result<DirectoryInMaking, OfflineError> {
        let directory = DirectoryInMaking::begin(disk, unfinished)?;
        let log =
            Log::open(disk.clone(), &unfinished.join(LOG_DIR), LogOptions::default(), &mut |_: Record<
                '_,
            >| {})?;
        let housekeeper = log.housekeeper();
        while housekeeper.run()? {}
        Ok(directory)
    }

    /// Gives it a state, and its name, on the same disk.
    pub fn finish(self, dir: &Path, member: MemberNumber, tree: &mut Tree) -> Result<(), OfflineError> {
        let DirectoryInMaking { disk, unfinished } = self;
        check_free(disk.as_ref(), dir)?;
        let app = Membership::new(vec![member.into()], vec![]).encode();
        let (index, term) = FIRST;
        let meta = SnapshotMeta { group: HOME, term, index, zxid: tree.zxid().0, app };
        write_snapshot(&disk, &unfinished.join(SNAPSHOT_DIR), meta, tree)?;
        identity::write_to(disk.as_ref(), &unfinished, member, Cluster::None)?;
        disk.rename_dir(&unfinished, dir).map_err(io("name directory", dir))
    }
}

/// Fails unless a directory can be made there.
pub fn check_free(disk: &dyn Disk, dir: &Path) -> Result<(), OfflineError> {
    match disk.list(dir) {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(_) => Err(OfflineError::NotEmpty { path: dir.to_owned() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io("read directory", dir)(error)),
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> OfflineError {
    move |source| OfflineError::Io { action, path: path.to_owned(), source }
}

/// Writes a state that nothing else changes into a snapshot file.
pub(crate) fn write_snapshot(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    meta: SnapshotMeta,
    tree: &mut Tree,
) -> Result<(), SnapshotError> {
    let mut writer = SnapshotWriter::create(disk.clone(), dir, meta)?;
    let mut pieces = PieceWriter::default();
    let znodes = tree.node_count() as u64;
    let mut scan = tree.begin_snapshot();
    loop {
        let more = pieces.piece(|out| tree.scan_snapshot(&mut scan, ZNODES_PER_SLICE, out));
        pieces.blocks(!more, |block| writer.block(block))?;
        if !more {
            break;
        }
    }
    tree.end_snapshot(scan);
    writer.finish(znodes).map(drop)
}

/// An empty log behind the snapshot.
fn write_log(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), LogError> {
    let mut log = Log::open(disk.clone(), dir, LogOptions::default(), &mut |_: Record<'_>| {})?;
    let (index, term) = FIRST;
    let hard_state = HardState { term: term.0, commit: index.0, ..HardState::default() };
    log.append(Record::HardState { group: HOME, payload: &hard_state.encode() });
    log.append(Record::Base { group: HOME, term, index });
    log.mark()
}

/// True if a member has had its data there.
pub fn is_data_dir(disk: &dyn Disk, dir: &Path) -> bool {
    disk.list(dir).is_ok_and(|names| names.iter().any(|name| name == identity::NAME))
}

/// State of a member that is stopped: of each group its newest snapshot, and every entry that its log holds behind it. Entries at the end may not have
/// been committed, if it is one of several members. If the groups contradict each other there, it is an earlier state.
pub fn read_directory(
    disk: &dyn Disk,
    dir: &Path,
    log_dir: Option<&Path>,
) -> Result<DirectoryState, OfflineError> {
    if !is_data_dir(disk, dir) {
        return Err(OfflineError::NotADataDir { path: dir.to_owned() });
    }
    let _lock = DirLock::acquire(disk, dir)?;
    let log_dir = log_dir.unwrap_or(dir).join(LOG_DIR);
    let groups = group_files(disk, dir, &log_dir)?;
    let identity = identity::read(disk, dir).ok().flatten();
    let identity = identity.map(|found| found.identity);
    let member = identity.as_ref().map(|identity| identity.member);
    let is_alone = identity.is_some_and(|identity| identity.cluster == Cluster::None);
    let files = AllFiles { disk, path: dir, log_dir: &log_dir, groups, member, is_alone };
    let home = files.end(HOME)?;
    if home.has_all_znodes() {
        return Ok(DirectoryState { tree: home, earlier: None });
    }
    files.join(home)
}

/// State of a snapshot file, whatever its name, that has all znodes of its ensemble.
///
/// # Errors
/// Also if some lie in other Raft groups.
pub fn read_whole_snapshot(disk: &dyn Disk, path: &Path) -> Result<Tree, OfflineError> {
    whole(read_snapshot(disk, path)?, path)
}

fn whole(tree: Tree, path: &Path) -> Result<Tree, OfflineError> {
    if tree.has_all_znodes() { Ok(tree) } else { Err(OfflineError::Spread { path: path.to_owned() }) }
}

/// State of a snapshot file, whatever its name.
pub fn read_snapshot(disk: &dyn Disk, path: &Path) -> Result<Tree, OfflineError> {
    let reader = SnapshotReader::open_any_name(disk, path)?;
    Ok(recovery::load_from(reader, path, &Now::default())?.0)
}

/// Finds the newest snapshot of each group, and which entries the log has behind it. The home group is always among them.
pub(crate) fn group_files(
    disk: &dyn Disk,
    dir: &Path,
    log_dir: &Path,
) -> Result<BTreeMap<GroupNumber, GroupFiles>, OfflineError> {
    let (mut found, mut failed) = (BTreeMap::from([(HOME, newest(disk, dir, HOME)?)]), None);
    Log::inspect(disk, log_dir, &mut |record: Record<'_>| {
        let (Record::Entry { group, .. } | Record::Base { group, .. }) = record else { return };
        if let Entry::Vacant(place) = found.entry(group) {
            match newest(disk, dir, group) {
                Ok(newest) => drop(place.insert(newest)),
                Err(error) => failed = failed.take().or(Some(error)),
            }
        }
        match (record, found.get_mut(&group)) {
            (Record::Entry { term, index, .. }, Some(files)) if index > files.base_index() => {
                files.span.put(term, index);
            }
            (Record::Base { .. }, Some(files)) => files.span.clear(),
            _ => {}
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    for files in found.values() {
        let last = files.base_index();
        if let Some(first) = files.span.first().filter(|first| *first != last.next()) {
            return Err(OfflineError::Gap { path: log_dir.to_owned(), last, first: first.0 });
        }
    }
    Ok(found)
}

/// The newest snapshot of a group that is whole, with no entry behind it yet. A group without a directory has never had one.
fn newest(disk: &dyn Disk, dir: &Path, group: GroupNumber) -> Result<GroupFiles, OfflineError> {
    let dir = snapshot_dir(dir, group);
    let is_there = group == HOME || disk.list(&dir).is_ok();
    let newest = if is_there { snapshot::newest_valid(disk, &dir)? } else { Newest::default() };
    Ok(GroupFiles { snapshot: newest.found.map(|(file, _)| file), span: EntrySpan::default() })
}

#[cfg(test)]
mod tests {
    use paddock_storage::OsDisk;

    use super::*;
    use crate::Config;
    use crate::recovery::recover;

    fn tree() -> Tree {
        let mut draft = paddock_tree::Draft::new();
        draft.begin_session(paddock_proto::SessionId(7), 4000);
        draft.finish(paddock_proto::Zxid(100), 1).0
    }

    #[test]
    fn a_member_starts_from_a_directory_that_was_made() {
        let temp = tempfile::tempdir().unwrap();
        let shared: Arc<dyn Disk> = Arc::new(OsDisk);
        let config = Config { data_dir: temp.path().join("data"), ..Config::small() };
        make_directory(&shared, &config.data_dir, 1, &mut tree()).unwrap();
        let read = read_directory(shared.as_ref(), &config.data_dir, None).unwrap();
        assert_eq!(read.tree.digest(), tree().digest());
        let refused = make_directory(&shared, &config.data_dir, 1, &mut tree()).unwrap_err();
        assert!(refused.to_string().contains("nothing is written over"), "{refused}");

        let found = recover(shared.clone(), &config, &Now::default()).unwrap();
        assert_eq!(found.state.tree().digest(), tree().digest());
        assert_eq!(found.state.applied(), (1024, 2));
        assert!(found.recovered.is_alone(1));
        let refused = read_directory(shared.as_ref(), &config.data_dir, None).unwrap_err();
        assert!(refused.to_string().contains("in use"), "{refused}");
    }
}
