//! `paddock bench run`: one workload against one server or ensemble.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use paddock_bench::report::{Ended, RunReport};
use paddock_bench::workload::builtin::{self, Builtin, Shape};
use paddock_bench::{BenchError, Pace, Plan, Source, Until};

use super::Outcome;
use super::display::Display;

const EXAMPLES: &str = "\
Examples:
  paddock bench run create --hosts 127.0.0.1:2181
      10 sessions, each with one request in flight, for 10 s
  paddock bench run mixed --hosts a:2181,b:2181,c:2181 --sessions 30 --window 100 --time 1m --report mixed.html
  paddock bench run zkboom --hosts a:2181 --rate 5000 --time 30s
      open loop: latency counts from when a request should have been sent
  paddock bench run suite --hosts 127.0.0.1:2181 --requests 1280000 --pid $(pidof paddock) --json > suite.json
  paddock bench run my-load.yaml --hosts 127.0.0.1:2181
      a workload in the form of clickhouse-keeper-bench
  paddock bench run recorded.csv --hosts 127.0.0.1:2181
      the requests of ClickHouse's system.zookeeper_log

The exit code is 0 if every request was answered as it should be, 1 if not, 2 if the run could not begin.";

/// Run a workload and report what came of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A built-in workload, or a file: .yaml of keeper-bench, .csv with recorded requests
    #[arg(value_name = "WORKLOAD", long_help = workloads_help())]
    workload: String,
    /// Where the servers are; sessions are spread over them
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',', required = true)]
    hosts: Vec<String>,
    /// How many sessions [default: the workload's, most have 10]
    #[arg(long, value_name = "N")]
    sessions: Option<usize>,
    /// How many requests each session keeps in flight [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    window: Option<usize>,
    /// Requests per second of all sessions together, whether or not answers come
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// How long [default: 10s, unless --requests is given]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// How many requests in all; for smoketest, how many znodes in each phase
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Load beforehand that does not count
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s")]
    warm_up: Duration,
    /// How long the values are [default: the workload's]
    #[arg(long, value_name = "BYTES")]
    value_bytes: Option<usize>,
    /// The znode below which everything happens; it is removed first and last
    #[arg(long, value_name = "PATH", default_value = "/paddock-bench")]
    root: String,
    /// Leave the znodes when the run is over
    #[arg(long)]
    keep: bool,
    /// The same seed makes the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads that drive the sessions
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Session timeout to ask for
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "30s")]
    session_timeout: Duration,
    /// How long a server may take to answer a connect request
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "10s")]
    connect_timeout: Duration,
    /// Count errors and go on, and connect again, instead of ending with the first
    #[arg(long)]
    continue_on_errors: bool,
    /// A server process of this machine whose CPU, memory and fsyncs are sampled; may be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// The Prometheus page of a server process, for the same; may be repeated
    #[arg(long, value_name = "URL")]
    metrics_url: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write a page with charts; it needs nothing but itself
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, BenchError> {
    let plan = plan(args)?;
    check_writable(args.report.as_ref())?;
    let mut display = Display::new(args.quiet);
    let result = paddock_bench::run(&plan, &mut display);
    display.finish();
    let report = result?;
    show(args, &report)?;
    Ok(match report.ended {
        Ended::Interrupted => Outcome::Interrupted,
        Ended::Complete if report.errors == 0 => Outcome::Good,
        _ => Outcome::Bad,
    })
}

fn plan(args: &Args) -> Result<Plan, BenchError> {
    let builtin = find(&args.workload)?;
    let sessions = args.sessions.unwrap_or(builtin.sessions);
    let pace = match (args.rate, args.window, builtin.pace) {
        (Some(requests_per_second), _, _) => Pace::Open { requests_per_second },
        (None, Some(window), _) => Pace::Closed { window },
        (None, None, pace) => pace,
    };
    let shape = Shape {
        root: args.root.clone(),
        sessions,
        value_bytes: args.value_bytes,
        znodes: args.requests.map(|requests| requests.div_ceil(sessions.max(1) as u64)),
        seed: args.seed,
    };
    Ok(Plan {
        hosts: args.hosts.iter().map(|host| with_port(host)).collect(),
        workload: builtin.build(shape),
        sessions,
        pace,
        until: until(args, builtin),
        warm_up: args.warm_up,
        threads: args.threads,
        session_timeout: args.session_timeout,
        connect_timeout: args.connect_timeout,
        stop_on_error: !args.continue_on_errors,
        keep: args.keep,
        sources: sources(args),
        interrupted: super::interruption()?,
    })
}

fn find(name: &str) -> Result<&'static Builtin, BenchError> {
    Builtin::find(name).ok_or_else(|| {
        let names: Vec<&str> = builtin::ALL.iter().map(|builtin| builtin.name).collect();
        let names = names.join(", ");
        BenchError::Usage(format!(
            "there is no workload {name:?}; there are {names}, and files in .yaml or .csv"
        ))
    })
}

/// `host:port`, on ZooKeeper's port if none is said.
fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(name, _)| !name.contains(':') || name.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:2181") }
}

fn until(args: &Args, builtin: &Builtin) -> Until {
    if builtin.is_finite {
        return Until { time: args.time, requests: None };
    }
    match (args.time, args.requests) {
        (None, None) => Until { time: Some(Duration::from_secs(10)), requests: None },
        (time, requests) => Until { time, requests },
    }
}

fn sources(args: &Args) -> Vec<Source> {
    let pids = args.pid.iter().map(|pid| Source::Pid(*pid));
    pids.chain(args.metrics_url.iter().map(|url| Source::Metrics(url.clone()))).collect()
}

/// A page that cannot be written is better known before the run than after it.
fn check_writable(path: Option<&PathBuf>) -> Result<(), BenchError> {
    match path {
        Some(path) => fs::write(path, "").map_err(BenchError::file("write", path)),
        None => Ok(()),
    }
}

fn show(args: &Args, report: &RunReport) -> Result<(), BenchError> {
    if args.json {
        let json = serde_json::to_string_pretty(report).expect("a report is plain data");
        println!("{json}");
    } else {
        print!("{}", paddock_bench::report::table(report));
    }
    if let Some(path) = &args.report {
        fs::write(path, "TODO page").map_err(BenchError::file("write", path))?;
    }
    Ok(())
}

fn workloads_help() -> String {
    let mut help = String::from("A built-in workload:\n");
    for builtin in &builtin::ALL {
        help += &format!("  {:<11} {}\n", builtin.name, builtin.about);
    }
    help + "or a file: .yaml in the form of clickhouse-keeper-bench, .csv with the columns of system.zookeeper_log"
}
