//! When a snapshot is taken, and the thread that takes it while writes go on.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_replica::Membership;
use paddock_storage::snapshot::{self, SnapshotFile};
use paddock_storage::{
    Disk, Housekeeper, Index, Log, LogError, SnapshotError, SnapshotMeta, SnapshotWriter, Term,
};
use paddock_tree::SnapshotScan;

use crate::pieces::PieceWriter;
use crate::recovery::GROUP;
use crate::shared::Shared;

/// So many znodes are copied before the writers get their turn: a slice of some 100 microseconds.
const ZNODES_PER_SLICE: usize = 1024;

/// How long the housekeeper rests when there was nothing to do, and when there was no room.
const HOUSEKEEPER_PAUSE: Duration = Duration::from_millis(100);
const HOUSEKEEPER_PAUSE_FULL: Duration = Duration::from_secs(5);

/// Takes snapshots when enough has been written since the last one.
#[derive(Debug)]
pub(crate) struct Snapshots {
    disk: Arc<dyn Disk>,
    membership: Membership,
    last: Mark,
    under_way: Option<JoinHandle<Result<Taken, SnapshotError>>>,
    /// Another member needs one soon.
    is_wanted: bool,
}

/// A snapshot that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The last entry in it, and its term.
    pub(crate) index: u64,
    pub(crate) term: u64,
    /// The log is needed no more up to here.
    pub(crate) release: u64,
}

/// How far the member had come.
#[derive(Clone, Copy, Debug)]
struct Mark {
    zxid: i64,
    log_bytes: u64,
}

impl Mark {
    fn now(shared: &Shared, log: &Log) -> Mark {
        Mark { zxid: shared.state.read().tree().zxid().0, log_bytes: log.bytes() }
    }
}

impl Snapshots {
    /// `zxid` is the one of the snapshot that the member started from.
    pub(crate) fn new(disk: Arc<dyn Disk>, membership: Membership, zxid: i64) -> Snapshots {
        Snapshots { disk, membership, last: Mark { zxid, log_bytes: 0 }, under_way: None, is_wanted: false }
    }

    /// Another member lags so far that it needs a newer snapshot than there is.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Looks after the snapshot under way, or begins one if it is time. Returns one that has been completed.
    pub(crate) fn poll(&mut self, shared: &Arc<Shared>, log: &Log) -> Option<Taken> {
        if let Some(thread) = self.under_way.take_if(|thread| thread.is_finished()) {
            return self.completed(thread, shared, log);
        }
        if self.under_way.is_none() && self.is_due(shared, log) {
            self.last = Mark::now(shared, log);
            self.is_wanted = false;
            self.begin(shared);
        }
        None
    }

    fn is_due(&self, shared: &Shared, log: &Log) -> bool {
        let now = Mark::now(shared, log);
        let writes = (now.zxid - self.last.zxid) as u64;
        let log_bytes = now.log_bytes.saturating_sub(self.last.log_bytes);
        self.is_wanted
            || writes >= shared.config.snapshot_writes
            || (log_bytes >= shared.config.snapshot_log_bytes && writes > 0)
    }

    fn begin(&mut self, shared: &Arc<Shared>) {
        let (disk, shared) = (self.disk.clone(), shared.clone());
        let app = self.membership.encode();
        let thread = std::thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || take(&disk, &shared, app))
            .expect("the operating system gives a thread for the snapshot");
        self.under_way = Some(thread);
    }

    fn completed(
        &mut self,
        thread: JoinHandle<Result<Taken, SnapshotError>>,
        shared: &Shared,
        log: &Log,
    ) -> Option<Taken> {
        match thread.join().expect("the snapshot's thread does not panic") {
            Ok(taken) => {
                self.last.log_bytes = self.last.log_bytes.min(log.bytes());
                Some(taken)
            }
            Err(error) => {
                // The log still has everything; the next one is tried after as many writes.
                tracing::error!(%error, cause = ?std::error::Error::source(&error), "snapshot failed");
                self.last = Mark::now(shared, log);
                None
            }
        }
    }

    /// Waits for the snapshot under way, at the member's end.
    pub(crate) fn finish(&mut self) {
        if let Some(thread) = self.under_way.take()
            && let Err(error) = thread.join().expect("the snapshot's thread does not panic")
        {
            tracing::error!(%error, "snapshot failed");
        }
    }
}

/// Takes a snapshot and removes the oldest. Of the log, as much stays as falling back to the oldest snapshot kept needs.
fn take(disk: &Arc<dyn Disk>, shared: &Shared, app: Vec<u8>) -> Result<Taken, SnapshotError> {
    let started = Instant::now();
    let dir = shared.config.snapshot_dir();
    let (mut scan, meta, znodes) = {
        let mut state = shared.state.write();
        let (index, term) = state.applied();
        let zxid = state.tree().zxid().0;
        let meta = SnapshotMeta { group: GROUP, term: Term(term), index: Index(index), zxid, app };
        let znodes = state.tree().node_count() as u64;
        (state.tree_mut().begin_snapshot(), meta, znodes)
    };
    let (index, term) = (meta.index.0, meta.term.0);
    let written = write(disk, shared, &mut scan, meta, znodes);
    shared.state.write().tree_mut().end_snapshot(scan);
    let file = written?;
    let kept = snapshot::retain(disk.as_ref(), &dir, shared.config.snapshots_kept)?;
    tracing::info!(
        file = %file.path.display(),
        znodes,
        seconds = format!("{:.2}", started.elapsed().as_secs_f64()),
        "snapshot taken"
    );
    // What stands behind the very first snapshot is the log from its beginning.
    let may_fall_back = kept.len() > 1 || shared.config.snapshots_kept == 1;
    let release = kept.first().filter(|_| may_fall_back).map_or(0, |oldest| oldest.index.0);
    Ok(Taken { index, term, release })
}

fn write(
    disk: &Arc<dyn Disk>,
    shared: &Shared,
    scan: &mut SnapshotScan,
    meta: SnapshotMeta,
    znodes: u64,
) -> Result<SnapshotFile, SnapshotError> {
    let mut writer = SnapshotWriter::create(disk.clone(), &shared.config.snapshot_dir(), meta)?;
    let mut pieces = PieceWriter::default();
    loop {
        let more = pieces.piece(|out| {
            let mut state = shared.state.write();
            state.tree_mut().scan_snapshot(scan, ZNODES_PER_SLICE, out)
        });
        pieces.blocks(!more, |block| writer.block(block))?;
        if !more {
            return writer.finish(znodes);
        }
    }
}

/// Prepares segments ahead of the log and takes back those it has released, on a thread of its own, until the
/// `stop` channel closes.
pub(crate) fn keep_house(
    housekeeper: &Housekeeper,
    stop: &crossbeam_channel::Receiver<()>,
) -> Result<(), LogError> {
    let mut full = false;
    loop {
        match housekeeper.run() {
            Ok(true) => {
                full = false;
                continue;
            }
            Ok(false) => {}
            Err(LogError::DiskFull { .. }) if full => {}
            Err(error @ LogError::DiskFull { .. }) => {
                tracing::warn!(%error, "no room for a segment ahead of time");
                full = true;
            }
            Err(error) => return Err(error),
        }
        // Each try on a full disk fills it up, as far as there is room.
        let pause = if full { HOUSEKEEPER_PAUSE_FULL } else { HOUSEKEEPER_PAUSE };
        match stop.recv_timeout(pause) {
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
            _ => return Ok(()),
        }
    }
}
