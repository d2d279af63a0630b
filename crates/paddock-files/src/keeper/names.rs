//! The files of a ClickHouse Keeper, by their names.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{FileError, failed};

/// Name in front of that of a file that is being written, in a marker beside it.
const UNFINISHED: &str = "tmp_";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnapshotFile {
    /// Index of the last log entry that it has.
    pub(super) index: u64,
    pub(super) path: PathBuf,
    pub(super) is_unfinished: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogFile {
    /// Index of its first entry.
    pub(super) from: u64,
    /// Index of the last entry that it was to have; one that was being written may end before.
    pub(super) to: u64,
    pub(super) path: PathBuf,
}

/// The snapshots of a directory, the oldest first.
pub(super) fn snapshots(dir: &Path) -> Result<Vec<SnapshotFile>, FileError> {
    let names = names(dir)?;
    let unfinished: HashSet<&str> = names.iter().filter_map(|name| name.strip_prefix(UNFINISHED)).collect();
    let mut files: Vec<SnapshotFile> = names
        .iter()
        .filter_map(|name| {
            let index = snapshot_index(name)?;
            let is_unfinished = unfinished.contains(name.as_str());
            Some(SnapshotFile { index, path: dir.join(name), is_unfinished })
        })
        .collect();
    files.sort_by(|a, b| (a.index, &a.path).cmp(&(b.index, &b.path)));
    Ok(files)
}

/// The changelogs of a directory, in their order.
pub(super) fn changelogs(dir: &Path) -> Result<Vec<LogFile>, FileError> {
    let mut files: Vec<LogFile> = names(dir)?
        .iter()
        .filter_map(|name| {
            let (from, to) = plain_name(name)?.strip_prefix("changelog_")?.split_once('_')?;
            Some(LogFile { from: number(from)?, to: number(to)?, path: dir.join(name) })
        })
        .collect();
    files.sort_by(|a, b| (a.from, a.to, &a.path).cmp(&(b.from, b.to, &b.path)));
    Ok(files)
}

/// Recent Keepers add a random number behind the index.
fn snapshot_index(name: &str) -> Option<u64> {
    let rest = plain_name(name)?.strip_prefix("snapshot_")?;
    match rest.split_once('_') {
        None => number(rest),
        Some((index, random)) => {
            let is_random = !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_hexdigit());
            number(index).filter(|_| is_random)
        }
    }
}

fn plain_name(name: &str) -> Option<&str> {
    name.strip_suffix(".bin").or_else(|| name.strip_suffix(".bin.zstd"))
}

fn number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { digits.parse().ok() } else { None }
}

fn names(dir: &Path) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed("read directory", dir))? {
        let entry = entry.map_err(failed("read directory", dir))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names_and_sorted_by_their_indexes() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "snapshot_200.bin.zstd",
            "snapshot_50.bin",
            "snapshot_1000_00ab12cd34ef5678.bin.zstd",
            "tmp_snapshot_1000_00ab12cd34ef5678.bin.zstd",
            "snapshot_7.bin.gz",
            "snapshot_x.bin",
            "changelog_101_200.bin.zstd",
            "changelog_11_100.bin",
            "changelog_1.bin",
            "state",
        ] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        let found = snapshots(dir.path()).unwrap();
        let snapshots: Vec<(u64, bool)> = found.iter().map(|file| (file.index, file.is_unfinished)).collect();
        assert_eq!(snapshots, [(50, false), (200, false), (1000, true)]);
        let found = changelogs(dir.path()).unwrap();
        let logs: Vec<(u64, u64)> = found.iter().map(|file| (file.from, file.to)).collect();
        assert_eq!(logs, [(11, 100), (101, 200)]);
    }
}
