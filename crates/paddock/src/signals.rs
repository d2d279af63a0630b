//! Signals that end a command, and one that must not.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    /// Listens from now on, instead of ending at once.
    pub(crate) fn listen() -> io::Result<EndSignals> {
        Ok(EndSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// From now on a file that reaches the process's limit for its size (`ulimit -f`) is an error of its write. Without a handler the signal that goes
/// with it ends the process.
pub(crate) fn outlive_file_size_limit() -> io::Result<()> {
    // The handler stays when the receiver is gone.
    signal(SignalKind::from_raw(Number::XFSZ.as_raw())).map(drop)
}
