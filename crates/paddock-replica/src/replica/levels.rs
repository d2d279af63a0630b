//! The ensemble's feature level: raised by the leader when all members know more, and asked for what needs it.

use paddock_proto::{MemberNumber, Reconfig, narrow_member_number};
use paddock_state::Now;
use paddock_tree::{FeatureLevel, RaisedLevel, Tree, parse_members};

use super::Replica;
use crate::configuration::ConfigurationEntry;
use crate::raft_id::all_logged;

/// Error of a change of members that names a number which the ensemble may not use yet.
const TOO_WIDE: &str = "change of members refused: the number 0 and numbers above 255 need a feature level that not all members have; \
                        upgrade those that lack it";

impl Replica<'_> {
    /// Proposes the level that all members know, if this leader knows all that was ever said, and the level is higher than the
    /// ensemble's.
    pub(super) fn raise_level(&mut self, now: Now) {
        let own = self.presence.options.member;
        let consensus = &self.group.consensus;
        let level = self.presence.levels.common(own, consensus.membership(), now.monotonic_ms);
        if level <= self.group.applied.level {
            return;
        }
        let is_named =
            self.group.membership.has_target() || self.presence.options.founding.members.is_empty();
        // Behind the first entry of its own a leader knows all changes of members but for one that is on its way.
        let knows_all = self.group.applied.term() == consensus.leadership().term && !consensus.is_changing();
        if is_named && knows_all {
            self.propose_level(level);
        }
    }

    /// Proposes a level, unless this leader has proposed one as high.
    fn propose_level(&mut self, level: FeatureLevel) {
        if self.group.leading.as_mut().is_some_and(|leading| leading.begins_level(level)) {
            let entry = ConfigurationEntry::Level(RaisedLevel::known(level));
            self.group.consensus.propose(entry.encode());
        }
    }

    /// The level has risen, on all members with the same entry.
    pub(super) fn apply_level(&mut self, raised: &RaisedLevel, tree: &mut Tree) {
        let known = self.presence.options.known_level;
        assert!(raised.level <= known, "a level that is not known was let into the log: {raised:?}");
        // The other groups follow the home group.
        if raised.level > tree.feature_level() && self.group.is_home() {
            tracing::info!(
                from = tree.feature_level().0,
                to = raised.level.0,
                "feature level raised: all members know it, and none may run a program from before release {}",
                raised.since
            );
        }
        tree.raise_level(raised);
        self.group.applied.level = tree.feature_level();
        if self.group.is_home() {
            self.presence.ensemble_level = self.group.applied.level;
        }
    }

    /// Raises the level of a group that is not the home group to that of the ensemble, if this member leads it: every member has it.
    pub(super) fn follow_ensemble_level(&mut self) {
        let level = self.presence.ensemble_level;
        let consensus = &self.group.consensus;
        let knows_all = self.group.applied.term() == consensus.leadership().term;
        // A lower level has nothing that a state beside the home group's needs.
        if level >= FeatureLevel::SPLIT_POINTS
            && level > self.group.applied.level
            && knows_all
            && consensus.takes_proposals()
        {
            self.propose_level(level);
        }
    }

    /// True if the ensemble may have members with the numbers in these lines. If not, that is logged.
    pub(super) fn has_level_for(&self, now: Now, lines: &str) -> bool {
        let present = self.group.membership.settled_members();
        let is_there = |id: MemberNumber| present.iter().any(|member| member.id == id);
        let is_new = |id: MemberNumber| narrow_member_number(id) == 0 && !is_there(id);
        let needs_it = parse_members(lines).is_some_and(|all| all.iter().any(|member| is_new(member.id)));
        let has_it = self.group.applied.level >= FeatureLevel::WIDE_MEMBER_NUMBERS || !needs_it;
        if !has_it {
            self.tell_lacking(now);
        }
        has_it
    }

    /// Logs why a change of members was refused, if it is for want of the level.
    pub(super) fn explain_refusal(&self, now: Now, asked: &Reconfig<'_>, tree: &Tree) {
        if tree.feature_level() < FeatureLevel::WIDE_MEMBER_NUMBERS && tree.lacks_level_for(asked) {
            self.tell_lacking(now);
        }
    }

    fn tell_lacking(&self, now: Now) {
        let needed = FeatureLevel::WIDE_MEMBER_NUMBERS;
        let (own, membership) = (self.presence.options.member, self.group.consensus.membership());
        let lacking = self.presence.levels.lacking(needed, own, membership, now.monotonic_ms);
        tracing::error!(
            level = self.group.applied.level.0,
            needed = needed.0,
            lacking = ?all_logged(&lacking),
            "{TOO_WIDE}"
        );
    }
}
