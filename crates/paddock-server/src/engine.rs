//! The engine: what owns the member and its log.
//!
//! It takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.
//!
//! It has a thread of its own, which sleeps when nothing waits. To wake it takes longer than to do a small thing: so whoever
//! finds the engine's room empty may let it work on their thread, if nobody else is kept waiting by that. A request that is
//! alone costs its sync and no hop between threads.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError};
use paddock_member::{Member, MemberError, Work};
use paddock_replica::Input;

use crate::members;
use crate::room::{Rest, Room};
use crate::server::ServerError;
use crate::shared::Shared;
use crate::shell::MemberShell;

const TICK: Duration = Duration::from_millis(Member::TICK_MS);
/// The time between two slices of the watches that connections leave behind, in which everybody else finds the state free.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);
/// So many messages of workers are taken before what is in them is written.
const MESSAGES_PER_ROUND: usize = 1024;
/// After so many inputs in one turn, more is about to come.
const INPUTS_OF_CROWD: usize = 64;
/// If the last sync took longer than this, the engine works on its own thread.
const BORROWED_MAX: Duration = Duration::from_millis(2);
/// Else it gets another thread for so many turns: what members say to what was written in the first comes soon.
pub(crate) const BORROWED_TURNS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    member: Member,
    shell: MemberShell,
    inputs: Receiver<Vec<Input>>,
    next_tick: Instant,
    /// When watches of connections that are gone are removed next.
    next_sweep: Instant,
    /// How many inputs the last turn took.
    inputs_taken: usize,
    /// The last sync took long.
    is_slow: bool,
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
        let now = Instant::now();
        Engine {
            shared,
            member,
            shell,
            inputs,
            next_tick: now + TICK,
            next_sweep: now,
            inputs_taken: 0,
            is_slow: false,
            failure: None,
        }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before it is put into its room.
    pub(crate) fn catch_up(&mut self) -> Result<(), MemberError> {
        self.carry_out(&mut || {})?;
        self.shared.set_confirmed(self.member.confirmed_ms());
        self.shared.set_role(self.member.role());
        Ok(())
    }

    /// Begins to talk to the other members, if there are any. To be called behind `catch_up`.
    pub(crate) fn connect(&mut self) -> Result<(), ServerError> {
        let links = members::link(&self.shared, self.member.cluster(), self.member.process())?;
        self.shell.connect(links);
        Ok(())
    }

    /// Takes what waits and does what comes of that. `meanwhile` is called as often as there may be answers.
    fn turn(&mut self, meanwhile: &mut dyn FnMut()) -> Result<Turn, MemberError> {
        let mut turn = Turn::Done;
        self.inputs_taken = 0;
        for _ in 0..MESSAGES_PER_ROUND {
            match self.inputs.try_recv() {
                Ok(inputs) => {
                    self.inputs_taken += inputs.len();
                    self.member.take(&self.shell, inputs);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    turn = Turn::Last;
                    break;
                }
            }
        }
        if Instant::now() >= self.next_tick {
            self.tick()?;
        }
        self.carry_out(meanwhile)?;
        Ok(turn)
    }

    /// Takes what waits, and then what has come while it did, in so many turns at most.
    fn turns(&mut self, turns_max: usize, meanwhile: &mut dyn FnMut()) -> Result<(), MemberError> {
        for _ in 0..turns_max {
            self.turn(meanwhile)?;
            if self.inputs.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn rest(&self) -> Rest {
        let until = self.next_tick.min(self.next_sweep);
        Rest { until, expects_more: self.inputs_taken >= INPUTS_OF_CROWD }
    }

    /// Removes some of the watches that connections have left behind, if it is time. There may be millions.
    fn sweep_watches(&mut self) {
        let now = Instant::now();
        if now >= self.next_sweep {
            let is_more = self.shared.state.read().state().sweep_watches();
            self.next_sweep = Instant::now() + if is_more { SWEEP_PAUSE } else { TICK };
        }
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
            let (syncs, start) = (self.member.syncs(), Instant::now());
            let work = self.member.work(&mut self.shell)?;
            self.shared.set_confirmed(self.member.confirmed_ms());
            if self.member.syncs() != syncs {
                self.shared.stats.fsyncs.store(self.member.syncs(), Relaxed);
                self.is_slow = start.elapsed() > BORROWED_MAX;
            }
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

/// Where the engine is. At the door wait messages of workers, and what other members have said.
pub(crate) type EngineRoom = Room<Engine, Vec<Input>>;

impl EngineRoom {
    /// The engine's thread: runs until all workers have let go of the member, or the log fails.
    pub(crate) fn run(&self, engine: Engine) -> Result<(), MemberError> {
        let (engine, end) = self.keep(engine, |engine| {
            match engine.failure.take().map_or_else(|| engine.turn(&mut || {}), Err) {
                Ok(Turn::Done) => {
                    engine.sweep_watches();
                    ControlFlow::Continue(engine.rest())
                }
                Ok(Turn::Last) => ControlFlow::Break(Ok(())),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        });
        end?;
        engine.end()
    }

    /// Hands `inputs` to the engine and leaves the vector empty. After the engine's end they go nowhere, and their
    /// connections are about to end too.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<Input>) {
        if !inputs.is_empty() {
            self.put(std::mem::take(inputs));
            self.knock();
        }
    }

    /// The same, and lets the engine work at once on this thread, so many turns at most, if nothing else waits for it and it was
    /// not slow lately. Then `meanwhile` is called as often as there may be answers.
    pub(crate) fn work_off(&self, inputs: &mut Vec<Input>, turns_max: usize, mut meanwhile: impl FnMut()) {
        if inputs.is_empty() {
            return;
        }
        let is_first = self.put(std::mem::take(inputs));
        let work = |engine: &mut Engine| {
            let may_work = !engine.is_slow && engine.failure.is_none();
            may_work.then(|| engine.failure = engine.turns(turns_max, &mut meanwhile).err())
        };
        if !is_first || self.visit(work).is_none() {
            self.knock();
        }
    }
}
