//! Upgrades: the machines that found an ensemble get another build, one after the other, as an operator does it. Some upgrades are taken back,
//! as long as another member still has the older build.

use paddock_tree::FeatureLevel;

use super::{HealingStage, World, WorldEvent};
use crate::checks::Checked;
use crate::faults::End;
use crate::machine::setup::Upgrades;
use crate::time::SimDuration;

/// Interval at which the operator looks if all members know of the change before.
const LOOK: SimDuration = SimDuration::millis(500);

impl World {
    /// Upgrades a machine, or takes that back.
    pub(super) fn change_builds(&mut self) -> Checked {
        let Some(Upgrades { completes }) = self.plan.settings.upgrades else { return Ok(()) };
        self.plan_in(LOOK, WorldEvent::Builds);
        if !self.are_builds_told() || self.chance.one_in(2) {
            return Ok(());
        }
        let founders = 1..=self.plan.settings.members;
        let (old, new): (Vec<u8>, Vec<u8>) =
            founders.partition(|member| self.build(*member) < FeatureLevel::KNOWN);
        let is_wild = self.stage == HealingStage::Faults;
        // With the last one the level rises, and there is no way back.
        let may_upgrade = old.len() > 1 || completes && (!is_wild || self.chance.one_in(4));
        let (member, build) = if is_wild && !old.is_empty() && !new.is_empty() && self.chance.one_in(3) {
            (*self.chance.pick(&new), FeatureLevel::NONE)
        } else if !old.is_empty() && may_upgrade {
            (*self.chance.pick(&old), FeatureLevel::KNOWN)
        } else {
            return Ok(());
        };
        self.trace.note(self.now, format_args!("{member} is to have the build of level {build}"));
        self.machine(member).build = build;
        let down = SimDuration(self.chance.below(2_000_000));
        let end = *self.chance.pick(&[End::Orderly, End::Orderly, End::Killed]);
        self.take_down(member, end, down)
    }

    fn build(&self, member: u8) -> FeatureLevel {
        self.machines[usize::from(member) - 1].build
    }

    /// True if all founders run, and each has told all others what its program knows.
    fn are_builds_told(&self) -> bool {
        (1..=self.plan.settings.members).all(|member| {
            let machine = &self.machines[usize::from(member) - 1];
            let Some(process) = machine.process.as_ref() else { return false };
            let told = process.told_levels();
            (1..=self.plan.settings.members).filter(|other| *other != member).all(|other| {
                let number = self.plan.settings.numbering.number(other);
                told.contains(&(number, self.build(other)))
            })
        })
    }

    /// Something of builds and levels that is not yet as it should be.
    pub(super) fn unsettled_level(&self) -> Option<String> {
        let founders = 1..=self.plan.settings.members;
        let old: Vec<u8> = founders.filter(|member| self.build(*member) < FeatureLevel::KNOWN).collect();
        if self.plan.settings.upgrades.is_some_and(|upgrades| upgrades.completes) && !old.is_empty() {
            return Some(format!("these have the older build: {old:?}"));
        }
        // A member whose disk is damaged stays away and tells nothing. The level may have risen before that, or not.
        if old.is_empty() && self.machines.iter().any(|machine| machine.faults.is_out_of_service) {
            return None;
        }
        let expected = if old.is_empty() { FeatureLevel::KNOWN } else { FeatureLevel::NONE };
        let level = self.checks.truth.model().feature_level();
        (level != expected.0).then(|| format!("the feature level is {level}, and all know {expected}"))
    }
}
