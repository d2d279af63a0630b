//! The list of worlds. Each file or folder below is one kind of world with its mistakes.

mod closings;
mod ends;
mod level_logs;
mod level_multis;
mod level_sessions;
mod level_slots;
mod level_watches;
mod levels;
mod lists;
mod moves;
mod owners;
mod staging;
mod stamped_log;
mod streams;
mod terminal;
mod watches;
mod write_order;

use crate::world::ModelWorld;

/// All worlds, in the order of the page.
pub fn all() -> Vec<ModelWorld> {
    let mut worlds = Vec::new();
    worlds.extend(closings::worlds());
    worlds.extend(streams::worlds());
    worlds.extend(levels::worlds());
    worlds.extend(level_watches::worlds());
    worlds.extend(level_sessions::worlds());
    worlds.extend(level_slots::worlds());
    worlds.extend(level_multis::worlds());
    worlds.extend(staging::worlds());
    worlds.extend(owners::worlds());
    worlds.extend(ends::worlds());
    worlds.extend(watches::worlds());
    worlds.extend(lists::worlds());
    worlds.extend(moves::worlds());
    worlds
}
