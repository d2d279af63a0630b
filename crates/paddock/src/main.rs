//! The command line of Paddock.
//!
//! Exit codes: 0 after an orderly end, 1 when the world misbehaved, 2 when what the operator said cannot be done, 130
//! when a second signal cut the orderly end short. Those of `diff` are as diff(1) has them.

mod access;
mod bench;
mod config;
mod diff;
mod export;
mod import;
mod logs;
mod moving;
mod server;
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  paddock server
  paddock server --config zoo.cfg
  paddock bench run create --hosts 127.0.0.1:2181
  paddock import zookeeper --data-dir /var/lib/zookeeper --to /var/lib/paddock
  paddock diff zk1:2181 paddock1:2181
  paddock server --help";

/// A coordination service that speaks ZooKeeper's protocol.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Server(server::Args),
    Bench(Box<bench::Args>),
    Import(import::Args),
    Export(export::Args),
    Diff(diff::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Server(args) => match server::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                logs::report(args.log_format, &failure.line());
                ExitCode::from(failure.exit_code())
            }
        },
        Command::Bench(args) => bench::run(*args),
        Command::Import(args) => moving::ended(import::run(&args)),
        Command::Export(args) => moving::ended(export::run(&args)),
        Command::Diff(args) => diff::run(&args),
    }
}
