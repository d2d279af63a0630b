//! The slow work around segments: zeroing the next ones ahead of time and giving released ones another life.
//!
//! A segment is used only when it is allocated, zero, and synced, so that appending to it changes no metadata and a
//! torn write shows (see `tail.rs`). Zeroing 64 MiB takes a while, so the owner of the log calls [`Housekeeper::run`]
//! from another thread. If it has not run in time the log does the same work itself, inside one sync.
//! The log's syncs wait for the same disk, so the housekeeper of a server writes small pieces with pauses, and hurries once the log may need the segment before it is ready.
//!
//! A released segment keeps its name until its turn comes; after a restart it is replayed again, which is harmless.
//! The oldest goes first and each step is made durable before the next, so no gap can appear.
//! A spare found at the start is zeroed again: it is not known how far the last process came.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::LogError;
use super::segment::spare_path;
use crate::disk::{Access, Disk, DiskFile, unless_exhausted};

/// Zeros are written and synced in pieces of this size, so that a sync of the log never waits for more than one.
const PIECE_BYTES: usize = 1 << 20;
/// Size of a piece where pauses follow: a sync of the log hardly notices it.
const SMALL_PIECE_BYTES: usize = 128 << 10;
/// A pause is so many times as long as the piece before it took: the disk is the log's for four fifths of the time.
const PAUSE_FACTOR: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Prepares segments for a [`Log`](super::Log). Clones do the work of the same log.
#[derive(Clone, Debug)]
pub struct Housekeeper {
    shared: Arc<HousekeeperShared>,
    has_pauses: bool,
}

#[derive(Debug)]
struct HousekeeperShared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    spares_kept: usize,
    /// Held while working, so that two callers do not do the same work twice.
    work: Mutex<()>,
    /// Held for moments only.
    stock: Mutex<Stock>,
    /// There may be something to do, or nothing is to be waited for any more.
    stirred: Condvar,
    /// Bytes that the log can write before it needs the next segment.
    left: AtomicU64,
}

#[derive(Debug)]
struct Stock {
    /// The size that the next segment is expected to have, and each of those that are ready has.
    segment_bytes: u64,
    ready: VecDeque<Spare>,
    /// Files with any content.
    used: VecDeque<PathBuf>,
    /// Segments under their own names, the oldest first.
    released: VecDeque<PathBuf>,
    next_number: u64,
    /// The directory has changes that are not synced, for want of a descriptor.
    is_name_unsynced: bool,
    /// The log waits for a segment.
    is_awaited: bool,
    /// No caller is to wait for work any more.
    is_over: bool,
}

/// A file that is allocated, zero and synced.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn DiskFile>,
    capacity: u64,
}

impl Stock {
    /// True if something is left to do, where `spares_kept` segments are to be ready.
    fn has_work(&self, spares_kept: usize) -> bool {
        let is_short = self.ready.len() < spares_kept;
        self.is_name_unsynced || is_short || !self.released.is_empty() || !self.used.is_empty()
    }
}

impl Housekeeper {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: &Path,
        segment_bytes: u64,
        spares_kept: usize,
        spares: &[u64],
    ) -> Self {
        let used = spares.iter().map(|number| spare_path(dir, *number)).collect();
        let next_number = spares.last().map_or(0, |last| last + 1);
        let (ready, released) = Default::default();
        let stock = Stock {
            segment_bytes,
            ready,
            used,
            released,
            next_number,
            is_name_unsynced: false,
            is_awaited: false,
            is_over: false,
        };
        let shared = HousekeeperShared {
            disk,
            dir: dir.to_owned(),
            spares_kept,
            work: Mutex::new(()),
            stock: Mutex::new(stock),
            stirred: Condvar::new(),
            left: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), has_pauses: false }
    }

    /// For a thread of its own: `run` leaves the disk to the log for most of the time, unless the log needs a segment soon.
    pub fn with_pauses(self) -> Housekeeper {
        Housekeeper { has_pauses: true, ..self }
    }

    /// Does one piece of work, which may take as long as writing a segment does. `false`: there was nothing to do.
    ///
    /// After an error that passes ([`LogError::is_passing`]), try again later. After another one the process has to end, as
    /// after one of the log.
    pub fn run(&self) -> Result<bool, LogError> {
        let _working = lock(&self.shared.work);
        self.finish_names()?;
        let (ready, used, released) = self.counts();
        if released > 0 {
            return self.retire(ready + used < self.shared.spares_kept).map(|()| true);
        }
        if ready < self.shared.spares_kept {
            return self.prepare().map(|()| true);
        }
        if used > 0 {
            return self.discard().map(|()| true);
        }
        Ok(false)
    }

    /// Waits until there is something to do. Returns false once [`Housekeeper::end_waits`] was called.
    pub fn wait(&self) -> bool {
        let kept = self.shared.spares_kept;
        let is_idle = |stock: &mut Stock| !stock.is_over && !stock.has_work(kept);
        let stock = self.shared.stirred.wait_while(self.stock(), is_idle);
        !stock.expect("no one panics while housekeeping").is_over
    }

    /// From now on no caller waits for work.
    pub fn end_waits(&self) {
        self.stock().is_over = true;
        self.shared.stirred.notify_all();
    }

    /// The number of segments that are ready for use.
    pub fn ready(&self) -> usize {
        self.stock().ready.len()
    }

    /// The size of those that are ready, and of those that will be.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.stock().segment_bytes
    }

    /// From now on the next segments are expected to have this size. Those of another one that are ready go.
    pub(super) fn set_segment_bytes(&self, segment_bytes: u64) {
        let mut stock = self.stock();
        if stock.segment_bytes != segment_bytes {
            stock.segment_bytes = segment_bytes;
            let unfit = std::mem::take(&mut stock.ready);
            stock.used.extend(unfit.into_iter().map(|spare| spare.path));
            self.shared.stirred.notify_all();
        }
    }

    /// Takes segments over that the log needs no more, the oldest first.
    pub(super) fn release(&self, path: PathBuf) {
        self.stock().released.push_back(path);
        self.shared.stirred.notify_all();
    }

    /// Takes a file over that never became a segment.
    pub(super) fn retire_unborn(&self, path: &Path) -> Result<(), LogError> {
        let _working = lock(&self.shared.work);
        let retired = self.rename_to_spare(path);
        self.shared.stirred.notify_all();
        retired
    }

    /// Gives back what was taken and not used.
    pub(super) fn put_back(&self, spare: Spare) {
        let mut stock = self.stock();
        if spare.capacity == stock.segment_bytes {
            stock.ready.push_front(spare)
        } else {
            stock.used.push_back(spare.path);
            self.shared.stirred.notify_all();
        }
    }

    /// A segment of that capacity, from the stock if there is one.
    pub(super) fn take(&self, capacity: u64) -> Result<Spare, LogError> {
        if capacity != self.segment_bytes() {
            return self.while_awaited(|| {
                let _working = lock(&self.shared.work);
                self.finish_names()?;
                self.create(capacity)
            });
        }
        loop {
            if let Some(spare) = self.stock().ready.pop_front() {
                self.shared.stirred.notify_all();
                return Ok(spare);
            }
            self.while_awaited(|| self.prepare_unless_ready())?;
        }
    }

    /// Makes a segment ready, unless one has become ready meanwhile.
    fn prepare_unless_ready(&self) -> Result<(), LogError> {
        let _working = lock(&self.shared.work);
        self.finish_names()?;
        let (ready, used, released) = self.counts();
        if ready > 0 {
            return Ok(());
        }
        // A released segment needs no room that the disk may not have.
        if used == 0 && released > 0 {
            self.retire(true)?;
        }
        self.prepare()
    }

    /// Does what the log waits for; who works on a segment beside it makes no pauses meanwhile.
    fn while_awaited<T>(&self, work: impl FnOnce() -> T) -> T {
        self.stock().is_awaited = true;
        self.shared.stirred.notify_all();
        let done = work();
        self.stock().is_awaited = false;
        done
    }

    /// The log can write this many bytes before it needs the next segment.
    pub(super) fn note_left(&self, bytes: u64) {
        self.shared.left.store(bytes, Relaxed);
    }

    fn retire(&self, keep: bool) -> Result<(), LogError> {
        let path = self.stock().released.front().expect("the caller has seen one").clone();
        if keep {
            return self.rename_to_spare(&path);
        }
        self.remove(&path)?;
        self.stock().released.pop_front();
        self.sync_dir()
    }

    fn rename_to_spare(&self, path: &Path) -> Result<(), LogError> {
        let spare = self.new_path();
        self.shared.disk.rename(path, &spare).map_err(LogError::io("retire log segment", path))?;
        let mut stock = self.stock();
        stock.used.push_back(spare);
        stock.released.retain(|released| released != path);
        drop(stock);
        self.sync_dir()
    }

    /// Makes one spare ready: one of the used files if there is one, else a new file.
    fn prepare(&self) -> Result<(), LogError> {
        let used = self.stock().used.front().cloned();
        let spare = match used {
            Some(path) => self.reuse(path)?,
            None => Some(self.create(self.segment_bytes())?),
        };
        let mut stock = self.stock();
        match spare {
            Some(spare) if spare.capacity == stock.segment_bytes => stock.ready.push_back(spare),
            // The log has begun a larger segment meanwhile.
            Some(spare) => stock.used.push_back(spare.path),
            None => {}
        }
        Ok(())
    }

    /// Zeroes a used file. One of another size, left by other options or by a record too large for a segment, goes.
    fn reuse(&self, path: PathBuf) -> Result<Option<Spare>, LogError> {
        let opened = self.shared.disk.open(&path, Access::ReadWrite);
        let file = opened.map_err(LogError::io("open spare log segment", &path))?;
        let length = file.len().map_err(LogError::io("read length of", &path))?;
        if length != self.segment_bytes() {
            self.discard()?;
            return Ok(None);
        }
        self.write_zeros(file.as_ref(), &path, length)?;
        self.stock().used.pop_front();
        Ok(Some(Spare { path, file, capacity: length }))
    }

    fn create(&self, capacity: u64) -> Result<Spare, LogError> {
        let path = self.new_path();
        let created = self.shared.disk.create(&path);
        let file = created.map_err(LogError::allocating(&path, capacity))?;
        if let Err(error) = self.write_zeros(file.as_ref(), &path, capacity) {
            // What was written of it is room that others may need.
            self.remove(&path)?;
            self.sync_dir()?;
            return Err(error);
        }
        Ok(Spare { path, file, capacity })
    }

    /// Fills a file with zeros, durably.
    fn write_zeros(&self, file: &dyn DiskFile, path: &Path, length: u64) -> Result<(), LogError> {
        let zeros = vec![0; PIECE_BYTES.min(length as usize)];
        let mut offset = 0;
        while offset < length {
            let (begun, rest) = (Instant::now(), length - offset);
            let has_time = self.has_time(rest);
            let piece = if has_time { SMALL_PIECE_BYTES.min(zeros.len()) } else { zeros.len() };
            let piece = piece.min(rest as usize);
            let written = file.write_at(&zeros[..piece], offset).map_err(unless_exhausted);
            written.map_err(LogError::allocating(path, length))?;
            file.sync_data().map_err(LogError::allocating(path, length))?;
            offset += piece as u64;
            if has_time && offset < length {
                self.pause(begun.elapsed());
            }
        }
        Ok(())
    }

    /// True if the log does not need a segment soon of which `rest` bytes are still to be zeroed. A young log's next segment is twice as large as
    /// the one that it writes.
    fn has_time(&self, rest: u64) -> bool {
        self.has_pauses && self.shared.left.load(Relaxed) >= rest / 2 && !self.stock().is_awaited
    }

    /// Leaves the disk to the log for a while, behind a piece that took `took`, unless it comes to wait for the segment.
    fn pause(&self, took: Duration) {
        let pause = (took * PAUSE_FACTOR).min(PAUSE_MAX);
        let has_time = |stock: &mut Stock| !stock.is_awaited && !stock.is_over;
        let waited = self.shared.stirred.wait_timeout_while(self.stock(), pause, has_time);
        drop(waited.expect("no one panics while housekeeping"));
    }

    fn discard(&self) -> Result<(), LogError> {
        let path = self.stock().used.front().expect("the caller has seen one").clone();
        self.remove(&path)?;
        self.stock().used.pop_front();
        self.sync_dir()
    }

    fn remove(&self, path: &Path) -> Result<(), LogError> {
        self.shared.disk.remove(path).map_err(LogError::io("remove", path))
    }

    /// Makes changed names durable. If that has to wait for a descriptor, it is the first thing that is done next time: a
    /// retired segment must not lose its contents before it has lost its name.
    fn sync_dir(&self) -> Result<(), LogError> {
        self.stock().is_name_unsynced = true;
        let synced = self.shared.disk.sync_dir(&self.shared.dir);
        synced.map_err(LogError::io("sync directory", &self.shared.dir))?;
        self.stock().is_name_unsynced = false;
        Ok(())
    }

    fn finish_names(&self) -> Result<(), LogError> {
        if self.stock().is_name_unsynced { self.sync_dir() } else { Ok(()) }
    }

    fn new_path(&self) -> PathBuf {
        let mut stock = self.stock();
        stock.next_number += 1;
        spare_path(&self.shared.dir, stock.next_number - 1)
    }

    fn counts(&self) -> (usize, usize, usize) {
        let stock = self.stock();
        (stock.ready.len(), stock.used.len(), stock.released.len())
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        lock(&self.shared.stock)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no one panics while housekeeping")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDisk;
    use crate::disk::DiskFault;

    #[test]
    fn no_small_pieces_are_written_while_the_log_waits() {
        for is_awaited in [false, true] {
            let disk = MemDisk::new(7);
            let dir = Path::new("/d");
            disk.create_dir(dir).expect("create");
            disk.fail_after(DiskFault::Sync, 1);
            let housekeeper = Housekeeper::new(Arc::new(disk), dir, 1 << 20, 1, &[]).with_pauses();
            housekeeper.note_left(1 << 20);
            let run = || housekeeper.run().is_ok();
            let is_zeroed_at_once = if is_awaited { housekeeper.while_awaited(run) } else { run() };
            assert_eq!(is_zeroed_at_once, is_awaited);
        }
    }
}
