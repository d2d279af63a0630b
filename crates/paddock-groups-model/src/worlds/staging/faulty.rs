//! Worlds of other files with more faults: large ones.

use super::family::Family;
use super::plan::{Faults, StagingPlan};
use super::{multis, runs};
use crate::world::ModelWorld;

/// A plan with faults, and with logs that may have uncommitted entries if there are elections.
fn with(faults: Faults, plan: StagingPlan) -> StagingPlan {
    StagingPlan { faults, has_tails: faults.elections > 0, ..plan }
}

pub(super) fn worlds() -> Vec<ModelWorld> {
    let none = Faults::default();
    let death = Faults { deaths: 1, ..none };
    let strays = Faults { deaths: 1, strays: 1, ..none };
    let elections = Faults { deaths: 1, elections: 2, ..none };
    let families = [
        Family::new("faults-crossed", "`run-crossed`; a coordinator dies", with(death, runs::crossed())),
        Family::new("faults-at-home", "`run-at-home`; a coordinator dies", with(death, runs::at_home())),
        Family::new(
            "faults-windows",
            "`run-windows`; a coordinator dies, two elections",
            with(elections, runs::windows()),
        ),
        Family::new(
            "faults-writers",
            "`run-writers`; a coordinator dies, two elections",
            with(elections, runs::writers()),
        ),
        Family::new(
            "faults-two",
            "`multi-two`; a coordinator dies, a part or a decision comes late",
            with(strays, multis::two()),
        ),
        Family::new(
            "faults-two-elections",
            "`multi-two`; a coordinator dies, two elections",
            with(elections, multis::two()),
        ),
        Family::new(
            "faults-holds",
            "`multi-holds`; a coordinator dies, two elections",
            with(elections, multis::holds()),
        ),
        Family::new(
            "faults-beside-run",
            "`multi-beside-run`; a part or a decision comes late",
            with(Faults { deaths: 0, ..strays }, multis::beside_run()),
        ),
    ];
    families.into_iter().flat_map(|family| family.large().worlds()).collect()
}
