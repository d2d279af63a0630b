//! The plan of a run: servers, sessions, load, and the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use paddock_proto::Extensions;

use crate::Access;
use crate::report::Pace;
use crate::until::Until;
use crate::workload::Workload;

#[derive(Debug)]
pub struct RunPlan {
    /// `host:port` of each server; sessions are spread over them.
    pub hosts: Vec<String>,
    pub workload: Box<dyn Workload>,
    pub sessions: usize,
    pub pace: Pace,
    pub until: Until,
    /// Pace before the run that is not in its figures.
    pub warm_up: Duration,
    /// Threads that drive the sessions.
    pub threads: usize,
    pub session_timeout: Duration,
    /// Extensions of ClickHouse's protocol to ask for; ClickHouse Keeper and Paddock understand them.
    pub extensions: Extensions,
    pub access: Access,
    /// Time in which a session has to open.
    pub connect_timeout: Duration,
    /// True if a failed request or a lost connection ends the run.
    pub stop_on_error: bool,
    /// True if the workload's znodes stay when the run is over.
    pub keep: bool,
    /// Processes of the server whose use of the machine is sampled.
    pub sources: Vec<SampleSource>,
    /// Set it to end the run early, with a report of what there is.
    pub interrupted: Arc<AtomicBool>,
}

/// Place where a server process tells what it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleSource {
    /// A process of this machine.
    Pid(u32),
    /// The URL of a Prometheus page.
    Metrics(String),
}
