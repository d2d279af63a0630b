//! The figures of a run, as they go into JSON. How they are shown is in `report/`.
//!
//! Latencies are in microseconds, from the moment a request was sent (closed loop) or should have been sent (open loop)
//! to the moment its answer was read.

pub(crate) mod chart;
pub(crate) mod page;
mod phrase;
#[cfg(test)]
mod samples;
mod table;
pub mod units;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use page::page;
pub use table::table;

/// One run of one workload against one server or ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Name and version of this tool.
    pub tool: String,
    pub started_unix_s: u64,
    pub workload: String,
    pub hosts: Vec<String>,
    pub sessions: usize,
    pub load: Pace,
    pub ended: Ended,
    /// From the first request to the last answer; warm-up and setup are not in it.
    pub elapsed_s: f64,
    /// Answered as they should be.
    pub requests: u64,
    /// Refused, or lost with their connection.
    pub errors: u64,
    pub requests_per_second: f64,
    pub bytes_sent_per_second: f64,
    pub bytes_received_per_second: f64,
    /// Latency of all operations together.
    pub latency: Latency,
    pub operations: Vec<OperationReport>,
    /// More than one only for workloads that go through phases one after the other.
    pub phases: Vec<PhaseReport>,
    pub seconds: Vec<Second>,
    /// Resources that the server's processes used, if they were sampled.
    pub server: Option<ServerUse>,
    /// CPU time of this tool's own threads, in microseconds per request.
    pub client_cpu_us_per_request: f64,
}

/// The pace of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Each session keeps this number of requests in flight.
    Closed { window: usize },
    /// All sessions together send this number of requests each second, whether or not answers come.
    Open { requests_per_second: f64 },
}

/// Reason for the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its time or its number of requests was over.
    Complete,
    /// The user asked for it.
    Interrupted,
    /// A request failed; this one.
    Failed(String),
    /// No server answers any more.
    ServerLost(String),
}

impl RunReport {
    /// The reason for which the figures say nothing, if there is one.
    pub fn fault(&self) -> Option<String> {
        match &self.ended {
            Ended::Failed(reason) => Some(format!("a request failed: {reason}")),
            Ended::ServerLost(reason) => Some(format!("the server was lost: {reason}")),
            Ended::Interrupted => Some("interrupted".to_owned()),
            Ended::Complete if self.errors > 0 => Some(format!("{} requests failed", self.errors)),
            Ended::Complete if self.requests == 0 => Some("no request was answered".to_owned()),
            Ended::Complete => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationReport {
    pub name: String,
    pub requests: u64,
    pub requests_per_second: f64,
    /// Number of errors, by their name.
    pub errors: BTreeMap<String, u64>,
    pub latency: Latency,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub mean_us: f64,
    pub min_us: f64,
    pub max_us: f64,
    pub percentiles: Vec<Percentile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// 99.9 for p99.9.
    pub percent: f64,
    pub us: f64,
}

/// The percentiles of every `Latency`, in this order.
pub const PERCENTS: [f64; 11] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];

impl Latency {
    /// The latency within which `percent` of the requests were answered; 0 if there were none.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.percentiles.iter().find(|p| p.percent == percent).map_or(0.0, |p| p.us)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    pub name: String,
    pub requests: u64,
    pub elapsed_s: f64,
}

/// Answers of one second of the run; the last one may be shorter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, from the start of the run.
    pub at_s: f64,
    pub requests: u64,
    pub errors: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

/// Resources that the server's processes used, all together and one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    pub cpu_us_per_request: Option<f64>,
    /// The largest sum over the processes.
    pub resident_bytes_peak: Option<u64>,
    /// Counters just after the last request.
    #[serde(default)]
    pub resident_bytes_after: Option<u64>,
    pub fsyncs: Option<u64>,
    pub processes: Vec<ProcessUse>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// `pid 1234` or the URL of its metrics.
    pub source: String,
    /// About one each second; the first is from just before the first request, the last from just after the last.
    pub samples: Vec<Sample>,
}

/// Resources that a process had used by one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From the start of the run.
    pub at_s: f64,
    pub cpu_s: Option<f64>,
    pub resident_bytes: Option<u64>,
    pub fsyncs: Option<u64>,
}
