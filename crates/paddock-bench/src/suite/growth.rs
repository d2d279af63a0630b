//! The cost of holding more: the throughput of a few workloads on a server that holds little, and on one that holds
//! much, both there at once so that they can take turns.

use std::sync::atomic::AtomicBool;

use super::crowd::Crowd;
use super::figure_names::FigureValue;
use super::holding::{ROUNDS, WORKLOADS};
use super::server::SuiteServer;
use super::{Cell, End, Grown, Growth, Runner, ServerTemplate, Statistics, memory};
use crate::BenchError;
use crate::report::units::Unit;
use crate::report::{Ended, Pace};
use crate::workload::tree::{Filling, Values, Znodes};

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
        network: None,
    }
}

/// Figures of one workload by its requests per second, with few and with many.
fn figures(workload: &str, few: f64, many: f64) -> [FigureValue; 3] {
    [
        (format!("{workload}, few"), Unit::PerSecond, few),
        (format!("{workload}, many"), Unit::PerSecond, many),
        (format!("{workload}, many to few"), Unit::Percent, many / few * 100.0),
    ]
}

/// Measures a server with few and one with many, in turns; none if the user stopped it.
pub(super) fn measure(
    plan: &Growth,
    servers: [&SuiteServer<'_>; 2],
    template: &ServerTemplate,
    runner: &mut dyn Runner,
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<Option<Vec<FigureValue>>, BenchError> {
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
    // An idle session that was lost makes the figures worthless.
    sides.iter().try_for_each(|side| side.idle.check())?;
    let median = |rates: &Vec<f64>| Statistics::of(rates).expect("there are rounds").median;
    let of_each = WORKLOADS.iter().zip(&rates);
    Ok(Some(of_each.flat_map(|(name, [few, many])| figures(name, median(few), median(many))).collect()))
}

/// A server that holds as much as it is to hold.
struct Side {
    hosts: Vec<String>,
    pids: Vec<u32>,
    /// The znodes that are read and set, if they are what grows.
    tree: Option<Znodes>,
    idle: Crowd,
}

impl Side {
    /// None if the user stopped it.
    fn grow(
        plan: &Growth,
        server: &SuiteServer<'_>,
        count: usize,
        stop: &AtomicBool,
        told: &mut dyn FnMut(usize),
    ) -> Result<Option<Side>, BenchError> {
        let (hosts, pids) = (server.hosts(), server.pids()?);
        let mut load = |znodes: Znodes| {
            let tree = Filling::Alike { znodes, values: Values::Same };
            memory::load(&tree, &hosts, stop, told)
        };
        let mut crowd = Crowd::new(&hosts)?;
        let is_there = match plan.of {
            Grown::Sessions => crowd.grow(count, stop)?,
            Grown::Znodes => load(tree(count))?,
            Grown::Watches => {
                // Both have the znodes: only the watches on them differ.
                let watched = tree(plan.many.div_ceil(WATCHERS));
                load(watched.clone())?
                    && crowd.grow(WATCHERS, stop)?
                    && crowd.watch(0, 0..count / WATCHERS, |_, number| watched.path(number), stop)?
            }
        };
        if !is_there {
            return Ok(None);
        }
        let tree = (plan.of == Grown::Znodes).then(|| tree(count));
        Ok(Some(Side { hosts, pids, tree, idle: crowd }))
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
}

fn tree(znodes: usize) -> Znodes {
    Znodes {
        znodes,
        value_bytes: VALUE_BYTES,
        name_bytes: NAME_BYTES,
        parents: PARENTS,
        below: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grown, Growth, figures};

    #[test]
    fn what_is_left_is_a_share() {
        let texts =
            figures("get", 200.0, 150.0).map(|(name, unit, value)| format!("{name}: {}", unit.text(value)));
        assert_eq!(texts, ["get, few: 200/s", "get, many: 150/s", "get, many to few: 75.0 %"]);
    }

    #[test]
    fn it_says_what_it_is() {
        let growth = Growth { of: Grown::Sessions, few: 10, many: 10_000, time_s: 1.0, warm_up_s: 1.0 };
        assert_eq!(growth.to_string(), "10 and 10000 idle sessions");
    }
}
