//! Workloads as YAML files in the form of ClickHouse's keeper-bench.
//!
//! Its files run unchanged. What they say means here:
//!
//! - `concurrency` threads that keep `pipeline_depth` requests in flight each, over all sessions: as many requests in
//!   flight, spread evenly over the sessions (`KeeperFile::sessions`, `KeeperFile::window`). If there are more sessions
//!   than requests in flight, the rest of the sessions is not opened, as they would be idle.
//! - `iterations`: requests of all sessions together; 0 is no limit. A multi is one request.
//! - `children_of` and `tagged` are what `setup` makes and, unlike `path`, what the file's creates add: each session
//!   sees its own additions. keeper-bench lists `children_of` on the server; here it must be below a node of `setup`.
//! - `remove_factor` removes what the same session created, never what `setup` made. Names never repeat, so there are
//!   no failures to ignore; when a session has used up its share of the names of a length, they get longer.
//! - `operation_timeout_ms`, `report_delay` and `use_remove_recursive` are read and have no effect on the load.
//! - A create below a path that `setup` does not make leaves its znodes behind: only `setup`'s are removed.

mod check;
pub(crate) mod fields;
mod lane;
mod names;
mod operations;
mod plan;
mod read;
mod requests;
mod setup;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use paddock_proto::Extensions;

pub use requests::{PathSource, Paths, RequestKind, Single, Weighted};
pub use setup::SetupNode;
pub use values::{Size, Text};

use crate::workload::{Lane, PreparedZnode, Workload};
use crate::{BenchError, Until};
use lane::KeeperLane;
use names::Names;
use operations::Operations;
use plan::KeeperPlan;
use setup::Expansion;

/// More sessions than one host can open to a server.
const LANES_MAX: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq)]
pub struct KeeperFile {
    pub path: PathBuf,
    pub concurrency: usize,
    /// Requests that each of the `concurrency` threads has in flight.
    pub pipeline_depth: usize,
    /// 0 is no limit.
    pub iterations: u64,
    pub report_delay: Duration,
    /// Zero is no limit.
    pub time_limit: Duration,
    pub warm_up: Duration,
    pub continue_on_error: bool,
    pub seed: Option<u64>,
    /// On every connection.
    pub extensions: Extensions,
    pub connections: Vec<KeeperConnection>,
    pub setup: Vec<SetupNode>,
    pub requests: Vec<Weighted<RequestKind>>,
    pub output: Output,
}

/// A host and how to connect to it; what the file leaves open is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperConnection {
    pub host: String,
    pub sessions: usize,
    pub session_timeout: Option<Duration>,
    pub connection_timeout: Option<Duration>,
    pub operation_timeout: Option<Duration>,
}

/// Destination of the results as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub file: Option<OutputFile>,
    pub stdout: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    pub path: PathBuf,
    /// True if the time of the run goes into the name, before the extension.
    pub with_timestamp: bool,
}

pub fn load(path: &Path) -> Result<KeeperFile, BenchError> {
    let text = std::fs::read_to_string(path).map_err(BenchError::file("read workload", path))?;
    read::file(path, &text)
}

impl KeeperFile {
    /// One entry for each session.
    pub fn hosts(&self) -> Vec<String> {
        let each = |connection: &KeeperConnection| vec![connection.host.clone(); connection.sessions];
        self.connections.iter().flat_map(each).collect()
    }

    pub fn sessions(&self) -> usize {
        let sessions: usize = self.connections.iter().map(|connection| connection.sessions).sum();
        sessions.clamp(1, self.in_flight())
    }

    /// Requests in flight of each session, rounded up.
    pub fn window(&self) -> usize {
        self.in_flight().div_ceil(self.sessions())
    }

    fn in_flight(&self) -> usize {
        self.concurrency.saturating_mul(self.pipeline_depth)
    }

    pub fn until(&self) -> Until {
        Until {
            time: Some(self.time_limit).filter(|limit| !limit.is_zero()),
            requests: Some(self.iterations).filter(|iterations| *iterations > 0),
        }
    }

    /// The longest that a connection asks for.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.connections.iter().filter_map(|connection| connection.session_timeout).max()
    }

    /// The longest that a connection asks for.
    pub fn connection_timeout(&self) -> Option<Duration> {
        self.connections.iter().filter_map(|connection| connection.connection_timeout).max()
    }

    /// An equal seed gives the same znodes and, to each session, the same requests.
    pub fn workload(self, seed: u64) -> KeeperWorkload {
        KeeperWorkload {
            name: file_name(&self.path),
            plan: Arc::new(KeeperPlan::new(&self.setup, &self.requests, seed)),
            operations: Operations::of(self.requests.iter().map(|request| &request.request)),
            setup: self.setup,
            seed,
        }
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[derive(Debug)]
pub struct KeeperWorkload {
    name: String,
    setup: Vec<SetupNode>,
    plan: Arc<KeeperPlan>,
    operations: Operations,
    seed: u64,
}

impl Workload for KeeperWorkload {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn operations(&self) -> Vec<String> {
        self.operations.names()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = PreparedZnode> + '_> {
        Box::new(Expansion::new(&self.setup, self.seed).map(|(_, znode)| znode))
    }

    fn roots(&self) -> Vec<String> {
        self.plan.roots.clone()
    }

    fn lanes(&self, sessions: usize) -> Vec<Box<dyn Lane>> {
        assert!(sessions < LANES_MAX, "{sessions} sessions of at most {LANES_MAX}");
        let lane = |session: usize| {
            let rng = Rng::with_seed(self.seed ^ Rng::with_seed(session as u64).u64(..));
            let names = Names::new(self.seed, session, LANES_MAX);
            Box::new(KeeperLane::new(self.plan.clone(), self.operations, rng, names)) as Box<dyn Lane>
        };
        (0..sessions).map(lane).collect()
    }
}

#[cfg(test)]
mod tests;
