//! A timer that the reactor's poll wakes for, finer than the poll's own milliseconds: the latency of an open loop is
//! counted from the moment a request should have been sent.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

#[derive(Debug)]
pub(crate) struct Timer {
    fd: OwnedFd,
    armed_for: Option<Instant>,
}

impl Timer {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Timer> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Timer { fd, armed_for: None })
    }

    /// Wakes the poll at `deadline`, and no longer at the one before.
    pub(crate) fn arm(&mut self, deadline: Instant) -> io::Result<()> {
        if self.armed_for == Some(deadline) {
            return Ok(());
        }
        self.armed_for = Some(deadline);
        // A timer of zero would be disarmed.
        let left = deadline.saturating_duration_since(Instant::now()).as_nanos().max(1);
        let it_value = Timespec {
            tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (left % 1_000_000_000) as i64,
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Setting a timer also takes back a wake-up that was not read.
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        Ok(())
    }

    /// The timer has rung.
    pub(crate) fn rang(&mut self) {
        self.armed_for = None;
    }
}
