//! Snapshots of a member: when one is due, and how it is taken beside writes.

use std::path::PathBuf;
use std::sync::Arc;

use paddock_replica::{Membership, Replicated};
use paddock_storage::snapshot;
use paddock_storage::{Disk, GroupNumber, Index, SnapshotError, SnapshotMeta, SnapshotWriter, Term};
use paddock_tree::SnapshotScan;

use crate::clock::{Clock, StateLock};
use crate::config::HOME;
use crate::group_state::GroupState;
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
    /// The last entry in the newest snapshot, of a group that is not the home group.
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

    /// Continues the snapshot under way, or begins one if it is time: of this state, or of the home group's. Returns one that has been completed.
    pub(crate) fn poll(
        &mut self,
        state: Option<&GroupState>,
        shell: &mut impl Shell,
        disk: &Arc<dyn Disk>,
        config: &Config,
        now: Mark,
    ) -> Option<Taken> {
        if self.is_under_way {
            return shell.finished_snapshot().and_then(|result| self.completed(result, now));
        }
        let is_due = match state {
            Some(state) => self.is_due_for(state, config, now),
            None => self.is_due(config, now),
        };
        if is_due {
            self.last = now;
            self.is_wanted = false;
            self.is_under_way = true;
            shell.begin_snapshot(SnapshotOrder::new(self.group, state.cloned(), disk.clone(), config));
        }
        None
    }

    /// As `is_due`, for a group that is not the home group. Once `snapshot_log_bytes` have been logged by all groups together, this one must not hold the log,
    /// whatever little it has in it.
    fn is_due_for(&mut self, state: &GroupState, config: &Config, now: Mark) -> bool {
        let applied = state.look().applied().0;
        let log_bytes = now.log_bytes.saturating_sub(self.last.log_bytes);
        let holds_log = log_bytes >= config.settings.snapshot_log_bytes && applied > self.taken;
        let is_due = applied > 0 && (holds_log || self.is_due(config, now));
        if !is_due {
            self.last.log_bytes = self.last.log_bytes.min(now.log_bytes);
        }
        is_due
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
                self.taken = taken.index;
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

    /// Waits for the snapshot under way, if there is one, when the state goes or the member ends.
    pub(crate) fn finish(&mut self, shell: &mut impl Shell) {
        if !std::mem::take(&mut self.is_under_way) {
            return;
        }
        if let Some(Err(error)) = shell.await_snapshot() {
            tracing::error!(%error, "snapshot failed");
        }
    }
}

/// A snapshot that is to be taken.
#[derive(Debug)]
pub struct SnapshotOrder {
    group: GroupNumber,
    /// The group's state; `None` for the home group, whose state the process has.
    state: Option<GroupState>,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    kept: usize,
    znodes_per_slice: usize,
}

impl SnapshotOrder {
    fn new(
        group: GroupNumber,
        state: Option<GroupState>,
        disk: Arc<dyn Disk>,
        config: &Config,
    ) -> SnapshotOrder {
        let dir = config.snapshot_dir(group);
        let kept = if group == HOME { config.settings.snapshots_kept } else { 1 };
        SnapshotOrder { group, state, disk, dir, kept, znodes_per_slice: config.znodes_per_slice }
    }

    /// True for a snapshot of the home group.
    pub fn is_of_home(&self) -> bool {
        self.group == HOME
    }

    /// Takes it in one go, as soon as it may begin; `pause` is called before each further try. `home` is the home group's state.
    pub fn carry_out(
        self,
        home: &impl StateLock,
        clock: &impl Clock,
        mut pause: impl FnMut(),
    ) -> Result<Taken, SnapshotError> {
        let mut begun = self.begin(home, clock);
        let mut walk = loop {
            begun = match begun {
                Ok(walk) => break walk,
                Err(early) => {
                    pause();
                    early.begin(home, clock)
                }
            };
        };
        while walk.step(home) {}
        walk.finish(home, clock)
    }

    /// Begins to take it: of the state as it is now, whatever is written to it until the end. Between two commands of an entry it
    /// does not begin, and the order comes back: the state has no place in the log then, from which the log could be replayed on it.
    pub fn begin(self, home: &impl StateLock, clock: &impl Clock) -> Result<SnapshotWalk, SnapshotOrder> {
        let started_ms = clock.now().monotonic_ms;
        let begun = self.write(home, |state| {
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
            writer: self.create_file(meta),
            pieces: PieceWriter::default(),
            order: self,
            scan,
            znodes,
            started_ms,
        })
    }

    /// Calls `change` with the state that is to be saved.
    fn write<T>(&self, home: &impl StateLock, change: impl FnOnce(&mut Replicated) -> T) -> T {
        match &self.state {
            Some(state) => state.write(change),
            None => home.write(change),
        }
    }

    fn create_file(&self, meta: SnapshotMeta) -> Result<SnapshotWriter, SnapshotError> {
        if self.group != HOME {
            let failed =
                |source| SnapshotError::Io { action: "create directory", path: self.dir.clone(), source };
            self.disk.create_dir(&self.dir).map_err(failed)?;
        }
        SnapshotWriter::create(self.disk.clone(), &self.dir, meta)
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
    pub fn step(&mut self, home: &impl StateLock) -> bool {
        let SnapshotWalk { order, scan, writer: Ok(writer), pieces, .. } = self else { return false };
        let more = pieces.piece(|out| {
            order.write(home, |state| state.tree_mut().scan_snapshot(scan, order.znodes_per_slice, out))
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
    pub fn finish(self, home: &impl StateLock, clock: &impl Clock) -> Result<Taken, SnapshotError> {
        let SnapshotWalk { order, index, term, zxid, membership, scan, writer, znodes, started_ms, .. } =
            self;
        let written = writer.and_then(|writer| writer.finish(znodes));
        order.write(home, |state| state.tree_mut().end_snapshot(scan));
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
