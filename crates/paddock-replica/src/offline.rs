//! Applying entries to a tree without a member: for a program that reads the directory of one that is stopped.

use paddock_tree::{Command, REMOVED_AT_ONCE, Tree};

use crate::LogEntry;
use crate::batch::{Batch, batches, floor};
use crate::configuration::ConfigurationEntry;

/// Applies what an entry says of znodes, sessions and the ensemble, exactly as a member does, and answers no client.
pub fn apply_offline(tree: &mut Tree, entry: &LogEntry) {
    match ConfigurationEntry::decode(&entry.payload) {
        Some(ConfigurationEntry::Refounding { cluster, members, .. }) => {
            tree.refound_ensemble(cluster, &members);
        }
        Some(_) => {}
        None => {
            tree.begin_entry(floor(&entry.payload));
            for batch in batches(&entry.payload) {
                let is_new = batch.number == Batch::UNNUMBERED || tree.admit(batch.origin, batch.number);
                if is_new {
                    batch.commands().for_each(|command| apply_command(tree, &command));
                }
            }
        }
    }
}

fn apply_command(tree: &mut Tree, command: &Command<'_>) {
    let refusal = match tree.long_removal(command, REMOVED_AT_ONCE) {
        Some(removal) => removal.run_alone(tree).err(),
        None => None,
    };
    match refusal {
        Some(error) => drop(tree.refuse(error)),
        None => drop(tree.apply(command)),
    }
}
