//! A group of which the member is to have no replica any more: its files, and what the log has of it, are let go.
//!
//! No crash on the way may leave a log whose snapshot is gone, or a snapshot whose log is. So a mark comes first: while it is there, the disk has nothing of the
//! group, whatever log and snapshots say.
//!
//! 1. the mark, durably; 2. the log begins anew behind entry 0, without a term and a vote, synced; 3. the snapshots are gone, durably; 4. the mark is.

use std::io;
use std::path::{Path, PathBuf};

use paddock_replica::HardState;
use paddock_storage::disk::Disk;
use paddock_storage::{GroupNumber, Index, Log, Record, Term};

use crate::incoming::{IncomingError, file};

const MARK: &str = "let-go";

fn mark_path(dir: &Path) -> PathBuf {
    dir.join(MARK)
}

/// True if the directory of a group's snapshots has the mark.
pub(crate) fn is_marked(disk: &dyn Disk, dir: &Path) -> Result<bool, IncomingError> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        names => Ok(names.map_err(file("list", dir))?.iter().any(|name| name == MARK)),
    }
}

/// Lets go what the disk has of a group. `start` is the number of the last start of this member in the group: a later replica has a higher one. After an error
/// that passes, and after a crash, it goes on where it was when it is called again.
pub(crate) fn let_go(
    disk: &dyn Disk,
    dir: &Path,
    log: &mut Log,
    group: GroupNumber,
    start: u64,
) -> Result<(), IncomingError> {
    let mark = mark_path(dir);
    if !is_marked(disk, dir)? {
        disk.create_dir(dir).map_err(file("create directory", dir))?;
        drop(disk.create(&mark).map_err(file("create", &mark))?);
    }
    disk.sync_dir(dir).map_err(file("sync directory", dir))?;
    let hard_state = HardState { incarnation: start, ..HardState::default() };
    log.append(Record::HardState { group, payload: &hard_state.encode() });
    log.append(Record::Base { group, term: Term(0), index: Index(0) });
    log.sync()?;
    log.release(group, Index(0));
    let others = disk.list(dir).map_err(file("list", dir))?.into_iter().filter(|name| name != MARK);
    for path in others.map(|name| dir.join(name)) {
        disk.remove(&path).map_err(file("remove", &path))?;
    }
    disk.sync_dir(dir).map_err(file("sync directory", dir))?;
    disk.remove(&mark).map_err(file("remove", &mark))?;
    disk.sync_dir(dir).map_err(file("sync directory", dir))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paddock_replica::Membership;
    use paddock_state::Now;
    use paddock_storage::disk::DiskFault;
    use paddock_storage::{MemDisk, SnapshotMeta, SnapshotWriter};
    use paddock_tree::{FeatureLevel, GroupFounders, RaisedLevel, Tree};

    use super::*;
    use crate::Config;
    use crate::config::HOME;
    use crate::pieces::PieceWriter;
    use crate::recovery::{Found, FoundGroup, recover};

    const GROUP: GroupNumber = GroupNumber(1);
    const START: u64 = 77;
    const LAST: u64 = 30;

    fn save(disk: &MemDisk, dir: &Path, group: GroupNumber, index: u64, mut tree: Tree) {
        disk.create_dir(dir).unwrap();
        let app = Membership::new(vec![1], vec![]).encode();
        let meta = SnapshotMeta { group, term: Term(1), index: Index(index), zxid: 0, app };
        let mut writer = SnapshotWriter::create(Arc::new(disk.clone()), dir, meta).unwrap();
        let (mut pieces, mut scan) = (PieceWriter::default(), tree.begin_snapshot());
        while pieces.piece(|out| tree.scan_snapshot(&mut scan, 1000, out)) {}
        pieces.blocks(true, |block| writer.block(block)).unwrap();
        writer.finish(4).unwrap();
    }

    /// A member with a snapshot of another group and entries behind it. The home group has nothing but a snapshot.
    fn member(disk: &MemDisk, config: &Config) -> Found {
        let mut home = Tree::new();
        home.raise_level(&RaisedLevel::known(FeatureLevel::SEVERAL_GROUPS));
        home.found_groups(2, GroupFounders::default());
        let mut found = recover(Arc::new(disk.clone()), config, &Now::default()).unwrap();
        save(disk, &config.snapshot_dir(HOME), HOME, 1, home);
        let (term, home) =
            (Term(1), Record::Entry { group: HOME, term: Term(1), index: Index(1), payload: &[] });
        found.log.append(home);
        let hard_state = HardState {
            term: 1,
            vote: 1,
            commit: LAST,
            silent_until: 0,
            incarnation: START,
            learned_through: 0,
        };
        found.log.append(Record::HardState { group: GROUP, payload: &hard_state.encode() });
        for index in (1..=LAST).map(Index) {
            found.log.append(Record::Entry { group: GROUP, term, index, payload: &[] });
        }
        found.log.sync().unwrap();
        save(disk, &config.snapshot_dir(GROUP), GROUP, 20, Tree::new());
        found.log.release(GROUP, Index(20));
        found
    }

    fn of_group(found: &Found) -> &FoundGroup {
        found.others.iter().find(|group| group.number == GROUP).expect("it is in the log")
    }

    /// Entry of the snapshot and last entry.
    fn extent(group: &FoundGroup) -> (u64, u64) {
        (group.state.applied().0, group.recovered.entries.last().map_or(0, |entry| entry.index))
    }

    #[test]
    fn whenever_the_member_dies_it_has_all_of_the_group_or_nothing() {
        let faults = [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename];
        for (fault, seed) in faults.into_iter().flat_map(|fault| (0..8).map(move |seed| (fault, seed))) {
            // What is committed is applied while the log is read, or is left to the replica.
            for log_bytes_held in [0, usize::MAX] {
                let config = Config { known_level: FeatureLevel::KNOWN, log_bytes_held, ..Config::small() };
                die_everywhere(&config, fault, seed);
            }
        }
    }

    /// Lets a group go, with a fault of the disk at each of its operations.
    fn die_everywhere(config: &Config, fault: DiskFault, seed: u64) {
        let mut is_done = false;
        for count in 0.. {
            let disk = MemDisk::new(seed);
            let mut found = member(&disk, config);
            disk.fail_after(fault, count);
            is_done |= let_go(&disk, &config.snapshot_dir(GROUP), &mut found.log, GROUP, START).is_ok();
            drop(found);
            disk.crash();
            disk.fail_after(fault, u64::MAX);
            let found = recover(Arc::new(disk.clone()), config, &Now::default()).unwrap();
            let group = of_group(&found);
            assert!(group.recovered.hard_state.incarnation > START, "a later start has a higher number");
            if group.state.applied() != (LAST, 1) && extent(group) != (20, LAST) {
                assert_eq!(extent(group), (0, 0));
                assert!(group.is_let_go());
                let names = disk.list(&config.snapshot_dir(GROUP)).unwrap();
                assert_eq!(names, [""; 0], "nothing is left");
            }
            if is_done {
                assert!(group.is_let_go());
                break;
            }
        }
    }
}
