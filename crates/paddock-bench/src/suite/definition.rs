//! A suite as its file defines it: servers, measurements, repetitions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use paddock_client::{Tls, TlsFiles};
use serde::{Deserialize, Serialize};

use super::Measurement;
use crate::BenchError;

/// A suite's file, checked and with the environment's values in it. Its serialised form is its meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suite {
    pub name: String,
    pub repetitions: usize,
    /// The server that the others are compared with.
    pub baseline: usize,
    pub servers: Vec<ServerTemplate>,
    pub measurements: Vec<Measurement>,
    /// The servers that a measurement is made of, by its number, if not all.
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
    /// A command that is run once all members serve on empty directories, with the placeholders of the first one; empty for none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
    /// True if connections to it use ClickHouse's compressed blocks.
    pub use_compression: bool,
    /// Certificates by which it is believed: connections to it use TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// True if its members are linked through relays, since a cell's network may be worse than loopback.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub through_relays: bool,
    /// By path below the member's directory.
    pub files: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkloadFile {
    #[serde(skip)]
    pub path: PathBuf,
    pub sha1: String,
}

/// The place of a step in its suite's matrix; all count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepPlace {
    pub(super) repetition: usize,
    pub(super) measurement: usize,
    pub(super) server: usize,
}

impl ServerTemplate {
    /// TLS of connections to it, if there is any.
    pub(super) fn tls(&self) -> Result<Option<Tls>, BenchError> {
        let Some(authorities) = &self.tls_ca else { return Ok(None) };
        let files = TlsFiles { authorities: Some(authorities.clone()), ..TlsFiles::default() };
        Ok(Some(Tls::load(&files)?))
    }
}

impl Suite {
    /// About how long all of it takes.
    pub fn estimate(&self) -> Duration {
        let of = |(number, measurement): (usize, &Measurement)| {
            measurement.estimate() * self.measured(number).len() as u32
        };
        let once: Duration = self.measurements.iter().enumerate().map(of).sum();
        once * self.repetitions as u32
    }

    /// The servers that a measurement is made of.
    pub(super) fn measured(&self, measurement: usize) -> Vec<usize> {
        self.only.get(&measurement).cloned().unwrap_or_else(|| (0..self.servers.len()).collect())
    }

    /// Measurements that are made on one and the same running server, in order. Those that ask for no fresh server
    /// are all together, at the place of the first of them.
    pub(super) fn groups(&self) -> Vec<Vec<usize>> {
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
