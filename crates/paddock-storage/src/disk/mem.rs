//! A disk in memory that forgets and fails on request, for tests and for simulation.
//!
//! The disk keeps apart what a process sees and what would survive a power cut. [`MemDisk::crash`] decides the fate of
//! everything unsynced, within the limits the parent module states. All chance comes from the seed: the same calls give
//! the same disk.

mod contents;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use paddock_chance::Chance;

use super::{Access, Disk, DiskFile, unless_exhausted};
use contents::Contents;
use rustix::io::Errno;

/// An operation that can be told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskFault {
    /// Reading from a file.
    Read,
    /// Writing to a file. A part of the data is written.
    Write,
    /// Syncing a file. What was not synced stays visible but may never reach the disk.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Renaming a file. The name does not change.
    Rename,
    /// Any call that needs a new descriptor, for a file or a directory: the process has as many as it may. Nothing changes.
    Descriptor,
}

/// A disk in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct MemDisk {
    state: Arc<Mutex<MemDiskState>>,
}

type Inode = Arc<Mutex<Contents>>;

#[derive(Debug)]
struct MemDiskState {
    random: Chance,
    /// Counts crashes. A file opened before the last one belongs to a process that is gone.
    epoch: u64,
    dirs: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, Inode>,
    durable_names: BTreeMap<PathBuf, Inode>,
    unsynced_names: BTreeMap<PathBuf, Vec<NameChange>>,
    locks: Arc<Mutex<BTreeSet<(u64, PathBuf)>>>,
    capacity_bytes: Option<u64>,
    /// For each fault the number of operations that still succeed before one fails.
    faults: BTreeMap<DiskFault, u64>,
}

#[derive(Debug)]
enum NameChange {
    Create(PathBuf, Inode),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl MemDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(MemDiskState {
                random: Chance::new(seed),
                epoch: 0,
                dirs: BTreeSet::new(),
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                unsynced_names: BTreeMap::new(),
                locks: Arc::default(),
                capacity_bytes: None,
                faults: BTreeMap::new(),
            })),
        }
    }

    /// Cuts the power: unsynced writes and names survive or not by chance, and every open file and lock is void.
    pub fn crash(&self) {
        self.lock_state().crash();
    }

    /// Ends the process that uses the disk, as `kill -9` does: what it wrote is there, synced or not, and every open
    /// file and lock is void.
    pub fn kill(&self) {
        self.lock_state().epoch += 1;
    }

    /// Limits the bytes all files together may have. `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock_state().capacity_bytes = bytes;
    }

    /// Lets `successes` more operations of a kind succeed and the one after them fail.
    pub fn fail_after(&self, fault: DiskFault, successes: u64) {
        self.lock_state().faults.insert(fault, successes);
    }

    /// Takes back all faults that have not come yet.
    pub fn clear_faults(&self) {
        self.lock_state().faults.clear();
    }

    /// Flips one bit of a file, durably. Says whether there was such a bit.
    pub fn flip(&self, path: &Path, offset: u64, bit: u8) -> bool {
        let state = self.lock_state();
        state.names.get(path).is_some_and(|inode| lock(inode).flip(offset, bit))
    }

    /// Content of a file, as a process would read it.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.lock_state().names.get(path).map(|inode| lock(inode).bytes().to_vec())
    }

    /// Puts a file there, durably, whatever was there before.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.lock_state();
        let inode: Inode = Arc::new(Mutex::new(Contents::durable(bytes)));
        state.names.insert(path.to_owned(), inode.clone());
        state.durable_names.insert(path.to_owned(), inode);
        let dir = parent(path);
        state.dirs.insert(dir);
    }

    /// A copy of the disk as its files are read now, all of it durable: what a copy of a directory has.
    pub fn copy(&self, seed: u64) -> MemDisk {
        let state = self.lock_state();
        let copy = MemDisk::new(seed);
        for (path, inode) in &state.names {
            copy.put(path, lock(inode).bytes());
        }
        copy.lock_state().dirs.clone_from(&state.dirs);
        drop(state);
        copy
    }

    /// The bytes of all files together.
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    fn lock_state(&self) -> MutexGuard<'_, MemDiskState> {
        lock(&self.state)
    }
}

impl Disk for MemDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock_state();
        state.take_fault(DiskFault::Descriptor)?;
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?.clone();
        Ok(Box::new(MemFile { disk: self.clone(), epoch: state.epoch, inode, access }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock_state();
        state.take_fault(DiskFault::Descriptor)?;
        let dir = parent(path);
        if !state.dirs.contains(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Inode::default();
        state.names.insert(path.to_owned(), inode.clone());
        state.change_name(dir, NameChange::Create(path.to_owned(), inode.clone()));
        Ok(Box::new(MemFile { disk: self.clone(), epoch: state.epoch, inode, access: Access::ReadWrite }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        state.take_fault(DiskFault::Rename)?;
        if parent(from) != parent(to) {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        state.change_name(parent(from), NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        state.take_fault(DiskFault::Rename)?;
        if !state.dirs.contains(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let moved: Vec<PathBuf> = state.dirs.iter().filter(|dir| dir.starts_with(from)).cloned().collect();
        for dir in moved {
            let target = to.join(dir.strip_prefix(from).expect("it was just found to be inside"));
            state.dirs.remove(&dir);
            for change in state.unsynced_names.remove(&dir).unwrap_or_default() {
                state.make_durable(change);
            }
            move_names(&mut state.names, &dir, &target);
            move_names(&mut state.durable_names, &dir, &target);
            state.dirs.insert(target);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        state.change_name(parent(path), NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.lock_state();
        state.take_fault(DiskFault::Descriptor)?;
        if !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.lock_state().dirs.insert(dir.to_owned());
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        state.take_fault(DiskFault::Descriptor)?;
        state.take_fault(DiskFault::SyncDir)?;
        for change in state.unsynced_names.remove(dir).unwrap_or_default() {
            state.make_durable(change);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send>>> {
        let state = self.lock_state();
        let key = (state.epoch, path.to_owned());
        if !lock(&state.locks).insert(key.clone()) {
            return Ok(None);
        }
        Ok(Some(Box::new(HeldLock { key, locks: state.locks.clone() })))
    }
}

impl MemDiskState {
    fn change_name(&mut self, dir: PathBuf, change: NameChange) {
        self.unsynced_names.entry(dir).or_default().push(change);
    }

    fn make_durable(&mut self, change: NameChange) {
        match change {
            NameChange::Create(path, inode) => {
                self.durable_names.insert(path, inode);
            }
            NameChange::Rename(from, to) => {
                let inode = self.durable_names.remove(&from).expect("changes are made durable in order");
                self.durable_names.insert(to, inode);
            }
            NameChange::Remove(path) => {
                self.durable_names.remove(&path);
            }
        }
    }

    fn crash(&mut self) {
        self.epoch += 1;
        for mut changes in std::mem::take(&mut self.unsynced_names).into_values() {
            let survivors = self.random.below(changes.len() as u64 + 1);
            changes.truncate(survivors as usize);
            changes.into_iter().for_each(|change| self.make_durable(change));
        }
        self.names = self.durable_names.clone();
        for inode in self.names.values() {
            lock(inode).crash(&mut self.random);
        }
    }

    fn take_fault(&mut self, fault: DiskFault) -> io::Result<()> {
        match self.faults.get_mut(&fault) {
            None => Ok(()),
            Some(0) => {
                self.faults.remove(&fault);
                if fault == DiskFault::Descriptor {
                    return Err(unless_exhausted(Errno::MFILE.into()));
                }
                Err(io::Error::other(format!("injected fault: {fault:?}")))
            }
            Some(successes) => {
                *successes -= 1;
                Ok(())
            }
        }
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|inode| lock(inode).len()).sum()
    }
}

/// An open file of a [`MemDisk`].
#[derive(Debug)]
struct MemFile {
    disk: MemDisk,
    epoch: u64,
    inode: Inode,
    access: Access,
}

impl MemFile {
    fn state(&self) -> io::Result<MutexGuard<'_, MemDiskState>> {
        let state = self.disk.lock_state();
        if state.epoch != self.epoch {
            return Err(io::Error::other("the process that opened this file has ended"));
        }
        Ok(state)
    }
}

impl DiskFile for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.state()?.take_fault(DiskFault::Read)?;
        Ok(lock(&self.inode).read(buffer, offset))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state()?;
        if self.access == Access::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if let Err(error) = state.take_fault(DiskFault::Write) {
            let written = state.random.below(data.len() as u64 / 8 + 1) * 8;
            lock(&self.inode).write(&data[..written as usize], offset);
            return Err(error);
        }
        let used = state.used_bytes();
        let room = state.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(used));
        let mut contents = lock(&self.inode);
        let fits = contents.len().saturating_add(room).saturating_sub(offset).min(data.len() as u64);
        contents.write(&data[..fits as usize], offset);
        if fits < data.len() as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let failed = self.state()?.take_fault(DiskFault::Sync);
        match failed {
            Ok(()) => lock(&self.inode).sync(),
            Err(_) => lock(&self.inode).fail_sync(),
        }
        failed
    }

    fn len(&self) -> io::Result<u64> {
        let _state = self.state()?;
        Ok(lock(&self.inode).len())
    }
}

#[derive(Debug)]
struct HeldLock {
    key: (u64, PathBuf),
    locks: Arc<Mutex<BTreeSet<(u64, PathBuf)>>>,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        lock(&self.locks).remove(&self.key);
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}

/// Gives the files of one directory their names in another one. There are no directories in it.
fn move_names(names: &mut BTreeMap<PathBuf, Inode>, from: &Path, to: &Path) {
    let inside: Vec<PathBuf> = names.keys().filter(|path| path.parent() == Some(from)).cloned().collect();
    for path in inside {
        let inode = names.remove(&path).expect("it was just there");
        names.insert(to.join(path.file_name().expect("a file has a name")), inode);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no one panics while holding the disk")
}

#[cfg(test)]
mod tests;
