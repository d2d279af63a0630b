//! The cells of a suite: one measurement of one server each, of a load or of what it takes to hold much.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::{Growth, Idle, Network, SnapshotPlan};
use crate::report::Pace;
use crate::workload::tree::Znodes;

/// One point of a suite's matrix, for every server and repetition alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measurement {
    Run(Cell),
    Memory(Znodes),
    Idle(Idle),
    Snapshot(SnapshotPlan),
    Growth(Growth),
}

/// One workload under one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// A built-in workload, or a file next to the suite's.
    pub workload: String,
    pub sessions: usize,
    pub load: Pace,
    pub until: End,
    pub warm_up_s: f64,
    /// True if a server is started for this cell alone, and wiped after it.
    pub fresh: bool,
    /// Znodes that are there already, for workloads that read or set some: if none are, they make their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<Znodes>,
    /// Only of servers with several members: as on loopback if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// The end of a cell's run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Requests(u64),
    Seconds(f64),
}

/// Requests per second of a machine of our day with many in flight; only the estimate depends on it.
const REQUESTS_PER_SECOND: f64 = 40_000.0;
/// Turns a second with one request after the other.
const TURNS_PER_SECOND: f64 = 2_000.0;
/// A server's start and end.
const START_AND_STOP: Duration = Duration::from_secs(3);

impl Measurement {
    pub(super) fn is_fresh(&self) -> bool {
        match self {
            Measurement::Run(cell) => cell.fresh,
            _ => true,
        }
    }

    /// About how long it takes on one server.
    pub(super) fn estimate(&self) -> Duration {
        let seconds = match self {
            Measurement::Run(cell) => cell.warm_up_s + cell.estimated_s(),
            Measurement::Memory(znodes) => znodes.znodes as f64 / REQUESTS_PER_SECOND,
            Measurement::Idle(idle) => {
                let watches = (idle.sessions[1] * idle.watches) as f64;
                idle.time_s + idle.sessions[1] as f64 / TURNS_PER_SECOND + watches / REQUESTS_PER_SECOND
            }
            Measurement::Snapshot(plan) => plan.estimated_s(REQUESTS_PER_SECOND),
            Measurement::Growth(growth) => growth.estimated_s(REQUESTS_PER_SECOND),
        };
        let start = if self.is_fresh() { START_AND_STOP } else { Duration::ZERO };
        start + Duration::from_secs_f64(seconds)
    }
}

impl Cell {
    /// Sessions and their load, as short as a chart's label must be.
    pub fn load_label(&self) -> String {
        match self.load {
            Pace::Closed { window } => format!("{}×{window}", self.sessions),
            Pace::Open { requests_per_second } => format!("{}, {requests_per_second}/s", self.sessions),
        }
    }

    fn estimated_s(&self) -> f64 {
        let rate = match self.load {
            Pace::Open { requests_per_second } => requests_per_second,
            Pace::Closed { window } => {
                (TURNS_PER_SECOND * self.sessions as f64 * window as f64).min(REQUESTS_PER_SECOND)
            }
        };
        match self.until {
            End::Seconds(seconds) => seconds,
            End::Requests(requests) => requests as f64 / rate,
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measurement::Run(cell) => cell.fmt(f),
            Measurement::Memory(znodes) => {
                let Znodes { znodes, value_bytes, name_bytes, .. } = znodes;
                write!(f, "memory of {znodes} znodes of {value_bytes} bytes with names of {name_bytes}")
            }
            Measurement::Idle(idle) => idle.fmt(f),
            Measurement::Snapshot(plan) => plan.fmt(f),
            Measurement::Growth(growth) => growth.fmt(f),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} session{}",
            self.workload,
            self.sessions,
            if self.sessions == 1 { "" } else { "s" }
        )?;
        match self.load {
            Pace::Closed { window } => write!(f, " × {window} in flight")?,
            Pace::Open { requests_per_second } => write!(f, ", {requests_per_second} requests/s")?,
        }
        match self.until {
            End::Requests(requests) => write!(f, ", {requests} requests")?,
            End::Seconds(seconds) => write!(f, ", {seconds} s")?,
        }
        match &self.network {
            Some(network) => write!(f, ", {}", network.name),
            None => Ok(()),
        }
    }
}
