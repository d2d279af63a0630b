//! The files of a data directory of ZooKeeper, by their names.

use std::fs;
use std::path::{Path, PathBuf};

use paddock_proto::Zxid;

use crate::error::{FileError, failed};

/// Directory of the files within a data directory; 2 is the version of their form.
pub(crate) const VERSION_DIR: &str = "version-2";

/// A snapshot or a log, with the zxid in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    pub(crate) zxid: Zxid,
    pub(crate) path: PathBuf,
}

/// True if the directory looks like one of ZooKeeper's.
pub fn is_data_dir(dir: &Path) -> bool {
    dir.join(VERSION_DIR).is_dir() || snapshots(dir).is_ok_and(|files| !files.is_empty())
}

/// The directory that holds the files: `dir` may be the `dataDir` or the `version-2` in it.
pub(crate) fn files_dir(dir: &Path) -> Result<PathBuf, FileError> {
    fs::read_dir(dir).map_err(failed("read directory", dir))?;
    let inner = dir.join(VERSION_DIR);
    if inner.is_dir() {
        return Ok(inner);
    }
    let has_files = !snapshots(dir)?.is_empty() || !logs(dir)?.is_empty();
    if has_files { Ok(dir.to_owned()) } else { Err(FileError::NotADataDir { path: dir.to_owned() }) }
}

/// The snapshots of a directory, the oldest first.
pub(crate) fn snapshots(dir: &Path) -> Result<Vec<NamedFile>, FileError> {
    named_files(dir, |name| {
        let rest = name.strip_prefix("snapshot.")?;
        let compressed = rest.strip_suffix(".gz").or_else(|| rest.strip_suffix(".snappy"));
        parse_zxid(compressed.unwrap_or(rest))
    })
}

/// The transaction logs of a directory, the oldest first.
pub(crate) fn logs(dir: &Path) -> Result<Vec<NamedFile>, FileError> {
    named_files(dir, |name| parse_zxid(name.strip_prefix("log.")?))
}

/// The zxid in the name of a snapshot file; 0 for another name.
pub(crate) fn zxid_of_snapshot(path: &Path) -> Zxid {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.split('.').nth(1).and_then(parse_zxid);
    digits.unwrap_or_default()
}

fn parse_zxid(digits: &str) -> Option<Zxid> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let zxid = if is_plain { i64::from_str_radix(digits, 16).ok() } else { None };
    zxid.map(Zxid)
}

fn named_files(dir: &Path, zxid: impl Fn(&str) -> Option<Zxid>) -> Result<Vec<NamedFile>, FileError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed("read directory", dir))? {
        let entry = entry.map_err(failed("read directory", dir))?;
        if let Some(zxid) = entry.file_name().to_str().and_then(&zxid) {
            files.push(NamedFile { zxid, path: entry.path() });
        }
    }
    files.sort_by(|a, b| (a.zxid, &a.path).cmp(&(b.zxid, &b.path)));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_by_their_zxids() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["snapshot.9", "snapshot.10.gz", "snapshot.a.snappy", "snapshot.x", "snapshot.5.tmp", "log.1"]
        {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        let zxids: Vec<i64> = snapshots(dir.path()).unwrap().iter().map(|file| file.zxid.0).collect();
        assert_eq!(zxids, [9, 10, 16]);
        assert_eq!(logs(dir.path()).unwrap().len(), 1);
        assert!(is_data_dir(dir.path()));
        assert_eq!(zxid_of_snapshot(Path::new("/x/snapshot.1f.gz")), Zxid(31));
    }
}
