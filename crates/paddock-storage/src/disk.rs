//! The disk as this crate sees it: named files with positioned reads and writes, and the two kinds of sync.
//!
//! Everything durable goes through [`Disk`], so that the same log and snapshot code runs on the operating system
//! ([`OsDisk`]) and on a simulated disk with faults ([`MemDisk`]).
//!
//! Callers rely on this, and no more:
//! - data is durable after [`DiskFile::sync_data`] or [`DiskFile::write_synced`], a name (created, renamed, removed) after
//!   [`Disk::sync_dir`];
//! - after a crash each unsynced 512-byte sector is old or new, or new up to some 8-byte word and old after it;
//! - unsynced changes of names in one directory survive as a prefix of their order, as in a journaling file system.

mod direct;
mod mem;
mod os;

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::Path;

use rustix::io::Errno;

pub use mem::{DiskFault, MemDisk};
pub use os::OsDisk;

/// Size of a sector, in bytes: a disk writes it whole or not at all, but for the tear that the module describes.
pub const SECTOR_BYTES: u64 = 512;

/// Purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    ReadWrite,
}

/// A place for files.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file that exists.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Creates an empty file for reading and writing. Fails if the name exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name in the same directory, in one step, replacing what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a directory, with all that is in it, another name beside it, durably.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Creates a directory and its parents where they are missing, durably.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes all names of a directory durable as they are now.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks a file, created if need be, until the answer is dropped or the process ends. `None`: another has it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send>>>;
}

/// An open file.
pub trait DiskFile: Debug + Send {
    /// Reads until the buffer is full or the file ends; says how much it was.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of it, making the file longer if need be. After an error any part may have been written.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the contents and the length durable. After an error the unsynced writes may be lost for good, even if a
    /// later call succeeds.
    fn sync_data(&self) -> io::Result<()>;

    /// Writes all of it and makes it durable, as `write_at` followed by `sync_data`. For a file that is filled from front to
    /// back: all behind the data has to be zero, and a part of it may be written as zeros again. Nothing else that was
    /// written becomes durable by this, and no unsynced writes may be left near it.
    fn write_synced(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(data, offset)?;
        self.sync_data()
    }

    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// True if there is nothing in it.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// True if an error says that there is no room, which passes when someone makes room: on the disk, in a quota, or in the process's limit for
/// the size of a file.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// True if a call of [`Disk`] has done nothing because the system had no descriptor or no memory for it, which passes when
/// a thread gives some back. A failed sync never says so, whatever its reason: it must not be tried again.
pub fn is_exhausted(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Exhausted>())
}

/// Reason of an error for which `is_exhausted` is true.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Exhausted(io::Error);

/// For the error of a call that takes a descriptor, or memory, and has done nothing when it finds none. Not for syncs.
pub(crate) fn unless_exhausted(error: io::Error) -> io::Error {
    const PASSING: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
    let is_passing = Errno::from_io_error(&error).is_some_and(|errno| PASSING.contains(&errno));
    if is_passing { io::Error::other(Exhausted(error)) } else { error }
}
