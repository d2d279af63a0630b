//! `paddock import keeper`: a data directory of Paddock from the files of a ClickHouse Keeper.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use paddock_files::{DigestCheck, KeeperDirs, KeeperLoaded, Progress};

use super::Target;
use crate::moving::{self, MovingFailure};

const EXAMPLES: &str = "\
Examples:
  paddock import keeper --snapshots /var/lib/clickhouse-keeper/snapshots --log /var/lib/clickhouse-keeper/logs --dry-run
      read everything, write nothing
  paddock import keeper --snapshots /var/lib/clickhouse-keeper/snapshots --log /var/lib/clickhouse-keeper/logs --to /var/lib/paddock
  paddock server --data-dir /var/lib/paddock

Stop the ensemble first, and take the directories of its last leader. Nothing in them is changed. Files on remote disks
(log_storage_disk and the like) have to be copied beside each other first. `paddock import live` copies from a running Keeper.";

/// Import the snapshots and changelogs of a ClickHouse Keeper
///
/// Reads the newest snapshot that is whole (format versions 0 to 7) and all requests behind it: znodes with their Stats and ACLs,
/// sessions with their ephemerals, and the counters of sequential znodes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Keeper's snapshot_storage_path, or the snapshots in its storage_path
    #[arg(long, value_name = "DIR")]
    snapshots: PathBuf,
    /// Keeper's log_storage_path, or the logs in its storage_path
    #[arg(long, value_name = "DIR")]
    log: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Import data whose digest is not the one that Keeper wrote
    #[arg(long)]
    ignore_digest: bool,
}

pub(super) fn run(args: &Args) -> Result<(), MovingFailure> {
    let source = KeeperDirs { snapshots: args.snapshots.clone(), log: args.log.clone() };
    let load = |options, progress: &mut dyn FnMut(Progress<'_>)| {
        paddock_files::load_keeper(&source, options, progress)
    };
    args.target.import(args.ignore_digest, load, |loaded| &mut loaded.tree, report)
}

fn report(loaded: &KeeperLoaded, to: Option<&Path>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let KeeperLoaded { tree, report } = loaded;
    let common = &report.report;
    moving::print_skipped(common, &mut out)?;
    if common.snapshot.as_os_str().is_empty() {
        writeln!(out, "snapshot  none: the log has everything")?;
    }
    moving::print_files(common, "requests", &mut out)?;
    if report.replaced > 0 {
        writeln!(out, "replaced  {} log entries, by those of a later leader", report.replaced)?;
    }
    let digest = match common.digest {
        DigestCheck::Right => "as Keeper wrote it",
        DigestCheck::Absent => "not compared: Keeper wrote none that is known for the last state",
        DigestCheck::Ignored => "not as Keeper wrote it, which was to be ignored",
    };
    writeln!(out, "digest    {digest}")?;
    moving::print_dropped(common, &mut out)?;
    moving::print_paths("left out", "znodes at or below /keeper", &report.left_out, &mut out)?;
    if report.raised > 0 {
        writeln!(out, "raised    the counter of children of {} znodes", report.raised)?;
    }
    moving::print_repairs(common, &mut out)?;
    moving::print_state(tree, &mut out)?;
    moving::print_written(to, &mut out)
}
