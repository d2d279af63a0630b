//! `cargo xtask torture`: rounds of real members under faults, judged by Porcupine.
//!
//! Its rounds are in tests/src/torture.rs; here is only what they need, and their start.

use crate::layout::Layout;
use crate::process::Error;
use crate::stages;

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask torture                        100 rounds, about 20 minutes
  cargo xtask torture --rounds 10            ten, from any seed
  cargo xtask torture --seed 8123 --rounds 1 one round again
  cargo xtask torture --groups 4             four Raft groups, over which the znodes are spread
  cargo xtask torture --groups 4 --replicas 3  three replicas of each group, on five members

A round starts three members and sessions of kazoo, ZooKeeper's Java client and go-zookeeper, kills, pauses and cuts off members and fills
their disks, heals everything, and asks Porcupine whether what all clients saw is linearizable. Members have to hold the same in
the end. Multis of kazoo are about two znodes, with --groups in two Raft groups. A seed makes the same plan and the same questions; when they meet is up to the machine, so a violation may take some
rounds to come again.

Network namespaces and disks of a member's own take root; without it cuts and full disks are left out, which a line says that
begins with `skipped:`. Needed beforehand: a JDK with Maven, and Python 3.
The summary is test-env/logs/torture.txt in the target directory. A round with a violation leaves its history, a picture of it and
the members' data and logs in test-env/histories; the exit code is 1 then. Ctrl-C ends it and leaves nothing behind.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The seed of the first round; the others have those behind it [default: any]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Raft groups of an ensemble, over which the znodes are spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    groups: u32,
    /// Replicas of each group beside the home group; there are two members more [default: one on each of three members]
    #[arg(long, value_name = "N", requires = "groups", value_parser = clap::value_parser!(u32).range(1..=7))]
    replicas: Option<u32>,
}

/// Comes back only if it could not be started.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    let name = "torture";
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    // Not as a release: a panic would end it before it has tidied up.
    let build = layout.cargo().args(["build", "--package", "paddock-tests", "--features", "faults"]);
    build.args(["--bin", name]).run()?;
    let mut torture = layout.test_program(name);
    for (variable, value) in stages::fault_variables(layout, name)? {
        torture = torture.env(variable, value);
    }
    if let Some(seed) = options.seed {
        torture = torture.env("TORTURE_SEED", seed.to_string());
    }
    // The summary is there for Ctrl-C alone then, and for those who wait for its exit code.
    Err(torture
        .env("TORTURE_ROUNDS", options.rounds.to_string())
        .env("TORTURE_GROUPS", options.groups.to_string())
        .env("TORTURE_REPLICAS", options.replicas.unwrap_or_default().to_string())
        .env("TORTURE_SUMMARY", layout.environment("logs").join("torture.txt"))
        .replace_this_process())
}
