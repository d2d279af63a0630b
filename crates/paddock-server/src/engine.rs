//! The engine: the one thread that owns the member and its log.
//!
//! It takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use paddock_member::{Member, MemberError, Shell, Work};
use paddock_replica::Input;

use crate::shared::Shared;
use crate::shell::MemberShell;

const TICK: Duration = Duration::from_millis(Member::TICK_MS);
/// So many messages of workers are taken before what is in them is written.
const MESSAGES_PER_ROUND: usize = 1024;

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    member: Member,
    shell: MemberShell,
    inputs: Receiver<Vec<Input>>,
    next_tick: Instant,
}

impl Engine {
    pub(crate) fn new(
        shared: Arc<Shared>,
        member: Member,
        shell: MemberShell,
        inputs: Receiver<Vec<Input>>,
    ) -> Engine {
        Engine { shared, member, shell, inputs, next_tick: Instant::now() + TICK }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before `run`.
    pub(crate) fn catch_up(&mut self) -> Result<(), MemberError> {
        self.carry_out()?;
        self.shared.set_role(self.member.role());
        self.shell.members_changed();
        Ok(())
    }

    /// Runs until all workers have let go of the member, or the log fails.
    pub(crate) fn run(mut self) -> Result<(), MemberError> {
        loop {
            match self.inputs.recv_deadline(self.next_tick) {
                Ok(inputs) => self.member.take(&self.shell, inputs),
                Err(RecvTimeoutError::Timeout) => self.tick()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let more: Vec<Vec<Input>> = self.inputs.try_iter().take(MESSAGES_PER_ROUND).collect();
            more.into_iter().for_each(|inputs| self.member.take(&self.shell, inputs));
            if Instant::now() >= self.next_tick {
                self.tick()?;
            }
            self.carry_out()?;
        }
        let ended = self.member.end(&mut self.shell);
        self.shell.shutdown();
        ended
    }

    fn tick(&mut self) -> Result<(), MemberError> {
        self.next_tick = Instant::now() + TICK;
        self.member.tick(&mut self.shell)?;
        self.shared.set_role(self.member.role());
        Ok(())
    }

    /// Lets the member work until there is nothing to do, but to wait for room on a full disk.
    fn carry_out(&mut self) -> Result<(), MemberError> {
        loop {
            let work = self.member.work(&mut self.shell)?;
            self.shared.stats.fsyncs.store(self.member.syncs(), Relaxed);
            if !matches!(work, Work::Done) {
                return Ok(());
            }
        }
    }
}
