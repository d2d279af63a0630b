//! Snapshots between members, as files: pieces of this member's for another, and one that comes from the leader.
//!
//! A snapshot that comes is written under a temporary name and checked when it is whole. Then it takes the place of the log and the
//! state, and no crash on the way may leave a directory that looks as if the log had lost its end. So a mark comes
//! first: while `installing-N` is there, the log is to begin anew behind snapshot N, whatever it holds.
//!
//! 1. the mark, durably; 2. the snapshot's name, durably; 3. the log's new base, synced; 4. the mark is gone, durably.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paddock_replica::{Install, SnapshotRead, SnapshotWrite};
use paddock_storage::disk::{Access, Disk, DiskFile, is_exhausted, is_full};
use paddock_storage::snapshot::{self, snapshot_path};
use paddock_storage::{GroupNumber, Index, Log, LogError, Record, SnapshotError, Term};

use crate::config::HOME;

const MARK: &str = "installing-";

/// Reason for which a snapshot that another member sends cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum IncomingError {
    #[error("{action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{} is of entry {found:?} and not of {expected:?}", path.display())]
    AnotherIndex { path: PathBuf, found: Index, expected: Index },
    #[error("a piece of a snapshot that was not begun")]
    NotBegun,
}

impl IncomingError {
    /// True if the disk has no room: the same call may succeed later.
    pub(crate) fn is_disk_full(&self) -> bool {
        match self {
            IncomingError::File { source, .. } => is_full(source),
            IncomingError::Log(LogError::DiskFull { .. }) => true,
            _ => false,
        }
    }

    /// True if the system had no descriptor for a file: the same call may succeed later.
    pub(crate) fn is_exhausted(&self) -> bool {
        match self {
            IncomingError::File { source, .. } => is_exhausted(source),
            IncomingError::Snapshot(error) => error.is_exhausted(),
            IncomingError::Log(LogError::Exhausted { .. }) => true,
            _ => false,
        }
    }
}

pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IncomingError {
    move |source| IncomingError::File { action, path: path.to_owned(), source }
}

/// A piece of this member's snapshot, of this many bytes, and whether it ends with it. `None` if it is not there any more.
pub(crate) fn read_piece(
    disk: &dyn Disk,
    dir: &Path,
    read: SnapshotRead,
    piece_bytes: u64,
) -> Option<(Vec<u8>, bool)> {
    let file = disk.open(&snapshot_path(dir, Index(read.index)), Access::Read).ok()?;
    let left = file.len().ok()?.checked_sub(read.offset)?;
    let mut bytes = vec![0; left.min(piece_bytes) as usize];
    let len = file.read_at(&mut bytes, read.offset).ok()?;
    (len == bytes.len()).then_some((bytes, left <= piece_bytes))
}

/// The snapshot that is on its way here.
#[derive(Debug)]
pub(crate) struct Incoming {
    group: GroupNumber,
    disk: Arc<dyn Disk>,
    /// Directory of the group's snapshots.
    dir: PathBuf,
    file: Option<(u64, Box<dyn DiskFile>)>,
}

impl Incoming {
    pub(crate) fn new(group: GroupNumber, disk: Arc<dyn Disk>, dir: PathBuf) -> Incoming {
        Incoming { group, disk, dir, file: None }
    }

    /// Temporary name, as a snapshot writer of this member gives it: a file that is left under it is removed at the next start.
    fn temporary(&self, index: u64) -> PathBuf {
        snapshot_path(&self.dir, Index(index)).with_extension("tmp")
    }

    /// Writes a piece. When this returns for the last one, the file is synced and whole.
    pub(crate) fn write(&mut self, piece: &SnapshotWrite) -> Result<(), IncomingError> {
        let path = self.temporary(piece.index);
        if piece.offset == 0 {
            self.file = None;
            match self.disk.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file("remove", &path)(error));
                }
                _ => {}
            }
            if self.group != HOME {
                // The home group's is there from the start.
                self.disk.create_dir(&self.dir).map_err(file("create directory", &self.dir))?;
            }
            self.file = Some((piece.index, self.disk.create(&path).map_err(file("create", &path))?));
        }
        let begun = self.file.as_ref().filter(|(index, _)| *index == piece.index);
        let (_, open) = begun.ok_or(IncomingError::NotBegun)?;
        open.write_at(&piece.bytes, piece.offset).map_err(file("write", &path))?;
        if piece.is_last {
            open.sync_data().map_err(file("sync", &path))?;
            self.file = None;
            let found = snapshot::verify_unfinished(self.disk.as_ref(), &path)?.index;
            if found != Index(piece.index) {
                return Err(IncomingError::AnotherIndex { path, found, expected: Index(piece.index) });
            }
        }
        Ok(())
    }

    /// Puts the snapshot that has come in the place of the log. Returns its file. After [`IncomingError::is_exhausted`] it goes on
    /// where it was when it is called again.
    pub(crate) fn install(&self, install: &Install, log: &mut Log) -> Result<PathBuf, IncomingError> {
        let index = Index(install.index);
        let mark = mark_path(&self.dir, index);
        match self.disk.create(&mark) {
            // An earlier call came so far.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => drop(created.map_err(file("create", &mark))?),
        }
        self.sync_dir()?;
        let (from, to) = (self.temporary(install.index), snapshot_path(&self.dir, index));
        match self.disk.rename(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_there(&to)? => {}
            renamed => renamed.map_err(file("rename", &from))?,
        }
        self.sync_dir()?;
        begin_log_behind(log, self.group, index, Term(install.term))?;
        remove_mark(self.disk.as_ref(), &self.dir, index)?;
        Ok(to)
    }

    fn is_there(&self, path: &Path) -> Result<bool, IncomingError> {
        match self.disk.open(path, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            opened => Ok(opened.map(|_| true).map_err(file("open", path))?),
        }
    }

    fn sync_dir(&self) -> Result<(), IncomingError> {
        self.disk.sync_dir(&self.dir).map_err(file("sync directory", &self.dir))
    }
}

/// The log has nothing of a group any more, and goes on behind `index`.
pub(crate) fn begin_log_behind(
    log: &mut Log,
    group: GroupNumber,
    index: Index,
    term: Term,
) -> Result<(), LogError> {
    log.append(Record::Base { group, term, index });
    log.sync()
}

fn mark_path(dir: &Path, index: Index) -> PathBuf {
    dir.join(format!("{MARK}{:016x}", index.0))
}

/// The index of a snapshot whose installation was begun and, for all that is known, not finished.
pub(crate) fn unfinished(disk: &dyn Disk, dir: &Path) -> Result<Option<Index>, IncomingError> {
    let names = disk.list(dir).map_err(file("list", dir))?;
    let index = |name: &String| u64::from_str_radix(name.strip_prefix(MARK)?, 16).ok().map(Index);
    Ok(names.iter().filter_map(index).max())
}

pub(crate) fn remove_mark(disk: &dyn Disk, dir: &Path, index: Index) -> Result<(), IncomingError> {
    let mark = mark_path(dir, index);
    match disk.remove(&mark) {
        // An earlier call came so far.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.map_err(file("remove", &mark))?,
    }
    disk.sync_dir(dir).map_err(file("sync directory", dir))
}

#[cfg(test)]
mod tests {
    use paddock_replica::Membership;
    use paddock_state::Now;
    use paddock_storage::disk::DiskFault;
    use paddock_storage::{MemDisk, SnapshotMeta, SnapshotWriter};
    use paddock_tree::Tree;

    use super::*;
    use crate::Config;
    use crate::pieces::PieceWriter;
    use crate::recovery::{Found, recover};

    const INDEX: u64 = 100;
    const TERM: u64 = 3;

    /// The bytes of a leader's snapshot.
    fn snapshot_bytes() -> Vec<u8> {
        let (disk, dir) = (MemDisk::new(0), Path::new("/leader"));
        disk.create_dir(dir).unwrap();
        let app = Membership::new(vec![1], vec![]).encode();
        let meta = SnapshotMeta { group: HOME, term: Term(TERM), index: Index(INDEX), zxid: 0, app };
        let mut writer = SnapshotWriter::create(Arc::new(disk.clone()), dir, meta).unwrap();
        let (mut tree, mut pieces) = (Tree::new(), PieceWriter::default());
        let mut scan = tree.begin_snapshot();
        while pieces.piece(|out| tree.scan_snapshot(&mut scan, 1000, out)) {}
        pieces.blocks(true, |block| writer.block(block)).unwrap();
        let file = writer.finish(4).unwrap();
        disk.contents(&file.path).unwrap()
    }

    /// Entries that a member has of its own, and the leader does not: some of them behind the snapshot.
    const OWN: u64 = 120;

    fn member(disk: &MemDisk, config: &Config) -> Found {
        let mut found = recover(Arc::new(disk.clone()), config, &Now::default()).unwrap();
        for index in 1..=OWN {
            let (term, index) = (Term(1), Index(index));
            found.log.append(Record::Entry { group: HOME, term, index, payload: &[] });
        }
        found.log.sync().unwrap();
        found
    }

    fn fetch_and_install(
        disk: &MemDisk,
        found: &mut Found,
        config: &Config,
        bytes: &[u8],
    ) -> Result<(), IncomingError> {
        let mut incoming = Incoming::new(HOME, Arc::new(disk.clone()), config.snapshot_dir(HOME));
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let piece = |offset, bytes: &[u8], is_last| SnapshotWrite {
            index: INDEX,
            offset,
            bytes: bytes.to_vec(),
            is_last,
        };
        incoming.write(&piece(0, first, false))?;
        incoming.write(&piece(first.len() as u64, second, true))?;
        let membership = Membership::new(vec![1], vec![]);
        incoming.install(&Install { index: INDEX, term: TERM, membership }, &mut found.log).map(drop)
    }

    #[test]
    fn whenever_the_member_dies_it_has_what_it_had_or_what_came() {
        let (bytes, config) = (snapshot_bytes(), Config::small());
        // What the crash leaves of names is chance: each moment has its turn with several disks.
        let disks = [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename].into_iter();
        for (fault, seed) in disks.flat_map(|fault| (0..8).map(move |seed| (fault, seed))) {
            let mut faults = 0;
            loop {
                let disk = MemDisk::new(seed);
                let mut found = member(&disk, &config);
                disk.fail_after(fault, faults);
                let result = fetch_and_install(&disk, &mut found, &config, &bytes);
                disk.clear_faults();
                drop(found);
                disk.crash();

                let again = recover(Arc::new(disk.clone()), &config, &Now::default());
                let again = again.unwrap_or_else(|error| panic!("{fault:?} after {faults}: {error}"));
                let has = (again.state.applied(), again.recovered.entries.len());
                let (old, new) = (((0, 0), OWN as usize), ((INDEX, TERM), 0));
                assert!(has == old || has == new, "{fault:?} after {faults}: {has:?}");
                if result.is_ok() {
                    assert_eq!(has, new, "{fault:?} after {faults}");
                    assert!(faults > 0, "{fault:?} never happens");
                    break;
                }
                faults += 1;
            }
        }
    }

    /// A file that a killed process has written is shown to the next one, and may not be durable.
    #[test]
    fn a_power_cut_while_a_killed_member_recovers_leaves_what_it_had_or_what_came() {
        let (bytes, config) = (snapshot_bytes(), Config::small());
        let faults = [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename];
        let ends = faults.iter().flat_map(|fault| (0..12).map(move |others| (*fault, others)));
        for (killed, cut) in ends.clone().flat_map(|killed| ends.clone().map(move |cut| (killed, cut))) {
            let disk = MemDisk::new(killed.1 * 100 + cut.1);
            let mut found = member(&disk, &config);
            disk.fail_after(killed.0, killed.1);
            let _ = fetch_and_install(&disk, &mut found, &config, &bytes);
            disk.clear_faults();
            drop(found);
            disk.kill();
            disk.fail_after(cut.0, cut.1);
            drop(recover(Arc::new(disk.clone()), &config, &Now::default()));
            disk.clear_faults();
            disk.crash();
            let again = recover(Arc::new(disk.clone()), &config, &Now::default());
            let again = again.unwrap_or_else(|error| panic!("{killed:?}, {cut:?}: {error}"));
            let has = (again.state.applied(), again.recovered.entries.len());
            let (old, new) = (((0, 0), OWN as usize), ((INDEX, TERM), 0));
            assert!(has == old || has == new, "{killed:?}, {cut:?}: {has:?}");
        }
    }

    #[test]
    fn a_piece_is_read_as_it_was_written() {
        let disk = MemDisk::new(1);
        disk.create_dir(Path::new("/s")).unwrap();
        let bytes: Vec<u8> = (0..110).collect();
        disk.put(&snapshot_path(Path::new("/s"), Index(7)), &bytes);
        let read =
            |index, offset| read_piece(&disk, Path::new("/s"), SnapshotRead { to: 1, index, offset }, 100);
        let (first, last) = bytes.split_at(100);
        assert_eq!(read(7, 0), Some((first.to_vec(), false)));
        assert_eq!(read(7, 100), Some((last.to_vec(), true)));
        assert_eq!(read(7, 111), None);
        assert_eq!(read(8, 0), None);
    }

    #[test]
    fn a_snapshot_that_is_not_whole_is_not_taken() {
        let (bytes, config, disk) = (snapshot_bytes(), Config::small(), MemDisk::new(1));
        let mut found = member(&disk, &config);
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        assert!(fetch_and_install(&disk, &mut found, &config, &flipped).is_err());
        assert!(fetch_and_install(&disk, &mut found, &config, &bytes[..bytes.len() - 1]).is_err());
        fetch_and_install(&disk, &mut found, &config, &bytes).unwrap();
    }
}
