//! Parts that `import`, `export` and `diff` share: progress, failures, and the account of what was read.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paddock_files::{DigestCheck, FileError, LearnerError, Progress, Report};
use paddock_member::{DirectoryState, OfflineError};
use paddock_server::TlsError;
use paddock_storage::OsDisk;
use paddock_tls::with_causes;
use paddock_tree::Tree;

use crate::access::AccessError;
use crate::logs;

/// Time between two lines of progress: on a terminal they replace each other.
const TERMINAL_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Paths that are named of a kind of repair.
const PATHS_MAX: usize = 10;

/// Reason for which nothing was moved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MovingFailure {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Offline(#[from] OfflineError),
    #[error(
        "no leader of ZooKeeper listens on {addresses}: name the quorum ports of all members, the first port in server.N"
    )]
    NoLeader { addresses: String },
    #[error("{address}: {error}")]
    Leader { address: String, error: LearnerError },
    #[error(
        "the leader does not list its members: for the cut-over name their election ports, as in zk1:2888:3888"
    )]
    NoElectionPorts,
    #[error(
        "clients that are served here write through the source: leave --quiet-for out, or add --read-only"
    )]
    NeverQuiet,
    #[error(
        "--serve names {serve}, and the settings {listen}: clients stay connected through the cut-over, so both have to be the same"
    )]
    TwoAddresses { serve: SocketAddr, listen: SocketAddr },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A failure that only one of the commands has.
    #[error(transparent)]
    OfCommand(Box<dyn Error>),
}

/// Ends the command: a failure is one line.
pub(crate) fn ended(result: Result<(), MovingFailure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    logs::say(format_args!("error: {}", with_causes(&failure)));
    ExitCode::FAILURE
}

/// Reads the data directory of a stopped member, and says on standard error if its state is not that of the end.
pub(crate) fn read_directory(dir: &Path, log_dir: Option<&Path>) -> Result<Tree, OfflineError> {
    let DirectoryState { tree, earlier } = paddock_member::read_directory(&OsDisk, dir, log_dir)?;
    if let Some(earlier) = earlier {
        logs::say(format_args!("note: {earlier}"));
    }
    Ok(tree)
}

/// Tells on standard error how far a long read has come.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_terminal: bool,
    is_silent: bool,
    told: Instant,
    is_open: bool,
}

impl ProgressLine {
    pub(crate) fn start() -> ProgressLine {
        let is_terminal = io::stderr().is_terminal();
        ProgressLine { is_terminal, is_silent: false, told: Instant::now(), is_open: false }
    }

    /// A line that is never shown, for work in the background.
    pub(crate) fn silent() -> ProgressLine {
        ProgressLine { is_terminal: false, is_silent: true, told: Instant::now(), is_open: false }
    }

    pub(crate) fn show(&mut self, progress: Progress<'_>) {
        self.show_text(|| match progress {
            Progress::Snapshot { path, znodes } => format!("{}: {znodes} znodes", path.display()),
            Progress::Log { path, transactions } => {
                format!("{}: {transactions} transactions", path.display())
            }
        });
    }

    /// Shows a line, if the last one was shown long enough ago.
    pub(crate) fn show_text(&mut self, line: impl FnOnce() -> String) {
        let interval = if self.is_terminal { TERMINAL_INTERVAL } else { LINE_INTERVAL };
        if self.is_silent || self.told.elapsed() < interval {
            return;
        }
        self.told = Instant::now();
        let line = line();
        if self.is_terminal {
            logs::write(&format!("\r\x1b[K{line}"));
            self.is_open = true;
        } else {
            logs::say(format_args!("{line}"));
        }
    }

    /// Takes the line away from a terminal, for something else to be printed.
    pub(crate) fn clear(&mut self) {
        if self.is_open {
            logs::write("\r\x1b[K");
            self.is_open = false;
        }
    }

    pub(crate) fn end(mut self) {
        self.clear();
    }
}

/// Prints what was read from ZooKeeper's files, what was passed over, and why.
pub(crate) fn print_report(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    print_skipped(report, out)?;
    print_files(report, "transactions", out)?;
    if report.logs.is_empty() {
        writeln!(out, "log       none: if dataLogDir is another directory, name it with --log-dir")?;
    }
    print_digest(report.digest, out)?;
    print_dropped(report, out)?;
    print_repairs(report, out)
}

/// Prints the snapshots that could not be used.
pub(crate) fn print_skipped(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    report.skipped.iter().try_for_each(|skipped| writeln!(out, "skipped   {skipped}"))
}

/// Prints the files that were read.
pub(crate) fn print_files(report: &Report, what: &str, out: &mut dyn Write) -> io::Result<()> {
    if !report.snapshot.as_os_str().is_empty() {
        writeln!(out, "snapshot  {}: {} znodes", report.snapshot.display(), report.znodes)?;
    }
    for log in &report.logs {
        let torn = log.torn.map(|offset| format!("; its end at offset {offset} was never finished"));
        let (path, torn) = (log.path.display(), torn.unwrap_or_default());
        writeln!(out, "log       {path}: {} {what}{torn}", log.transactions)?;
    }
    Ok(())
}

/// Prints the sessions and ephemerals that were left out as asked.
pub(crate) fn print_dropped(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.dropped_sessions > 0 {
        writeln!(out, "dropped   {} sessions", report.dropped_sessions)?;
    }
    print_paths("dropped", "ephemeral znodes", &report.dropped, out)
}

/// Prints where the new data directory is.
pub(crate) fn print_written(to: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    match to {
        Some(to) => writeln!(out, "written   {0}; start it: paddock server --data-dir {0}", to.display()),
        None => writeln!(out, "written   nothing"),
    }
}

/// Prints what had to be changed for the data to be a tree.
pub(crate) fn print_repairs(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    print_paths("removed", "ephemeral znodes of sessions that had ended", &report.repairs.orphans, out)?;
    if report.repairs.added_config {
        writeln!(out, "added     /zookeeper/config")?;
    }
    Ok(())
}

/// Prints how the data compare with the digest that ZooKeeper wrote.
pub(crate) fn print_digest(digest: DigestCheck, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "digest    {}",
        match digest {
            DigestCheck::Right => "as ZooKeeper wrote it",
            DigestCheck::Absent => "not compared: ZooKeeper wrote none for the last state",
            DigestCheck::Ignored => "not as ZooKeeper wrote it, which was to be ignored",
        }
    )
}

/// Prints how many paths there are, and the first of them.
pub(crate) fn print_paths(verb: &str, what: &str, paths: &[String], out: &mut dyn Write) -> io::Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let more = if paths.len() > PATHS_MAX { ", …" } else { "" };
    let named = paths[..paths.len().min(PATHS_MAX)].join(", ");
    writeln!(out, "{verb:<10}{} {what}: {named}{more}", paths.len())
}

/// Prints what a tree holds.
pub(crate) fn print_state(tree: &Tree, out: &mut dyn Write) -> io::Result<()> {
    // ZooKeeper counts the root twice; here it is one.
    let (znodes, ephemerals) = (tree.node_count() - 1, tree.ephemeral_count());
    let (sessions, zxid) = (tree.session_count(), tree.zxid());
    writeln!(out, "state     {znodes} znodes, {ephemerals} ephemeral; {sessions} sessions; zxid {zxid}")
}
