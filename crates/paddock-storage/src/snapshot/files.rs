//! The snapshot files of a directory: which there are, which is good, which can go.

use std::path::{Path, PathBuf};

use super::{SnapshotError, SnapshotMeta, SnapshotReader};
use crate::Index;
use crate::disk::Disk;

const PREFIX: &str = "snapshot-";
pub(super) const UNFINISHED: &str = "tmp";

/// A snapshot file, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    pub index: Index,
    pub path: PathBuf,
}

/// Result of [`newest_valid`].
#[derive(Debug, Default)]
pub struct Newest {
    /// The newest file that is whole.
    pub found: Option<(SnapshotFile, SnapshotMeta)>,
    /// Newer files that cannot be used, the newest first. The owner has to tell the operator.
    pub skipped: Vec<Skipped>,
}

/// A snapshot file that cannot be used.
#[derive(Debug)]
pub struct Skipped {
    pub file: SnapshotFile,
    pub error: SnapshotError,
}

/// The name of the snapshot of an index.
pub fn snapshot_path(dir: &Path, index: Index) -> PathBuf {
    dir.join(format!("{PREFIX}{:016x}", index.0))
}

/// The name that the snapshot with this name has until it is whole.
pub fn unfinished_path(path: &Path) -> PathBuf {
    path.with_extension(UNFINISHED)
}

/// The snapshot files, the oldest first.
pub fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<SnapshotFile>, SnapshotError> {
    let paths = paths(disk, dir)?;
    Ok(paths
        .into_iter()
        .filter_map(|path| index_of(&path).map(|index| SnapshotFile { index, path }))
        .collect())
}

/// Reads a whole file and checks it. The blocks are not decompressed: their writer has done that.
pub fn verify(disk: &dyn Disk, path: &Path) -> Result<SnapshotMeta, SnapshotError> {
    verify_all(SnapshotReader::open(disk, path)?)
}

/// Verifies a file that does not have its name yet.
pub fn verify_unfinished(disk: &dyn Disk, path: &Path) -> Result<SnapshotMeta, SnapshotError> {
    verify_all(SnapshotReader::open_any_name(disk, path)?)
}

fn verify_all(mut reader: SnapshotReader) -> Result<SnapshotMeta, SnapshotError> {
    while reader.next_compressed()?.is_some() {}
    Ok(reader.meta().clone())
}

/// The newest file that is whole, and those that had to be passed over. See the module about falling back.
/// Finds the newest snapshot that is whole. It is durable under its name, whatever became of the process that wrote it.
pub fn newest_valid(disk: &dyn Disk, dir: &Path) -> Result<Newest, SnapshotError> {
    sync_dir(disk, dir)?;
    let mut newest = Newest { found: None, skipped: Vec::new() };
    for file in list(disk, dir)?.into_iter().rev() {
        match verify(disk, &file.path) {
            Ok(meta) => {
                newest.found = Some((file, meta));
                break;
            }
            Err(error) => newest.skipped.push(Skipped { file, error }),
        }
    }
    Ok(newest)
}

/// Removes all but the newest `keep` files, and one more if none of those is whole: the newest that is.
/// Answers with the files that are left, the oldest first.
pub fn retain(disk: &dyn Disk, dir: &Path, keep: usize) -> Result<Vec<SnapshotFile>, SnapshotError> {
    assert!(keep > 0, "the last snapshot is never removed");
    let files = list(disk, dir)?;
    if files.len() <= keep {
        return Ok(files);
    }
    let last_valid = newest_valid(disk, dir)?.found.map(|(file, _meta)| file);
    let first_kept = files.len() - keep;
    let mut left = Vec::new();
    for (position, file) in files.into_iter().enumerate() {
        if position >= first_kept || last_valid.as_ref() == Some(&file) {
            left.push(file);
        } else {
            disk.remove(&file.path).map_err(SnapshotError::io("remove", &file.path))?;
        }
    }
    sync_dir(disk, dir)?;
    Ok(left)
}

/// Removes what writers left that never finished. To be called at the start, before any writer runs.
pub fn remove_unfinished(disk: &dyn Disk, dir: &Path) -> Result<(), SnapshotError> {
    let stale = paths(disk, dir)?.into_iter().filter(|path| {
        path.extension().is_some_and(|extension| extension == UNFINISHED)
            && index_of(&path.with_extension("")).is_some()
    });
    for path in stale {
        disk.remove(&path).map_err(SnapshotError::io("remove", &path))?;
    }
    sync_dir(disk, dir)
}

/// The index in a file name, if it is one that [`snapshot_path`] makes.
pub(super) fn index_of(path: &Path) -> Option<Index> {
    let digits = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let index = u64::from_str_radix(digits, 16).ok()?;
    (digits == format!("{index:016x}")).then_some(Index(index))
}

fn paths(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>, SnapshotError> {
    let names = disk.list(dir).map_err(SnapshotError::io("list", dir))?;
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

fn sync_dir(disk: &dyn Disk, dir: &Path) -> Result<(), SnapshotError> {
    disk.sync_dir(dir).map_err(SnapshotError::io("sync directory", dir))
}
