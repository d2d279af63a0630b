//! `paddock bench`: load and figures for any server that speaks ZooKeeper's protocol.
//!
//! Exit codes: 0 when all was measured without an error, 1 when requests failed or the server went away (there is a
//! report all the same), 2 when what the user said cannot be done, 130 when the user ended it.

mod choice;
mod display;
mod interruption;
mod outcome;
mod run;
mod run_args;
mod suite;

use std::process::ExitCode;

use clap::Subcommand;

use self::outcome::BenchOutcome;

/// Measure any server that speaks ZooKeeper's protocol
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Run(Box<run_args::Args>),
    Suite(suite::Args),
}

pub(crate) fn run(args: Args) -> ExitCode {
    let done = match args.command {
        BenchCommand::Run(args) => run::run(&args),
        BenchCommand::Suite(args) => suite::run(&args),
    };
    match done {
        Ok(BenchOutcome::Good) => ExitCode::SUCCESS,
        Ok(BenchOutcome::Bad) => ExitCode::FAILURE,
        Ok(BenchOutcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {}", paddock_tls::with_causes(&error));
            ExitCode::from(2)
        }
    }
}
