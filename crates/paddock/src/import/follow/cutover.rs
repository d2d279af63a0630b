//! The moment at which a followed ensemble is taken over from, and the directory that is made then.
//!
//! Nothing that was acknowledged may be missing, so the copy has to be current when the source ends. It is, once it has been followed up to
//! date; it is not any more as soon as a quorum runs that it is not connected to, which may have elected a leader and written.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_files::{LoadOptions, WorkingCopy};
use paddock_member::DirectoryInMaking;
use paddock_proto::MemberNumber;
use paddock_storage::Disk;

use super::source::{Running, SourceEnsemble};
use crate::logs;
use crate::moving::{self, MovingFailure};
use crate::server;

pub(super) struct Cutover {
    quiet_for: Option<Duration>,
    /// True if no quorum has run without being followed since the copy was last up to date.
    is_current: bool,
    /// Looks in a row at which no member ran.
    stopped: u32,
    /// Time since which nothing was written and nothing missing.
    quiet_since: Option<Instant>,
    told: Option<usize>,
}

/// Name of the data directory within the working copy before it is made.
const PREPARED: &str = "prepared";
/// Looks in a row at which no member may run.
const LOOKS: u32 = 2;

impl Cutover {
    pub(super) fn new(quiet_for: Option<Duration>) -> Cutover {
        Cutover { quiet_for, is_current: false, stopped: 0, quiet_since: None, told: None }
    }

    pub(super) fn waits_for_quiet(&self) -> bool {
        self.quiet_for.is_some()
    }

    pub(super) fn note_current(&mut self) {
        (self.is_current, self.quiet_since, self.told) = (true, None, None);
    }

    pub(super) fn note_write(&mut self) {
        self.quiet_since = None;
    }

    pub(super) fn note_lag(&mut self, lag: u64) {
        if lag > 0 {
            self.quiet_since = None;
        } else if self.is_current {
            self.quiet_since.get_or_insert_with(Instant::now);
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        let (Some(quiet_for), Some(since)) = (self.quiet_for, self.quiet_since) else { return false };
        since.elapsed() >= quiet_for
    }

    /// True if the source has stopped, and the copy has everything. Asked again and again while no leader is there.
    pub(super) fn has_stopped(&mut self, source: &SourceEnsemble) -> bool {
        self.quiet_since = None;
        let Running { voters, all } = source.running();
        if voters * 2 > source.voters() {
            self.is_current = false;
        }
        self.stopped = if all == 0 { self.stopped + 1 } else { 0 };
        if self.told != Some(all) {
            self.told = Some(all);
            match all {
                0 if !self.is_current => logs::say(format_args!(
                    "all members have stopped before the copy had caught up: start them again, or import the directory of the last leader"
                )),
                0 => {}
                _ => logs::say(format_args!("no leader; members that may run: {all}")),
            }
        }
        self.is_current && self.stopped >= LOOKS
    }
}

/// Prepares the data directory within the working copy, while no client waits for it. What an earlier process has left there goes.
pub(super) fn prepare(working_copy: &Path, disk: &Arc<dyn Disk>) -> Result<DirectoryInMaking, MovingFailure> {
    let unfinished = working_copy.join(PREPARED);
    if unfinished.exists() {
        let failed = |source| server::Failure::Remove { path: unfinished.clone(), source };
        std::fs::remove_dir_all(&unfinished).map_err(failed)?;
    }
    Ok(DirectoryInMaking::begin_with_spare(disk, &unfinished)?)
}

/// Makes the data directory, for which something may be prepared.
pub(super) fn take_over(
    copy: WorkingCopy,
    prepared: Option<DirectoryInMaking>,
    to: &Path,
    member: MemberNumber,
    ignore_digest: bool,
    disk: &Arc<dyn Disk>,
) -> Result<(), MovingFailure> {
    let last = copy.zxid();
    let options = LoadOptions { drop_ephemerals: false, ignore_digest, member };
    let mut loaded = copy.finish(options)?;
    match prepared {
        Some(directory) => directory.finish(to, member, &mut loaded.tree)?,
        None => paddock_member::make_directory(disk, to, member, &mut loaded.tree)?,
    }
    // The work is done, whether or not its report is read.
    let _ = report(&loaded, last, to);
    Ok(())
}

fn report(loaded: &paddock_files::Loaded, last: paddock_proto::Zxid, to: &Path) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "followed  up to zxid {last}")?;
    moving::print_digest(loaded.report.digest, &mut out)?;
    moving::print_repairs(&loaded.report, &mut out)?;
    moving::print_state(&loaded.tree, &mut out)?;
    writeln!(out, "written   {0}; start it: paddock server --data-dir {0}", to.display())?;
    out.flush()
}
