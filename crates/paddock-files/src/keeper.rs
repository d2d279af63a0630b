//! ClickHouse Keeper's snapshots and changelogs, read into a tree: the newest snapshot that is whole, then all requests behind it.
//!
//! The forms are described in `docs/formats.md`. Keeper logs requests, not what came of them: `replay.rs` decides again.

mod blocks;
mod changelog;
mod digest;
mod entry;
pub(crate) mod fuzzing;
mod listing;
mod names;
mod replay;
mod sip_hash;
mod snapshot;
mod state;
mod stream;
mod zstd_reader;

use std::path::{Path, PathBuf};

use paddock_tree::Tree;

use crate::error::{FileError, Problem, check_last_zxid};
use crate::load::{DigestCheck, LoadOptions, Progress, Report};
use crate::replay::close_all_sessions;
use changelog::{ChangelogRecord, read_files};
use entry::ChangelogEntry;
pub use listing::list_requests;
use names::LogFile;
use snapshot::KeeperSnapshot;
use state::KeeperState;
#[cfg(test)]
pub(crate) use {snapshot::blocks, zstd_reader::zstd};

/// Requests between two reports of progress.
const REPORT_REQUESTS: u64 = 1 << 16;

/// Directories to read.
#[derive(Clone, Debug)]
pub struct KeeperDirs {
    /// The `snapshot_storage_path`.
    pub snapshots: PathBuf,
    /// The `log_storage_path`.
    pub log: PathBuf,
}

#[derive(Debug)]
pub struct KeeperLoaded {
    pub tree: Tree,
    pub report: KeeperReport,
}

/// Account of what was read, what was passed over, and why.
#[derive(Debug, Default)]
pub struct KeeperReport {
    /// Parts that an account of ZooKeeper has, too. The path of the snapshot is empty if there was none.
    pub report: Report,
    /// Index of the last log entry.
    pub index: u64,
    /// Log entries that a later leader had replaced.
    pub replaced: u64,
    /// Znodes whose counter of children was raised, for their `cversion` not to go back.
    pub raised: u64,
    /// Znodes of users at or below `/keeper`.
    pub left_out: Vec<String>,
}

/// Reads the directories of a ClickHouse Keeper.
pub fn load(
    source: &KeeperDirs,
    options: LoadOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<KeeperLoaded, FileError> {
    let mut loader = Loader { options, report: KeeperReport::default(), verified: None };
    let logs = names::changelogs(&source.log)?;
    let (mut state, unread) = loader.snapshot(source, &logs, progress)?;
    loader.replay(&logs, &mut state, progress)?;
    if let Some((index, error)) = unread.filter(|(index, _)| *index > loader.report.index) {
        let (log, last) = (source.log.clone(), loader.report.index);
        return Err(FileError::KeeperLogEnds { log, last, index, problem: Box::new(error) });
    }
    loader.finish(state)
}

struct Loader {
    options: LoadOptions,
    report: KeeperReport,
    /// Outcome of the last comparison with a digest of Keeper's.
    verified: Option<DigestCheck>,
}

/// A snapshot that could not be read, with its index.
type Unread = (u64, FileError);

impl Loader {
    /// The state of the newest snapshot that is whole, and the newest one that is not.
    fn snapshot(
        &mut self,
        source: &KeeperDirs,
        logs: &[LogFile],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(KeeperState, Option<Unread>), FileError> {
        let files = names::snapshots(&source.snapshots)?;
        let count = files.len();
        let mut unread: Option<Unread> = None;
        for file in files.into_iter().rev() {
            let path = &file.path;
            let read = if file.is_unfinished {
                Err(FileError::Damaged { path: path.clone(), offset: 0, problem: Problem::Marked })
            } else {
                snapshot::read(path, file.index, &mut |znodes| progress(Progress::Snapshot { path, znodes }))
            };
            match read {
                Ok(snapshot) => {
                    (self.report.report.snapshot, self.report.index) = (file.path, file.index);
                    let state = self.begin(snapshot)?;
                    return Ok((state, unread));
                }
                Err(error) if unread.is_none() && !file.is_unfinished => unread = Some((file.index, error)),
                Err(error) => self.report.report.skipped.push(error),
            }
        }
        // A log that begins with its first entry needs no snapshot.
        let is_whole = logs.first().is_some_and(|log| log.from <= 1);
        if is_whole {
            let mut state = KeeperState::new();
            state.add_keeper();
            return Ok((state, unread));
        }
        Err(match unread {
            Some((_, newest)) => {
                let path = source.snapshots.clone();
                FileError::NoValidSnapshot { path, count, newest: Box::new(newest) }
            }
            None => FileError::NotAKeeper { snapshots: source.snapshots.clone(), log: source.log.clone() },
        })
    }

    fn begin(&mut self, snapshot: KeeperSnapshot) -> Result<KeeperState, FileError> {
        let KeeperSnapshot { mut state, znodes, digest, left_out } = snapshot;
        self.report.report.znodes = znodes;
        self.report.left_out = left_out;
        // What a user once had there is part of the digest, and not of the state.
        if self.report.left_out.is_empty() {
            self.verify(&mut state, digest, self.report.index)?;
        }
        state.add_keeper();
        Ok(state)
    }

    /// Compares the state with a digest that Keeper wrote.
    fn verify(
        &mut self,
        state: &mut KeeperState,
        digest: Option<(u8, u64)>,
        index: u64,
    ) -> Result<(), FileError> {
        let Some((version, expected)) = digest.filter(|(version, _)| digest::is_known(*version)) else {
            self.verified = None;
            return Ok(());
        };
        if self.verified == Some(DigestCheck::Ignored) || !self.report.left_out.is_empty() {
            return Ok(());
        }
        let found = state.digest(version);
        if found == expected {
            self.verified = Some(DigestCheck::Right);
        } else if self.options.ignore_digest {
            self.verified = Some(DigestCheck::Ignored);
        } else {
            return Err(FileError::KeeperDigest { index, found, expected });
        }
        Ok(())
    }

    /// Carries out all requests behind the snapshot.
    fn replay(
        &mut self,
        logs: &[LogFile],
        state: &mut KeeperState,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), FileError> {
        let behind: Vec<LogFile> = logs.iter().filter(|log| log.to > self.report.index).cloned().collect();
        let mut number: u64 = 0;
        let read = read_files(&behind, &mut |path, record, is_replaced| {
            number += 1;
            if is_replaced {
                self.report.replaced += 1;
                return Ok(0);
            }
            if record.index <= self.report.index {
                return Ok(0);
            }
            let taken = self.take(path, record, state)?;
            if number.is_multiple_of(REPORT_REQUESTS) {
                progress(Progress::Log { path, transactions: number });
            }
            Ok(taken)
        })?;
        self.report.report.transactions += read.iter().map(|read| read.transactions).sum::<u64>();
        self.report.report.logs.extend(read);
        Ok(())
    }

    /// Carries out one record; returns how many requests that were.
    fn take(
        &mut self,
        path: &Path,
        record: &ChangelogRecord<'_>,
        state: &mut KeeperState,
    ) -> Result<u64, FileError> {
        let ChangelogRecord { index, offset, request } = *record;
        let (first, last) = (self.report.index + 1, index - 1);
        if index != first {
            return Err(FileError::KeeperGap { path: path.to_owned(), offset, first, last });
        }
        self.report.index = index;
        let Some(request) = request else { return Ok(0) };
        let done = ChangelogEntry::decode(request).and_then(|entry| {
            state.apply(&entry, index)?;
            Ok(entry)
        });
        let entry =
            done.map_err(|problem| FileError::KeeperRequest { path: path.to_owned(), index, problem })?;
        if entry.has_own_digest() {
            self.verify(state, entry.digest, index)?;
        }
        Ok(1)
    }

    fn finish(mut self, mut state: KeeperState) -> Result<KeeperLoaded, FileError> {
        let raised = state.raise_counters();
        let path = self.report.report.snapshot.clone();
        self.report.raised = raised.map_err(|problem| FileError::Damaged { path, offset: 0, problem })?;
        let report = &mut self.report.report;
        report.digest = self.verified.unwrap_or_default();
        let KeeperState { mut draft, zxid, .. } = state;
        check_last_zxid(zxid)?;
        if self.options.drop_ephemerals {
            report.dropped_sessions = draft.sessions().len();
            report.dropped = close_all_sessions(&mut draft, zxid);
        }
        let (mut tree, repairs) = draft.finish(zxid, self.options.member);
        tree.withdraw_passwords();
        report.repairs = repairs;
        Ok(KeeperLoaded { tree, report: self.report })
    }
}

/// A timeout as sessions have it, in milliseconds.
fn timeout(ms: i64) -> i32 {
    i32::try_from(ms.max(0)).unwrap_or(i32::MAX)
}
