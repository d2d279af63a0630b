//! The list of worlds. Each file or folder below is one kind of world with its mistakes.

mod staging;
mod streams;

use crate::world::ModelWorld;

/// All worlds, in the order of the page.
pub fn all() -> Vec<ModelWorld> {
    let mut worlds = Vec::new();
    worlds.extend(streams::worlds());
    worlds.extend(staging::worlds());
    worlds
}
