//! `paddock version`: which Paddock this is, and with which others and with whose data it works.

use std::env::consts::{ARCH, OS};
use std::fmt::Display;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::process::ExitCode;

use paddock_server::LINK_VERSION;
use paddock_storage::{LOG_VERSIONS, SNAPSHOT_FILE_VERSION};
use paddock_tree::{FEATURES, Feature, FeatureLevel, SNAPSHOT_FORMATS};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, which `cargo xtask dist` names when it compiles.
const COMMIT: Option<&str> = option_env!("PADDOCK_COMMIT");

/// Print the version
#[derive(Debug, clap::Args)]
pub(crate) struct VersionArgs {
    /// Print the commit, what this program can do, and the formats that it reads and writes
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(args: &VersionArgs) -> ExitCode {
    let mut text = format!("paddock {VERSION}\n");
    if args.verbose {
        text += &details();
    }
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

fn details() -> String {
    let commit = COMMIT.unwrap_or("not named by this build");
    let features: String = FEATURES
        .iter()
        .map(|Feature { level, name, since }| format!("  {level}: {name}, since {since}\n"))
        .collect();
    let (log, tree) = (range(&LOG_VERSIONS), range(&SNAPSHOT_FORMATS));
    format!(
        "commit: {commit}\n\
         target: {ARCH}-{OS}\n\
         engines: log, etcd\n\
         protocols: ZooKeeper 3.9, ClickHouse Keeper\n\
         transaction log: {log}\n\
         snapshot file: {SNAPSHOT_FILE_VERSION}\n\
         tree in a snapshot: {tree}\n\
         links between members: {LINK_VERSION}\n\
         feature level: {}\n",
        FeatureLevel::KNOWN
    ) + &features
}

/// Versions that are read, of which the last one is written.
fn range(versions: &RangeInclusive<impl Display>) -> String {
    format!("{} to {}", versions.start(), versions.end())
}
