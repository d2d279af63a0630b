//! Snapshots between members, as files: pieces of this member's for another, and one that comes from the leader.
//!
//! What comes is written under a temporary name and checked when it is whole. Then it takes the place of the log and the
//! state, and no crash on the way may leave a directory that looks as if the log had lost its end. So a mark comes
//! first: while `installing-N` is there, the log is to begin anew behind snapshot N, whatever it holds.
//!
//! 1. the mark, durably; 2. the snapshot's name, durably; 3. the log's new base, synced; 4. the mark is gone, durably.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paddock_replica::{Install, SnapshotRead, SnapshotWrite};
use paddock_storage::disk::{Access, Disk, DiskFile};
use paddock_storage::snapshot::{self, snapshot_path};
use paddock_storage::{Index, Log, LogError, Record, SnapshotError, Term};

use crate::recovery::GROUP;

/// A snapshot travels in pieces of so many bytes.
const PIECE_BYTES: u64 = 1 << 20;
const MARK: &str = "installing-";

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

fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IncomingError {
    move |source| IncomingError::File { action, path: path.to_owned(), source }
}

/// A piece of this member's snapshot, and whether it ends with it. `None` if it is not there any more.
pub(crate) fn read_piece(disk: &dyn Disk, dir: &Path, read: SnapshotRead) -> Option<(Vec<u8>, bool)> {
    let file = disk.open(&snapshot_path(dir, Index(read.index)), Access::Read).ok()?;
    let left = file.len().ok()?.checked_sub(read.offset)?;
    let mut bytes = vec![0; left.min(PIECE_BYTES) as usize];
    let len = file.read_at(&mut bytes, read.offset).ok()?;
    (len == bytes.len()).then_some((bytes, left <= PIECE_BYTES))
}

/// The snapshot that is on its way here.
#[derive(Debug)]
pub(crate) struct Incoming {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    file: Option<(u64, Box<dyn DiskFile>)>,
}

impl Incoming {
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Incoming {
        Incoming { disk, dir, file: None }
    }

    /// As a writer of this member would call it: what is left of it is removed at the next start.
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

    /// Puts the snapshot that has come in the place of the log. Returns its file.
    pub(crate) fn install(&self, install: &Install, log: &mut Log) -> Result<PathBuf, IncomingError> {
        let index = Index(install.index);
        let mark = mark_path(&self.dir, index);
        self.disk.create(&mark).map_err(file("create", &mark))?;
        self.sync_dir()?;
        let (from, to) = (self.temporary(install.index), snapshot_path(&self.dir, index));
        self.disk.rename(&from, &to).map_err(file("rename", &from))?;
        self.sync_dir()?;
        begin_log_behind(log, index, Term(install.term))?;
        remove_mark(self.disk.as_ref(), &self.dir, index)?;
        Ok(to)
    }

    fn sync_dir(&self) -> Result<(), IncomingError> {
        self.disk.sync_dir(&self.dir).map_err(file("sync directory", &self.dir))
    }
}

/// The log is empty, and goes on behind `index`.
pub(crate) fn begin_log_behind(log: &mut Log, index: Index, term: Term) -> Result<(), LogError> {
    log.append(Record::Base { group: GROUP, term, index });
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
    disk.remove(&mark).map_err(file("remove", &mark))?;
    disk.sync_dir(dir).map_err(file("sync directory", dir))
}
