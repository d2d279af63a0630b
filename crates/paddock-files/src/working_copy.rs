//! A copy of an ensemble that is being followed, in memory and on disk.
//!
//! On disk it is a data directory of ZooKeeper: a snapshot, and a log of the transactions behind it. So it can be read again after a
//! crash, compared and imported like every other one. A transaction that did not reach the disk is missing at its end, and the leader
//! sends it again.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use paddock_proto::Zxid;
use paddock_tree::{AppliedTransaction, Draft, Tree};

use crate::answer::{Asked, Replied};
use crate::applied::{Touched, copy_of};
use crate::data_dir::{self, VERSION_DIR};
use crate::error::{FileError, check_last_zxid, failed};
use crate::export::{Content, write_file, write_snapshot};
use crate::learner::ReceivedSnapshot;
use crate::load::{LoadOptions, Loaded, LoadedState, Progress, Report, ZooKeeperDirs, load_state};
use crate::snapshot::Snapshot;
use crate::transaction::{Body, Transaction};
use crate::transaction_log::LogWriter;

/// File that marks a directory as a working copy, and is locked by the process that works with it.
const MARK: &str = "following";
/// File with the largest epoch that a leader has had, as ZooKeeper names it.
const EPOCH: &str = "acceptedEpoch";
/// Bytes of the log after which a new snapshot takes its place, but for tests.
const LOG_BYTES_MAX: u64 = 256 << 20;
const EPOCH_SHIFT: u32 = 32;

#[derive(Debug)]
pub struct WorkingCopy {
    files: PathBuf,
    state: LoadedState,
    epoch: i64,
    log: Option<LogWriter>,
    /// Bytes of the log after which a new snapshot takes its place.
    log_bytes_max: u64,
    /// False as long as nothing was received.
    has_snapshot: bool,
    /// Held as long as the process works with the directory.
    _mark: File,
}

impl WorkingCopy {
    /// Opens a working copy, or makes an empty one where nothing is.
    pub fn open(dir: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<WorkingCopy, FileError> {
        let files = dir.join(VERSION_DIR);
        let mark = mark(dir)?;
        fs::create_dir_all(&files).map_err(failed("create directory", &files))?;
        let has_snapshot = !data_dir::snapshots(&files)?.is_empty();
        let state = if has_snapshot {
            load_state(&ZooKeeperDirs { data_dir: dir.to_owned(), log_dir: None }, progress)?.0
        } else {
            empty()
        };
        let epoch = read_epoch(&files.join(EPOCH))?.max(state.zxid.0 >> EPOCH_SHIFT);
        let log_bytes_max = LOG_BYTES_MAX;
        Ok(WorkingCopy { files, state, epoch, log: None, log_bytes_max, has_snapshot, _mark: mark })
    }

    /// The last transaction that it has; 0 if it is empty.
    pub fn zxid(&self) -> Zxid {
        self.state.zxid
    }

    /// The largest epoch that a leader has had.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    pub fn znode_count(&self) -> usize {
        self.state.draft.node_count()
    }

    pub fn session_count(&self) -> usize {
        self.state.draft.sessions().len()
    }

    /// Transactions that were applied since it was opened or replaced.
    pub fn transactions(&self) -> u64 {
        self.state.transactions
    }

    pub fn set_epoch(&mut self, epoch: i64) -> Result<(), FileError> {
        if epoch == self.epoch {
            return Ok(());
        }
        let (path, unfinished) = (self.files.join(EPOCH), self.files.join("acceptedEpoch.unfinished"));
        write_file(&unfinished, |file| std::io::Write::write_fmt(file, format_args!("{epoch}")))?;
        fs::rename(&unfinished, &path).map_err(failed("name", &path))?;
        self.epoch = epoch;
        Ok(())
    }

    /// Takes a snapshot in the place of everything.
    pub fn replace(&mut self, snapshot: ReceivedSnapshot, zxid: Zxid) -> Result<(), FileError> {
        self.state = LoadedState::new(snapshot.0, zxid);
        self.save()
    }

    /// Forgets everything in memory: the next leader is asked for a snapshot. The files stay until there is another one.
    pub fn forget(&mut self) {
        (self.state, self.log) = (empty(), None);
    }

    /// Makes sure that there is a snapshot to which transactions can be added.
    pub fn begin(&mut self) -> Result<(), FileError> {
        if self.has_snapshot { Ok(()) } else { self.save() }
    }

    /// Applies a transaction as a log holds it, and appends it to the log.
    pub fn apply(&mut self, entry: &[u8]) -> Result<(), FileError> {
        let transaction = self.decode(entry)?;
        self.apply_decoded(&transaction, entry, &mut |_, _| {})
    }

    /// Applies an entry, with an account of what has changed.
    pub fn apply_and_tell(&mut self, entry: &[u8]) -> Result<AppliedTransaction, FileError> {
        let transaction = self.decode(entry)?;
        let touched = Touched::by(&transaction, &self.state.draft);
        let asked = Asked::decode(entry);
        let asked = asked.map_err(|problem| FileError::Received { zxid: transaction.zxid, problem })?;
        let mut replies = Vec::new();
        let mut after = |draft: &Draft, body: &Body<'_>| replies.push(Replied::after(body, draft));
        self.apply_decoded(&transaction, entry, &mut after)?;
        Ok(touched.applied(transaction.zxid, &self.state.draft, asked.answer(replies)))
    }

    /// The tree as it is now, while the copy goes on. Needs as much memory as the copy itself.
    pub fn tree(&self) -> Tree {
        copy_of(&self.state.draft, self.state.zxid)
    }

    fn decode<'e>(&self, entry: &'e [u8]) -> Result<Transaction<'e>, FileError> {
        let zxid = self.state.zxid.next();
        Transaction::decode(entry).map_err(|problem| FileError::Received { zxid, problem })
    }

    fn apply_decoded(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &[u8],
        after: &mut dyn FnMut(&Draft, &Body<'_>),
    ) -> Result<(), FileError> {
        let zxid = transaction.zxid;
        self.state
            .apply_and_show(transaction, after)
            .map_err(|problem| FileError::Received { zxid, problem })?;
        let log = match &mut self.log {
            Some(log) => log,
            None => {
                let path = self.files.join(format!("log.{:x}", transaction.zxid.0));
                self.log.insert(LogWriter::create(&path)?)
            }
        };
        log.append(entry)?;
        if log.bytes() > self.log_bytes_max { self.save() } else { Ok(()) }
    }

    /// Hands what was appended to the operating system, for others to read.
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.log.as_mut().map_or(Ok(()), LogWriter::flush)
    }

    pub fn sync(&mut self) -> Result<(), FileError> {
        self.log.as_mut().map_or(Ok(()), LogWriter::sync)
    }

    /// The tree, in an epoch of its own: behind everything that a client of the ensemble can have seen.
    pub fn finish(mut self, options: LoadOptions) -> Result<Loaded, FileError> {
        self.sync()?;
        let epoch = self.epoch.max(self.state.zxid.0 >> EPOCH_SHIFT);
        check_last_zxid(Zxid(epoch.saturating_mul(1 << EPOCH_SHIFT)))?;
        let zxid = Zxid((epoch + 1) << EPOCH_SHIFT);
        let transactions = self.state.transactions;
        let report = Report { snapshot: self.files, transactions, ..Report::default() };
        self.state.finish_at(zxid, options, report)
    }

    /// Writes a snapshot, and removes all files before it.
    fn save(&mut self) -> Result<(), FileError> {
        let zxid = self.state.zxid;
        let path = self.files.join(format!("snapshot.{:x}", zxid.0));
        let unfinished = self.files.join("snapshot.unfinished");
        let content = Content::of_draft(&self.state.draft, zxid);
        write_file(&unfinished, |file| write_snapshot(content, file))?;
        self.log = None;
        let others: Vec<_> =
            data_dir::snapshots(&self.files)?.into_iter().chain(data_dir::logs(&self.files)?).collect();
        fs::rename(&unfinished, &path).map_err(failed("name", &path))?;
        let synced = File::open(&self.files).and_then(|dir| dir.sync_all());
        synced.map_err(failed("sync directory", &self.files))?;
        for other in others.iter().filter(|other| other.path != path) {
            fs::remove_file(&other.path).map_err(failed("remove", &other.path))?;
        }
        self.has_snapshot = true;
        Ok(())
    }
}

fn empty() -> LoadedState {
    LoadedState::new(Snapshot { draft: Draft::new(), znodes: 0, digest: None }, Zxid(0))
}

/// The marked file, locked. A directory that is not marked has to be empty: files in a working copy are removed.
fn mark(dir: &Path) -> Result<File, FileError> {
    fs::create_dir_all(dir).map_err(failed("create directory", dir))?;
    let path = dir.join(MARK);
    let is_empty = fs::read_dir(dir).map_err(failed("read directory", dir))?.next().is_none();
    if !is_empty && !path.exists() {
        return Err(FileError::NotACopy { path: dir.to_owned() });
    }
    let file = File::options().create(true).append(true).open(&path).map_err(failed("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FileError::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
    }
}

fn read_epoch(path: &Path) -> Result<i64, FileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().parse().unwrap_or_default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(failed("read", path)(error)),
    }
}

#[cfg(test)]
mod tests;
