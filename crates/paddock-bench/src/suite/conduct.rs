//! The steps of a suite, one after the other.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::definition::StepPlace;
use super::figure_names::FigureValue;
use super::results::{ResultRecord, Results};
use super::server::{NotServing, SuiteServer, wipe};
use super::{
    Cell, Measurement, Runner, ServerTemplate, StepOutcome, Suite, Summary, growth, idle, memory, page,
    process, snapshot, table,
};
use crate::BenchError;
use crate::report::Ended;

/// Receiver of a suite's progress.
pub trait SuiteWatcher {
    /// A suite begins, of `steps` steps, of which some are there from an earlier run.
    fn plan(&mut self, suite: &Suite, steps: usize, done: usize, left: Duration);
    fn begin(&mut self, step: &SuiteStep<'_>);
    /// Reports the number of znodes that exist so far, of those whose memory is measured.
    fn loaded(&mut self, _step: &SuiteStep<'_>, _znodes: usize) {}
    fn end(&mut self, step: &SuiteStep<'_>, outcome: &StepOutcome);
}

/// One measurement of one server.
#[derive(Clone, Copy, Debug)]
pub struct SuiteStep<'a> {
    /// From 1.
    pub number: usize,
    pub steps: usize,
    pub server: &'a str,
    /// From 1.
    pub repetition: usize,
    pub repetitions: usize,
    pub measurement: &'a Measurement,
}

#[derive(Debug)]
pub enum Conclusion {
    Complete(Summary),
    /// The user stopped it; the same call goes on.
    Interrupted,
}

/// Makes every step of the suite that `out` has no result of, then the summary. Servers keep their data in `out` while
/// they run, so its disk is the one that is measured. When `stop` is set, servers are ended and what is not finished is
/// left out.
pub fn run(
    suite: &Suite,
    out: &Path,
    runner: &mut dyn Runner,
    stop: &AtomicBool,
    watcher: &mut dyn SuiteWatcher,
) -> Result<Conclusion, BenchError> {
    process::raise_open_files();
    let results = Results::open(out, suite)?;
    let mut conductor = Conductor { suite, out, results, runner, stop, watcher };
    conductor.announce();
    let complete = conductor.play()?;
    wipe(&out.join(SERVERS))?;
    if !complete {
        return Ok(Conclusion::Interrupted);
    }
    let summary = Summary::new(suite, |place| conductor.results.get(place));
    let json = serde_json::to_string_pretty(&summary).expect("summaries have text for keys") + "\n";
    write(out, "summary.md", table::markdown(&summary))?;
    write(out, "report.html", page::page(&summary))?;
    write(out, "summary.json", json)?;
    Ok(Conclusion::Complete(summary))
}

fn write(out: &Path, name: &str, text: String) -> Result<(), BenchError> {
    let path = out.join(name);
    fs::write(&path, text).map_err(BenchError::file("write", &path))
}

/// Name of the servers' directory, below the results.
const SERVERS: &str = "servers";

struct Conductor<'a> {
    suite: &'a Suite,
    out: &'a Path,
    results: Results,
    runner: &'a mut dyn Runner,
    stop: &'a AtomicBool,
    watcher: &'a mut dyn SuiteWatcher,
}

impl Conductor<'_> {
    fn announce(&mut self) {
        let suite = self.suite;
        let undone = suite.turns().into_iter().flatten().filter(|place| !self.results.is_done(*place));
        let (mut count, mut left) = (0, Duration::ZERO);
        for place in undone {
            count += 1;
            left += suite.measurements[place.measurement].estimate();
        }
        self.watcher.plan(suite, suite.steps(), suite.steps() - count, left);
    }

    /// Makes the steps in turn; true if all were made.
    fn play(&mut self) -> Result<bool, BenchError> {
        for turn in self.suite.turns() {
            let is_done = turn.iter().all(|place| self.results.is_done(*place));
            if !is_done && !self.take_turn(&turn)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures all places of a turn on one running server, also those that an interrupted turn has measured: they
    /// belong together. False if the user stopped it.
    fn take_turn(&mut self, places: &[StepPlace]) -> Result<bool, BenchError> {
        let template = &self.suite.servers[places[0].server];
        let directory = self.out.join(SERVERS).join(&template.name);
        let mut server = match SuiteServer::start(template, &directory, self.stop) {
            Ok(server) => server,
            Err(NotServing::Stopped) => return Ok(false),
            Err(NotServing::Failed(error)) => return Err(error),
        };
        for &place in places {
            let step = self.suite.step(place);
            self.watcher.begin(&step);
            let Some(outcome) = self.measure(&step, template, &mut server)? else {
                return server.stop().map(|()| false);
            };
            self.watcher.end(&step, &outcome);
            let what = format!("{}: {}", step.server, step.measurement);
            self.results.push(ResultRecord { place, what, outcome })?;
        }
        server.stop()?;
        Ok(!self.stop.load(Ordering::Relaxed))
    }

    /// None if the user stopped it.
    fn measure(
        &mut self,
        step: &SuiteStep<'_>,
        template: &ServerTemplate,
        server: &mut SuiteServer<'_>,
    ) -> Result<Option<StepOutcome>, BenchError> {
        let (hosts, pids) = (server.hosts(), server.pids()?);
        let told = &mut |znodes| self.watcher.loaded(step, znodes);
        let stop = self.stop;
        let measured = match step.measurement {
            Measurement::Run(cell) => self.run(cell, template, server, &pids),
            Measurement::Memory(znodes) => figures(memory::measure(znodes, &hosts, &pids, stop, told)),
            Measurement::Idle(idle) => figures(idle::measure(idle, &hosts, &pids, stop)),
            Measurement::Snapshot(plan) => figures(snapshot::measure(plan, server, stop, told)),
            Measurement::Growth(plan) => {
                let directory = self.out.join(SERVERS).join(format!("{}-with-many", step.server));
                let other = match SuiteServer::start(template, &directory, stop) {
                    Ok(other) => other,
                    Err(NotServing::Stopped) => return Ok(None),
                    Err(NotServing::Failed(error)) => return Err(error),
                };
                let measured = growth::measure(plan, [server, &other], template, self.runner, stop, told);
                other.stop()?;
                figures(measured)
            }
        };
        let outcome = match measured {
            Ok(outcome) => outcome,
            // The mistake would be the same for every server.
            Err(error @ (BenchError::Usage(_) | BenchError::InFile { .. })) => return Err(error),
            Err(error) => Some(StepOutcome::Failed(paddock_tls::with_causes(&error))),
        };
        // A run that was being stopped may fail in any way.
        let stopped = self.stop.load(Ordering::Relaxed);
        Ok(outcome.filter(|outcome| !stopped || outcome.fault().is_none()))
    }

    /// Measures a cell in its network.
    fn run(
        &mut self,
        cell: &Cell,
        template: &ServerTemplate,
        server: &SuiteServer<'_>,
        pids: &[u32],
    ) -> Result<Option<StepOutcome>, BenchError> {
        let way = server.enter(cell.network.as_ref())?;
        let report = self.runner.run(cell, template, &way.hosts, pids)?;
        Ok((report.ended != Ended::Interrupted).then(|| StepOutcome::Run(Box::new(report))))
    }
}

fn figures(
    measured: Result<Option<Vec<FigureValue>>, BenchError>,
) -> Result<Option<StepOutcome>, BenchError> {
    measured.map(|figures| figures.map(StepOutcome::Figures))
}

impl Suite {
    pub(super) fn steps(&self) -> usize {
        self.turns().iter().map(Vec::len).sum()
    }

    /// All steps in the order in which they are made; a turn's are made on one and the same running server.
    pub(super) fn turns(&self) -> Vec<Vec<StepPlace>> {
        let mut turns = Vec::new();
        for repetition in 0..self.repetitions {
            for group in self.groups() {
                for server in 0..self.servers.len() {
                    let is_measured = |measurement: &&usize| self.measured(**measurement).contains(&server);
                    let place = |&measurement| StepPlace { repetition, measurement, server };
                    let turn: Vec<StepPlace> = group.iter().filter(is_measured).map(place).collect();
                    turns.extend((!turn.is_empty()).then_some(turn));
                }
            }
        }
        turns
    }

    fn step(&self, place: StepPlace) -> SuiteStep<'_> {
        let before = self.turns().into_iter().flatten().position(|other| other == place);
        SuiteStep {
            number: before.expect("every place is in the suite's order") + 1,
            steps: self.steps(),
            server: &self.servers[place.server].name,
            repetition: place.repetition + 1,
            repetitions: self.repetitions,
            measurement: &self.measurements[place.measurement],
        }
    }
}
