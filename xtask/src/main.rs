//! The project's own tasks, run as `cargo xtask <task>`.
//!
//! `structure` checks what no compiler does, `stages` says what is tested, `torture` and `soak` look for what tests have not found, `breaks` proves the simulator,
//! `compare` and `profile` say what is measured, `instructions` what is counted, `api` what programs of others rely on, `cluster` starts members to try things on,
//! `dist` makes what is shipped, `wheel` the Python package, `install` puts what tests and comparisons need below the target directory, `process` runs other programs. Nothing here is
//! part of the product.

mod api;
mod apt;
mod breaks;
mod cluster;
mod compare;
mod counts;
mod dist;
mod install;
mod instructions;
mod layout;
mod machine;
mod page;
mod previous;
mod process;
mod profile;
mod site;
mod soak;
mod stages;
mod structure;
mod torture;
mod wheel;

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
        /// Stages to run; all but the long ones if none is named
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Run the long stages, too
        #[arg(long, conflicts_with = "stages")]
        all: bool,
        /// Print the stages and what each one does
        #[arg(long)]
        list: bool,
    },
    /// Check format, the lints of all targets and features, and the structure of the code
    #[command(after_help = CHECK_HELP)]
    Check,
    /// Check everything, then run every test: `check` and `test`
    Ci,
    /// Kill, pause, cut off and fill real members under kazoo and ZooKeeper's Java client; Porcupine judges
    #[command(after_help = torture::HELP)]
    Torture(torture::Options),
    /// Run the simulator for hours over ever new seeds
    #[command(after_help = soak::HELP)]
    Soak(soak::Options),
    /// Measure Paddock beside Apache ZooKeeper and write tables below docs/performance
    #[command(after_help = compare::HELP)]
    Compare(compare::Options),
    /// Count the instructions of requests, of changes of the tree and of the log, and compare with what is stored
    #[command(after_help = instructions::HELP)]
    Instructions(instructions::Options),
    /// Compare the public items of the library with those that are stored
    #[command(after_help = api::HELP)]
    Api(api::ApiOptions),
    /// Tell where the server's time goes and write it into docs/performance/profile.md
    #[command(after_help = profile::HELP)]
    Profile(profile::Options),
    /// Prove that the simulator would notice mistakes
    #[command(after_help = breaks::HELP)]
    Breaks(breaks::Options),
    /// Make the Python package with a program that is built already
    #[command(after_help = wheel::HELP)]
    Wheel(wheel::WheelOptions),
    /// Make a site with search of the pages, by mdBook
    #[command(after_help = site::HELP)]
    Site,
    /// Start members on loopback and tell what happens to them
    #[command(after_help = cluster::HELP)]
    Cluster(cluster::Options),
    /// Make what is shipped: archives, packages, check sums
    #[command(after_help = dist::HELP)]
    Dist(dist::DistOptions),
    /// Make a container image
    #[command(after_help = dist::image::HELP)]
    Image(dist::ImageOptions),
}

const TEST_HELP: &str = "\
Examples:
  cargo xtask test                                  run everything but what takes long
  cargo xtask test --all                            run everything
  cargo xtask test unit process                     run two stages
  TEST_SERVER=zookeeper cargo xtask test kazoo      prove the tests themselves, on Apache ZooKeeper
  TEST_NETWORK=large-buffers cargo xtask test unit  on a network with other settings, as root
  cargo xtask test --list                           say which stages there are

The output of a stage goes to test-env/logs/STAGE.log in the target directory, and here if the stage fails.
The last line is \"N passed, N failed\"; the exit code is 1 if anything failed.
Needed beforehand: a JDK with Maven, and Python 3. The tests with partitions want root, for network namespaces.";

const CHECK_HELP: &str = "\
The structure: crates depend only on floors below theirs, no more than three files of a crate import each other in a circle, and
doc comments begin with the name of their subject. Words that leave a reader guessing, and names of several types, become no more than
they are. Exceptions of today are lines of xtask/structure-known.txt; the list only shrinks.";

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

/// Runs a task. Returns true if all went well. An error means that the task could not be done at all.
fn run(task: Task) -> Result<bool, Error> {
    let layout = Layout::find();
    match task {
        Task::Test { list: true, .. } => {
            stages::list();
            Ok(true)
        }
        Task::Test { stages, all, list: false } => stages::run(&layout, &stages, all),
        Task::Check => check(&layout),
        Task::Ci => Ok(check(&layout)? && stages::run(&layout, &[], false)?),
        Task::Torture(options) => torture::run(&layout, &options),
        Task::Soak(options) => soak::run(&layout, &options),
        Task::Compare(options) => compare::run(&layout, &options),
        Task::Instructions(options) => instructions::run(&layout, &options),
        Task::Api(options) => api::run(&layout, &options),
        Task::Profile(options) => profile::run(&layout, &options),
        Task::Breaks(options) => breaks::run(&layout, &options),
        Task::Wheel(options) => wheel::run(&layout, &options),
        Task::Site => site::run(&layout),
        Task::Cluster(options) => cluster::run(&layout, &options),
        Task::Dist(options) => dist::run(&layout, &options),
        Task::Image(options) => dist::image::run(&layout, &options).map(|_| true),
    }
}

fn check(layout: &Layout) -> Result<bool, Error> {
    layout.cargo().args(["fmt", "--all", "--check"]).run()?;
    let is_sound = structure::check(layout)?;
    // Mistakes that do not fit the sources any more prove nothing.
    breaks::check(layout)?;
    let clippy = layout.cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--all-features"]);
    clippy.args(["--", "-D", "warnings"]).run()?;
    Ok(is_sound)
}
