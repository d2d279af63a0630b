//! Runs and multis that are staged in several groups, released in home's order, and what ordinary writes and reads see of them.

mod carry_out;
mod entry;
mod family;
mod faults;
mod faulty;
mod mistake;
mod model;
mod multis;
mod order;
mod plan;
mod replicated;
mod runs;
mod sessions;
mod step;
mod steps;
mod transactions;
mod votes;
mod whole;

use crate::world::ModelWorld;

/// The worlds of staging.
pub(super) fn worlds() -> Vec<ModelWorld> {
    let mut worlds = runs::worlds();
    worlds.extend(multis::worlds());
    worlds.extend(faulty::worlds());
    worlds
}
