//! Commands between groups: split points that this member's configuration asks for, and what is put into a group's log for another group.

use paddock_proto::{GroupsCommand, IdList, SessionId};
use paddock_state::Now;
use paddock_tree::{Command, FeatureLevel, SplitPaths, Tree};

use super::Replica;
use crate::queued_item::QueuedItem;

impl Replica<'_> {
    /// The term in which this member leads the group, if it can put commands between groups into the log. It need not know yet what former leaders have
    /// put there.
    pub fn joining_term(&self) -> Option<u64> {
        let term = self.group.consensus.leadership().term;
        let may_announce = self.group.leading.is_some()
            && self.group.consensus.takes_proposals()
            && !self.group.read_only.is_active()
            // Items may be of a level to which the group is yet to be raised.
            && self.group.applied.level >= self.presence.ensemble_level.max(FeatureLevel::SPLIT_POINTS);
        may_announce.then_some(term)
    }

    /// Puts a command between groups into the log, if this member leads.
    pub fn announce_between_groups(&mut self, command: &GroupsCommand<'_>) {
        let mut body = Vec::with_capacity(command.encoded_len_about());
        command.encode(&mut body);
        self.announce(GroupsCommand::OP, &body);
    }

    /// Submits a command between groups, which the leader puts into the log, whichever member that is.
    pub fn submit_between_groups(&mut self, command: &GroupsCommand<'_>) {
        let mut body = Vec::new();
        command.encode(&mut body);
        self.order_between_groups(&body);
    }

    /// Submits a command that this member's operator orders. One that comes while nothing can be written is dropped.
    pub(super) fn order_between_groups(&mut self, body: &[u8]) {
        if !self.group.read_only.is_active() {
            let mut command = Vec::new();
            Command::encode(SessionId::NONE, 0, IdList::NONE, GroupsCommand::OP, body, &mut command);
            self.group.requests.submit(&command, QueuedItem::Abandoned);
        }
    }

    /// Takes the split points from the home group's state.
    pub(super) fn follow_split_points(&mut self, tree: &Tree) {
        let paths = tree.split_points().iter().map(|(path, _)| path.to_owned());
        self.group.applied.split_points = paths.collect();
    }

    /// Adds the split points that this member's configuration asks for, once in each term in which it leads the home group and there are several
    /// groups. None is ever taken away.
    pub(super) fn add_split_points(&mut self, now: Now) {
        let wanted = &self.presence.options.split_points;
        let are_wanted = !wanted.is_empty() && self.group.applied.groups > 1;
        // Behind the first entry of its own a leader knows all that was ever said.
        if !are_wanted || self.joining_term() != Some(self.group.applied.term()) {
            return;
        }
        if !self.group.leading.as_mut().is_some_and(|leading| leading.begins_splitting()) {
            return;
        }
        let known: Vec<&str> = self.group.applied.split_points.iter().map(String::as_str).collect();
        let missing: Vec<String> =
            wanted.iter().filter(|path| !known.contains(path)).map(str::to_owned).collect();
        let may_be = |path: &String| SplitPaths::of(known.iter().copied().chain([path.as_str()]));
        let (possible, nested): (Vec<String>, Vec<String>) =
            missing.into_iter().partition(|path| may_be(path).is_ok());
        for path in nested {
            tracing::error!(
                path,
                "split point of the configuration ignored: it lies above or below one that there is"
            );
        }
        for path in &possible {
            tracing::info!(path, "adding a split point");
            self.announce_between_groups(&GroupsCommand::Split { path });
        }
        self.place_announcements(now);
    }
}
