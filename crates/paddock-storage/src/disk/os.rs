//! The operating system's files.

use std::any::Any;
use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::direct::Direct;
use super::{Access, Disk, DiskFile, unless_exhausted};

/// Bytes of a removed file that go at a time.
const GIVEN_BACK_BYTES: u64 = 4 << 20;
/// Modes of new files and directories: they hold what clients keep from each other, and are for their owner only.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// The operating system's file system. Data is synced with `fdatasync`, and what is written synced goes past the
/// page cache where the file system can.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(access == Access::ReadWrite).open(path);
        let file = file.map_err(unless_exhausted)?;
        let direct = match access {
            // The file would be opened once more, and for writing.
            Access::Read => Direct::Never,
            Access::ReadWrite => Direct::Untried,
        };
        Ok(Box::new(OsFile { file, direct: RefCell::new(direct) }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path);
        let file = file.map_err(unless_exhausted)?;
        Ok(Box::new(OsFile { file, direct: RefCell::new(Direct::Untried) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(unless_exhausted)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        self.sync_dir(parent.unwrap_or(Path::new(".")))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path);
        fs::remove_file(path).map_err(unless_exhausted)?;
        // Its content is not needed, so an error on the way is none.
        let _ = file.and_then(|file| give_back(&file));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).map_err(unless_exhausted)? {
            // All names of ours are ASCII; another one cannot be ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            self.create_dir(parent)?;
        }
        match DirBuilder::new().mode(DIRECTORY_MODE).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => self.sync_dir(parent.unwrap_or(Path::new(".")))?,
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir).map_err(unless_exhausted)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send>>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(path).map_err(unless_exhausted)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// An open file of the operating system.
#[derive(Debug)]
struct OsFile {
    file: File,
    direct: RefCell<Direct>,
}

impl DiskFile for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.direct.borrow_mut().forget();
        self.file.write_all_at(data, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_synced(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if self.direct.borrow_mut().write(&self.file, data, offset)? {
            return Ok(());
        }
        self.write_at(data, offset)?;
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// Gives the room of a file that has no name any more back to the file system: a piece at a time, and the next one when that
/// is on disk. All at once would be one large change, for which everybody waits who syncs meanwhile: some tens of milliseconds
/// for some hundred mebibytes, where free blocks are told to the device.
fn give_back(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    // A file that is linked elsewhere is not ours alone.
    if metadata.nlink() > 0 {
        return Ok(());
    }
    let mut len = metadata.len();
    while len > GIVEN_BACK_BYTES {
        len -= GIVEN_BACK_BYTES;
        file.set_len(len)?;
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_elsewhere_stays_whole() {
        let temp = tempfile::tempdir().unwrap();
        let [path, copy] = ["snapshot", "copy"].map(|name| temp.path().join(name));
        let len = 3 * GIVEN_BACK_BYTES + 1;
        fs::write(&path, vec![1; len as usize]).unwrap();
        fs::hard_link(&path, &copy).unwrap();
        let reader = File::open(&copy).unwrap();
        OsDisk.remove(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(fs::metadata(&copy).unwrap().len(), len);
        OsDisk.remove(&copy).unwrap();
        assert_eq!(OsDisk.list(temp.path()).unwrap(), [""; 0]);
        assert_eq!(reader.metadata().unwrap().len(), 1, "its room is given back");
    }
}
