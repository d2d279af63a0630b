//! From what the command line says, and the workload's file if it has one, to a plan. The command line counts before
//! the file, the file before the defaults.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use paddock_bench::workload::builtin::{self, Builtin};
use paddock_bench::workload::keeper::{self, Output};
use paddock_bench::workload::shape::Shape;
use paddock_bench::workload::{Workload, replay};
use paddock_bench::{BenchError, Extensions, Pace, RunPlan, SampleSource, Until};

use super::interruption::interruption;
use super::run_args::Args;

const TIME: Duration = Duration::from_secs(10);
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SEED: u64 = 1;

/// A workload, and how it is run where the command line does not say.
struct Choice {
    workload: Box<dyn Workload>,
    hosts: Vec<String>,
    sessions: usize,
    pace: Pace,
    until: Until,
    warm_up: Duration,
    session_timeout: Option<Duration>,
    extensions: Extensions,
    connect_timeout: Option<Duration>,
    continue_on_errors: bool,
    json_file: Option<PathBuf>,
}

/// The plan, and where the workload's own file wants the result as JSON.
pub(super) fn plan(args: &Args) -> Result<(RunPlan, Option<PathBuf>), BenchError> {
    let choice = choose(args)?;
    let hosts = if args.hosts.is_empty() { choice.hosts } else { args.hosts.clone() };
    let pace = match (args.rate, args.window) {
        (Some(requests_per_second), _) => Pace::Open { requests_per_second },
        (None, Some(window)) => Pace::Closed { window },
        (None, None) => choice.pace,
    };
    let plan = RunPlan {
        hosts: hosts.iter().map(|host| with_port(host)).collect(),
        workload: choice.workload,
        sessions: choice.sessions,
        pace,
        until: choice.until,
        warm_up: args.warm_up.unwrap_or(choice.warm_up),
        threads: args.threads,
        session_timeout: args.session_timeout.or(choice.session_timeout).unwrap_or(SESSION_TIMEOUT),
        extensions: Extensions {
            wide_xids: args.use_xid_64 || choice.extensions.wide_xids,
            compression: args.use_compression || choice.extensions.compression,
            tracing: args.enable_tracing || choice.extensions.tracing,
        },
        access: args.access.read().map_err(|error| BenchError::Usage(paddock_tls::with_causes(&error)))?,
        connect_timeout: args.connect_timeout.or(choice.connect_timeout).unwrap_or(CONNECT_TIMEOUT),
        stop_on_error: !(args.continue_on_errors || choice.continue_on_errors),
        keep: args.keep,
        sources: sources(args),
        interrupted: interruption(|| {})?,
    };
    Ok((plan, choice.json_file))
}

fn choose(args: &Args) -> Result<Choice, BenchError> {
    let path = Path::new(&args.workload);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => keeper_file(args, path),
        Some("csv") => recorded(args, path),
        _ => built_in(args),
    }
}

fn built_in(args: &Args) -> Result<Choice, BenchError> {
    let builtin =
        Builtin::find(&args.workload).ok_or_else(|| BenchError::Usage(builtin::unknown(&args.workload)))?;
    if args.znodes.is_some() && !["get", "set"].contains(&builtin.name) {
        return Err(BenchError::Usage(format!("--znodes is for get and set, not for {}", builtin.name)));
    }
    let sessions = args.sessions.unwrap_or(builtin.sessions);
    let shape = Shape {
        root: args.root.clone(),
        sessions,
        value_bytes: args.value_bytes,
        znodes: args.requests.map(|requests| requests.div_ceil(sessions.max(1) as u64)),
        among: args.znodes.map(|znodes| znodes as usize),
        tree: None,
        seed: args.seed.unwrap_or(SEED),
    };
    let until = if builtin.is_finite {
        Until { time: args.time, requests: None }
    } else {
        or_else(args, Until { time: Some(TIME), requests: None })
    };
    let workload = builtin.build(shape);
    Ok(Choice { sessions, until, ..Choice::new(workload, builtin.pace) })
}

fn keeper_file(args: &Args, path: &Path) -> Result<Choice, BenchError> {
    let file = keeper::load(path)?;
    let seed = args.seed.or(file.seed).unwrap_or(SEED);
    // Without a limit a file runs until it is interrupted, as with keeper-bench.
    let until = or_else(args, file.until());
    Ok(Choice {
        hosts: file.hosts(),
        sessions: args.sessions.unwrap_or(file.sessions()),
        pace: Pace::Closed { window: file.window() },
        until,
        warm_up: file.warm_up,
        session_timeout: file.session_timeout(),
        extensions: file.extensions,
        connect_timeout: file.connection_timeout(),
        continue_on_errors: file.continue_on_error,
        json_file: json_file(&file.output),
        workload: Box::new(file.workload(seed)),
    })
}

fn recorded(args: &Args, path: &Path) -> Result<Choice, BenchError> {
    let replay = replay::load(path, &args.root, args.speed)?;
    if args.sessions.is_some() {
        let message =
            format!("a replay has the {} sessions that were recorded, not --sessions", replay.sessions());
        return Err(BenchError::Usage(message));
    }
    let sessions = replay.sessions();
    let until = Until { time: args.time, requests: args.requests };
    Ok(Choice { sessions, until, ..Choice::new(Box::new(replay), Pace::Closed { window: 1 }) })
}

impl Choice {
    /// A workload that says nothing of how it is run but its pace.
    fn new(workload: Box<dyn Workload>, pace: Pace) -> Choice {
        Choice {
            workload,
            hosts: Vec::new(),
            sessions: 1,
            pace,
            until: Until::default(),
            warm_up: Duration::ZERO,
            session_timeout: None,
            extensions: Extensions::default(),
            connect_timeout: None,
            continue_on_errors: false,
            json_file: None,
        }
    }
}

/// The end that the command line asks for, or else `default`.
fn or_else(args: &Args, default: Until) -> Until {
    match (args.time, args.requests) {
        (None, None) => default,
        (time, requests) => Until { time, requests },
    }
}

fn sources(args: &Args) -> Vec<SampleSource> {
    let pids = args.pid.iter().map(|pid| SampleSource::Pid(*pid));
    pids.chain(args.metrics_url.iter().map(|url| SampleSource::Metrics(url.clone()))).collect()
}

/// `host:port`, on ZooKeeper's port if none is said.
fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(name, _)| !name.contains(':') || name.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:2181") }
}

/// File in which a keeper-bench file wants its result, with the time before the extension if it says so.
fn json_file(output: &Output) -> Option<PathBuf> {
    let file = output.file.as_ref()?;
    if !file.with_timestamp {
        return Some(file.path.clone());
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.path.extension().map_or(String::new(), |ext| format!(".{}", ext.to_string_lossy()));
    Some(file.path.with_file_name(format!("{stem}_{seconds}{extension}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_is_on_zookeepers() {
        for (host, expected) in [
            ("a", "a:2181"),
            ("a:9181", "a:9181"),
            ("127.0.0.1", "127.0.0.1:2181"),
            ("[::1]", "[::1]:2181"),
            ("[::1]:9181", "[::1]:9181"),
        ] {
            assert_eq!(with_port(host), expected);
        }
    }
}
