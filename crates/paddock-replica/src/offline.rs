//! Applying entries to a tree without a member: for a program that reads the directory of one that is stopped.

use paddock_tree::{Command, FeatureLevel, GroupFounders, Outcome, REMOVED_AT_ONCE, Tree};

use crate::batch::{Batch, batches, floor};
use crate::configuration::ConfigurationEntry;
use crate::raft_id::member_number;
use crate::{LogEntry, Membership};

/// Part of an entry.
#[derive(Clone, Copy, Debug)]
pub enum EntryPart<'a, 'b> {
    /// A change of the members, in words.
    Membership(&'a str),
    /// A command, and its outcome if it was applied. One that a member sent twice is applied once.
    Command { command: &'a Command<'b>, outcome: Option<&'a Outcome<'b>> },
}

/// Applies what an entry says of znodes, sessions and the ensemble, exactly as a member does, and answers no client.
pub fn apply_offline(tree: &mut Tree, entry: &LogEntry) {
    apply_and_tell(tree, entry, &mut |_, _| {});
}

/// Applies an entry as `apply_offline` does, and tells of each part when it has been applied.
pub fn apply_and_tell(tree: &mut Tree, entry: &LogEntry, tell: &mut dyn FnMut(&Tree, EntryPart<'_, '_>)) {
    apply_on_members(tree, entry, REMOVED_AT_ONCE, tell);
}

/// As `apply_and_tell`, for members whose transactions remove this number of znodes at most.
pub(crate) fn apply_on_members(
    tree: &mut Tree,
    entry: &LogEntry,
    removed_at_once: usize,
    tell: &mut dyn FnMut(&Tree, EntryPart<'_, '_>),
) {
    let Some(configuration) = ConfigurationEntry::decode(&entry.payload) else {
        tree.begin_entry(floor(&entry.payload));
        for batch in batches(&entry.payload) {
            let is_new = batch.number == Batch::UNNUMBERED || tree.admit(batch.origin, batch.number);
            let mut ahead = batch.known_paths();
            for (number, command) in batch.commands().enumerate() {
                if number % Tree::LOOK_AHEAD_PATHS == 0 && tree.is_worth_looking_ahead() {
                    let paths: Vec<&str> = ahead.by_ref().take(Tree::LOOK_AHEAD_PATHS).flatten().collect();
                    tree.look_ahead(&paths);
                }
                let outcome = is_new.then(|| apply_command(tree, &command, removed_at_once));
                tell(tree, EntryPart::Command { command: &command, outcome: outcome.as_ref() });
            }
        }
        return;
    };
    match &configuration {
        ConfigurationEntry::Refounding { cluster, members, .. } => tree.refound_ensemble(*cluster, members),
        ConfigurationEntry::Level(raised) => tree.raise_level(raised),
        ConfigurationEntry::Groups { count, founders, replicas } => {
            found_groups(tree, *count, founders, *replicas);
        }
        ConfigurationEntry::Roster(roster) => {
            tree.follow_roster(roster);
        }
        ConfigurationEntry::Promotion { roster } => {
            tree.promote(*roster);
        }
        ConfigurationEntry::Founding(_) | ConfigurationEntry::Change(_) => {}
    }
    tell(tree, EntryPart::Membership(&format!("{configuration:?}")));
}

/// Notes groups in the state of the home group, which these members found. At a level without groups there are none, on any member; nor are there
/// while members are being changed, since the groups would keep those from before.
pub(crate) fn found_groups(tree: &mut Tree, count: u32, founders: &Membership, replicas: u32) {
    let is_changing = tree.ensemble().is_some_and(|ensemble| ensemble.target.is_some());
    let needed = if replicas == 0 { FeatureLevel::SEVERAL_GROUPS } else { FeatureLevel::HOSTS };
    if tree.feature_level() >= needed && !is_changing {
        let numbers = |ids: &[u64]| ids.iter().filter_map(|id| member_number(*id)).collect();
        let (voters, learners) = (numbers(&founders.voters), numbers(&founders.learners));
        tree.found_groups_with(count, GroupFounders { voters, learners }, replicas);
    }
}

/// Applies the commands of an entry as `apply_offline` does, for as long as `goes_on` says so of the next one. False if it has said no.
pub fn apply_while(
    tree: &mut Tree,
    entry: &LogEntry,
    goes_on: &mut dyn FnMut(&Tree, &Command<'_>) -> bool,
) -> bool {
    if entry.is_about_ensemble() {
        apply_offline(tree, entry);
        return true;
    }
    tree.begin_entry(floor(&entry.payload));
    for batch in batches(&entry.payload) {
        let is_new = batch.number == Batch::UNNUMBERED || tree.admit(batch.origin, batch.number);
        for command in batch.commands().filter(|_| is_new) {
            if !goes_on(tree, &command) {
                return false;
            }
            apply_command(tree, &command, REMOVED_AT_ONCE);
        }
    }
    true
}

/// Tells of the parts of an entry that cannot be applied, since the state before it is not known.
pub fn tell_unapplied(entry: &LogEntry, tell: &mut dyn FnMut(EntryPart<'_, '_>)) {
    match ConfigurationEntry::decode(&entry.payload) {
        Some(configuration) => tell(EntryPart::Membership(&format!("{configuration:?}"))),
        None => {
            for command in batches(&entry.payload).flat_map(|batch| batch.commands()) {
                tell(EntryPart::Command { command: &command, outcome: None });
            }
        }
    }
}

fn apply_command<'a>(tree: &mut Tree, command: &Command<'a>, removed_at_once: usize) -> Outcome<'a> {
    let refusal = match tree.long_removal(command, removed_at_once) {
        Some(removal) => removal.run_alone(tree).err(),
        None => None,
    };
    match refusal {
        Some(error) => tree.refuse(error),
        None => tree.apply(command),
    }
}
