//! `paddock dump`: a subtree as lines of JSON, from any server of the protocol, or from files.

pub(crate) mod line;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use paddock_bench::Access;
use paddock_client::{Client, ClientOptions};
use paddock_storage::OsDisk;

use crate::access::AccessArgs;
use crate::admin_client::AdminInterface;
use crate::backup::failure::BackupFailure;
use crate::backup::place::Workshop;
use crate::diff::failure::DiffFailure;
use crate::diff::seen::{has_hidden_acl, parse_path};
use crate::diff::server::{ServerWalk, connect};
use crate::diff::side::{DiffSource, Side};
use crate::export::download::{DownloadError, download_snapshot};
use crate::moving::{MovingFailure, ProgressLine};
use line::{DumpHead, DumpLine};

const EXAMPLES: &str = "\
Examples:
  paddock dump zk1:2181 --path /app --to app.jsonl
  paddock dump zk1:2181 --path /app | git diff --no-index app.jsonl -
  paddock dump zk1:2181 --path /app | paddock load zk2:2181 --path /copy
  paddock dump zk1:2181 --auth @identity           the only line of the file is digest:USER:PASSWORD
  paddock dump /var/lib/paddock --path /app        the data directory of a member that is stopped, or a copy of it
  paddock dump snapshot-00000000000004d2           a snapshot: as of one moment, with TTLs and containers
  paddock dump http://paddock1:8080 --auth @admin  the same of a member that runs, for administrators, over its HTTP interface

One line is one znode: its path below the one that was dumped, its data (text, or base64), its ACL unless that is world:anyone:cdrwa, and
the number that its next sequential child gets (counter). Lines are sorted. Ephemerals are left out and counted.

A server that runs is read znode by znode: what changes meanwhile is there as it was when it was read. Clients are not told of TTLs and
containers, so a server's dump has plain znodes in their place. A snapshot has all of it.";

/// Subtree that belongs to every server itself.
const OWN: &str = "/zookeeper";
/// Subtree that ClickHouse Keeper adds, and a znode that shows that it is that one.
const KEEPERS_OWN: &str = "/keeper";
const KEEPERS_MARK: &str = "/keeper/api_version";

/// Write a subtree as lines of JSON, for people, for git, and for paddock load
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DumpArgs {
    /// Servers, host:port with commas between several; or a data directory, a snapshot file, or http[s]://host:port of a member of
    /// Paddock's [default: the variable PADDOCK_HOSTS, else those of the profile,
    /// else localhost:2181]
    #[arg(value_name = "HOSTS")]
    source: Option<String>,
    /// Znode to dump, with all below it
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = parse_path)]
    path: String,
    /// File to write, whole or not at all; - is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    to: PathBuf,
    /// Znode to leave out, with all below it; /zookeeper always is, unless PATH is below it
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    exclude: Vec<String>,
    /// Write the numbers of the Stat, too: a load cannot bring them back
    #[arg(long)]
    stat: bool,
    /// Write lines of ephemeral znodes, too: a load leaves them out
    #[arg(long)]
    ephemerals: bool,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, thiserror::Error)]
enum DumpFailure {
    #[error(transparent)]
    Read(#[from] DiffFailure),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error(transparent)]
    Workshop(#[from] BackupFailure),
    #[error("there is no {path} at {place}")]
    NoRoot { path: String, place: String },
    #[error(
        "{path}: the server hides the password in its ACL from who may not administer it: show its identity, or an administrator's, with --auth"
    )]
    HiddenAcl { path: String },
    #[error("write {place}: {source}")]
    Write { place: String, source: io::Error },
}

impl From<DumpFailure> for MovingFailure {
    fn from(failure: DumpFailure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

pub(crate) fn run(args: &DumpArgs) -> Result<(), MovingFailure> {
    let mut line = ProgressLine::start();
    let found = args.access.servers(args.source.as_deref());
    let (place, access) = found.map_err(|error| DumpFailure::from(DiffFailure::from(error)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| DumpFailure::from(DiffFailure::from(error)))?;
    let source = if place.starts_with("http://") || place.starts_with("https://") {
        runtime.block_on(snapshot_of(access.clone(), &place, &mut line))?
    } else {
        DiffSource::open(&place, &mut line).map_err(DumpFailure::from)?
    };
    let mut output = DumpOutput::open(&args.to)?;
    let origin = DumpOrigin { place: &place, source: &source, access: &access };
    let written = runtime.block_on(dump(args, origin, &mut output, &mut line));
    line.end();
    match written {
        // A reader that has seen enough is no failure.
        Err(DumpFailure::Write { source, .. })
            if output.is_pipe() && source.kind() == io::ErrorKind::BrokenPipe =>
        {
            return Ok(());
        }
        written => tell(&written?),
    }
    Ok(output.finish()?)
}

/// The state of a running member at one moment. Its snapshot lies in a directory that is closed to others until it is read.
async fn snapshot_of(access: Access, url: &str, line: &mut ProgressLine) -> Result<DiffSource, DumpFailure> {
    let interface = AdminInterface::new(url, access.tls, access.identities.into_iter().next());
    let interface = interface.map_err(DownloadError::from)?;
    let dir = Workshop::new(&std::env::temp_dir())?;
    let path = dir.path().join("snapshot");
    download_snapshot(&interface, &path, line).await?;
    let tree = paddock_member::read_whole_snapshot(&OsDisk, &path).map_err(DiffFailure::from)?;
    Ok(DiffSource::Tree(Box::new(tree)))
}

/// Numbers of znodes.
#[derive(Debug, Default)]
struct Dumped {
    written: u64,
    ephemeral: u64,
    /// Znodes of which the server does not say whether they are containers or have a TTL.
    passing: u64,
}

fn tell(dumped: &Dumped) {
    let Dumped { written, ephemeral, passing } = dumped;
    eprintln!("dumped {written} znodes; {ephemeral} ephemerals left out");
    if *passing > 0 {
        eprintln!(
            "note: {passing} are containers or have a TTL, which this server does not tell apart: they are written as plain znodes"
        );
    }
}

/// The place of what is dumped, and the way in to it.
#[derive(Clone, Copy, Debug)]
struct DumpOrigin<'a> {
    place: &'a str,
    source: &'a DiffSource,
    access: &'a Access,
}

async fn dump(
    args: &DumpArgs,
    origin: DumpOrigin<'_>,
    output: &mut DumpOutput,
    progress: &mut ProgressLine,
) -> Result<Dumped, DumpFailure> {
    let DumpOrigin { place, source, access } = origin;
    let root = args.path.as_str();
    let mut exclude = args.exclude.clone();
    if !paddock_proto::is_at_or_below(root, OWN) {
        exclude.push(OWN.to_owned());
    }
    let client = open(source, access).await?;
    if let Some(client) = &client
        && client.exists(KEEPERS_MARK).await.is_ok()
        && !paddock_proto::is_at_or_below(root, KEEPERS_OWN)
    {
        exclude.push(KEEPERS_OWN.to_owned());
    }
    let mut side = match (client, source) {
        (Some(client), DiffSource::Servers(servers)) => {
            Side::Server(Box::new(ServerWalk::below(root, client, servers, &exclude).await?))
        }
        _ => Side::begin(source, access, &exclude).await?,
    };
    let mut dumped = Dumped::default();
    let mut is_begun = false;
    while let Some(znode) = side.next().await? {
        if !paddock_proto::is_at_or_below(&znode.path, root) {
            continue;
        }
        if !is_begun {
            output.line(&DumpHead::new(root).text())?;
            is_begun = true;
        }
        if has_hidden_acl(&znode) {
            return Err(DumpFailure::HiddenAcl { path: znode.path });
        }
        let line = DumpLine::of(&znode, root, args.stat);
        dumped.ephemeral += u64::from(line.ephemeral.is_some());
        if line.ephemeral.is_none() || args.ephemerals {
            output.line(&line.to_text())?;
            dumped.written += u64::from(line.ephemeral.is_none());
        }
        dumped.passing += u64::from(znode.kind.is_none() && znode.stat.ephemeral_owner.0 == i64::MIN);
        progress.show_text(|| format!("{place}: {} znodes", dumped.written));
    }
    side.close().await;
    if !is_begun {
        return Err(DumpFailure::NoRoot { path: root.to_owned(), place: place.to_owned() });
    }
    output.flush()?;
    Ok(dumped)
}

/// A session, if the source is a server.
async fn open(source: &DiffSource, access: &Access) -> Result<Option<Client>, DiffFailure> {
    let DiffSource::Servers(servers) = source else { return Ok(None) };
    connect(servers, access, ClientOptions::default()).await.map(Some)
}

/// A file that has its name when it is whole, or standard output.
struct DumpOutput {
    writer: BufWriter<Box<dyn Write>>,
    place: String,
    /// The unfinished file, and the name that it gets.
    file: Option<(PathBuf, PathBuf)>,
}

impl DumpOutput {
    fn open(to: &Path) -> Result<DumpOutput, DumpFailure> {
        if to.as_os_str() == "-" {
            let writer = BufWriter::new(Box::new(io::stdout()) as Box<dyn Write>);
            return Ok(DumpOutput { writer, place: "the output".to_owned(), file: None });
        }
        let mut unfinished = to.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let place = to.display().to_string();
        let created = File::create(&unfinished)
            .map_err(|source| DumpFailure::Write { place: place.clone(), source })?;
        Ok(DumpOutput {
            writer: BufWriter::new(Box::new(created)),
            place,
            file: Some((unfinished, to.to_owned())),
        })
    }

    fn is_pipe(&self) -> bool {
        self.file.is_none()
    }

    fn line(&mut self, line: &str) -> Result<(), DumpFailure> {
        let written = writeln!(self.writer, "{line}");
        written.map_err(|source| DumpFailure::Write { place: self.place.clone(), source })
    }

    fn flush(&mut self) -> Result<(), DumpFailure> {
        self.writer.flush().map_err(|source| DumpFailure::Write { place: self.place.clone(), source })
    }

    fn finish(mut self) -> Result<(), DumpFailure> {
        self.flush()?;
        let Some((unfinished, to)) = self.file.take() else { return Ok(()) };
        fs::rename(unfinished, to).map_err(|source| DumpFailure::Write { place: self.place.clone(), source })
    }
}

impl Drop for DumpOutput {
    /// A dump that failed leaves no file.
    fn drop(&mut self) {
        if let Some((unfinished, _)) = &self.file {
            let _ = fs::remove_file(unfinished);
        }
    }
}
