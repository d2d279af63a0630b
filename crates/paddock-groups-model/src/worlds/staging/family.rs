//! A plan with the worlds that are made of it: as it is, and with mistakes.

use super::mistake::StagingMistake;
use super::plan::StagingPlan;
use crate::world::ModelWorld;

/// Worlds of one plan.
pub(super) struct Family {
    name: &'static str,
    plan: StagingPlan,
    worlds: Vec<ModelWorld>,
}

impl Family {
    /// The world of a plan in which every property holds.
    pub(super) fn new(name: &'static str, about: &'static str, plan: StagingPlan) -> Family {
        Family { name, worlds: vec![ModelWorld::holds(name, about, plan.clone())], plan }
    }

    /// Its first world is a large one.
    pub(super) fn large(mut self) -> Family {
        self.worlds = self.worlds.into_iter().map(ModelWorld::large).collect();
        self
    }

    /// Adds a world with a mistake by which the property breaks.
    pub(super) fn finds(mut self, mistake: StagingMistake, property: &'static str) -> Family {
        let name = format!("{}/{}", self.name, mistake.name());
        self.worlds.push(ModelWorld::finds(name, mistake.about(), property, self.plan.with(mistake)));
        self
    }

    /// Adds a world without a rule that turns out not to be needed. Less may happen in it.
    pub(super) fn holds_without(mut self, rule: StagingMistake) -> Family {
        let name = format!("{}/{}", self.name, rule.name());
        let about = format!("no mistake: {}", rule.about());
        self.worlds.push(ModelWorld::holds(name, about, self.plan.with(rule).showing(&[])));
        self
    }

    pub(super) fn worlds(self) -> Vec<ModelWorld> {
        self.worlds
    }
}
