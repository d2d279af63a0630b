//! `paddock import`: a data directory of Paddock from another system.

mod follow;
mod keeper;
pub(crate) mod live;
pub(crate) mod zetcd;

use paddock_proto::{MEMBER_NUMBER_MAX, MemberNumber};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use paddock_files::{FileError, LoadOptions, Loaded, Progress, ZooKeeperDirs};
use paddock_storage::{Disk, OsDisk};
use paddock_tree::Tree;

use crate::moving::{self, MovingFailure, ProgressLine};

const EXAMPLES: &str = "\
Examples:
  paddock import zookeeper --data-dir /var/lib/zookeeper --dry-run
      read everything, write nothing
  paddock import zookeeper --data-dir /var/lib/zookeeper --to /var/lib/paddock
  paddock server --data-dir /var/lib/paddock
  paddock import zookeeper --data-dir /data --log-dir /datalog --to /var/lib/paddock --member 2

Stop the ensemble first, and take the directory of its last leader. Nothing in it is changed.";

/// Make a data directory from the files of another system, or from another system that runs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, Subcommand)]
enum ImportCommand {
    Zookeeper(ZooKeeper),
    Keeper(keeper::Args),
    Follow(Box<follow::Args>),
    Live(Box<live::Args>),
    Zetcd(Box<zetcd::Args>),
}

/// Import a data directory of Apache ZooKeeper, 3.4 to 3.9
///
/// Reads the newest snapshot that is whole and all transactions behind it: znodes with their Stats and ACLs, sessions, which their
/// clients can resume, ephemerals, quotas, containers and TTLs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct ZooKeeper {
    /// ZooKeeper's dataDir
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// ZooKeeper's dataLogDir, if it has one
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// Import data whose digest is not the one that ZooKeeper wrote
    #[arg(long)]
    ignore_digest: bool,
}

/// Options of every import of files: what is made of them.
#[derive(Debug, clap::Args)]
struct Target {
    /// New data directory of Paddock
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    to: Option<PathBuf>,
    /// Number of the member that starts from the new directory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(MemberNumber).range(0..=i64::from(MEMBER_NUMBER_MAX)))]
    member: MemberNumber,
    /// Read and report, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Leave sessions and their ephemeral znodes out
    #[arg(long)]
    drop_ephemerals: bool,
}

impl Target {
    /// Reads the files, makes a data directory of them unless it is a dry run, and reports.
    fn import<L>(
        &self,
        ignore_digest: bool,
        load: impl FnOnce(LoadOptions, &mut dyn FnMut(Progress<'_>)) -> Result<L, FileError>,
        tree: impl FnOnce(&mut L) -> &mut Tree,
        report: impl FnOnce(&L, Option<&Path>) -> io::Result<()>,
    ) -> Result<(), MovingFailure> {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let to = self.to.as_deref().filter(|_| !self.dry_run);
        if let Some(to) = to {
            paddock_member::check_free(disk.as_ref(), to)?;
        }
        let Target { drop_ephemerals, member, .. } = *self;
        let mut line = ProgressLine::start();
        let options = LoadOptions { drop_ephemerals, ignore_digest, member };
        let loaded = load(options, &mut |progress| line.show(progress));
        line.end();
        let mut loaded = loaded?;
        if let Some(to) = to {
            paddock_member::make_directory(&disk, to, member, tree(&mut loaded))?;
        }
        // The work is done, whether or not its report is read.
        let _ = report(&loaded, to);
        Ok(())
    }
}

pub(crate) fn run(args: &Args) -> Result<(), MovingFailure> {
    match &args.command {
        ImportCommand::Zookeeper(args) => import_zookeeper(args),
        ImportCommand::Keeper(args) => keeper::run(args),
        ImportCommand::Follow(args) => follow::run(args),
        ImportCommand::Live(args) => Ok(live::run(args)?),
        ImportCommand::Zetcd(args) => zetcd::run(args),
    }
}

fn import_zookeeper(args: &ZooKeeper) -> Result<(), MovingFailure> {
    let source = ZooKeeperDirs { data_dir: args.data_dir.clone(), log_dir: args.log_dir.clone() };
    let load =
        |options, progress: &mut dyn FnMut(Progress<'_>)| paddock_files::load(&source, options, progress);
    args.target.import(args.ignore_digest, load, |loaded| &mut loaded.tree, report)
}

fn report(loaded: &Loaded, to: Option<&Path>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    moving::print_report(&loaded.report, &mut out)?;
    moving::print_state(&loaded.tree, &mut out)?;
    moving::print_written(to, &mut out)
}
