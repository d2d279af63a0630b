//! The cost of holding more: the throughput of a few workloads on a server that holds little, and on one that holds
//! much, both there at once so that they can take turns.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::crowd::{Crowd, Staying};
use super::figure_names::FigureValue;
use super::holding::{ROUNDS, WORKLOADS};
use super::server::{Server, resolve};
use super::{Cell, End, Grown, Growth, Runner, ServerTemplate, Statistics, memory};
use crate::BenchError;
use crate::report::units::Unit;
use crate::report::{Ended, Pace};
use crate::workload::tree::{Values, Znodes};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowthReport {
    pub workloads: Vec<Throughput>,
}

/// Requests per second of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    pub workload: String,
    pub with_few: f64,
    pub with_many: f64,
}

const SESSIONS: usize = 10;
const WINDOW: usize = 100;
const WATCHERS: usize = 10;
const VALUE_BYTES: usize = 100;
const NAME_BYTES: usize = 13;
const PARENTS: usize = 1000;

fn cell(plan: &Growth, workload: &str, tree: Option<Znodes>) -> Cell {
    Cell {
        workload: workload.to_owned(),
        sessions: SESSIONS,
        load: Pace::Closed { window: WINDOW },
        until: End::Seconds(plan.time_s),
        warm_up_s: plan.warm_up_s,
        // What one workload has made is gone before the next one.
        fresh: false,
        tree,
    }
}

impl GrowthReport {
    pub(super) fn figures(&self) -> Vec<FigureValue> {
        let of = |throughput: &Throughput| {
            let Throughput { workload, with_few, with_many } = throughput;
            [
                (format!("{workload}, few"), Unit::PerSecond, *with_few),
                (format!("{workload}, many"), Unit::PerSecond, *with_many),
                (format!("{workload}, many to few"), Unit::Percent, with_many / with_few * 100.0),
            ]
        };
        self.workloads.iter().flat_map(of).collect()
    }
}

/// Measures a server with few and one with many, in turns; none if the user stopped it.
pub(super) fn measure(
    plan: &Growth,
    servers: [&Server<'_>; 2],
    template: &ServerTemplate,
    runner: &mut dyn Runner,
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<Option<GrowthReport>, BenchError> {
    let [few, many] = servers;
    let mut sides = Vec::new();
    for (server, count) in [(few, plan.few), (many, plan.many)] {
        let Some(side) = Side::grow(plan, server, count, stop, told)? else { return Ok(None) };
        sides.push(side);
    }
    let mut rates: Vec<[Vec<f64>; 2]> = vec![Default::default(); WORKLOADS.len()];
    for _ in 0..ROUNDS {
        for (workload, rates) in WORKLOADS.iter().zip(&mut rates) {
            for (side, rates) in sides.iter().zip(rates) {
                let Some(rate) = side.run(plan, workload, template, runner)? else { return Ok(None) };
                rates.push(rate);
            }
        }
    }
    sides.into_iter().try_for_each(Side::end)?;
    let median = |rates: &Vec<f64>| Statistics::of(rates).expect("there are rounds").median;
    let of = |(workload, rates): (&&str, &[Vec<f64>; 2])| Throughput {
        workload: (*workload).to_owned(),
        with_few: median(&rates[0]),
        with_many: median(&rates[1]),
    };
    Ok(Some(GrowthReport { workloads: WORKLOADS.iter().zip(&rates).map(of).collect() }))
}

/// A server that holds as much as it is to hold.
struct Side {
    hosts: Vec<String>,
    pids: Vec<u32>,
    /// The znodes that are read and set, if they are what grows.
    tree: Option<Znodes>,
    idle: Staying,
}

impl Side {
    /// None if the user stopped it.
    fn grow(
        plan: &Growth,
        server: &Server<'_>,
        count: usize,
        stop: &AtomicBool,
        told: &mut dyn FnMut(usize),
    ) -> Result<Option<Side>, BenchError> {
        let (hosts, pids) = (server.hosts(), server.pids()?);
        let mut load = |tree: &Znodes| memory::load(tree, Values::Same, &hosts, stop, told);
        let mut crowd = Crowd::new(&resolve(&hosts)?);
        let is_there = match plan.of {
            Grown::Sessions => crowd.grow(count, stop)?,
            Grown::Znodes => load(&tree(count))?,
            Grown::Watches => {
                // Both have the znodes: only the watches on them differ.
                let watched = tree(plan.many.div_ceil(WATCHERS));
                load(&watched)?
                    && crowd.grow(WATCHERS, stop)?
                    && crowd.watch(0, 0..count / WATCHERS, |_, number| watched.path(number), stop)?
            }
        };
        if !is_there {
            return Ok(None);
        }
        let tree = (plan.of == Grown::Znodes).then(|| tree(count));
        Ok(Some(Side { hosts, pids, tree, idle: crowd.stay()? }))
    }

    /// Its requests per second; none if the user stopped it.
    fn run(
        &self,
        plan: &Growth,
        workload: &str,
        template: &ServerTemplate,
        runner: &mut dyn Runner,
    ) -> Result<Option<f64>, BenchError> {
        let report =
            runner.run(&cell(plan, workload, self.tree.clone()), template, &self.hosts, &self.pids)?;
        match report.fault() {
            _ if report.ended == Ended::Interrupted => Ok(None),
            Some(fault) => Err(BenchError::Unfinished(format!("{workload}: {fault}"))),
            None => Ok(Some(report.requests_per_second)),
        }
    }

    /// An error if an idle session was lost.
    fn end(self) -> Result<(), BenchError> {
        self.idle.end()
    }
}

fn tree(znodes: usize) -> Znodes {
    Znodes { znodes, value_bytes: VALUE_BYTES, name_bytes: NAME_BYTES, parents: PARENTS }
}

#[cfg(test)]
mod tests {
    use super::{Grown, Growth, GrowthReport, Throughput};

    #[test]
    fn what_is_left_is_a_share() {
        let workload = Throughput { workload: "get".to_owned(), with_few: 200.0, with_many: 150.0 };
        let figures = GrowthReport { workloads: vec![workload] }.figures();
        let texts: Vec<String> =
            figures.iter().map(|(name, unit, value)| format!("{name}: {}", unit.text(*value))).collect();
        assert_eq!(texts, ["get, few: 200/s", "get, many: 150/s", "get, many to few: 75.0 %"]);
    }

    #[test]
    fn it_says_what_it_is() {
        let growth = Growth { of: Grown::Sessions, few: 10, many: 10_000, time_s: 1.0, warm_up_s: 1.0 };
        assert_eq!(growth.to_string(), "10 and 10000 idle sessions");
    }
}
