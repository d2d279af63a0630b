//! Members of groups beside the home group: they follow the home group's rosters.
//!
//! The leader of a group proposes the newest roster that its member has applied in the home group. A leader whose home group lags proposes none that is
//! older than the group's, and an entry with an older one changes nothing. From the roster in its own state the group goes on as the home group does from
//! the ensemble in its state, one step at a time (`membership_change.rs`).

use paddock_tree::{Roster, Tree};

use super::Replica;
use crate::configuration::ConfigurationEntry;
use crate::message::PeerMessage;
use crate::rosters::RosterReport;

/// Ticks after which the leader of a group tells again how far the group is.
const TELL_TICKS: u32 = 5;

impl Replica<'_> {
    /// Proposes the newest roster, if this member leads and its group has not come to it.
    pub(super) fn follow_roster(&mut self) {
        let newer = self.presence.rosters.newer_for(self.group.number, self.group.membership.roster());
        let Some(roster) = newer.filter(|_| self.group.consensus.takes_proposals()) else { return };
        if self.group.leading.as_mut().is_some_and(|leading| leading.begins_roster(roster.number)) {
            self.group.consensus.propose(ConfigurationEntry::Roster(roster.clone()).encode());
        }
    }

    /// Tells all members how far this leader's group is with the roster, while members change.
    pub(super) fn tell_roster(&mut self) {
        let Some(leading) = self.group.leading.as_mut().filter(|_| self.presence.rosters.is_told()) else {
            return;
        };
        let (is_ready, progress) = self.group.membership.progress();
        let report = RosterReport { number: self.group.membership.roster(), is_ready, progress };
        self.presence.rosters.hear(self.group.number, report);
        let ticks = match leading.told_roster {
            Some((told, ticks)) if (told.number, told.is_ready) == (report.number, is_ready) => ticks + 1,
            _ => TELL_TICKS,
        };
        leading.told_roster = Some((report, ticks % TELL_TICKS));
        if ticks < TELL_TICKS {
            return;
        }
        if self.presence.rosters.is_placed(self.group.number) {
            // The leader of the home group may have no replica of this one.
            self.presence.rosters.pass_on(self.group.number, report);
        } else {
            self.tell_others(&PeerMessage::Roster(report));
        }
    }

    /// The home group tells all members what leaders of groups on this member say that not all members have.
    pub(super) fn pass_reports_on(&mut self) {
        for (group, report) in self.presence.rosters.take_passed_on() {
            self.tell_others(&PeerMessage::RosterOf { group, report });
        }
    }

    /// The home group's state says which groups this member is to have: it makes those that it lacks.
    pub(super) fn follow_placement(&mut self, tree: &Tree) {
        if tree.groups().have_placement() {
            self.note_own_groups(1, tree, None);
        }
    }

    /// A group beside the home group has come to the entry with a roster.
    pub(super) fn apply_roster(&mut self, roster: &Roster, tree: &mut Tree) {
        if self.group.is_home() || !tree.follow_roster(roster) {
            return;
        }
        tracing::info!(
            group = self.group.number,
            roster = roster.number,
            "Raft group follows a change of members"
        );
        self.take_roster(tree);
    }

    /// Takes the members to be from the state of a group beside the home group.
    pub(super) fn take_roster(&mut self, tree: &Tree) {
        if tree.followed_roster() > 0 {
            let (own, applied) = (self.presence.options.member, self.group.applied.index());
            self.group.membership.follow_roster(own, tree, applied);
        }
    }

    /// Proposes in the home group that votes change: all groups are prepared.
    pub(super) fn propose_promotion(&mut self) {
        if let Some(roster) = self.presence.rosters.newer_than(0) {
            let entry = ConfigurationEntry::Promotion { roster: roster.number };
            self.group.consensus.propose(entry.encode());
        }
    }

    /// The home group has come to the entry that says that votes change.
    pub(super) fn apply_promotion(&mut self, roster: u64, tree: &mut Tree) {
        if self.group.is_home() && tree.promote(roster) {
            tracing::info!("all Raft groups are prepared for the change of members: votes change");
            self.follow_ensemble(tree);
        }
    }

    /// A tick of the home group's leader while members change: it waits for the other groups.
    pub(super) fn await_groups(&mut self) {
        let is_prepared = self.group.membership.progress().0 || self.group.membership.is_voting();
        if !self.presence.rosters.is_told() || !is_prepared {
            return;
        }
        self.presence.rosters.tick_prepared();
        if self.presence.rosters.is_time_to_tell() {
            let groups: Vec<u32> = self.presence.rosters.late().collect();
            tracing::warn!(
                ?groups,
                "change of members waits for Raft groups: they have no quorum, or get no further"
            );
        }
    }
}
