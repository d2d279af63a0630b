//! The engine: what owns the member and its log.
//!
//! It takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.
//!
//! It has a thread of its own, which sleeps when nothing waits. To wake it takes longer than to do a small thing: so whoever
//! finds the engine at rest may let it work on their thread, if nobody else is kept waiting by that. A request that is alone
//! costs its sync and no hop between threads.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Select, TryRecvError};
use paddock_member::{Member, MemberError, Shell, Work};
use paddock_replica::Input;
use parking_lot::Mutex;

use crate::shared::Shared;
use crate::shell::MemberShell;

const TICK: Duration = Duration::from_millis(Member::TICK_MS);
/// So many messages of workers are taken before what is in them is written.
const MESSAGES_PER_ROUND: usize = 1024;
/// If work on another thread took longer than this,
const BORROWED_MAX: Duration = Duration::from_millis(2);
/// the engine works on its own for so many times as long.
const OWN_THREAD_FACTOR: u64 = 50;

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    member: Member,
    shell: MemberShell,
    inputs: Receiver<Vec<Input>>,
    next_tick: Instant,
    /// What went wrong on a thread that is not the engine's.
    failure: Option<MemberError>,
}

/// Whether there will be more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Done,
    /// All workers have let go of the member.
    Last,
}

impl Engine {
    pub(crate) fn new(
        shared: Arc<Shared>,
        member: Member,
        shell: MemberShell,
        inputs: Receiver<Vec<Input>>,
    ) -> Engine {
        Engine { shared, member, shell, inputs, next_tick: Instant::now() + TICK, failure: None }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before it is put into its room.
    pub(crate) fn catch_up(&mut self) -> Result<(), MemberError> {
        self.carry_out(&mut || {})?;
        self.shared.set_role(self.member.role());
        self.shell.members_changed();
        Ok(())
    }

    /// Takes what waits, and `inputs` behind it, and does what comes of that. `meanwhile` is called as often as there may be answers.
    fn turn(&mut self, inputs: Vec<Input>, meanwhile: &mut dyn FnMut()) -> Result<Turn, MemberError> {
        let mut turn = Turn::Done;
        for _ in 0..MESSAGES_PER_ROUND {
            match self.inputs.try_recv() {
                Ok(inputs) => self.member.take(&self.shell, inputs),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    turn = Turn::Last;
                    break;
                }
            }
        }
        self.member.take(&self.shell, inputs);
        if Instant::now() >= self.next_tick {
            self.tick()?;
        }
        self.carry_out(meanwhile)?;
        Ok(turn)
    }

    /// Takes `inputs`, and then what has come while it did, in so many turns at most.
    fn turns(
        &mut self,
        mut inputs: Vec<Input>,
        turns_max: usize,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), MemberError> {
        for _ in 0..turns_max {
            self.turn(std::mem::take(&mut inputs), meanwhile)?;
            if self.inputs.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), MemberError> {
        self.next_tick = Instant::now() + TICK;
        self.member.tick(&mut self.shell)?;
        self.shared.set_role(self.member.role());
        Ok(())
    }

    /// Lets the member work until there is nothing to do, but to wait for room on a full disk.
    fn carry_out(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), MemberError> {
        loop {
            let work = self.member.work(&mut self.shell)?;
            self.shared.stats.fsyncs.store(self.member.syncs(), Relaxed);
            meanwhile();
            if !matches!(work, Work::Done) {
                return Ok(());
            }
        }
    }

    fn end(mut self) -> Result<(), MemberError> {
        let ended = self.member.end(&mut self.shell);
        self.shell.shutdown();
        ended
    }
}

/// Where the engine is, for whoever has work for it.
#[derive(Debug, Default)]
pub(crate) struct EngineRoom {
    /// Nobody is in before the start and after the end.
    engine: Mutex<Option<Engine>>,
    /// Until then, by the monotonic clock, it works on its own thread.
    alone_until_ms: AtomicU64,
}

impl EngineRoom {
    /// The engine's thread: runs until all workers have let go of the member, or the log fails.
    pub(crate) fn run(&self, engine: Engine) -> Result<(), MemberError> {
        let (inputs, mut next_tick) = (engine.inputs.clone(), engine.next_tick);
        *self.engine.lock() = Some(engine);
        loop {
            // What waits stays where it is: somebody may be faster, and order counts.
            let mut waiting = Select::new();
            waiting.recv(&inputs);
            let _ = waiting.ready_deadline(next_tick);

            let mut room = self.engine.lock();
            let engine = room.as_mut().expect("only this thread takes the engine away");
            let turned = engine.failure.take().map_or_else(|| engine.turn(Vec::new(), &mut || {}), Err);
            next_tick = engine.next_tick;
            if turned.as_ref().is_ok_and(|turn| *turn == Turn::Done) {
                continue;
            }
            let engine = room.take().expect("it was just here");
            drop(room);
            turned?;
            return engine.end();
        }
    }

    /// Lets the engine work on this thread, so many turns at most, if nothing waits for it and it was not slow lately. False if
    /// it did not, and has not taken the inputs.
    pub(crate) fn work_here(
        &self,
        shared: &Shared,
        inputs: &mut Vec<Input>,
        turns_max: usize,
        meanwhile: &mut dyn FnMut(),
    ) -> bool {
        let now_ms = shared.clock.monotonic_ms();
        let Some(mut room) = self.engine.try_lock().filter(|_| now_ms >= self.alone_until_ms.load(Relaxed))
        else {
            return false;
        };
        let is_at_rest = |engine: &&mut Engine| engine.failure.is_none() && engine.inputs.is_empty();
        let Some(engine) = room.as_mut().filter(is_at_rest) else { return false };
        let start = Instant::now();
        if let Err(error) = engine.turns(std::mem::take(inputs), turns_max, meanwhile) {
            engine.failure = Some(error);
        }
        let taken = start.elapsed();
        if taken > BORROWED_MAX {
            self.alone_until_ms.store(now_ms + taken.as_millis() as u64 * OWN_THREAD_FACTOR, Relaxed);
        }
        true
    }
}
