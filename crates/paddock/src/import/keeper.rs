//! `paddock import keeper`: a data directory of Paddock from the files of a ClickHouse Keeper.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paddock_files::{DigestCheck, KeeperDirs, KeeperLoaded, LoadOptions};
use paddock_storage::{Disk, OsDisk};

use crate::moving::{self, Failure, ProgressLine};

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
    /// New data directory of Paddock
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    to: Option<PathBuf>,
    /// Number of the member that starts from the new directory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    member: u8,
    /// Read and report, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Leave sessions and their ephemeral znodes out
    #[arg(long)]
    drop_ephemerals: bool,
    /// Import data whose digest is not the one that Keeper wrote
    #[arg(long)]
    ignore_digest: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let to = args.to.as_deref().filter(|_| !args.dry_run);
    if let Some(to) = to {
        paddock_member::check_free(disk.as_ref(), to)?;
    }
    let source = KeeperDirs { snapshots: args.snapshots.clone(), log: args.log.clone() };
    let Args { drop_ephemerals, ignore_digest, member, .. } = *args;
    let options = LoadOptions { drop_ephemerals, ignore_digest, member };
    let mut line = ProgressLine::start();
    let loaded = paddock_files::load_keeper(&source, options, &mut |progress| line.show(progress));
    line.end();
    let mut loaded = loaded?;
    if let Some(to) = to {
        paddock_member::make_directory(&disk, to, member, &mut loaded.tree)?;
    }
    // The work is done, whether or not anybody reads about it.
    let _ = report(&loaded, to);
    Ok(())
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
