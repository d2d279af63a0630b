//! The engine: the one thread that owns the replica and the log.
//!
//! It takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use paddock_replica::{Effects, Input, Install, Outboxes, Replica, State};
use paddock_storage::snapshot::SnapshotFile;
use paddock_storage::{Disk, Index, Log, LogError, Record, Term};

use crate::incoming::{self, Incoming, IncomingError};
use crate::peers::Links;
use crate::progress::Report;
use crate::recovery::{self, GROUP, RecoveryError};
use crate::shared::Shared;
use crate::snapshots::Snapshots;

/// A tenth of an election timeout.
const TICK: Duration = Duration::from_millis(100);
/// After so long without a write, what is on disk is marked as whole.
const QUIET: Duration = Duration::from_millis(500);
/// How long to wait before a full disk is tried again.
const DISK_FULL_PAUSE: Duration = Duration::from_secs(1);
/// So many messages of workers are taken before what is in them is written.
const MESSAGES_PER_ROUND: usize = 1024;

/// Why a member has to stop.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Incoming(#[from] IncomingError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

/// What an engine is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) replica: Replica,
    pub(crate) log: Log,
    pub(crate) snapshots: Snapshots,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) inputs: Receiver<Vec<Input>>,
    /// `None` for a member alone.
    pub(crate) links: Option<Links>,
}

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    replica: Replica,
    log: Log,
    snapshots: Snapshots,
    disk: Arc<dyn Disk>,
    incoming: Incoming,
    links: Option<Links>,
    inputs: Receiver<Vec<Input>>,
    effects: Effects,
    outboxes: Outboxes,
    next_tick: Instant,
    /// When something was written that has not been marked.
    unmarked_since: Option<Instant>,
    /// While the log is replayed.
    replay: Option<Report>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, parts: Parts) -> Engine {
        let Parts { replica, log, snapshots, disk, inputs, links } = parts;
        Engine {
            outboxes: Outboxes::new(shared.config.worker_count()),
            incoming: Incoming::new(disk.clone(), shared.config.snapshot_dir()),
            shared,
            replica,
            log,
            snapshots,
            disk,
            links,
            inputs,
            effects: Effects::default(),
            next_tick: Instant::now() + TICK,
            unmarked_since: None,
            replay: None,
        }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before `run`.
    pub(crate) fn catch_up(&mut self) -> Result<(), EngineError> {
        self.replay = Some(Report::start("replaying log", "writes"));
        self.carry_out()?;
        if let Some(replay) = self.replay.take().filter(|replay| replay.done() > 0) {
            let (writes, per_second) = (replay.done(), replay.per_second());
            let seconds = format!("{:.2}", replay.seconds());
            tracing::info!(writes, seconds, per_second, "log replayed");
        }
        self.shared.set_role(self.replica.role());
        Ok(())
    }

    /// Runs until all workers have let go of the member, or the log fails.
    pub(crate) fn run(mut self) -> Result<(), EngineError> {
        loop {
            match self.inputs.recv_deadline(self.next_tick) {
                Ok(inputs) => self.take(inputs),
                Err(RecvTimeoutError::Timeout) => self.tick()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let more: Vec<Vec<Input>> = self.inputs.try_iter().take(MESSAGES_PER_ROUND).collect();
            more.into_iter().for_each(|inputs| self.take(inputs));
            if Instant::now() >= self.next_tick {
                self.tick()?;
            }
            self.carry_out()?;
        }
        self.snapshots.finish();
        if let Some(links) = self.links.take() {
            links.shutdown();
        }
        self.mark()
    }

    /// Leaves a mark behind all that is synced. On a full disk that has to wait, which costs nobody anything.
    fn mark(&mut self) -> Result<(), EngineError> {
        self.unmarked_since = None;
        match self.log.mark() {
            Err(LogError::DiskFull { .. }) => Ok(()),
            result => Ok(result?),
        }
    }

    fn take(&mut self, inputs: Vec<Input>) {
        let now = self.shared.clock.now();
        for input in inputs {
            self.replica.step(now, input);
        }
    }

    fn tick(&mut self) -> Result<(), EngineError> {
        self.next_tick = Instant::now() + TICK;
        self.replica.step(self.shared.clock.now(), Input::Tick);
        if self.unmarked_since.is_some_and(|since| since.elapsed() >= QUIET) {
            self.mark()?;
        }
        if let Some(taken) = self.snapshots.poll(&self.shared, &self.log) {
            self.log.release(GROUP, Index(taken.release));
            let taken = Input::SnapshotTaken { index: taken.index, term: taken.term };
            self.replica.step(self.shared.clock.now(), taken);
        }
        self.shared.set_role(self.replica.role());
        Ok(())
    }

    /// Carries out what the replica asks for, until it asks for nothing.
    fn carry_out(&mut self) -> Result<(), EngineError> {
        loop {
            self.replica.collect(self.shared.clock.now(), &mut self.effects);
            if self.effects.is_empty() {
                return Ok(());
            }
            self.talk();
            if let Some(install) = self.effects.install.take() {
                self.install(&install)?;
            }
            self.apply();
            if let Some(round) = self.effects.round.take() {
                self.persist()?;
                self.replica.step(self.shared.clock.now(), Input::Persisted { round });
            }
        }
    }

    /// What concerns other members and need not wait for the disk.
    fn talk(&mut self) {
        if let Some(links) = &self.links {
            for (to, message) in self.effects.messages.drain(..) {
                // A message that is lost is sent again, or was not needed.
                links.send(u8::try_from(to).expect("members have numbers up to 255"), message);
            }
        }
        assert!(self.effects.messages.is_empty(), "a member alone has nobody to talk to");
        if std::mem::take(&mut self.effects.wants_snapshot) {
            self.snapshots.want();
        }
        let now = self.shared.clock.now();
        for read in self.effects.snapshot_reads.drain(..) {
            let piece = incoming::read_piece(self.disk.as_ref(), &self.shared.config.snapshot_dir(), read);
            self.replica.step(now, Input::SnapshotRead { read, piece });
        }
        for piece in self.effects.snapshot_writes.drain(..) {
            let written = self.incoming.write(&piece);
            if let Err(error) = &written {
                tracing::error!(%error, "snapshot of the leader could not be written; it is fetched again");
            }
            let offset = piece.offset + piece.bytes.len() as u64;
            let (index, is_last, is_good) = (piece.index, piece.is_last, written.is_ok());
            self.replica.step(now, Input::SnapshotWritten { index, offset, is_last, is_good });
        }
    }

    /// Puts the snapshot that came from the leader in the place of log and state.
    fn install(&mut self, install: &Install) -> Result<(), EngineError> {
        // One of this member's own may be walking over the state that goes.
        self.snapshots.finish();
        let path = self.incoming.install(install, &mut self.log)?;
        let file = SnapshotFile { index: Index(install.index), path };
        let (tree, _) = recovery::load(self.disk.as_ref(), &file)?;
        tracing::info!(zxid = %tree.zxid(), "this member lagged too far: it goes on from the leader's snapshot");
        let now = self.shared.clock.now();
        let mut state = self.shared.state.write();
        *state = State::new(tree, (install.index, install.term));
        self.replica.installed(now, &state, &mut self.outboxes);
        let woken = post(&self.shared, &mut self.outboxes);
        drop(state);
        wake(&self.shared, woken);
        Ok(())
    }

    /// Writes the round's records and waits until they are on disk. Nothing is acknowledged before.
    fn persist(&mut self) -> Result<(), EngineError> {
        if let Some(hard_state) = self.effects.hard_state.take() {
            self.log.append(Record::HardState { group: GROUP, payload: &hard_state.encode() });
        }
        for entry in self.effects.entries.drain(..) {
            let (term, index) = (Term(entry.term), Index(entry.index));
            self.log.append(Record::Entry { group: GROUP, term, index, payload: &entry.payload });
        }
        self.unmarked_since = Some(Instant::now());
        self.shared.stats.fsyncs.fetch_add(1, Relaxed);
        self.sync()
    }

    /// Syncs, for as long as it takes on a full disk: nobody was told anything yet, so the writes can wait for room.
    fn sync(&mut self) -> Result<(), EngineError> {
        let mut full_since = None;
        loop {
            match (self.log.sync(), full_since) {
                // The waiting writes were promised nothing, and the member's end does not wait for an operator.
                (Err(error @ LogError::DiskFull { .. }), _) if self.shared.is_stopping() => {
                    return Err(error.into());
                }
                (Err(error @ LogError::DiskFull { .. }), None) => {
                    tracing::error!(%error, "disk full: writes wait; free some space");
                    full_since = Some(Instant::now());
                }
                (Err(LogError::DiskFull { .. }), Some(_)) => {}
                (Ok(()), Some(since)) => {
                    tracing::info!(seconds = since.elapsed().as_secs(), "there is room again: writes go on");
                    return Ok(());
                }
                (result, _) => return Ok(result?),
            }
            std::thread::sleep(DISK_FULL_PAUSE);
        }
    }

    /// Applies what is committed and sends the answers.
    fn apply(&mut self) {
        if self.effects.committed.is_empty() && !self.effects.locals {
            return;
        }
        let now = self.shared.clock.now();
        let mut state = self.shared.state.write();
        let applied = self.replica.apply(now, &mut self.effects, &mut state, &mut self.outboxes);
        if let Some(replay) = &mut self.replay {
            replay.advance(applied.commands as u64);
        }
        let woken = post(&self.shared, &mut self.outboxes);
        drop(state);
        wake(&self.shared, woken);
    }
}

/// Puts what has to leave into the workers' mailboxes. To be called while the state is held, so that whoever reads it
/// afterwards finds in its box all events that came before. Returns the workers to wake when it is not.
fn post(shared: &Shared, outboxes: &mut Outboxes) -> Vec<usize> {
    let mut woken = Vec::new();
    for (worker, outbox) in outboxes.iter_mut() {
        if !outbox.is_empty() {
            shared.mailbox(worker).post(outbox);
            woken.push(worker);
        }
    }
    woken
}

fn wake(shared: &Shared, workers: Vec<usize>) {
    workers.into_iter().for_each(|worker| shared.mailbox(worker).wake());
}
