//! The engine: the one thread that owns the replica and the log.
//!
//! It takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use paddock_replica::{Effects, Input, Outboxes, Replica};
use paddock_storage::{Index, Log, LogError, Record, Term};

use crate::progress::Report;
use crate::recovery::GROUP;
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

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    replica: Replica,
    log: Log,
    snapshots: Snapshots,
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
    pub(crate) fn new(
        shared: Arc<Shared>,
        replica: Replica,
        log: Log,
        snapshots: Snapshots,
        inputs: Receiver<Vec<Input>>,
    ) -> Engine {
        let outboxes = Outboxes::new(shared.config.worker_count());
        let next_tick = Instant::now() + TICK;
        let effects = Effects::default();
        Engine {
            shared,
            replica,
            log,
            snapshots,
            inputs,
            effects,
            outboxes,
            next_tick,
            unmarked_since: None,
            replay: None,
        }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before `run`.
    pub(crate) fn catch_up(&mut self) -> Result<(), LogError> {
        self.replay = Some(Report::start("replaying log", "writes"));
        self.carry_out()?;
        if let Some(replay) = self.replay.take().filter(|replay| replay.done() > 0) {
            let (writes, per_second) = (replay.done(), replay.per_second());
            let seconds = format!("{:.2}", replay.seconds());
            tracing::info!(writes, seconds, per_second, "log replayed");
        }
        Ok(())
    }

    /// Runs until all workers have let go of the member, or the log fails.
    pub(crate) fn run(mut self) -> Result<(), LogError> {
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
        self.mark()
    }

    /// Leaves a mark behind all that is synced. On a full disk that has to wait, which costs nobody anything.
    fn mark(&mut self) -> Result<(), LogError> {
        self.unmarked_since = None;
        match self.log.mark() {
            Err(LogError::DiskFull { .. }) => Ok(()),
            result => result,
        }
    }

    fn take(&mut self, inputs: Vec<Input>) {
        let now = self.shared.clock.now();
        for input in inputs {
            self.replica.step(now, input);
        }
    }

    fn tick(&mut self) -> Result<(), LogError> {
        self.next_tick = Instant::now() + TICK;
        self.replica.step(self.shared.clock.now(), Input::Tick);
        if self.unmarked_since.is_some_and(|since| since.elapsed() >= QUIET) {
            self.mark()?;
        }
        if let Some(through) = self.snapshots.poll(&self.shared, &self.log) {
            self.log.release(GROUP, Index(through));
        }
        Ok(())
    }

    /// Carries out what the replica asks for, until it asks for nothing.
    fn carry_out(&mut self) -> Result<(), LogError> {
        loop {
            self.replica.collect(self.shared.clock.now(), &mut self.effects);
            if self.effects.is_empty() {
                return Ok(());
            }
            assert!(self.effects.messages.is_empty(), "a member alone has nobody to talk to");
            self.apply();
            if let Some(round) = self.effects.round.take() {
                self.persist()?;
                self.replica.step(self.shared.clock.now(), Input::Persisted { round });
            }
        }
    }

    /// Writes the round's records and waits until they are on disk. Nothing is acknowledged before.
    fn persist(&mut self) -> Result<(), LogError> {
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
    fn sync(&mut self) -> Result<(), LogError> {
        let mut full_since = None;
        loop {
            match (self.log.sync(), full_since) {
                // The waiting writes were promised nothing, and the member's end does not wait for an operator.
                (Err(error @ LogError::DiskFull { .. }), _) if self.shared.is_stopping() => {
                    return Err(error);
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
                (result, _) => return result,
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
        let mut woken = Vec::new();
        for (worker, outbox) in self.outboxes.iter_mut() {
            if !outbox.is_empty() {
                self.shared.mailbox(worker).post(outbox);
                woken.push(worker);
            }
        }
        drop(state);
        woken.into_iter().for_each(|worker| self.shared.mailbox(worker).wake());
    }
}
