//! Signals that end a command, and one that must not. The end of standard input can be one of them.

use std::io::{self, Read};
use std::thread;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// SIGTERM and SIGINT, and the end of standard input if that was asked for.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Told of the end of standard input; gone once it was.
    stdin_end: Option<oneshot::Receiver<()>>,
}

impl EndSignals {
    /// Listens from now on, instead of ending at once.
    pub(crate) fn listen() -> io::Result<EndSignals> {
        Ok(EndSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            stdin_end: None,
        })
    }

    /// From now on the end of standard input is one of the signals. What can be read before is read and dropped.
    pub(crate) fn listen_to_stdin(&mut self) -> io::Result<()> {
        let (ended, stdin_end) = oneshot::channel();
        thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            read_to_the_end(io::stdin().lock());
            // A member that is ending has no receiver any more.
            let _ = ended.send(());
        })?;
        self.stdin_end = Some(stdin_end);
        Ok(())
    }

    /// Waits for the next one and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            () = ended(&mut self.stdin_end) => "the end of standard input",
        }
    }
}

/// Returns when the sender has told, once.
async fn ended(told: &mut Option<oneshot::Receiver<()>>) {
    match told {
        Some(receiver) => {
            let _ = receiver.await;
            *told = None;
        }
        None => std::future::pending().await,
    }
}

/// Reads until there is nothing more. An input that cannot be read has ended, too.
fn read_to_the_end(mut input: impl Read) {
    let mut buffer = [0; 4096];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// From now on a file that reaches the process's limit for its size (`ulimit -f`) is an error of its write. Without a handler the signal that goes
/// with it ends the process.
pub(crate) fn outlive_file_size_limit() -> io::Result<()> {
    // The handler stays when the receiver is gone.
    signal(SignalKind::from_raw(Number::XFSZ.as_raw())).map(drop)
}
