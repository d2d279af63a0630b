//! `paddock shell`: looks into any server that speaks ZooKeeper's protocol, and changes what is there.
//!
//! Exit codes: 0 when every command succeeded, 1 when one failed, 2 when what the user said cannot be done.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, thread};

use paddock_bench::report::units::one_line;
use paddock_client::ClientOptions;
use paddock_shell::{
    Form, Shell, ShellFailure, ShellSettings, Step, Terminal, Word, converse, standard_output,
};
use tokio::sync::mpsc;

use crate::access::{AccessArgs, AccessError};

const EXAMPLES: &str = "\
Examples:
  paddock shell zk1:2181,zk2:2181             edit commands at the terminal, with history and completion
  paddock shell zk1:2181 -- get /a            print the data alone
  paddock shell zk1:2181 --json -- ls -R /    one JSON value a line
  paddock shell zk1:2181 --raw -- get /a > a  the bytes as they are
  paddock shell zk1:2181 -- help create       what a command does
  paddock shell --profile prod                servers, TLS and identities of a profile
  paddock shell zk1:2181 --file changes.txt   a script, one command a line; - is standard input
  echo 'ls /' | paddock shell zk1:2181

A script ends at the first command that fails, unless --keep-going is said. Exit code 0: all succeeded; 1: a command failed; 2: it could not begin.";

/// Look into any server of ZooKeeper's protocol, and change what is there
///
/// Commands are those of zkCli.sh and clickhouse-keeper-client, under their names and with their flags.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShellArgs {
    /// Servers, host:port with commas between several [default: the variable PADDOCK_HOSTS, else those of the
    /// profile, else localhost:2181]
    #[arg(value_name = "HOSTS")]
    hosts: Option<String>,
    /// Command to carry out; without one they are read from standard input
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    command: Vec<String>,
    /// Script to carry out, one command a line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Go on with a script after a command that failed; the exit code tells in the end that one did
    #[arg(long, conflicts_with = "command")]
    keep_going: bool,
    /// Print results as JSON, one value a line
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Print data as its bytes, with nothing added
    #[arg(long)]
    raw: bool,
    /// Refuse commands that change something
    #[arg(long)]
    readonly: bool,
    /// Be served by a member without a quorum, too, which takes no writes and may tell what is old
    #[arg(long, short = 'r')]
    allow_read_only: bool,
    /// Session timeout to ask for
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    session_timeout: Duration,
    /// Time after which connecting is given up
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    connect_timeout: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

/// Reasons for which the shell does not begin.
#[derive(Debug, thiserror::Error)]
enum StartFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("read {}: {error}", file.display())]
    Script { file: PathBuf, error: io::Error },
    #[error("start the runtime: {0}")]
    Runtime(io::Error),
}

/// Lines as they are read, which may take for ever.
type Lines = mpsc::Receiver<io::Result<String>>;

pub(crate) fn run(args: &ShellArgs) -> ExitCode {
    let done = match begin(args) {
        Ok(done) => done,
        Err(failure) => {
            eprintln!("error: {}", paddock_tls::with_causes(&failure));
            return ExitCode::from(2);
        }
    };
    match done {
        // A reader that has seen enough is no failure.
        Ok(()) | Err(ShellFailure::OutputClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::FAILURE
        }
    }
}

fn begin(args: &ShellArgs) -> Result<Result<(), ShellFailure>, StartFailure> {
    let reads_input = args.command.is_empty() && args.file.is_none();
    let is_terminal = reads_input && io::stdin().is_terminal() && io::stdout().is_terminal();
    let settings = settings(args, is_terminal)?;
    if is_terminal {
        return at_terminal(settings);
    }
    let script = if args.command.is_empty() { Some(open(args)?) } else { None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartFailure::Runtime)?;
    let mut shell = Shell::new(settings, standard_output());
    let done = runtime.block_on(async {
        shell.connect().await?;
        let done = match script {
            None => one(&mut shell, &args.command).await,
            Some(script) => carry_out(&mut shell, lines_of(script), args.keep_going).await,
        };
        shell.close().await;
        done
    });
    // A thread that still waits for a line is not waited for.
    runtime.shutdown_background();
    Ok(done)
}

/// Edits lines on this thread while another one drives the session.
fn at_terminal(settings: ShellSettings) -> Result<Result<(), ShellFailure>, StartFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartFailure::Runtime)?;
    let terminal = Terminal { history: history_file(), runtime: runtime.handle().clone() };
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(converse(settings, &terminal))
}

/// The history stands where programs of this user keep their state.
fn history_file() -> Option<PathBuf> {
    let directory = |name| env::var_os(name).map(PathBuf::from).filter(|directory| directory.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("paddock/shell-history"))
}

fn settings(args: &ShellArgs, is_terminal: bool) -> Result<ShellSettings, StartFailure> {
    let (servers, access) = args.access.servers(args.hosts.as_deref())?;
    let identities = access.identities.into_iter().map(|shown| (shown.scheme, shown.auth.into_bytes()));
    let no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Ok(ShellSettings {
        servers,
        options: ClientOptions {
            session_timeout: args.session_timeout,
            connect_timeout: args.connect_timeout,
            tls: access.tls,
            sasl: access.login,
            allow_read_only: args.allow_read_only,
            ..ClientOptions::default()
        },
        identities: identities.collect(),
        form: match (args.json, args.raw) {
            (true, _) => Form::Json,
            (_, true) => Form::Raw,
            _ => Form::Text,
        },
        colours: io::stdout().is_terminal() && !no_colour,
        read_only: args.readonly,
        confirms: is_terminal,
        indents: is_terminal,
    })
}

async fn one(shell: &mut Shell, command: &[String]) -> Result<(), ShellFailure> {
    let words: Vec<Word> = command.iter().map(Word::plain).collect();
    shell.run_impatiently(&words).await.map(drop)
}

fn open(args: &ShellArgs) -> Result<Box<dyn BufRead + Send>, StartFailure> {
    match &args.file {
        Some(file) if file.as_os_str() != "-" => {
            let opened =
                File::open(file).map_err(|error| StartFailure::Script { file: file.clone(), error })?;
            Ok(Box::new(BufReader::new(opened)))
        }
        _ => Ok(Box::new(BufReader::new(io::stdin()))),
    }
}

/// Reads lines on a thread of their own: the session is kept alive while none comes. The next line is read when one was taken.
fn lines_of(script: Box<dyn BufRead + Send>) -> Lines {
    let (sender, lines) = mpsc::channel(1);
    thread::spawn(move || {
        for line in script.lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Carries a script out, up to the first command that fails; or all of it, and fails in the end if a command did.
async fn carry_out(shell: &mut Shell, mut lines: Lines, keeps_going: bool) -> Result<(), ShellFailure> {
    let mut number = 0;
    let mut failed = 0;
    while let Some(line) = lines.recv().await {
        number += 1;
        let line = line.map_err(|error| ShellFailure::Io { what: "read the script".to_owned(), error })?;
        match shell.run_script_line(&line).await {
            Ok(Step::Next) => {}
            Ok(Step::Quit) => break,
            Err(ShellFailure::OutputClosed) => return Err(ShellFailure::OutputClosed),
            Err(failure) => {
                let failure = ShellFailure::Refused(format!("line {number}: {failure}"));
                if !keeps_going {
                    return Err(failure);
                }
                report(&failure);
                failed += 1;
            }
        }
    }
    match failed {
        0 => Ok(()),
        count => Err(ShellFailure::Refused(format!("{count} of {number} lines failed"))),
    }
}

fn report(failure: &ShellFailure) {
    // Paths come from a server, and this may be a terminal.
    eprintln!("error: {}", one_line(&failure.to_string()));
}
