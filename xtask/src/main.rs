//! The project's own tasks, run as `cargo xtask <task>`.
//!
//! `stages` says what is tested, `install` puts what the tests need below the target directory, `process` runs
//! other programs. Nothing here is part of the product.

mod apt;
mod counts;
mod install;
mod layout;
mod process;
mod stages;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

use crate::layout::Layout;
use crate::process::Error;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The tasks of this repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need and run them
    #[command(after_help = TEST_HELP)]
    Test {
        /// Stages to run; all of them if none is named
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Print the stages and what each one does
        #[arg(long)]
        list: bool,
    },
    /// Check format and lints, then run every test
    Ci,
    /// Measure Paddock beside Apache ZooKeeper and print a table
    Baseline {
        /// A few seconds, to see that it works
        #[arg(long)]
        quick: bool,
    },
}

const TEST_HELP: &str = "\
Examples:
  cargo xtask test                                  run everything
  cargo xtask test unit process                     run two stages
  TEST_SERVER=zookeeper cargo xtask test kazoo      prove the tests themselves, on Apache ZooKeeper
  cargo xtask test --list                           say which stages there are

The output of a stage goes to test-env/logs/STAGE.log in the target directory, and here if the stage fails.
The last line is \"N passed, N failed\"; the exit code is 1 if anything failed.
Needed beforehand: a JDK with Maven, and Python 3.";

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all went well. An error means that the task could not be done at all.
fn run(task: Task) -> Result<bool, Error> {
    let layout = Layout::find();
    match task {
        Task::Test { list: true, .. } => {
            stages::list();
            Ok(true)
        }
        Task::Test { stages, list: false } => stages::run(&layout, &stages),
        Task::Ci => {
            check_style(&layout)?;
            stages::run(&layout, &[])
        }
        Task::Baseline { quick } => measure(&layout, quick).map(|()| true),
    }
}

fn check_style(layout: &Layout) -> Result<(), Error> {
    layout.cargo().args(["fmt", "--all", "--check"]).run()?;
    let clippy = layout.cargo().args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    clippy.args(["--features", "paddock-tests/browser", "--", "-D", "warnings"]).run()
}

fn measure(layout: &Layout, quick: bool) -> Result<(), Error> {
    install::jars(layout)?;
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    let baseline =
        layout.cargo().args(["run", "--release", "--package", "paddock-tests", "--bin", "baseline", "--"]);
    let baseline = if quick { baseline.args(["--quick"]) } else { baseline };
    baseline.env("PADDOCK_BIN", layout.paddock()).env("ZOOKEEPER_CLASSPATH", layout.class_path()).run()
}
