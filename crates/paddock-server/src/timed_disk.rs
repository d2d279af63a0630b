//! The operating system's disk, with the times of the log's syncs.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use paddock_statistics::summary::SummaryCounter;
use paddock_storage::{Access, Disk, DiskFile, OsDisk};

#[derive(Debug)]
pub(crate) struct TimedDisk {
    log_dir: PathBuf,
    syncs: Arc<SummaryCounter>,
}

impl TimedDisk {
    /// Times in milliseconds of the syncs of files in `log_dir` go to `syncs`.
    pub(crate) fn new(log_dir: PathBuf, syncs: Arc<SummaryCounter>) -> TimedDisk {
        TimedDisk { log_dir, syncs }
    }

    fn timed(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        if path.parent() == Some(&self.log_dir) {
            Box::new(TimedFile { file, syncs: self.syncs.clone() })
        } else {
            file
        }
    }
}

impl Disk for TimedDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.timed(path, OsDisk.open(path, access)?))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.timed(path, OsDisk.create(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename_dir(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.create_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send>>> {
        OsDisk.lock(path)
    }
}

#[derive(Debug)]
struct TimedFile {
    file: Box<dyn DiskFile>,
    syncs: Arc<SummaryCounter>,
}

impl TimedFile {
    fn timed<T>(&self, sync: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let synced = sync();
        self.syncs.record_since(started);
        synced
    }
}

impl DiskFile for TimedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(data, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.timed(|| self.file.sync_data())
    }

    fn write_synced(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.timed(|| self.file.write_synced(data, offset))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
