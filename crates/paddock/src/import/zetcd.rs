//! `paddock import zetcd`: the znodes of a zetcd, read once from its etcd, into a data directory or for front ends on that etcd.

pub(crate) mod failure;
mod source;

use paddock_proto::{MEMBER_NUMBER_MAX, MemberNumber};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paddock_config::{EngineName, EtcdDraft, parse_endpoints};
use paddock_etcd::{CallError, Keys, Limits, ZetcdReport, fill_session, fill_znodes};
use paddock_server::EtcdSettings;
use paddock_storage::{Disk, OsDisk};
use paddock_tree::Tree;

use crate::etcd_access::EtcdAccessArgs;
use crate::moving::{self, MovingFailure, ProgressLine};
use failure::ZetcdFailure;
use source::ZetcdSource;

const EXAMPLES: &str = "\
Examples:
  paddock import zetcd --from http://etcd1:2379,http://etcd2:2379 --dry-run
      read everything, write nothing
  paddock import zetcd --from http://etcd1:2379 --to-prefix /paddock
  paddock server --engine etcd --etcd-endpoints http://etcd1:2379
      stay on that etcd
  paddock import zetcd --from http://etcd1:2379 --to /var/lib/paddock
  paddock server --data-dir /var/lib/paddock
      leave it

Stop all zetcds first. Nothing below /zk/ is changed. A user of etcd (--etcd-user) has to be allowed to read /zk/, and to write
below --to-prefix.";

/// Import what a zetcd keeps in its etcd
///
/// Reads the keys of its default build at one revision: znodes with their Stats and ACLs, the counters of sequential znodes, sessions
/// with their ephemerals.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Members of the etcd cluster, with commas between them
    #[arg(long, value_name = "URL,…")]
    from: String,
    #[command(flatten)]
    etcd_access: EtcdAccessArgs,
    /// New data directory of Paddock
    #[arg(long, value_name = "DIR", conflicts_with = "to_prefix", required_unless_present_any = ["to_prefix", "dry_run"])]
    to: Option<PathBuf>,
    /// Beginning of new keys in the same etcd, for front ends with this --etcd-prefix
    #[arg(long, value_name = "PREFIX")]
    to_prefix: Option<String>,
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

impl Args {
    fn settings(&self) -> Result<EtcdSettings, ZetcdFailure> {
        let draft = EtcdDraft {
            engine: Some(EngineName::Etcd),
            endpoints: Some(parse_endpoints(&self.from).map_err(ZetcdFailure::Settings)?),
            prefix: self.to_prefix.clone(),
            ..self.etcd_access.draft()
        };
        let settings = draft.settle().map_err(ZetcdFailure::Settings)?;
        let settings = settings.expect("the engine is etcd");
        if settings.prefix == "/zk" || settings.prefix.starts_with("/zk/") {
            return Err(ZetcdFailure::OwnPrefix(settings.prefix));
        }
        Ok(settings)
    }
}

pub(super) fn run(args: &Args) -> Result<(), MovingFailure> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let settings = args.settings()?;
    if let Some(to) = &args.to {
        paddock_member::check_free(disk.as_ref(), to)?;
    }
    let mut source = ZetcdSource::connect(&settings)?;
    if args.to_prefix.is_some() {
        source.check_free(&settings.prefix)?;
    }
    let mut line = ProgressLine::start();
    let zetcd = source.read(&mut line);
    line.end();
    let (mut tree, report) =
        zetcd?.finish(source.revision(), args.drop_ephemerals, args.member).map_err(ZetcdFailure::Keys)?;
    match (&args.to, &args.to_prefix) {
        _ if args.dry_run => {}
        (Some(to), _) => paddock_member::make_directory(&disk, to, args.member, &mut tree)?,
        (None, Some(_)) => fill(&source, &settings, &tree)?,
        (None, None) => unreachable!("clap asks for one of them"),
    }
    // The work is done, whether or not its report is read.
    let _ = print(args, &tree, &report);
    Ok(())
}

/// Writes the tree below the prefix. Sessions come first: each lasts as long as the lease that it had already.
fn fill(source: &ZetcdSource, settings: &EtcdSettings, tree: &Tree) -> Result<(), ZetcdFailure> {
    let keys = Keys::new(&settings.prefix);
    let is_new =
        |is_done| if is_done { Ok(()) } else { Err(ZetcdFailure::NotEmpty(settings.prefix.clone())) };
    for (session, timeout_ms) in tree.sessions() {
        match source.transact(fill_session(&keys, session, timeout_ms)) {
            // Its ephemerals go when the first front end starts.
            Err(ZetcdFailure::Call { error: CallError::LeaseNotFound, .. }) => {}
            other => is_new(other?)?,
        }
    }
    let transactions = fill_znodes(&keys, tree, Limits::default());
    let (mut line, mut written) = (ProgressLine::start(), 0);
    let filled = transactions.into_iter().try_for_each(|transaction| {
        written += transaction.operations.len();
        is_new(source.transact(transaction)?)?;
        line.show_text(|| format!("etcd: {written} znodes written"));
        Ok(())
    });
    line.end();
    filled
}

fn print(args: &Args, tree: &Tree, report: &ZetcdReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "read      {} keys below /zk/", report.keys)?;
    if report.dropped_sessions > 0 {
        writeln!(out, "dropped   {} sessions", report.dropped_sessions)?;
    }
    moving::print_paths("dropped", "ephemeral znodes", &report.dropped, &mut out)?;
    moving::print_paths(
        "left out",
        "znodes below ephemerals, or below nothing",
        &report.misplaced,
        &mut out,
    )?;
    moving::print_paths(
        "removed",
        "ephemeral znodes of sessions that had ended",
        &report.repairs.orphans,
        &mut out,
    )?;
    let unresolved =
        "znodes with an ACL of the scheme auth, which is nobody: only the super user may do what it allows";
    moving::print_paths("closed", unresolved, &report.unresolved, &mut out)?;
    moving::print_state(tree, &mut out)?;
    match &args.to_prefix {
        Some(prefix) if !args.dry_run => {
            let from = &args.from;
            writeln!(
                out,
                "written   below {prefix}; serve it: paddock server --engine etcd --etcd-endpoints {from} --etcd-prefix {prefix}"
            )
        }
        _ => moving::print_written(args.to.as_deref().filter(|_: &&Path| !args.dry_run), &mut out),
    }
}
