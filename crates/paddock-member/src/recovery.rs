//! From a data directory to a member: the newest snapshot of each group, then the log behind it. `recovery/on_disk.rs` has a group as it is found,
//! `recovery/tails.rs` reads the log for all of them.

mod on_disk;
mod tails;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use paddock_replica::{Cluster, HardState, LogEntry, Membership, Recovered, Replayed, Replicated, raft_id};
use paddock_storage::snapshot::{self, Newest, SnapshotFile};
use paddock_storage::{
    DirLock, Disk, GroupNumber, Index, LockError, Log, LogError, Record, SnapshotError, SnapshotMeta,
    SnapshotReader, Term,
};
use paddock_tree::{LoadError, Tree, TreeLoader, UnknownLevel};

use crate::Config;
use crate::clock::Clock;
use crate::config::HOME;
use crate::diverged;
use crate::identity::{self, IdentityError};
use crate::incoming::IncomingError;
use crate::pieces::PieceReader;
use crate::progress::Report;
pub(crate) use on_disk::FoundGroup;
use on_disk::GroupOnDisk;
pub(crate) use tails::Tail;

/// Bytes of a snapshot, decompressed, from which on a second thread reads ahead.
const READ_AHEAD_FROM: u64 = 64 << 20;
/// Blocks that are read ahead.
const BLOCKS_AHEAD: usize = 4;

/// Reason for which a data directory cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("create directory {}", path.display())]
    CreateDirectory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("list directory {}", path.display())]
    ListDirectory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Incoming(#[from] IncomingError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("load snapshot {}", path.display())]
    Load {
        path: PathBuf,
        #[source]
        source: LoadError,
    },
    /// The state uses features that this program does not know. Nothing was touched.
    #[error(transparent)]
    FeatureLevel(#[from] UnknownLevel),
    #[error("snapshot {} ends within a piece; restore another one", path.display())]
    Incomplete { path: PathBuf },
    #[error("snapshot {} says nothing of the ensemble's members; restore another one", path.display())]
    NoMembership { path: PathBuf },
    #[error(
        "data directory {} belongs to an ensemble of this member alone: there is nothing to recover; start without --recover",
        path.display()
    )]
    AloneAlready { path: PathBuf },
    #[error("log {} does not continue from what is whole in {}", log_dir.display(), snapshot_dir.display())]
    Gap {
        log_dir: PathBuf,
        snapshot_dir: PathBuf,
        #[source]
        source: LogError,
    },
    #[error(
        "log {} ends at entry {last}, before snapshot {}: its end is lost, and writes newer than the snapshot with it; \
         put the log back or restore a backup",
        log_dir.display(),
        snapshot.display()
    )]
    LogLost { log_dir: PathBuf, last: Index, snapshot: PathBuf },
    #[error(
        "log {} has entries of the Raft group {group}, of which the state of the home group does not know: use the build that wrote them, or \
         restore a backup",
        log_dir.display()
    )]
    AnotherGroup { log_dir: PathBuf, group: u32 },
    #[error(
        "data directory {} has {groups} Raft groups, and a survivor of a lost quorum cannot begin anew with more than one: start the other \
         members, or restore a backup",
        path.display()
    )]
    SeveralGroups { path: PathBuf, groups: u32 },
    #[error(
        "{} says that this member has been in use, but transaction log {} is empty and there is no snapshot: check dataLogDir, and \
         that its volume is mounted. If the data is lost for good, remove the file: a member of an ensemble then learns from the \
         others, one alone begins with an empty tree",
        data_dir.join(identity::NAME).display(),
        log_dir.display()
    )]
    LogMissing { data_dir: PathBuf, log_dir: PathBuf },
}

/// A member as it was found on disk.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) state: Replicated,
    pub(crate) recovered: Recovered,
    /// Entries of the home group that were applied while the log was read.
    pub(crate) replayed: Replayed,
    /// Groups beside the home group, by rising number.
    pub(crate) others: Vec<FoundGroup>,
    pub(crate) log: Log,
    /// The ensemble that the directory belongs to, as it was written down.
    pub(crate) cluster: Cluster,
    /// False if there was no room yet for the log's first record and the identity.
    pub(crate) has_begun: bool,
    /// Held for as long as the member runs.
    pub(crate) locks: Vec<DirLock>,
}

pub(crate) fn recover(
    disk: Arc<dyn Disk>,
    config: &Config,
    clock: &impl Clock,
) -> Result<Found, RecoveryError> {
    let (log_dir, snapshot_dir) = (config.log_dir(), config.snapshot_dir(HOME));
    let mut locks = vec![DirLock::acquire(disk.as_ref(), &config.data_dir)?];
    if config.log_dir.is_some() {
        locks.push(DirLock::acquire(disk.as_ref(), &log_dir)?);
    }
    let identity = identity::check(disk.as_ref(), config)?;
    let cluster = identity.map_or(Cluster::None, |found| found.identity.cluster);
    let diverged_at = diverged::marked(disk.as_ref(), config)?;
    if let Some(index) = diverged_at {
        let aside = diverged::put_aside(disk.as_ref(), config, index)?;
        tracing::warn!(
            index,
            ?aside,
            "the state of this member was wrong: its files were put aside, and it begins anew"
        );
    }
    let not_created = |source| RecoveryError::CreateDirectory { path: snapshot_dir.clone(), source };
    disk.create_dir(&snapshot_dir).map_err(not_created)?;
    let home = GroupOnDisk::read(disk.as_ref(), config, HOME, clock)?;
    let (log, home, others) = tails::read_log(&disk, config, home, clock)?;
    let hard_state = home.tail.hard_state;
    // Each start writes its number into the log, the first one before it writes the identity down.
    let has_nothing =
        home.state.applied().0 == 0 && hard_state.incarnation == 0 && home.tail.entries.is_empty();
    if has_nothing && identity.is_some() && diverged_at.is_none() {
        return Err(RecoveryError::LogMissing { data_dir: config.data_dir.clone(), log_dir });
    }
    for raised in home.tail.entries.iter().filter_map(LogEntry::raised_level) {
        raised.check(config.known_level)?;
    }
    check_ensemble(config, &home, cluster)?;
    check_groups(config, &home, others.last())?;
    // Everything before this line only looks: a directory that is refused stays as it is.
    let mut log = log.repair()?;
    if home.begins_anew() {
        let index = home.meta.index.0;
        tracing::info!(index, "transaction log begins anew behind the installed snapshot");
    }
    home.settle_files(disk.as_ref(), config, &mut log)?;
    let FoundGroup { mut state, mut recovered, replayed, .. } = home.found();
    state.keep_applied(config.settings.change_bytes_kept);
    recovered.cluster = cluster;
    if diverged_at.is_some() {
        recovered.learn_first();
    }
    if let Some(members) = &config.refounding {
        if recovered.is_alone(raft_id(config.member)) {
            return Err(RecoveryError::AloneAlready { path: config.data_dir.clone() });
        }
        refound(&mut log, &mut recovered, config, members)?;
    }
    if let Some(cluster) = recovered.refounded_cluster() {
        // The id in the log is newer than the one that was written down.
        recovered.cluster = Cluster::Known(cluster);
    }
    recovered.begin(raft_id(config.member), config.process(), state.tree(), clock.now());
    let others: Vec<FoundGroup> = others
        .into_iter()
        .map(|other| other.settle(disk.as_ref(), config, &mut log, clock))
        .collect::<Result<_, _>>()?;
    let hard_states = others.iter().map(|other| (other.number, &other.recovered.hard_state));
    let is_written = write_down(&mut log, [(HOME, &recovered.hard_state)].into_iter().chain(hard_states))?;
    let has_begun = if is_written { settle_identity(&disk, config, identity)? } else { identity.is_some() };
    if let Some(index) = diverged_at.filter(|_| is_written) {
        diverged::remove_mark(disk.as_ref(), config, index)?;
    }
    Ok(Found { state, recovered, replayed, others, log, cluster, has_begun, locks })
}

/// Writes the identity into a new directory. Returns false if there was no room, so that it goes with what is written next.
fn settle_identity(
    disk: &Arc<dyn Disk>,
    config: &Config,
    found: Option<identity::Found>,
) -> Result<bool, IdentityError> {
    match identity::settle(disk.as_ref(), config, found) {
        Err(error) if error.is_disk_full() || error.is_exhausted() => Ok(false),
        settled => settled.map(|()| true),
    }
}

/// A snapshot of another ensemble has no place here, unless a survivor began an ensemble of its own behind it. A member that
/// learns may not have come so far.
fn check_ensemble(config: &Config, home: &GroupOnDisk, cluster: Cluster) -> Result<(), RecoveryError> {
    let (Some(ensemble), Cluster::Known(expected)) = (home.state.tree().ensemble(), cluster) else {
        return Ok(());
    };
    let is_learning = home.tail.hard_state.silent_until > 0;
    let is_refounded = || home.tail.entries.iter().any(|entry| entry.refounded_cluster().is_some());
    if ensemble.cluster != expected && !is_learning && !is_refounded() {
        let (path, found) = (config.snapshot_dir(HOME), ensemble.cluster);
        return Err(IdentityError::AnotherEnsemble { path, found, expected }.into());
    }
    Ok(())
}

/// Writes the number of this start down, for each group. Returns false if there was no room, so that it goes with what is written next.
fn write_down<'a>(
    log: &mut Log,
    hard_states: impl Iterator<Item = (GroupNumber, &'a HardState)>,
) -> Result<bool, LogError> {
    for (group, hard_state) in hard_states {
        log.append(Record::HardState { group, payload: &hard_state.encode() });
    }
    match log.sync() {
        Ok(()) => Ok(true),
        Err(error) if error.is_passing() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks that the state of the home group knows all groups up to the last one in the log, and that no survivor begins anew with several.
fn check_groups(
    config: &Config,
    home: &GroupOnDisk,
    last: Option<&GroupOnDisk>,
) -> Result<(), RecoveryError> {
    let founded = home.tail.entries.iter().filter_map(LogEntry::founded_groups);
    let groups = founded.chain([home.state.tree().groups().count()]).max().unwrap_or(1);
    match last.map(|last| last.meta.group).filter(|last| last.0 >= groups) {
        Some(last) => Err(RecoveryError::AnotherGroup { log_dir: config.log_dir(), group: last.0 }),
        None if config.refounding.is_some() && groups > 1 => {
            Err(RecoveryError::SeveralGroups { path: config.data_dir.clone(), groups })
        }
        None => Ok(()),
    }
}

/// The state in a group's newest snapshot; an empty one without a snapshot.
fn newest_state(
    disk: &dyn Disk,
    config: &Config,
    group: GroupNumber,
    newest: Newest,
    clock: &impl Clock,
) -> Result<(Tree, SnapshotMeta), RecoveryError> {
    for skipped in &newest.skipped {
        tracing::error!(file = %skipped.file.path.display(), error = %skipped.error, "skipped a damaged snapshot");
    }
    let (mut tree, meta) = match newest.found {
        Some((file, _)) => load(disk, &file, clock)?,
        None => (Tree::new(), SnapshotMeta { group, ..SnapshotMeta::default() }),
    };
    tree.set_long_list(config.long_list);
    Ok((tree, meta))
}

/// Membership as of the snapshot; empty without one.
fn membership(config: &Config, meta: &SnapshotMeta) -> Result<Membership, RecoveryError> {
    if meta.index == Index(0) {
        return Ok(Membership::default());
    }
    let path = snapshot::snapshot_path(&config.snapshot_dir(meta.group), meta.index);
    Membership::decode(&meta.app).ok_or(RecoveryError::NoMembership { path })
}

/// Begins a new ensemble of this member alone behind everything that is there.
fn refound(log: &mut Log, recovered: &mut Recovered, config: &Config, members: &str) -> Result<(), LogError> {
    let (index, term) = recovered.entries.last().map_or(recovered.applied, |entry| (entry.index, entry.term));
    let term = term.max(recovered.hard_state.term) + 1;
    let entry = LogEntry::refounding(index + 1, term, raft_id(config.member), config.seed, members);
    let hard_state =
        HardState { term, vote: 0, commit: entry.index, silent_until: 0, ..recovered.hard_state };
    log.append(Record::HardState { group: HOME, payload: &hard_state.encode() });
    let (index, term) = (Index(entry.index), Term(entry.term));
    log.append(Record::Entry { group: HOME, term, index, payload: &entry.payload });
    log.sync()?;
    recovered.hard_state = hard_state;
    recovered.entries.push(entry);
    Ok(())
}

/// Gives the blocks of a snapshot to `take`, while another thread reads and decompresses the next ones.
fn read_ahead(
    mut reader: SnapshotReader,
    mut take: impl FnMut(Vec<u8>) -> Result<(), RecoveryError>,
) -> Result<(), RecoveryError> {
    let (to, blocks) = mpsc::sync_channel(BLOCKS_AHEAD);
    thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(block) = reader.next_block().transpose() {
                let is_last = block.is_err();
                // Who takes them may have refused one.
                if to.send(block).is_err() || is_last {
                    return;
                }
            }
        });
        blocks.into_iter().try_for_each(|block| take(block?))
    })
}

pub(crate) fn load(
    disk: &dyn Disk,
    file: &SnapshotFile,
    clock: &impl Clock,
) -> Result<(Tree, SnapshotMeta), RecoveryError> {
    load_from(SnapshotReader::open(disk, &file.path)?, &file.path, clock)
}

pub(crate) fn load_from(
    mut reader: SnapshotReader,
    path: &Path,
    clock: &impl Clock,
) -> Result<(Tree, SnapshotMeta), RecoveryError> {
    let failed = |source| RecoveryError::Load { path: path.to_owned(), source };
    let (meta, items) = (reader.meta().clone(), reader.totals().items);
    let mut report = Report::start("loading snapshot", "bytes", clock);
    let (mut loader, mut pieces) = (TreeLoader::new(), PieceReader::default());
    let mut take = |block: Vec<u8>| -> Result<(), RecoveryError> {
        pieces.block(&block, |piece| loader.block(piece)).map_err(failed)?;
        report.advance(block.len() as u64, clock);
        Ok(())
    };
    if reader.totals().raw_bytes >= READ_AHEAD_FROM {
        read_ahead(reader, take)?;
    } else {
        while let Some(block) = reader.next_block()? {
            take(block)?;
        }
    }
    if !pieces.is_whole() {
        return Err(RecoveryError::Incomplete { path: path.to_owned() });
    }
    let tree = loader.finish().map_err(failed)?;
    tracing::info!(
        file = %path.display(),
        zxid = %tree.zxid(),
        znodes = items,
        seconds = format!("{:.2}", report.seconds(clock)),
        "snapshot loaded"
    );
    Ok((tree, meta))
}

/// Log and snapshot have to meet. What is in a snapshot was in the log first, so a log that ends before it has lost
/// something, and it is not known how much.
fn check_log(log: &Log, config: &Config, meta: &SnapshotMeta) -> Result<(), RecoveryError> {
    let (log_dir, snapshot_dir) = (config.log_dir(), config.snapshot_dir(meta.group));
    log.check_follows(meta.group, (meta.index != Index(0)).then_some(meta.index)).map_err(|source| {
        RecoveryError::Gap { log_dir: log_dir.clone(), snapshot_dir: snapshot_dir.clone(), source }
    })?;
    let last = log.last_index(meta.group).unwrap_or_default();
    if last < meta.index {
        let snapshot = snapshot::snapshot_path(&snapshot_dir, meta.index);
        return Err(RecoveryError::LogLost { log_dir, last, snapshot });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use paddock_state::Now;
    use paddock_storage::MemDisk;
    use paddock_tree::FeatureLevel;

    use super::*;

    fn found(disk: &MemDisk) -> Found {
        recover(Arc::new(disk.clone()), &Config::small(), &Now::default()).unwrap()
    }

    fn append(found: &mut Found, term: u64, index: u64) {
        let (term, index) = (Term(term), Index(index));
        found.log.append(Record::Entry { group: HOME, term, index, payload: &[] });
    }

    fn entries(found: &Found) -> Vec<(u64, u64)> {
        found.recovered.entries.iter().map(|entry| (entry.index, entry.term)).collect()
    }

    #[test]
    fn a_log_with_entries_of_another_group_is_refused_and_left_alone() {
        let disk = MemDisk::new(1);
        let mut first = found(&disk);
        append(&mut first, 1, 1);
        let (group, term, index) = (GroupNumber(1), Term(1), Index(1));
        first.log.append(Record::Entry { group, term, index, payload: &[] });
        first.log.sync().unwrap();
        drop(first);
        for _ in 0..2 {
            let refused = recover(Arc::new(disk.clone()), &Config::small(), &Now::default()).unwrap_err();
            assert!(matches!(refused, RecoveryError::AnotherGroup { group: 1, .. }), "{refused}");
        }
    }

    #[test]
    fn a_log_of_a_level_that_is_not_known_is_refused_and_left_alone() {
        let disk = MemDisk::new(1);
        let mut first = found(&disk);
        append(&mut first, 1, 1);
        let (group, term, index) = (HOME, Term(1), Index(2));
        first.log.append(Record::Entry { group, term, index, payload: b"\x07\0\x010.9.0" });
        first.log.sync().unwrap();
        drop(first);
        let start = |known_level| {
            let config = Config { known_level, ..Config::small() };
            recover(Arc::new(disk.clone()), &config, &Now::default())
        };
        for _ in 0..2 {
            let refused = start(FeatureLevel::NONE).unwrap_err();
            assert!(matches!(refused, RecoveryError::FeatureLevel(_)), "{refused}");
            assert!(refused.to_string().ends_with(": run release 0.9.0 or a later one"), "{refused}");
        }
        assert_eq!(entries(&start(FeatureLevel::KNOWN).unwrap()), [(1, 1), (2, 1)]);
    }

    #[test]
    fn entries_of_a_later_leader_take_the_place_of_all_behind_them() {
        let disk = MemDisk::new(1);
        let mut first = found(&disk);
        (1..=5).for_each(|index| append(&mut first, 1, index));
        append(&mut first, 2, 3);
        first.log.sync().unwrap();
        drop(first);
        disk.crash();
        assert_eq!(entries(&found(&disk)), [(1, 1), (2, 1), (3, 2)]);
    }

    #[test]
    fn what_is_committed_of_a_long_log_is_applied_while_it_is_read() {
        let disk = MemDisk::new(1);
        let mut first = found(&disk);
        let known = HardState { term: 2, commit: 3, ..first.recovered.hard_state };
        (1..=5).for_each(|index| append(&mut first, 1, index));
        first.log.append(Record::HardState { group: HOME, payload: &known.encode() });
        append(&mut first, 2, 5);
        first.log.sync().unwrap();
        drop(first);
        let config = Config { log_bytes_held: 0, ..Config::small() };
        let found = recover(Arc::new(disk.clone()), &config, &Now::default()).unwrap();
        assert_eq!(entries(&found), [(4, 1), (5, 2)]);
        assert_eq!((found.state.applied(), found.recovered.applied), ((3, 1), (3, 1)));
        assert_eq!(found.recovered.snapshot, (0, 0), "the file is what others can be sent");
    }

    #[test]
    fn every_start_has_a_number_of_its_own_though_the_clock_stands_still() {
        let disk = MemDisk::new(1);
        let mut last = 0;
        for _ in 0..3 {
            let number = found(&disk).recovered.hard_state.incarnation;
            assert!(number > last, "start {number} after {last}");
            last = number;
            disk.crash();
        }
    }
}
