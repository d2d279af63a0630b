//! The engine: the one thread that owns the member and its log.
//!
//! It takes all that waits, writes it with one sync, applies what is committed and answers. While it syncs, the next
//! requests gather, so a slow disk makes larger batches and not a longer queue.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use paddock_member::{Member, MemberError, Work};
use paddock_replica::Input;
use paddock_storage::LogError;

use crate::shared::Shared;
use crate::shell::MemberShell;

const TICK: Duration = Duration::from_millis(Member::TICK_MS);
/// How long to wait before a full disk is tried again.
const DISK_FULL_PAUSE: Duration = Duration::from_secs(1);
/// So many messages of workers are taken before what is in them is written.
const MESSAGES_PER_ROUND: usize = 1024;

#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    member: Member,
    shell: MemberShell,
    inputs: Receiver<Vec<Input>>,
    next_tick: Instant,
    /// While writes wait for room on the disk.
    full_since: Option<Instant>,
}

impl Engine {
    pub(crate) fn new(
        shared: Arc<Shared>,
        member: Member,
        shell: MemberShell,
        inputs: Receiver<Vec<Input>>,
    ) -> Engine {
        Engine { shared, member, shell, inputs, next_tick: Instant::now() + TICK, full_since: None }
    }

    /// Applies what the log holds, so that the member is as it was. To be called before `run`.
    pub(crate) fn catch_up(&mut self) -> Result<(), MemberError> {
        self.carry_out()?;
        self.shared.set_role(self.member.role());
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

    /// Lets the member work until there is nothing to do, for as long as that takes on a full disk: nobody was told
    /// anything yet, so the writes can wait for room.
    fn carry_out(&mut self) -> Result<(), MemberError> {
        loop {
            let work = self.member.work(&mut self.shell)?;
            self.shared.stats.fsyncs.store(self.member.syncs(), Relaxed);
            match work {
                Work::Nothing => return Ok(()),
                Work::Done => self.has_room(),
                Work::DiskFull(error) => self.wait_for_room(error)?,
            }
        }
    }

    fn wait_for_room(&mut self, error: LogError) -> Result<(), MemberError> {
        // The waiting writes were promised nothing, and the member's end does not wait for an operator.
        if self.shared.is_stopping() {
            return Err(error.into());
        }
        if self.full_since.is_none() {
            tracing::error!(%error, "disk full: writes wait; free some space");
            self.full_since = Some(Instant::now());
        }
        std::thread::sleep(DISK_FULL_PAUSE);
        Ok(())
    }

    fn has_room(&mut self) {
        if let Some(since) = self.full_since.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "there is room again: writes go on");
        }
    }
}
