//! `paddock load`: a dump written to any server of the protocol.
//!
//! The dump is read twice: first to see that every line can be used and what of it is there already, then to write. So nothing is written
//! of a dump with a mistake. Counters of sequential children are raised at the end, by children that are made and deleted.

mod counters;
mod failure;
mod input;
mod target;
mod writing;

use std::collections::HashSet;
use std::path::PathBuf;

use paddock_client::{ClientOptions, ErrorCode, Pending, Stat};

use crate::access::AccessArgs;
use crate::diff::seen::parse_path;
use crate::diff::server::connect;
use crate::moving::{MovingFailure, ProgressLine};
use counters::Counter;
use failure::LoadFailure;
use input::DumpInput;
use target::{LoadTarget, ON_THEIR_WAY, parent};
use writing::Writing;

const EXAMPLES: &str = "\
Examples:
  paddock load zk1:2181 --from app.jsonl                      to the path that was dumped
  paddock load zk1:2181 --path /copy --from app.jsonl         elsewhere
  paddock load zk1:2181 --from app.jsonl --dry-run            read and compare, and write nothing
  paddock load zk1:2181 --from app.jsonl --overwrite          also over znodes that are there
  paddock dump zk1:2181 --path /app | paddock load zk2:2181 --auth @identity

Znodes get their data, ACLs, TTLs, and the counters of their sequential children: the next one has the number that it would have had at
the source. Zxids, times and versions are the target's own. Nothing is deleted.
A counter is raised by making and deleting children, whose watchers see it; --no-counters leaves it out.";

/// Write a dump to a server
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// Servers, host:port with commas between several [default: the variable PADDOCK_HOSTS, else those of the profile,
    /// else localhost:2181]
    #[arg(value_name = "HOSTS")]
    hosts: Option<String>,
    /// Znode that becomes the one that was dumped [default: the same path]
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    path: Option<String>,
    /// The dump; - is standard input, which is held in memory
    #[arg(long, value_name = "FILE", default_value = "-")]
    from: PathBuf,
    /// Set data and ACLs of znodes that are there
    #[arg(long, conflicts_with = "skip_existing")]
    overwrite: bool,
    /// Leave znodes that are there as they are, and make the others
    #[arg(long)]
    skip_existing: bool,
    /// Leave the counters of sequential children as they become
    #[arg(long)]
    no_counters: bool,
    /// Read the dump and look at the target, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Numbers of what was done.
#[derive(Debug, Default)]
struct Loaded {
    created: u64,
    existing: u64,
    ephemeral: u64,
    /// Counters that were raised, and by how much together.
    raised: (u64, i64),
    /// Counters that are higher at the target than they were at the source.
    ahead: u64,
}

pub(crate) fn run(args: &LoadArgs) -> Result<(), MovingFailure> {
    let mut progress = ProgressLine::start();
    let loaded = begin(args, &mut progress);
    progress.end();
    let Loaded { created, existing, ephemeral, raised: (raised, by), ahead } = loaded?;
    let (verb, over) = match (args.dry_run, args.overwrite) {
        (true, true) => ("would create", "would be set"),
        (true, false) => ("would create", "are there"),
        (false, true) => ("created", "were set"),
        (false, false) => ("created", "were there"),
    };
    eprintln!("{verb} {created} znodes; {existing} {over}; {ephemeral} ephemerals left out");
    if raised > 0 {
        let verb = if args.dry_run { "may have to be raised" } else { "raised" };
        eprintln!("{raised} counters {verb}, by {by} in all");
    }
    if ahead > 0 {
        eprintln!(
            "note: {ahead} counters of sequential children are higher here than they were at the source"
        );
    }
    Ok(())
}

fn begin(args: &LoadArgs, progress: &mut ProgressLine) -> Result<Loaded, LoadFailure> {
    let (servers, access) = args.access.servers(args.hosts.as_deref())?;
    let input = DumpInput::open(&args.from)?;
    let root = match &args.path {
        Some(path) => path.clone(),
        None => input.head()?.path,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(LoadFailure::Runtime)?.block_on(async {
        let client = connect(&servers, &access, ClientOptions::default()).await?;
        let target = LoadTarget { client: &client, servers: &servers, root: &root };
        let loaded = load(args, &input, &target, progress).await;
        // A session that cannot be closed expires.
        let _ = client.close().await;
        loaded
    })
}

async fn load(
    args: &LoadArgs,
    input: &DumpInput,
    target: &LoadTarget<'_>,
    progress: &mut ProgressLine,
) -> Result<Loaded, LoadFailure> {
    let mut loaded = Loaded::default();
    let existing = survey(args, input, target, &mut loaded, progress).await?;
    let mut counters = Vec::new();
    let mut writing = Writing::new(target);
    for line in input.lines()? {
        let (number, line) = line?;
        if line.ephemeral.is_some() {
            continue;
        }
        let path = line.path_in(target.root);
        if line.counter > 0 {
            counters.push(Counter { line: number, path: path.clone(), wanted: line.counter });
        }
        if args.dry_run {
            continue;
        }
        if !existing.contains(&number) {
            writing.create(number, &path, &line).await?;
        } else if args.overwrite {
            writing.set(number, &path, &line).await?;
        }
        progress.show_text(|| format!("{}: line {number}", target.servers));
    }
    writing.finish().await?;
    if !args.no_counters {
        let behind = counters::behind(target, counters, &mut loaded.ahead).await?;
        loaded.raised = (behind.len() as u64, behind.iter().map(|(_, by)| by).sum());
        if !args.dry_run {
            counters::raise(target, &behind, progress).await?;
        }
    }
    Ok(loaded)
}

/// Reads all lines, and asks which of the znodes are there. Returns the numbers of their lines.
async fn survey(
    args: &LoadArgs,
    input: &DumpInput,
    target: &LoadTarget<'_>,
    loaded: &mut Loaded,
    progress: &mut ProgressLine,
) -> Result<HashSet<u64>, LoadFailure> {
    if let Some(parent) = parent(target.root)
        && target.exists(parent).await?.is_none()
    {
        return Err(LoadFailure::NoParent { path: target.root.to_owned(), parent: parent.to_owned() });
    }
    let mut survey = Survey { target, asked: Vec::new(), existing: HashSet::new(), first: None };
    for line in input.lines()? {
        let (number, line) = line?;
        if line.ephemeral.is_some() {
            loaded.ephemeral += 1;
            continue;
        }
        loaded.created += 1;
        survey.ask(number, line.path_in(target.root)).await?;
        progress.show_text(|| format!("{}: compared to line {number}", target.servers));
    }
    survey.settle().await?;
    loaded.existing = survey.existing.len() as u64;
    loaded.created -= loaded.existing;
    match survey.first {
        Some((line, path)) if !args.overwrite && !args.skip_existing => {
            Err(LoadFailure::Exists { line, path, others: loaded.existing - 1 })
        }
        _ => Ok(survey.existing),
    }
}

struct Survey<'a> {
    target: &'a LoadTarget<'a>,
    asked: Vec<(u64, String, Pending<Stat>)>,
    existing: HashSet<u64>,
    /// The first znode that is there, with its line.
    first: Option<(u64, String)>,
}

impl Survey<'_> {
    async fn ask(&mut self, line: u64, path: String) -> Result<(), LoadFailure> {
        if self.asked.len() >= ON_THEIR_WAY {
            self.settle().await?;
        }
        let pending = self.target.client.exists(&path);
        self.asked.push((line, path, pending));
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), LoadFailure> {
        for (line, path, pending) in self.asked.drain(..) {
            match pending.await {
                Ok(_) => {
                    self.existing.insert(line);
                    // The root of a tree always is there.
                    if path != "/" {
                        self.first.get_or_insert((line, path));
                    }
                }
                Err(error) if error.code() == Some(ErrorCode::NoNode) => {}
                Err(error) => return Err(self.target.failed(line, &path, error)),
            }
        }
        Ok(())
    }
}
