//! `paddock inspect`: a look into the files of a member that does not run, or of a copy. It never writes.
//!
//! Exit codes: 0 when all that was read is whole, 1 when something is damaged or cannot be read.

mod common;
mod foreign;
mod foreign_log;
mod log;
mod snapshot;
mod state;

use std::io;
use std::path::PathBuf;

use clap::Subcommand;
use paddock_member::inspect_identity;
use paddock_replica::Cluster;
use paddock_storage::OsDisk;
use serde_json::json;

use crate::moving::MovingFailure;
use common::{InspectFailure, print};

const EXAMPLES: &str = "\
Examples:
  paddock inspect state /var/lib/paddock              members, term, vote, sizes, the heaviest paths
  paddock inspect log /var/lib/paddock --from 1000    every change that the log still holds, from an entry on
  paddock inspect log /var/lib/paddock --path /app    the history of one znode
  paddock inspect log /var/lib/paddock --group 2      what another Raft group of the member has in the same log
  paddock inspect snapshot /var/lib/paddock           every snapshot, verified
  paddock inspect snapshot /backup/snapshot-00000000000004d2
  paddock inspect identity /var/lib/paddock
  paddock inspect state /var/lib/zookeeper            Apache ZooKeeper's files, or ClickHouse Keeper's

Nothing is written. A member that runs holds a lock on its directory: stop it, or take a copy.
Exit code 0: what was read is whole; 1: something is damaged, and the last line says what and where.";

/// Look into the files of a stopped member, or of a copy
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(subcommand)]
    command: InspectCommand,
}

#[derive(Debug, Subcommand)]
enum InspectCommand {
    /// The transaction log: every change that it still holds
    Log(log::LogArgs),
    /// Snapshots: where they stand, and that they are whole
    Snapshot(snapshot::SnapshotArgs),
    /// The state after all that is there: members, votes, sizes, the heaviest paths
    State(state::StateArgs),
    /// Member and ensemble that a directory belongs to
    Identity(IdentityArgs),
}

#[derive(Debug, clap::Args)]
struct IdentityArgs {
    /// Data directory
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InspectArgs) -> Result<(), MovingFailure> {
    let done = match &args.command {
        InspectCommand::Log(args) => log::run(args),
        InspectCommand::Snapshot(args) => snapshot::run(args),
        InspectCommand::State(args) => state::run(args),
        InspectCommand::Identity(args) => identity(args),
    };
    match done {
        Err(MovingFailure::OfCommand(failure)) if is_closed_output(failure.as_ref()) => Ok(()),
        done => done,
    }
}

/// True if the reader of the output has seen enough.
fn is_closed_output(failure: &(dyn std::error::Error + 'static)) -> bool {
    let failure = failure.downcast_ref::<InspectFailure>();
    matches!(failure, Some(InspectFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
}

fn identity(args: &IdentityArgs) -> Result<(), MovingFailure> {
    let found = inspect_identity(&OsDisk, &args.path)?;
    let (cluster, state) = match found.cluster {
        Cluster::None => (None, "none: it is alone, or has not begun"),
        Cluster::Proposed(id) => (Some(id), "proposed"),
        Cluster::Known(id) => (Some(id), "known"),
    };
    let cluster = cluster.map(|id| format!("{id:016x}"));
    let checksum = if found.has_checksum { "right" } else { "none: an earlier build wrote it" };
    if args.json {
        let value = json!({ "member": found.member, "cluster": cluster, "cluster_state": state, "checksum": checksum });
        return Ok(print(&value.to_string())?);
    }
    let cluster = cluster.map_or_else(|| state.to_owned(), |id| format!("{id} ({state})"));
    Ok(print(&format!("member    {}\nensemble  {cluster}\nchecksum  {checksum}", found.member))?)
}
