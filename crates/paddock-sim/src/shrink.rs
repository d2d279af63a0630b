//! From a run that fails to one that fails with less: faults are left out as long as the same checker notices something.

use crate::checks::Violation;
use crate::faults::Planned;
use crate::plan::RunPlan;
use crate::run;
use crate::trace::Telling;

/// Faults that are left of a plan: their numbers in the whole plan.
#[derive(Debug)]
pub(crate) struct Shrunk {
    pub(crate) faults: Vec<(usize, Planned)>,
    pub(crate) violation: Violation,
}

/// `None` if the plan does not fail. Says on the way how many faults are left.
pub(crate) fn shrink(plan: &RunPlan, mut progress: impl FnMut(usize)) -> Option<Shrunk> {
    let mut violation = fails(plan)?;
    let mut left: Vec<(usize, Planned)> = plan.faults.iter().copied().enumerate().collect();
    let mut chunk = left.len();
    while chunk > 0 {
        progress(left.len());
        let mut at = 0;
        while at < left.len() {
            let mut fewer = left.clone();
            fewer.drain(at..(at + chunk).min(left.len()));
            match fails(&with(plan, &fewer)).filter(|found| found.checker == violation.checker) {
                Some(found) => (left, violation) = (fewer, found),
                None => at += chunk,
            }
        }
        chunk /= 2;
    }
    Some(Shrunk { faults: left, violation })
}

fn with(plan: &RunPlan, faults: &[(usize, Planned)]) -> RunPlan {
    RunPlan { faults: faults.iter().map(|(_, planned)| *planned).collect(), ..plan.clone() }
}

fn fails(plan: &RunPlan) -> Option<Violation> {
    run::run(plan, Telling::Hash).0.violation
}
