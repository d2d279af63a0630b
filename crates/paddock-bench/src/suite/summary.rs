//! The summary of a suite: for each measurement, each figure of each server over the repetitions, and how they compare.

use serde::Serialize;

use super::definition::StepPlace;
use super::figure_names::{
    BYTES_RECEIVED, BYTES_SENT, FigureValue, MEMORY_AFTER, PEAK_MEMORY, RUNTIME, SERVER_CPU,
    SERVER_CPU_TOTAL, THROUGHPUT,
};
use super::statistics::ratio;
use super::{End, Measurement, Statistics, StepOutcome, Suite};
use crate::report::units::Unit;
use crate::report::{Latency, RunReport};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub suite: String,
    pub repetitions: usize,
    pub servers: Vec<String>,
    /// The server that the ratios are to.
    pub baseline: usize,
    pub groups: Vec<Group>,
    /// Steps without a result.
    pub failures: Vec<FailedCell>,
}

/// The figures of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub measurement: Measurement,
    pub figures: Vec<Figure>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    /// In the order of the summary's servers, over the repetitions that went well.
    pub servers: Vec<Option<Statistics>>,
    /// Ratios of each server's median to the baseline's.
    pub ratios: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedCell {
    pub server: String,
    /// From 1.
    pub repetition: usize,
    pub what: String,
    pub reason: String,
}

impl Summary {
    pub(super) fn new<'a>(suite: &Suite, outcome: impl Fn(StepPlace) -> Option<&'a StepOutcome>) -> Summary {
        let mut failures = Vec::new();
        let mut groups = Vec::new();
        for (number, measurement) in suite.measurements.iter().enumerate() {
            let mut table = SummaryTable::new(suite.servers.len());
            for server in suite.measured(number) {
                for repetition in 0..suite.repetitions {
                    let outcome = outcome(StepPlace { repetition, measurement: number, server });
                    match judge(outcome) {
                        Ok(outcome) => table.add(server, figures(measurement, outcome)),
                        Err(reason) => failures.push(FailedCell {
                            server: suite.servers[server].name.clone(),
                            repetition: repetition + 1,
                            what: measurement.to_string(),
                            reason,
                        }),
                    }
                }
            }
            groups.push(Group { measurement: measurement.clone(), figures: table.figures(suite.baseline) });
        }
        Summary {
            suite: suite.name.clone(),
            repetitions: suite.repetitions,
            servers: suite.servers.iter().map(|server| server.name.clone()).collect(),
            baseline: suite.baseline,
            groups,
            failures,
        }
    }
}

impl Summary {
    /// The servers that are compared with the baseline.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.servers.len()).filter(|server| *server != self.baseline)
    }
}

/// Errors of the steps without a result.
pub(super) fn failures(summary: &Summary) -> impl Iterator<Item = String> {
    summary.failures.iter().map(|failure| {
        let FailedCell { server, repetition, what, reason } = failure;
        format!("{server}, repetition {repetition}, {what}: {reason}")
    })
}

impl Group {
    pub(super) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

fn judge(outcome: Option<&StepOutcome>) -> Result<&StepOutcome, String> {
    let outcome = outcome.ok_or("not measured")?;
    outcome.fault().map_or(Ok(outcome), Err)
}

fn figures(measurement: &Measurement, outcome: &StepOutcome) -> Vec<FigureValue> {
    match outcome {
        StepOutcome::Run(report) => {
            let counted =
                matches!(measurement, Measurement::Run(cell) if matches!(cell.until, End::Requests(_)));
            run_figures(report, counted)
        }
        StepOutcome::Figures(figures) => figures.clone(),
        StepOutcome::Failed(_) => Vec::new(),
    }
}

/// `counted`: the run had a number of requests to make, so its time says something.
fn run_figures(report: &RunReport, counted: bool) -> Vec<FigureValue> {
    let mut values = vec![(THROUGHPUT.to_owned(), Unit::PerSecond, report.requests_per_second)];
    let mut add = |name: &str, unit, value: Option<f64>| {
        values.extend(value.map(|value| (name.to_owned(), unit, value)));
    };
    add(RUNTIME, Unit::Seconds, counted.then_some(report.elapsed_s));
    add_latency(&mut add, "latency", &report.latency);
    if report.operations.len() > 1 {
        for operation in report.operations.iter().filter(|operation| operation.requests > 0) {
            add_latency(&mut add, &operation.name, &operation.latency);
        }
    }
    if let Some(server) = &report.server {
        let cpu_us = server.cpu_us_per_request;
        add(SERVER_CPU, Unit::Microseconds, cpu_us);
        let total_s = cpu_us.map(|cpu_us| cpu_us * report.requests as f64 / 1e6);
        add(SERVER_CPU_TOTAL, Unit::Seconds, total_s.filter(|_| counted));
        add(PEAK_MEMORY, Unit::Bytes, server.resident_bytes_peak.map(|peak| peak as f64));
        add(MEMORY_AFTER, Unit::Bytes, server.resident_bytes_after.map(|after| after as f64));
    }
    for (name, per_second) in
        [(BYTES_SENT, report.bytes_sent_per_second), (BYTES_RECEIVED, report.bytes_received_per_second)]
    {
        let per_request = per_second / report.requests_per_second;
        add(name, Unit::Bytes, Some(per_request).filter(|bytes| bytes.is_finite()));
    }
    add("client CPU per request", Unit::Microseconds, Some(report.client_cpu_us_per_request));
    values
}

fn add_latency(add: &mut impl FnMut(&str, Unit, Option<f64>), name: &str, latency: &Latency) {
    add(&format!("{name} mean"), Unit::Microseconds, Some(latency.mean_us));
    for (label, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)] {
        add(&format!("{name} {label}"), Unit::Microseconds, Some(latency.percentile_us(percent)));
    }
}

/// The values of one measurement by figure and server.
struct SummaryTable {
    servers: usize,
    rows: Vec<SummaryRow>,
}

struct SummaryRow {
    name: String,
    unit: Unit,
    values: Vec<Vec<f64>>,
}

impl SummaryTable {
    fn new(servers: usize) -> SummaryTable {
        SummaryTable { servers, rows: Vec::new() }
    }

    fn add(&mut self, server: usize, values: Vec<FigureValue>) {
        for (name, unit, value) in values {
            let row = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
                self.rows.push(SummaryRow { name, unit, values: vec![Vec::new(); self.servers] });
                self.rows.len() - 1
            });
            self.rows[row].values[server].push(value);
        }
    }

    fn figures(self, baseline: usize) -> Vec<Figure> {
        let figure = |row: SummaryRow| {
            let servers: Vec<_> = row.values.iter().map(|values| Statistics::of(values)).collect();
            let ratios = servers.iter().map(|of| ratio(*of, servers[baseline])).collect();
            Figure { name: row.name, unit: row.unit, servers, ratios }
        };
        self.rows.into_iter().map(figure).collect()
    }
}
