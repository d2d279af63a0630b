//! `paddock export`: files of another system from a data directory of Paddock, a snapshot, or a member that runs.

pub(crate) mod download;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;
use paddock_storage::OsDisk;
use paddock_tree::Tree;

use crate::access::{AccessError, tls_of};
use crate::identity_source::{IdentitySource, parse_identity, read_identities};
use crate::moving::{self, MovingFailure, ProgressLine};

const EXAMPLES: &str = "\
Examples:
  paddock export zookeeper --data-dir /var/lib/paddock --to /var/lib/zookeeper
      then start Apache ZooKeeper with dataDir=/var/lib/zookeeper
  paddock export zookeeper --from http://paddock1:8080 --auth @identity --to /tmp/copy
      a member that runs, and goes on: as of one moment, for a trial; the only line of the file is digest:USER:PASSWORD
  paddock export zookeeper --from https://paddock1:8443 --tls-ca ca.pem --auth @identity --to /tmp/copy
  paddock export zookeeper --snapshot /backup/snapshot-00000000000004d2 --to /tmp/copy

To move, stop all members first, and take the directory of the last leader: what is written after a snapshot is not in it. Nothing that
is read is changed. For an ensemble, give every ZooKeeper a copy of what was written, and its own myid.";

/// Write the data of a member as files of another system
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Debug, Subcommand)]
enum ExportCommand {
    Zookeeper(ZooKeeper),
}

/// Write a data directory from which Apache ZooKeeper starts
///
/// Znodes keep their Stats and ACLs. Sessions that came from ZooKeeper go on; those that began here are no longer resumed, and end with their timeout. ZooKeeper has to be told zookeeper.extendedTypesEnabled=true if there are
/// TTL znodes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("source").args(["data_dir", "snapshot", "from"]).required(true))]
struct ZooKeeper {
    /// Data directory of a stopped member
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Directory of its transaction log, if it is another one
    #[arg(long, value_name = "DIR", requires = "data_dir")]
    log_dir: Option<PathBuf>,
    /// A snapshot file of Paddock
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// HTTP interface of a running member (admin_listen), which takes a snapshot and sends it
    #[arg(long, value_name = "http[s]://HOST:PORT")]
    from: Option<String>,
    /// For https://: believe a member whose certificate is in this file or signed by one that is (PEM)
    #[arg(long, value_name = "FILE", requires = "from")]
    tls_ca: Option<PathBuf>,
    /// Own certificate to show, with its private key (PEM); it may be an administrator's
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    tls_cert: Option<PathBuf>,
    /// Identity of an administrator, for --from, such as digest:USER:PASSWORD: the only line of FILE (@- is standard input), or env:NAME
    /// for what a variable of the environment holds
    #[arg(long, value_name = "@FILE", value_parser = parse_identity, requires = "from")]
    auth: Option<IdentitySource>,
    /// New dataDir of ZooKeeper
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), MovingFailure> {
    let ExportCommand::Zookeeper(args) = &args.command;
    let tree = read(args)?;
    let exported = paddock_files::export(&tree, &args.to)?;
    let mut out = io::stdout().lock();
    // The work is done, whether or not its report is read.
    let _ = moving::print_state(&tree, &mut out)
        .and_then(|()| writeln!(out, "written   {}", exported.snapshot.display()))
        .and_then(|()| tell_of_sessions(&tree, &mut out));
    Ok(())
}

/// Says what becomes of sessions whose clients have passwords that ZooKeeper does not give.
fn tell_of_sessions(tree: &Tree, out: &mut impl Write) -> io::Result<()> {
    match tree.keyed_sessions() {
        0 => Ok(()),
        keyed => writeln!(
            out,
            "sessions  {keyed} cannot be resumed at ZooKeeper, whose passwords are others: their clients make new ones, and their \
             ephemerals go with the session timeout"
        ),
    }
}

fn read(args: &ZooKeeper) -> Result<Tree, MovingFailure> {
    if let Some(url) = &args.from {
        return read_running(url, args);
    }
    if let Some(file) = &args.snapshot {
        return Ok(paddock_member::read_whole_snapshot(&OsDisk, file)?);
    }
    let data_dir = args.data_dir.as_deref().expect("one of the three sources is required");
    Ok(moving::read_directory(data_dir, args.log_dir.as_deref())?)
}

/// The snapshot lies beside the new directory until it is read.
fn read_running(url: &str, args: &ZooKeeper) -> Result<Tree, MovingFailure> {
    paddock_member::check_free(&OsDisk, &args.to)?;
    let tls = tls_of(args.tls_ca.as_deref(), args.tls_cert.as_deref())?;
    let mut name = args.to.as_os_str().to_owned();
    name.push(".snapshot");
    let path = PathBuf::from(name);
    let identities = read_identities("--auth", args.auth.as_slice()).map_err(AccessError::from)?;
    let mut line = ProgressLine::start();
    let downloaded = download::download(url, tls.as_ref(), identities.first(), &path, &mut line);
    line.end();
    // A file that was there before is not ours to remove.
    let is_ours = !matches!(downloaded, Err(download::DownloadError::Exists { .. }));
    let tree = downloaded
        .map_err(MovingFailure::from)
        .and_then(|()| Ok(paddock_member::read_whole_snapshot(&OsDisk, &path)?));
    if is_ours {
        // A file that cannot be removed is only in the way of the next attempt, which names it.
        let _ = fs::remove_file(&path);
    }
    tree
}
