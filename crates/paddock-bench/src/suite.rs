//! Starts servers, measures each in turn, and compares them.
//!
//! A suite is a matrix: servers × workloads × sessions × window or rate × requests, and so many repetitions of it
//! (`file.rs` reads it from TOML). Beside workloads stands what it costs to hold much: `memory.rs`, `idle.rs`,
//! `snapshot.rs`, `growth.rs`. The servers take turns on every cell, A B A B, so that a machine's noise harms all
//! alike; each starts on an empty directory and free ports (`server.rs`, `process.rs`). What a step gave is appended
//! to `results.jsonl` and synced before the next one begins (`results.rs`), so a suite that was interrupted goes on
//! where it stopped. `summary.rs` turns the records into figures, `table.rs`, `charts.rs` and `page.rs` show them.
//!
//! Always true:
//! - A run with an error is no figure: it is listed as failed, and nothing is computed from it.
//! - No server outlives the value that started it.

mod cell;
mod charts;
mod conduct;
mod crowd;
mod disk;
mod file;
mod growth;
mod idle;
mod line;
mod measure;
mod memory;
mod narrator;
mod page;
mod ports;
mod process;
mod results;
mod server;
mod snapshot;
mod stall;
mod statistics;
mod summary;
mod table;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::BenchError;
use crate::report::RunReport;

pub use cell::{Cell, End, Measurement};
pub use charts::charts;
pub use conduct::{Conclusion, SuiteStep, Watcher, run};
pub use growth::{Grown, Growth, GrowthReport};
pub use idle::{Idle, IdleReport};
pub use measure::Measure;
pub use memory::MemoryReport;
pub use narrator::Narrator;
pub use page::page;
pub use process::kill_servers;
pub use results::Outcome;
pub use snapshot::{SnapshotPlan, SnapshotReport};
pub use stall::Stall;
pub use statistics::Statistics;
pub use summary::{Failure, Figure, Group, Summary};
pub use table::{markdown, text};

/// A suite's file, checked and with the environment's values in it. Its serialised form is its meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suite {
    pub name: String,
    pub repetitions: usize,
    /// Which of the servers the others are compared with.
    pub baseline: usize,
    pub servers: Vec<ServerTemplate>,
    pub measurements: Vec<Measurement>,
    /// Which servers a measurement is made of, by its number, if not of all.
    pub only: BTreeMap<usize, Vec<usize>>,
    /// Workloads that are files, by the name that cells have for them.
    pub workload_files: BTreeMap<String, WorkloadFile>,
}

/// The start of a server; the texts hold placeholders for each member's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerTemplate {
    pub name: String,
    pub members: usize,
    pub command: Vec<String>,
    pub ready_within: Duration,
    /// True if connections to it use ClickHouse's compressed blocks.
    pub use_compression: bool,
    /// By path below the member's directory.
    pub files: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkloadFile {
    #[serde(skip)]
    pub path: PathBuf,
    pub sha1: String,
}

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

impl Suite {
    /// Reads and checks a suite's file.
    pub fn load(file: &Path) -> Result<Suite, BenchError> {
        file::load(file, &|name| std::env::var(name).ok())
    }

    /// About how long all of it takes.
    pub fn estimate(&self) -> Duration {
        let of = |(number, measurement): (usize, &Measurement)| {
            measurement.estimate() * self.measured(number).len() as u32
        };
        let once: Duration = self.measurements.iter().enumerate().map(of).sum();
        once * self.repetitions as u32
    }

    /// The servers that a measurement is made of.
    fn measured(&self, measurement: usize) -> Vec<usize> {
        self.only.get(&measurement).cloned().unwrap_or_else(|| (0..self.servers.len()).collect())
    }

    /// Which measurements are made on one and the same running server, in order. Those that ask for no fresh server
    /// are all together, at the place of the first of them.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut shared = None;
        for (number, measurement) in self.measurements.iter().enumerate() {
            match shared.filter(|_| !measurement.is_fresh()) {
                Some(group) => Vec::push(&mut groups[group], number),
                None => groups.push(vec![number]),
            }
            if !measurement.is_fresh() {
                shared = shared.or(Some(groups.len() - 1));
            }
        }
        groups
    }
}

/// An error and what caused it, on one line.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests;
