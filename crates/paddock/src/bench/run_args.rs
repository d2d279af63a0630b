//! The command line of `paddock bench run`.

use std::path::PathBuf;
use std::time::Duration;

use paddock_bench::workload::builtin;

use crate::access::AccessArgs;

const EXAMPLES: &str = "\
Examples:
  paddock bench run create --hosts 127.0.0.1:2181
      10 sessions, each with one request in flight, for 10 s
  paddock bench run mixed --hosts a:2181,b:2181,c:2181 --sessions 30 --window 100 --time 1m --report mixed.html
  paddock bench run zkboom --hosts a:2181 --rate 5000 --time 30s
      open loop: latency counts from when a request should have been sent
  paddock bench run suite --hosts 127.0.0.1:2181 --requests 1280000 --pid $(pidof paddock) --json > suite.json
  paddock bench run mixed --hosts a:2281 --tls-ca ca.pem --tls-cert client.pem --tls-key client.key
      over TLS, with a certificate of its own
  paddock bench run my-load.yaml --hosts 127.0.0.1:2181
      a workload in the form of clickhouse-keeper-bench
  paddock bench run recorded.csv --hosts 127.0.0.1:2181 --speed 1
      the requests of ClickHouse's system.zookeeper_log

The exit code is 0 if every request was answered as it should be, 1 if not, 2 if the run could not begin.";

/// Run a workload and report what came of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A built-in workload, or a file: .yaml of keeper-bench, .csv with recorded requests
    #[arg(value_name = "WORKLOAD", long_help = workloads_help())]
    pub(super) workload: String,
    /// Addresses of the servers; sessions are spread over them [default: what the workload's file says]
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub(super) hosts: Vec<String>,
    /// Number of sessions [default: the workload's, most have 10]
    #[arg(long, value_name = "N")]
    pub(super) sessions: Option<usize>,
    /// Requests that each session keeps in flight [default: the workload's, most have 1]
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub(super) window: Option<usize>,
    /// Requests per second of all sessions together, whether or not answers come
    #[arg(long, value_name = "PER_SECOND")]
    pub(super) rate: Option<f64>,
    /// Length of the run [default: 10s, unless --requests or the workload's file says when it ends]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) time: Option<Duration>,
    /// Number of requests in all; for smoketest, of znodes in each phase
    #[arg(long, value_name = "N")]
    pub(super) requests: Option<u64>,
    /// Load beforehand that does not count [default: none]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) warm_up: Option<Duration>,
    /// Size of the values [default: the workload's]
    #[arg(long, value_name = "BYTES")]
    pub(super) value_bytes: Option<usize>,
    /// From how many znodes get and set choose [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) znodes: Option<u32>,
    /// Replay a .csv at its recorded times, so many times as fast [default: as fast as the window allows]
    #[arg(long, value_name = "FACTOR")]
    pub(super) speed: Option<f64>,
    /// The znode below which everything happens but what a .yaml names; it is removed first and last
    #[arg(long, value_name = "PATH", default_value = "/paddock-bench")]
    pub(super) root: String,
    /// Leave the znodes when the run is over
    #[arg(long)]
    pub(super) keep: bool,
    /// The same seed makes the same requests [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Threads that drive the sessions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) threads: usize,
    /// Session timeout to ask for [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) session_timeout: Option<Duration>,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    /// Compress what is said, as ClickHouse does; for ClickHouse Keeper and Paddock only
    #[arg(long)]
    pub(super) use_compression: bool,
    /// 64-bit xids, as ClickHouse has them; for ClickHouse Keeper and Paddock only
    #[arg(long)]
    pub(super) use_xid_64: bool,
    /// A trace for each request, as ClickHouse sends it; for ClickHouse Keeper and Paddock only
    #[arg(long)]
    pub(super) enable_tracing: bool,
    /// Time in which a server has to answer a connect request [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) connect_timeout: Option<Duration>,
    /// Count errors and go on, and connect again, instead of ending with the first
    #[arg(long)]
    pub(super) continue_on_errors: bool,
    /// A server process of this machine whose CPU, memory and fsyncs are sampled; may be repeated
    #[arg(long, value_name = "PID")]
    pub(super) pid: Vec<u32>,
    /// The Prometheus page of a server process, for the same; may be repeated
    #[arg(long, value_name = "URL")]
    pub(super) metrics_url: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a page with charts; it needs nothing but itself
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    pub(super) quiet: bool,
}

fn workloads_help() -> String {
    let mut help = String::from("A built-in workload:\n");
    for builtin in &builtin::ALL {
        help += &format!("  {:<11} {}\n", builtin.name, builtin.about);
    }
    help + "or a file: .yaml in the form of clickhouse-keeper-bench, .csv with the columns of system.zookeeper_log"
}
