//! `paddock bench`: load and figures for any server that speaks ZooKeeper's protocol.
//!
//! Exit codes: 0 when all was measured without an error, 1 when requests failed or the server went away (there is a
//! report all the same), 2 when what the user said cannot be done, 130 when the user ended it.

mod choice;
mod display;
mod run;
mod suite;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use paddock_bench::BenchError;
use tokio::signal::unix::{SignalKind, signal};

/// Measure any server that speaks ZooKeeper's protocol
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Suite(suite::Args),
}

/// The end of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Good,
    /// Requests failed, or the server went away.
    Bad,
    /// The user ended it.
    Interrupted,
}

pub(crate) fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Run(args) => run::run(&args),
        Command::Suite(args) => suite::run(&args),
    };
    match done {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::FAILURE,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {}", line(&error));
            ExitCode::from(2)
        }
    }
}

/// An error and its causes.
fn line(error: &BenchError) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line += &format!(": {error}");
        cause = error.source();
    }
    line
}

/// A flag that Ctrl-C, SIGTERM and the terminal's end set; the second time `last` is called and the process ends.
fn interruption(last: fn()) -> Result<Arc<AtomicBool>, BenchError> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let system = |source| BenchError::System { action: "listen for signals", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let [mut interrupt, mut terminate, mut hangup] = {
        let _entered = runtime.enter();
        let listen = |kind| signal(kind).map_err(system);
        [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?]
    };
    let watch = async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if set.swap(true, Ordering::Relaxed) {
                last();
                std::process::exit(130);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(watch))
        .map_err(system)?;
    Ok(flag)
}
