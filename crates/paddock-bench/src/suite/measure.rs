//! The runner that measures: a cell as a plan for the driver.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use paddock_proto::Extensions;

use super::{Cell, End, ServerTemplate, Suite};
use crate::report::RunReport;
use crate::workload::builtin::Builtin;
use crate::workload::shape::Shape;
use crate::workload::{Workload, keeper, replay};
use crate::{Access, BenchError, RunPlan, RunProgress, SampleSource, Until};

const ROOT: &str = "/paddock-bench";
const SEED: u64 = 1;
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures one cell on a server that serves; `pids` are its processes. The suite's own tests have one that measures
/// nothing.
pub trait Runner {
    fn run(
        &mut self,
        cell: &Cell,
        server: &ServerTemplate,
        hosts: &[String],
        pids: &[u32],
    ) -> Result<RunReport, BenchError>;
}

pub struct Measure<'a> {
    suite: &'a Suite,
    /// Ends a run early.
    interrupted: Arc<AtomicBool>,
    progress: &'a mut dyn RunProgress,
}

impl<'a> Measure<'a> {
    pub fn new(
        suite: &'a Suite,
        interrupted: Arc<AtomicBool>,
        progress: &'a mut dyn RunProgress,
    ) -> Measure<'a> {
        Measure { suite, interrupted, progress }
    }

    fn workload(&self, cell: &Cell) -> Result<Box<dyn Workload>, BenchError> {
        if let Some(builtin) = Builtin::find(&cell.workload) {
            return Ok(builtin.build(shape(cell)));
        }
        let path = &self.suite.workload_files[&cell.workload].path;
        if path.extension().is_some_and(|extension| extension == "csv") {
            return recorded(path, cell);
        }
        let file = keeper::load(path)?;
        let seed = file.seed.unwrap_or(SEED);
        Ok(Box::new(file.workload(seed)))
    }
}

fn recorded(path: &Path, cell: &Cell) -> Result<Box<dyn Workload>, BenchError> {
    let replay = replay::load(path, ROOT, None)?;
    match replay.sessions() {
        sessions if sessions == cell.sessions => Ok(Box::new(replay)),
        sessions => Err(BenchError::Usage(format!(
            "{} has {sessions} recorded sessions: say sessions = [{sessions}]",
            path.display()
        ))),
    }
}

impl fmt::Debug for Measure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measure").field("suite", &self.suite.name).finish_non_exhaustive()
    }
}

impl Runner for Measure<'_> {
    fn run(
        &mut self,
        cell: &Cell,
        server: &ServerTemplate,
        hosts: &[String],
        pids: &[u32],
    ) -> Result<RunReport, BenchError> {
        let plan = RunPlan {
            hosts: hosts.to_vec(),
            workload: self.workload(cell)?,
            sessions: cell.sessions,
            pace: cell.load,
            until: until(cell),
            warm_up: Duration::from_secs_f64(cell.warm_up_s),
            threads: 1,
            session_timeout: SESSION_TIMEOUT,
            extensions: Extensions { compression: server.use_compression, ..Extensions::default() },
            access: Access { tls: server.tls()?, ..Access::default() },
            connect_timeout: CONNECT_TIMEOUT,
            stop_on_error: true,
            // A fresh server is wiped, which is quicker.
            keep: cell.fresh,
            sources: pids.iter().copied().map(SampleSource::Pid).collect(),
            interrupted: Arc::clone(&self.interrupted),
        };
        crate::run(&plan, self.progress)
    }
}

fn shape(cell: &Cell) -> Shape {
    let znodes = match cell.until {
        End::Requests(requests) => Some(requests.div_ceil(cell.sessions as u64)),
        End::Seconds(_) => None,
    };
    Shape {
        root: ROOT.to_owned(),
        sessions: cell.sessions,
        value_bytes: None,
        znodes,
        among: None,
        tree: cell.tree.clone(),
        seed: SEED,
    }
}

fn until(cell: &Cell) -> Until {
    match cell.until {
        // Such a workload is over when all its znodes have been made.
        End::Requests(_) if Builtin::find(&cell.workload).is_some_and(|builtin| builtin.is_finite) => {
            Until::default()
        }
        End::Requests(requests) => Until { time: None, requests: Some(requests) },
        End::Seconds(seconds) => Until { time: Some(Duration::from_secs_f64(seconds)), requests: None },
    }
}
