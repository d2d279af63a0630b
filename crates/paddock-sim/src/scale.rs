//! Large ensembles, timed: what members would do that have a core each, on one machine that does not have these cores.
//!
//! The members run the code that the server runs, one after the other. Each has a core of its own, in virtual time: a step takes as long as it has
//! taken here, and what the system does for it takes what [`Costs`] says. Nothing fails, and no checker looks. So it tells how many writes a second
//! an ensemble takes of which there are no machines, where its members' time goes, and who is busy first.
//!
//! Two runs differ as two measurements do. Other work on the machine makes members slow.

mod costs;
mod ensemble;
mod load;
mod report;
mod shape;

use std::process::ExitCode;

use clap::Parser;

use crate::time::SimDuration;
use ensemble::ScaledEnsemble;
use load::ScaleLoad;
use report::ScaleReport;
use shape::Shape;

/// Measures the ensemble of the command line, and prints a report.
pub fn main() -> ExitCode {
    print!("{}", measure(&Shape::parse()));
    ExitCode::SUCCESS
}

/// Virtual time in which members without clients are looked at.
const IDLE: SimDuration = SimDuration::seconds(2);

fn measure(shape: &Shape) -> ScaleReport {
    let mut ensemble = ScaledEnsemble::start(shape);
    ensemble.settle();
    let mut load = ScaleLoad::new(shape);
    load.create_root(&mut ensemble);
    ensemble.spread();
    load.prepare(&mut ensemble);
    let idle = ensemble.measure(IDLE, |_, _| {});
    load.begin(&mut ensemble);
    let span = SimDuration::millis(shape.millis);
    ensemble.measure(SimDuration(span.0 / 2), |ensemble, event| load.hear(ensemble, event));
    load.count_from_now();
    let busy = ensemble.measure(span, |ensemble, event| load.hear(ensemble, event));
    ScaleReport { shape: shape.clone(), idle, busy, tally: load.into_tally() }
}

#[cfg(test)]
mod tests {
    use super::shape::LoadKind;
    use super::*;

    /// Its members are so fast that it does not matter how fast this machine is, and what else it does.
    fn shape(load: LoadKind) -> Shape {
        Shape { members: 4, groups: 4, replicas: 3, sessions: 12, in_flight: 3, load, core: 1e6, millis: 20 }
    }

    #[test]
    fn clients_of_each_kind_are_answered_and_members_spend_time_on_it() {
        for load in [LoadKind::Create, LoadKind::Everywhere, LoadKind::Sessions] {
            let ScaleReport { busy, idle, tally, .. } = measure(&shape(load));
            assert!(tally.answered > 12, "{load:?}: {tally:?}");
            assert_eq!(tally.latencies_us.len() as u64, tally.answered);
            for (busy, idle) in busy.members.iter().zip(&idle.members) {
                assert!(busy.total_ns() > 0 && busy.packets > 0, "{load:?}: {busy:?}");
                assert!(idle.total_ns() > 0, "a member ticks: {idle:?}");
            }
        }
    }
}
