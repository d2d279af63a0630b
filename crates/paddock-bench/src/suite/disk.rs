//! Files of a server on its disk: its log and its snapshots, told apart by their names as Paddock, ZooKeeper and
//! ClickHouse Keeper give them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files(Vec<(PathBuf, u64)>);

const CHUNK_BYTES: usize = 1 << 20;

/// The log's files below a directory: they, or the directories that they stand in, are called after it.
pub(super) fn logs(directory: &Path) -> io::Result<Files> {
    files(directory, &|name| name == "log" || name == "logs" || name.starts_with("log."))
}

/// The files of snapshots, but for those that are not finished, where a server gives them another name until then.
pub(super) fn snapshots(directory: &Path) -> io::Result<Files> {
    files(directory, &|name| name.starts_with("snapshot"))
}

impl Files {
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| path.as_path())
    }

    /// Number of files that are not among `others`.
    pub(super) fn newer_than(&self, others: &Files) -> usize {
        self.paths().filter(|path| !others.paths().any(|other| other == *path)).count()
    }

    /// The length of the last one by name, which is the newest one: names hold numbers that grow.
    pub(super) fn newest_bytes(&self) -> Option<u64> {
        let by_age = |(path, _): &&(PathBuf, u64)| {
            let name = path.file_name().unwrap_or_default().to_owned();
            (name.len(), name)
        };
        self.0.iter().max_by_key(by_age).map(|(_, bytes)| *bytes)
    }

    /// Bytes that are written: servers make files larger than what they hold, and fill the rest with zeros.
    pub(super) fn written_bytes(&self) -> io::Result<u64> {
        self.0.iter().map(|(path, _)| written_bytes(path)).sum()
    }
}

fn files(directory: &Path, is_asked: &dyn Fn(&str) -> bool) -> io::Result<Files> {
    let mut found = Files::default();
    walk(directory, false, is_asked, &mut found)?;
    found.0.sort();
    Ok(found)
}

fn walk(
    directory: &Path,
    is_inside: bool,
    is_asked: &dyn Fn(&str) -> bool,
    found: &mut Files,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // What has been removed meanwhile is not there.
        let Ok(metadata) = entry.metadata() else { continue };
        let is_inside = is_inside || is_asked(&entry.file_name().to_string_lossy());
        if metadata.is_dir() {
            walk(&entry.path(), is_inside, is_asked, found)?;
        } else if is_inside && entry.path().extension().is_none_or(|extension| extension != "tmp") {
            found.0.push((entry.path(), metadata.len()));
        }
    }
    Ok(())
}

fn written_bytes(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut chunk, mut place, mut written) = (vec![0; CHUNK_BYTES], 0, 0);
    loop {
        let len = file.read(&mut chunk)?;
        if len == 0 {
            return Ok(written);
        }
        if let Some(last) = chunk[..len].iter().rposition(|byte| *byte != 0) {
            written = place + last as u64 + 1;
        }
        place += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_names() {
        let directory = tempfile::tempdir().expect("make a directory");
        let write = |path: &str, bytes: &[u8]| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("it stands in a directory")).expect("make a directory");
            fs::write(path, bytes).expect("write a file");
        };
        write("data/version-2/log.1", b"ab\0c\0\0");
        write("data/version-2/snapshot.9", b"12345");
        write("data/version-2/snapshot.1f", b"123");
        write("data/log/0000", b"\0\0");
        write("data/myid", b"1");
        write("server.log", b"it serves");
        let (logs, snapshots) =
            (logs(directory.path()).expect("look"), snapshots(directory.path()).expect("look"));
        assert_eq!((logs.paths().count(), logs.written_bytes().expect("read")), (2, 4));
        assert_eq!((snapshots.paths().count(), snapshots.newest_bytes()), (2, Some(3)));
    }
}
