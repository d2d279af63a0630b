//! From the directories of a ZooKeeper to a tree: the newest snapshot that is whole, then all transactions behind it.

use std::path::{Path, PathBuf};

use paddock_proto::{MemberNumber, Zxid};
use paddock_tree::{Draft, Repairs, Tree};

use crate::data_dir::{self, NamedFile};
use crate::digest::{DIGEST_VERSION, digest};
use crate::error::{FileError, check_last_zxid};
use crate::replay;
use crate::snapshot::{self, Snapshot, WrittenDigest};
use crate::transaction::{Body, Transaction};
use crate::transaction_log::{LogReader, NextTransaction};

/// Transactions between two reports of progress.
const REPORT_TRANSACTIONS: u64 = 1 << 16;
/// Bits of a zxid that count within an epoch.
const COUNTER_BITS: u32 = 32;

/// Directories to read.
#[derive(Clone, Debug)]
pub struct ZooKeeperDirs {
    /// The `dataDir` of `zoo.cfg`.
    pub data_dir: PathBuf,
    /// The `dataLogDir`, if there is one.
    pub log_dir: Option<PathBuf>,
}

/// Wishes of the caller.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// True if sessions and their ephemerals are left out.
    pub drop_ephemerals: bool,
    /// True if a wrong digest is only reported.
    pub ignore_digest: bool,
    /// The member that is to serve the sessions.
    pub member: MemberNumber,
}

/// Stage of a load, for its caller.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    Snapshot { path: &'a Path, znodes: u64 },
    Log { path: &'a Path, transactions: u64 },
}

#[derive(Debug)]
pub struct Loaded {
    pub tree: Tree,
    pub report: Report,
}

/// Account of what was read, what was passed over, and why.
#[derive(Debug, Default)]
pub struct Report {
    pub snapshot: PathBuf,
    /// Znodes in the snapshot.
    pub znodes: u64,
    /// Newer snapshots that could not be used, with the reason.
    pub skipped: Vec<FileError>,
    pub logs: Vec<LogRead>,
    /// Transactions behind the snapshot.
    pub transactions: u64,
    pub digest: DigestCheck,
    /// Ephemerals that were left out as asked.
    pub dropped: Vec<String>,
    /// Sessions that were left out as asked.
    pub dropped_sessions: usize,
    pub repairs: Repairs,
}

/// Account of one file of the log.
#[derive(Debug)]
pub struct LogRead {
    pub path: PathBuf,
    /// Transactions in it that the snapshot is older than.
    pub transactions: u64,
    /// Offset of a record at its end that was never finished.
    pub torn: Option<u64>,
}

/// Comparison with the digest that ZooKeeper wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestCheck {
    /// ZooKeeper wrote none for the last state.
    #[default]
    Absent,
    Right,
    /// The digest was wrong, and that was to be ignored.
    Ignored,
}

/// Reads a data directory.
pub fn load(
    source: &ZooKeeperDirs,
    options: LoadOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Loaded, FileError> {
    let (state, report) = load_state(source, progress)?;
    state.finish(options, report)
}

/// Loads a state to go on with.
pub(crate) fn load_state(
    source: &ZooKeeperDirs,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(LoadedState, Report), FileError> {
    let dir = data_dir::files_dir(&source.data_dir)?;
    let log_dir = match &source.log_dir {
        Some(log_dir) => data_dir::files_dir(log_dir)?,
        None => dir.clone(),
    };
    let mut report = Report::default();
    let logs = data_dir::logs(&log_dir)?;
    let (zxid, snapshot) = match newest_snapshot(&dir, &mut report, progress) {
        Ok((file, snapshot)) => (file.zxid, snapshot),
        // A log that begins with the first transaction needs no snapshot. ZooKeeper takes it with snapshot.trust.empty.
        Err(FileError::NoSnapshot { .. }) if begins_with_the_first(&logs)? => {
            (Zxid::default(), Snapshot { draft: Draft::of_new_server(), znodes: 0, digest: None })
        }
        Err(error) => return Err(error),
    };
    let mut state = LoadedState::new(snapshot, zxid);
    for log in logs_behind(logs, zxid) {
        let read = state.read_log(&log.path, progress)?;
        report.logs.push(read);
    }
    report.transactions = state.transactions;
    Ok((state, report))
}

/// Reads one snapshot file, which is one state only if nothing was written while it was taken.
pub fn load_snapshot(path: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Loaded, FileError> {
    let snapshot = snapshot::read(path, &mut |znodes| progress(Progress::Snapshot { path, znodes }))?;
    let report = Report { snapshot: path.to_owned(), znodes: snapshot.znodes, ..Report::default() };
    let options = LoadOptions { drop_ephemerals: false, ignore_digest: true, member: 1 };
    LoadedState::new(snapshot, data_dir::zxid_of_snapshot(path)).finish(options, report)
}

fn newest_snapshot(
    dir: &Path,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(NamedFile, Snapshot), FileError> {
    let files = data_dir::snapshots(dir)?;
    let count = files.len();
    for file in files.into_iter().rev() {
        let path = &file.path;
        match snapshot::read(path, &mut |znodes| progress(Progress::Snapshot { path, znodes })) {
            Ok(snapshot) => {
                (report.snapshot, report.znodes) = (file.path.clone(), snapshot.znodes);
                return Ok((file, snapshot));
            }
            Err(error) => report.skipped.push(error),
        }
    }
    let path = dir.to_owned();
    if report.skipped.is_empty() {
        return Err(FileError::NoSnapshot { path });
    }
    Err(FileError::NoValidSnapshot { path, count, newest: Box::new(report.skipped.swap_remove(0)) })
}

/// True if nothing was written before these logs: not by a server alone, and not in the first epoch of an ensemble.
fn begins_with_the_first(logs: &[NamedFile]) -> Result<bool, FileError> {
    const FIRST: [i64; 2] = [1, (1 << COUNTER_BITS) + 1];
    let Some(log) = logs.first() else { return Ok(false) };
    let mut reader = LogReader::open(&log.path)?;
    let NextTransaction::Entry { entry, .. } = reader.next()? else { return Ok(false) };
    Ok(Transaction::decode(entry).is_ok_and(|first| FIRST.contains(&first.zxid.0)))
}

/// The logs that may hold transactions behind a snapshot: the last one that begins before or with it, and all later ones.
fn logs_behind(logs: Vec<NamedFile>, zxid: Zxid) -> Vec<NamedFile> {
    let later = logs.partition_point(|log| log.zxid <= zxid);
    logs.into_iter().skip(later.saturating_sub(1)).collect()
}

/// A draft with every transaction up to one.
#[derive(Debug)]
pub(crate) struct LoadedState {
    pub(crate) draft: Draft,
    /// Zxid of the last transaction that the draft has.
    pub(crate) zxid: Zxid,
    pub(crate) transactions: u64,
    /// The digest of the last state, if ZooKeeper wrote it. One of a snapshot counts when its zxid has been reached.
    digest: Option<WrittenDigest>,
    of_snapshot: Option<WrittenDigest>,
}

impl LoadedState {
    pub(crate) fn new(snapshot: Snapshot, zxid: Zxid) -> LoadedState {
        let of_snapshot = snapshot.digest;
        let digest = of_snapshot.filter(|digest| digest.zxid == zxid);
        LoadedState { draft: snapshot.draft, zxid, transactions: 0, digest, of_snapshot }
    }

    fn read_log(
        &mut self,
        path: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<LogRead, FileError> {
        let mut reader = LogReader::open(path)?;
        let mut read = LogRead { path: path.to_owned(), transactions: 0, torn: None };
        loop {
            let (offset, problem) = match reader.next()? {
                NextTransaction::End => return Ok(read),
                NextTransaction::Torn { offset } => {
                    read.torn = Some(offset);
                    return Ok(read);
                }
                NextTransaction::Entry { offset, entry } => match Transaction::decode(entry) {
                    Ok(transaction) if transaction.zxid <= self.zxid => continue,
                    Ok(transaction) => {
                        self.check_follows(path, offset, transaction.zxid)?;
                        (offset, self.apply(&transaction).err())
                    }
                    Err(problem) => (offset, Some(problem)),
                },
            };
            if let Some(problem) = problem {
                return Err(reader.damaged(offset, problem));
            }
            read.transactions += 1;
            if self.transactions.is_multiple_of(REPORT_TRANSACTIONS) {
                progress(Progress::Log { path, transactions: self.transactions });
            }
        }
    }

    /// Within an epoch no zxid is left out.
    fn check_follows(&self, path: &Path, offset: u64, zxid: Zxid) -> Result<(), FileError> {
        let is_same_epoch = zxid.0 >> COUNTER_BITS == self.zxid.0 >> COUNTER_BITS;
        if is_same_epoch && zxid != self.zxid.next() {
            let (first, last) = (self.zxid.next(), Zxid(zxid.0 - 1));
            return Err(FileError::Gap { path: path.to_owned(), offset, first, last });
        }
        Ok(())
    }

    pub(crate) fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), crate::Problem> {
        self.apply_and_show(transaction, &mut |_, _| {})
    }

    /// Applies operations; `after` is shown the draft behind each operation.
    pub(crate) fn apply_and_show(
        &mut self,
        transaction: &Transaction<'_>,
        after: &mut dyn FnMut(&Draft, &Body<'_>),
    ) -> Result<(), crate::Problem> {
        replay::apply(&mut self.draft, transaction, after)?;
        self.zxid = transaction.zxid;
        self.transactions += 1;
        if transaction.digest.is_some() {
            self.digest = transaction.digest;
        } else if transaction.body != Body::Nothing {
            self.digest = None;
        }
        if let Some(of_snapshot) = self.of_snapshot.filter(|digest| digest.zxid == self.zxid) {
            self.digest = Some(of_snapshot);
        }
        Ok(())
    }

    fn finish(self, options: LoadOptions, report: Report) -> Result<Loaded, FileError> {
        let zxid = self.zxid;
        self.finish_at(zxid, options, report)
    }

    /// The tree, as of a zxid that is not before the last transaction.
    pub(crate) fn finish_at(
        mut self,
        zxid: Zxid,
        options: LoadOptions,
        mut report: Report,
    ) -> Result<Loaded, FileError> {
        check_last_zxid(zxid)?;
        assert!(zxid >= self.zxid, "zxids only grow");
        report.digest = self.check_digest(options)?;
        if options.drop_ephemerals {
            report.dropped_sessions = self.draft.session_ids().count();
            report.dropped = replay::close_all_sessions(&mut self.draft, self.zxid);
        }
        let (tree, repairs) = self.draft.finish(zxid, options.member);
        report.repairs = repairs;
        Ok(Loaded { tree, report })
    }

    fn check_digest(&self, options: LoadOptions) -> Result<DigestCheck, FileError> {
        let Some(written) = self.digest.filter(|digest| digest.version == DIGEST_VERSION) else {
            return Ok(DigestCheck::Absent);
        };
        let found = digest(self.draft.znodes());
        if found == written.value {
            return Ok(DigestCheck::Right);
        }
        if options.ignore_digest {
            return Ok(DigestCheck::Ignored);
        }
        Err(FileError::Digest { zxid: written.zxid, found, expected: written.value })
    }
}
