//! A machine's disk: one in memory, whose operations are counted, so that the process can die between any two of them.
//!
//! A sync takes its time. The engine waits for it, but what it had said before goes its way meanwhile, and the power may be
//! cut. So the last sync of a turn is put off until the world says that it is done.

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use paddock_replica::HardState;
use paddock_storage::disk::{Access, Disk, DiskFault, DiskFile};
use paddock_storage::{GroupNumber, Log, MemDisk, Record};

use crate::faults::Moment;

/// The group of clients and their sessions.
const HOME: GroupNumber = GroupNumber(0);

/// Name of the file with which a member marks that it puts a snapshot of a leader in the place of its log and state.
const INSTALL_MARK: &str = "installing-";

const ONE_THREAD: &str = "one thread runs the world";

#[derive(Debug, Default)]
struct DiskProcess {
    operations: u64,
    dies_at: Option<(u64, Moment)>,
    is_dead: bool,
    /// A fault waits for one of the operations, which has to see it.
    has_fault: bool,
    /// True if the next sync may be put off.
    defers: bool,
    deferred: Option<SharedFile>,
    /// The disk is to have no room once a leader's snapshot is being installed.
    fills_at_install: bool,
    is_filled: bool,
    /// There is no room for the mark of an installation.
    has_no_room: bool,
}

/// Clones share the disk.
#[derive(Clone, Debug)]
pub(crate) struct SimDisk {
    memory: MemDisk,
    process: Arc<Mutex<DiskProcess>>,
}

impl SimDisk {
    pub(crate) fn new(seed: u64) -> SimDisk {
        SimDisk { memory: MemDisk::new(seed), process: Arc::default() }
    }

    /// A disk that holds what another one does now.
    pub(crate) fn copy(&self, seed: u64) -> SimDisk {
        SimDisk { memory: self.memory.copy(seed), process: Arc::default() }
    }

    /// The disk itself, for faults, which do things to it that no process does.
    pub(crate) fn memory(&self) -> &MemDisk {
        &self.memory
    }

    /// Lets the process die at an operation that changes the disk, after `operations` others.
    pub(crate) fn die_after(&self, operations: u64, moment: Moment) {
        let mut process = self.process();
        process.dies_at = Some((process.operations + operations, moment));
    }

    /// The process dies now.
    pub(crate) fn die(&self) {
        self.process().is_dead = true;
    }

    /// Lets an operation of this kind fail, after `others` others.
    pub(crate) fn fail_after(&self, fault: DiskFault, others: u64) {
        let mut process = self.process();
        process.complete_sync();
        process.has_fault = true;
        self.memory.fail_after(fault, others);
    }

    /// Takes back what is to happen to the process and to its operations.
    pub(crate) fn live_on(&self) {
        let mut process = self.process();
        (process.dies_at, process.has_fault, process.fills_at_install) = (None, false, false);
        self.memory.clear_faults();
    }

    /// Leaves no room once the member begins to install a snapshot of a leader, or takes that back.
    pub(crate) fn fill_at_install(&self, fills: bool) {
        self.process().fills_at_install = fills;
    }

    /// True if the disk has no room since the last look, because of a snapshot that was installed.
    pub(crate) fn take_filled(&self) -> bool {
        std::mem::take(&mut self.process().is_filled)
    }

    /// There is room again for the mark of an installation.
    pub(crate) fn make_room(&self) {
        self.process().has_no_room = false;
    }

    /// From now on a sync that nothing follows is put off until `complete_sync`, or is not.
    pub(crate) fn defer_sync(&self, defers: bool) {
        self.process().defers = defers;
    }

    pub(crate) fn complete_sync(&self) {
        self.process().complete_sync();
    }

    /// True if the process died at an operation: nothing it does since then reaches another machine.
    pub(crate) fn is_dead(&self) -> bool {
        self.process().is_dead
    }

    /// The process that used the disk is gone: with it what was not synced if the power was cut.
    pub(crate) fn end_process(&self, power_cut: bool) {
        *self.process() = DiskProcess::default();
        self.memory.clear_faults();
        if power_cut { self.memory.crash() } else { self.memory.kill() }
    }

    /// The last entry in the log of a member that does not run, and its term; `None` for a log that cannot be read.
    pub(crate) fn last_entry(&self, log_dir: &Path) -> Option<(u64, u64)> {
        let mut last = (0, 0);
        let mut note = |record: Record<'_>| match record {
            Record::Entry { group: HOME, index, term, .. } | Record::Base { group: HOME, index, term } => {
                last = (index.0, term.0);
            }
            _ => {}
        };
        Log::inspect(&self.memory, log_dir, &mut note).ok().map(|_| last)
    }

    /// The last term in the log of a member that does not run, and the vote in it; `None` for a log that cannot be read.
    pub(crate) fn last_vote(&self, log_dir: &Path) -> Option<(u64, u64)> {
        let mut last = (0, 0);
        let mut note = |record: Record<'_>| {
            if let Record::HardState { group: HOME, payload } = record
                && let Some(HardState { term, vote, .. }) = HardState::decode(payload)
            {
                last = (term, vote);
            }
        };
        Log::inspect(&self.memory, log_dir, &mut note).ok().map(|_| last)
    }

    /// True if the member whose log this is takes part in elections of all these groups, as far as its log can be read.
    pub(crate) fn has_a_say(&self, log_dir: &Path, mut groups: Range<u32>) -> bool {
        let (mut with_entries, mut silent) = (BTreeSet::new(), BTreeSet::new());
        let mut note = |record: Record<'_>| match record {
            Record::Entry { group, .. } | Record::Base { group, .. } => {
                with_entries.insert(group.0);
            }
            Record::HardState { group, payload } => {
                let is_silent = HardState::decode(payload).is_none_or(|state| state.silent_until > 0);
                if is_silent {
                    silent.insert(group.0)
                } else {
                    silent.remove(&group.0)
                };
            }
        };
        let is_readable = Log::inspect(&self.memory, log_dir, &mut note).is_ok();
        is_readable && groups.all(|group| with_entries.contains(&group) && !silent.contains(&group))
    }

    fn process(&self) -> MutexGuard<'_, DiskProcess> {
        self.process.lock().expect(ONE_THREAD)
    }

    fn look<T>(&self, look: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.is_dead() { Err(gone()) } else { look() }
    }

    fn change<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut process = self.process();
        if process.is_dead {
            return Err(gone());
        }
        process.complete_sync();
        process.operations += 1;
        match process.dies_at.filter(|(at, _)| *at <= process.operations) {
            None => change(),
            Some((_, moment)) => {
                process.is_dead = true;
                if moment == Moment::After {
                    // No process is left that could hear of an error.
                    let _ = change();
                }
                Err(gone())
            }
        }
    }

    fn file(&self, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), inner: Arc::new(Mutex::new(inner)) })
    }
}

impl DiskProcess {
    fn complete_sync(&mut self) {
        if let Some(file) = self.deferred.take() {
            let synced = file.lock().expect(ONE_THREAD).sync_data();
            synced.expect("a sync that was put off has no fault before it");
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the process has died")
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        self.look(|| self.memory.open(path, access)).map(|file| self.file(file))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(INSTALL_MARK)) {
            let mut process = self.process();
            if std::mem::take(&mut process.fills_at_install) {
                (process.is_filled, process.has_no_room) = (true, true);
                self.memory.set_capacity(Some(self.memory.used_bytes()));
            }
            if process.has_no_room {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.change(|| self.memory.create(path)).map(|file| self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|| self.memory.rename(from, to))
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|| self.memory.rename_dir(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|| self.memory.remove(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.look(|| self.memory.list(dir))
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|| self.memory.create_dir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|| self.memory.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send>>> {
        self.look(|| self.memory.lock(path))
    }
}

type SharedFile = Arc<Mutex<Box<dyn DiskFile>>>;

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inner: SharedFile,
}

impl SimFile {
    fn inner(&self) -> MutexGuard<'_, Box<dyn DiskFile>> {
        self.inner.lock().expect(ONE_THREAD)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.look(|| self.inner().read_at(buffer, offset))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.disk.change(|| self.inner().write_at(data, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut process = self.disk.process();
        let may_wait = process.defers && !process.has_fault && process.dies_at.is_none();
        if may_wait && !process.is_dead {
            process.complete_sync();
            process.operations += 1;
            process.deferred = Some(self.inner.clone());
            return Ok(());
        }
        drop(process);
        self.disk.change(|| self.inner().sync_data())
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.look(|| self.inner().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_dies_before_or_after_an_operation() {
        let dir = Path::new("/d");
        for (moment, expected) in [(Moment::Before, "old"), (Moment::After, "new")] {
            let disk = SimDisk::new(1);
            disk.create_dir(dir).unwrap();
            let file = disk.create(&dir.join("f")).unwrap();
            file.write_at(b"old", 0).unwrap();
            disk.die_after(1, moment);
            assert!(file.write_at(b"new", 0).is_err());
            assert!(disk.is_dead() && file.len().is_err(), "nothing works after that");
            disk.end_process(false);
            assert!(!disk.is_dead());
            assert_eq!(disk.memory().contents(&dir.join("f")).unwrap(), expected.as_bytes());
        }
    }
}
