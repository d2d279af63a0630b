//! Snapshots of a member: when one is due, and how it is taken beside writes.

use std::path::PathBuf;
use std::sync::Arc;

use paddock_replica::{Membership, Replicated};
use paddock_storage::snapshot;
use paddock_storage::{Disk, GroupNumber, Index, SnapshotError, SnapshotMeta, SnapshotWriter, Term};
use paddock_tree::SnapshotScan;

use crate::clock::{Clock, StateLock};
use crate::pieces::PieceWriter;
use crate::{Config, Shell};

/// Takes snapshots when enough has been written since the last one.
#[derive(Debug)]
pub(crate) struct Snapshots {
    group: GroupNumber,
    last: Mark,
    is_under_way: bool,
    /// Another member needs one soon, or the operator wants one.
    is_wanted: bool,
    /// The last entry in the newest snapshot of this process, where they are taken in one go.
    taken: u64,
}

/// A snapshot that is there.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The last entry in it, and its term.
    pub(crate) index: u64,
    pub(crate) term: u64,
    /// Membership as of that entry.
    pub(crate) membership: Membership,
    /// The log is needed no more up to here.
    pub(crate) release: u64,
    /// Zxid of the state in it.
    pub zxid: i64,
    pub path: PathBuf,
}

/// Place that the member has reached, in writes and in bytes of log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Writes that were applied since the member was started.
    pub(crate) writes: u64,
    pub(crate) log_bytes: u64,
}

impl Snapshots {
    /// A member that is started from a snapshot, or without one.
    pub(crate) fn new(group: GroupNumber) -> Snapshots {
        let last = Mark { writes: 0, log_bytes: 0 };
        Snapshots { group, last, is_under_way: false, is_wanted: false, taken: 0 }
    }

    /// As `new`, of a group whose newest snapshot ends with this entry.
    pub(crate) fn behind(group: GroupNumber, taken: u64) -> Snapshots {
        Snapshots { taken, ..Snapshots::new(group) }
    }

    /// Another member lags so far that it needs a newer snapshot than there is, or the operator wants one.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// True while one is being taken. A member takes one at a time, whatever groups it has.
    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Continues the snapshot under way, or begins one if it is time. Returns one that has been completed.
    pub(crate) fn poll(
        &mut self,
        shell: &mut impl Shell,
        disk: &Arc<dyn Disk>,
        config: &Config,
        now: Mark,
    ) -> Option<Taken> {
        if self.is_under_way {
            return shell.finished_snapshot().and_then(|result| self.completed(result, now));
        }
        if self.is_due(config, now) {
            self.last = now;
            self.is_wanted = false;
            self.is_under_way = true;
            shell.begin_snapshot(SnapshotOrder::new(self.group, disk.clone(), config));
        }
        None
    }

    /// Takes a snapshot of a small state in one go, if it is time: of a group that is not the home group. Once
    /// `snapshot_log_bytes` have been logged by all groups together, this one must not hold the log, whatever little it has in it.
    pub(crate) fn take_now(
        &mut self,
        state: &impl StateLock,
        clock: &impl Clock,
        disk: &Arc<dyn Disk>,
        config: &Config,
        now: Mark,
    ) -> Option<Taken> {
        let applied = state.write(|state| state.applied().0);
        let log_bytes = now.log_bytes.saturating_sub(self.last.log_bytes);
        let holds_log = log_bytes >= config.settings.snapshot_log_bytes && applied > self.taken;
        if !holds_log && !self.is_due(config, now) || applied == 0 {
            self.last.log_bytes = self.last.log_bytes.min(now.log_bytes);
            return None;
        }
        (self.last, self.is_wanted) = (now, false);
        let order = SnapshotOrder { kept: 1, ..SnapshotOrder::new(self.group, disk.clone(), config) };
        let dir = order.dir.clone();
        let created = disk.create_dir(&dir).map_err(|source| SnapshotError::Io {
            action: "create directory",
            path: dir,
            source,
        });
        let taken = created.and_then(|()| order.carry_out(state, clock, || {}));
        let taken = self.completed(taken, now)?;
        self.taken = taken.index;
        Some(taken)
    }

    fn is_due(&self, config: &Config, now: Mark) -> bool {
        let writes = now.writes - self.last.writes;
        let log_bytes = now.log_bytes.saturating_sub(self.last.log_bytes);
        self.is_wanted
            || writes >= config.settings.snapshot_writes
            || (log_bytes >= config.settings.snapshot_log_bytes && writes > 0)
    }

    fn completed(&mut self, result: Result<Taken, SnapshotError>, now: Mark) -> Option<Taken> {
        self.is_under_way = false;
        match result {
            Ok(taken) => {
                self.last.log_bytes = self.last.log_bytes.min(now.log_bytes);
                Some(taken)
            }
            Err(error) => {
                // The log still has everything; the next one is tried after as many writes.
                tracing::error!(%error, cause = ?std::error::Error::source(&error), "snapshot failed");
                self.last = now;
                None
            }
        }
    }

    /// Waits for the snapshot under way, when the state goes or the member ends.
    pub(crate) fn finish(&mut self, shell: &mut impl Shell) {
        self.is_under_way = false;
        if let Some(Err(error)) = shell.await_snapshot() {
            tracing::error!(%error, "snapshot failed");
        }
    }
}

/// A snapshot that is to be taken.
#[derive(Debug)]
pub struct SnapshotOrder {
    group: GroupNumber,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    kept: usize,
    znodes_per_slice: usize,
}

impl SnapshotOrder {
    fn new(group: GroupNumber, disk: Arc<dyn Disk>, config: &Config) -> SnapshotOrder {
        let (dir, kept) = (config.snapshot_dir(group), config.settings.snapshots_kept);
        SnapshotOrder { group, disk, dir, kept, znodes_per_slice: config.znodes_per_slice }
    }

    /// Takes it in one go, as soon as it may begin; `pause` is called before each further try.
    pub fn carry_out(
        self,
        state: &impl StateLock,
        clock: &impl Clock,
        mut pause: impl FnMut(),
    ) -> Result<Taken, SnapshotError> {
        let mut begun = self.begin(state, clock);
        let mut walk = loop {
            begun = match begun {
                Ok(walk) => break walk,
                Err(early) => {
                    pause();
                    early.begin(state, clock)
                }
            };
        };
        while walk.step(state) {}
        walk.finish(state, clock)
    }

    /// Begins to take it: of the state as it is now, whatever is written to it until the end. Between two commands of an entry it
    /// does not begin, and the order comes back: the state has no place in the log then, from which the log could be replayed on it.
    pub fn begin(self, state: &impl StateLock, clock: &impl Clock) -> Result<SnapshotWalk, SnapshotOrder> {
        let started_ms = clock.now().monotonic_ms;
        let begun = state.write(|state| {
            if state.is_within_entry() {
                return None;
            }
            let znodes = state.tree().node_count() as u64;
            let (meta, membership) = (meta(self.group, state), state.membership().clone());
            Some((state.tree_mut().begin_snapshot(), meta, membership, znodes))
        });
        let Some((scan, meta, membership, znodes)) = begun else { return Err(self) };
        Ok(SnapshotWalk {
            index: meta.index,
            term: meta.term,
            zxid: meta.zxid,
            membership,
            writer: SnapshotWriter::create(self.disk.clone(), &self.dir, meta),
            pieces: PieceWriter::default(),
            order: self,
            scan,
            znodes,
            started_ms,
        })
    }
}

fn meta(group: GroupNumber, state: &Replicated) -> SnapshotMeta {
    let ((index, term), app) = (state.applied(), state.membership().encode());
    SnapshotMeta { group, term: Term(term), index: Index(index), zxid: state.tree().zxid().0, app }
}

/// A snapshot under way. Until it is finished the tree keeps what writers change of it.
#[derive(Debug)]
pub struct SnapshotWalk {
    order: SnapshotOrder,
    index: Index,
    term: Term,
    zxid: i64,
    membership: Membership,
    scan: SnapshotScan,
    /// Or why it came to nothing.
    writer: Result<SnapshotWriter, SnapshotError>,
    pieces: PieceWriter,
    znodes: u64,
    started_ms: u64,
}

impl SnapshotWalk {
    /// Copies a slice of the state, and writes what has gathered. When it answers `false`, `finish` is to be called.
    pub fn step(&mut self, state: &impl StateLock) -> bool {
        let SnapshotWalk { order, scan, writer: Ok(writer), pieces, .. } = self else { return false };
        let more = pieces.piece(|out| {
            state.write(|state| state.tree_mut().scan_snapshot(scan, order.znodes_per_slice, out))
        });
        match pieces.blocks(!more, |block| writer.block(block)) {
            Ok(()) => more,
            Err(error) => {
                self.writer = Err(error);
                false
            }
        }
    }

    /// Gives the snapshot its name and removes the oldest. Of the log, as much stays as falling back to the oldest
    /// snapshot kept needs.
    pub fn finish(self, state: &impl StateLock, clock: &impl Clock) -> Result<Taken, SnapshotError> {
        let SnapshotWalk { order, index, term, zxid, membership, scan, writer, znodes, started_ms, .. } =
            self;
        let written = writer.and_then(|writer| writer.finish(znodes));
        state.write(|state| state.tree_mut().end_snapshot(scan));
        let file = written?;
        let kept = snapshot::retain(order.disk.as_ref(), &order.dir, order.kept)?;
        let seconds = (clock.now().monotonic_ms - started_ms) as f64 / 1000.0;
        tracing::info!(
            file = %file.path.display(),
            znodes,
            seconds = format!("{seconds:.2}"),
            "snapshot taken"
        );
        // What stands behind the very first snapshot is the log from its beginning.
        let may_fall_back = kept.len() > 1 || order.kept == 1;
        let release = kept.first().filter(|_| may_fall_back).map_or(0, |oldest| oldest.index.0);
        Ok(Taken { index: index.0, term: term.0, membership, release, zxid, path: file.path })
    }
}
