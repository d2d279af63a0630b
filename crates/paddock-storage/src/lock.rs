//! The lock on a data directory: two processes never share one.
//!
//! The lock is held by the operating system on an open file, so it ends with the process, however that ends. The file
//! itself stays.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;

const LOCK_FILE: &str = "lock";

/// A data directory taken by this process. Dropping it gives the directory back.
#[derive(Debug)]
pub struct DirLock {
    dir: PathBuf,
    _held: Box<dyn Any + Send>,
}

/// Reasons for which a directory could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("data directory {} is in use by another process", dir.display())]
    InUse { dir: PathBuf },
    #[error("lock data directory {}", dir.display())]
    Io {
        dir: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl DirLock {
    /// Creates the directory if need be and takes it, or says that someone else has it. Never waits.
    pub fn acquire(disk: &dyn Disk, dir: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { dir: dir.to_owned(), source };
        disk.create_dir(dir).map_err(failed)?;
        match disk.lock(&dir.join(LOCK_FILE)).map_err(failed)? {
            Some(held) => Ok(Self { dir: dir.to_owned(), _held: held }),
            None => Err(LockError::InUse { dir: dir.to_owned() }),
        }
    }

    /// The directory that is locked.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{MemDisk, OsDisk};

    fn check_exclusive(disk: &dyn Disk, dir: &Path) {
        let first = DirLock::acquire(disk, dir).expect("the directory is free");
        let error = DirLock::acquire(disk, dir).expect_err("the directory is taken");
        assert!(matches!(error, LockError::InUse { .. }));
        assert!(
            error.to_string().contains(&dir.display().to_string()),
            "the message names the directory: {error}"
        );
        assert_eq!(first.dir(), dir);
        drop(first);
        DirLock::acquire(disk, dir).expect("the directory was given back");
    }

    #[test]
    fn a_directory_has_one_owner() {
        let temp = tempfile::tempdir().expect("temporary directory");
        check_exclusive(&OsDisk, &temp.path().join("data"));
        check_exclusive(&MemDisk::new(1), Path::new("/data"));
    }

    #[test]
    fn a_crash_gives_the_directory_back() {
        let disk = MemDisk::new(1);
        let _held = DirLock::acquire(&disk, Path::new("/data")).expect("free");
        disk.crash();
        DirLock::acquire(&disk, Path::new("/data")).expect("the owner crashed");
    }
}
