//! `paddock export`: files of another system from a data directory of Paddock.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;
use paddock_storage::OsDisk;

use crate::moving::{self, Failure};

const EXAMPLES: &str = "\
Examples:
  paddock export zookeeper --data-dir /var/lib/paddock --to /var/lib/zookeeper
      then start Apache ZooKeeper with dataDir=/var/lib/zookeeper

Stop all members first, and take the directory of the last leader. Nothing in it is changed. For an ensemble, give every ZooKeeper
a copy of what was written, and its own myid.";

/// Write the data of a stopped member as files of another system
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Zookeeper(ZooKeeper),
}

/// Write a data directory from which Apache ZooKeeper starts
///
/// Znodes keep their Stats and ACLs, and sessions go on. ZooKeeper has to be told zookeeper.extendedTypesEnabled=true if there are
/// TTL znodes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct ZooKeeper {
    /// Data directory of a stopped member
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Directory of its transaction log, if it is another one
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// New dataDir of ZooKeeper
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Command::Zookeeper(args) = &args.command;
    let tree = paddock_member::read_directory(&OsDisk, &args.data_dir, args.log_dir.as_deref())?;
    let exported = paddock_files::export(&tree, &args.to)?;
    let mut out = io::stdout().lock();
    // The work is done, whether or not anybody reads about it.
    let _ = moving::print_state(&tree, &mut out)
        .and_then(|()| writeln!(out, "written   {}", exported.snapshot.display()));
    Ok(())
}
