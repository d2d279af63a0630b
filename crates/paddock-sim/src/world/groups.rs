//! Groups beside the home group in the world: what members say in them is checked, and commands are submitted, since no client does.

use paddock_chance::Chance;
use paddock_member::open_message;
use paddock_proto::jute::Writer;
use paddock_proto::{AclList, GroupsCommand, IdList, MemberNumber, OpCode, SessionId, Zxid};
use paddock_replica::testing::MessageFacts;
use paddock_replica::{
    GroupStanding, Input, LogEntry, Membership, Replicated, leading_order, member_number, raft_id,
};
use paddock_tree::{Command, FeatureLevel, placement};

use super::{World, WorldEvent};
use crate::checks::Checked;
use crate::machine::Machine;
use crate::machine::process::SimProcess;
use crate::names;
use crate::numbering::machine_of;

/// A member submits commands after one tick in this number.
const SUBMITS_ONE_IN: u64 = 8;
/// An operator adds a split point, or takes one away, after one tick in this number.
const CHANGES_ONE_IN: u64 = 60;
/// Sessions and znodes of the commands in a group.
const SESSIONS: u64 = 4;
const ZNODES: u64 = 20;

impl World {
    fn has_groups(&self) -> bool {
        self.plan.settings.groups > 1
    }

    /// A member's turn is over: what it has applied in its groups, and who leads them.
    pub(super) fn look_at_groups(&mut self, member: u8, committed: Vec<(u32, LogEntry)>) -> Checked {
        if !self.has_groups() {
            return Ok(());
        }
        let now_ms = self.now.0 as i64 / 1000;
        if !self.plan.changes_members() && !self.plan.settings.is_observer(member) {
            let wall_ms = self.machines[usize::from(member) - 1].clock.now(self.now).wall_ms;
            self.checks.groups.note_clock(member, wall_ms - now_ms);
        }
        for (group, entry) in &committed {
            self.trace.note(
                self.now,
                format_args!(
                    "{member} applies entry {} of term {} of group {group}",
                    entry.index, entry.term
                ),
            );
            if let Some(roster) = entry.roster() {
                self.trace.note(self.now, format_args!("group {group} comes to roster {roster}"));
            }
            let is_new = entry.index == self.checks.groups.last_index(*group) + 1;
            self.checks.groups.committed(member, *group, entry, now_ms)?;
            if is_new {
                self.follow_group(*group, entry);
            }
            self.checks.streams.committed(*group, entry)?;
        }
        let has_begun = |process: &SimProcess| {
            process.group_standings().iter().any(|group| group.number > 0 && group.last_entry > 0)
        };
        if self.founders_end.is_some()
            && self.machine(member).process.as_ref().is_some_and(has_begun)
            && let Some((after, down)) = self.founders_end.take()
        {
            self.plan_in(after, WorldEvent::PowerCutOfAll { down });
        }
        let World { machines, checks, .. } = self;
        let Some(process) = &machines[usize::from(member) - 1].process else { return Ok(()) };
        for standing in process.group_standings().iter().filter(|standing| standing.number > 0) {
            checks.groups.check_standing(member, standing)?;
        }
        for (group, _) in &committed {
            if let Some(found) = process.group_digest(*group) {
                checks.groups.check_digest(member, *group, found)?;
            }
            if let Some(found) = process.group_membership(*group) {
                checks.groups.has_membership(*group, found);
            }
            if let (Some(spread), Some(found)) = (&checks.spread, process.look_at_group(*group, zxid_at)) {
                checks.groups.check_zxid((member, *group), found, spread)?;
            }
            let received = |state: &Replicated| (state.applied().0, state.tree().received_items());
            if let Some(found) = process.look_at_group(*group, received) {
                checks.streams.check_group(member, *group, found)?;
            }
        }
        checks.streams.check_home(member, process.state.read().tree().streams())?;
        let voters = checks.truth.model().memberships().into_iter().flat_map(|[voters, _]| voters);
        let voters: Vec<MemberNumber> = voters.collect();
        if voters.is_empty() { Ok(()) } else { checks.groups.check_voters(&voters) }
    }

    /// A message of a member about a group beside the home group leaves it.
    pub(super) fn look_at_group_letter(&mut self, member: u8, to: u8, bytes: &[u8]) -> Checked {
        let Some((group, message)) = open_message(bytes.to_vec()).filter(|(group, _)| *group > 0) else {
            return Ok(());
        };
        let MessageFacts { campaign, vote, .. } = MessageFacts::of(&message);
        let machine = &self.machines[usize::from(member) - 1];
        let standings = machine.process.as_ref().map(|process| process.group_standings()).unwrap_or_default();
        let standing = standings.iter().find(|standing| standing.number == group);
        let last = standing.map(|standing| standing.last_entry).filter(|_| !machine.blame.is_damaged);
        if let Some((term, _)) = campaign {
            self.checks.groups.check_vote((member, group), term, member, last)?;
        }
        if let Some(term) = vote {
            self.checks.groups.check_vote((member, group), term, to, last)?;
        }
        Ok(())
    }

    /// Now and then a member submits commands to one of its groups.
    pub(super) fn submit_to_groups(&mut self, member: u8) {
        let groups = u64::from(self.plan.settings.groups);
        if groups == 1 || !self.is_busy() || self.machine(member).blame.is_foreign {
            return;
        }
        let mut dice = Chance::new(self.chance.word());
        if self.plan.settings.moves_slots {
            return self.move_slots(member, &mut dice);
        }
        if dice.one_in(CHANGES_ONE_IN) {
            let path = *dice.pick(&names::SPLIT_POINTS);
            let split = GroupsCommand::Split { path };
            let command = if dice.one_in(2) { split } else { GroupsCommand::Join { path } };
            let mut body = Vec::new();
            command.encode(&mut body);
            if let Some(process) = self.machine(member).process.as_mut() {
                process.put(Input::BetweenGroups(body));
            }
        }
        if !dice.one_in(SUBMITS_ONE_IN) {
            return;
        }
        let group = dice.between(1, groups - 1) as u32;
        let session = SessionId(1 + dice.below(SESSIONS) as i64);
        let mut body = Vec::new();
        // Nothing is there: where slots do not move, all znodes are in the home group, and so are those that are watched.
        body.put_string(&format!("/none/{}", dice.below(ZNODES)));
        body.put_buffer(Some(&dice.word().to_be_bytes()));
        body.extend_from_slice(AclList::OPEN.wire());
        body.put_i32(0);
        let ids = IdList::NONE;
        let (mut begin, mut create) = (Vec::new(), Vec::new());
        Command::encode(session, 0, ids, OpCode::CreateSession, &10_000_i32.to_be_bytes(), &mut begin);
        Command::encode(session, 0, ids, OpCode::Create, &body, &mut create);
        if let Some(process) = self.machine(member).process.as_mut() {
            process.submit_to_group(group, &begin);
            process.submit_to_group(group, &create);
        }
    }

    /// Membership that all groups have to have in the end.
    fn wanted_membership(&self) -> Membership {
        let ids = |members: Vec<MemberNumber>| members.into_iter().map(raft_id).collect();
        if let Some([voters, observers]) = self.checks.truth.model().memberships().into_iter().next() {
            return Membership::new(ids(voters), ids(observers));
        }
        let numbering = self.plan.settings.numbering;
        let is_observer = |member: &u8| self.plan.settings.is_observer(*member);
        let (observers, voters) = (1..=self.plan.settings.members).partition::<Vec<u8>, _>(is_observer);
        let numbers =
            |machines: Vec<u8>| machines.into_iter().map(|machine| numbering.number(machine)).collect();
        Membership::new(ids(numbers(voters)), ids(numbers(observers)))
    }

    /// The members that a group is to have.
    fn wanted_in(&self, group: u32) -> Membership {
        let wanted = self.wanted_membership();
        let replicas = self.plan.settings.replicas;
        if group == 0 || replicas == 0 {
            return wanted;
        }
        Membership::new(self.placed(group, replicas), Vec::new())
    }

    /// True if a group has a majority of its voters without a member.
    pub(super) fn can_spare(&self, group: u32, id: u64) -> bool {
        let voters = self.wanted_in(group).voters;
        let others = voters.iter().filter(|voter| **voter != id).count();
        others > voters.len() / 2
    }

    /// The first of the voters from a group's place on, around.
    fn placed(&self, group: u32, count: u32) -> Vec<u64> {
        let wanted = self.wanted_membership();
        let voters: Vec<_> = wanted.voters.iter().filter_map(|id| member_number(*id)).collect();
        placement(&voters, group, count).into_iter().map(raft_id).collect()
    }

    /// True if a machine is to have a replica of a group.
    fn has_replica(&self, machine: u8, group: u32) -> bool {
        let id = raft_id(self.plan.settings.numbering.number(machine));
        self.plan.settings.replicas == 0 || group == 0 || self.wanted_in(group).voters.contains(&id)
    }

    /// Something in the groups that is not yet as it should be.
    pub(super) fn unsettled_groups(&self) -> Option<String> {
        let level = FeatureLevel(self.checks.truth.model().feature_level());
        let are_possible = level >= FeatureLevel::SEVERAL_GROUPS;
        let groups = if are_possible { self.plan.settings.groups } else { 1 };
        if self.checks.groups.count() != groups {
            return Some(format!("there are {} groups of {groups}", self.checks.groups.count()));
        }
        let numbering = self.plan.settings.numbering;
        let present: Vec<u64> =
            self.members().map(|machine| raft_id(numbering.number(machine.number))).collect();
        for machine in self.members() {
            let number = machine.number;
            let standings = machine.process.as_ref().map(|process| process.group_standings());
            let standings = standings.unwrap_or_default();
            let own = (0..groups).filter(|group| self.has_replica(number, *group)).count();
            if standings.len() != own {
                return Some(format!("member {number} has {} groups of {own}", standings.len()));
            }
            for standing in standings.iter().filter(|standing| standing.number > 0) {
                let GroupStanding { number: group, leader, applied, is_silent, .. } = *standing;
                let wanted = self.wanted_in(group);
                let first =
                    self.placed(group, 1).first().copied().filter(|_| self.plan.settings.replicas > 0);
                let order = leading_order(group, &wanted.voters, first);
                let expected = order.into_iter().find(|id| present.contains(id));
                let Some(expected) = expected else { continue };
                if leader.map(raft_id) != Some(expected) {
                    let leader = leader.map(machine_of);
                    return Some(format!(
                        "member {number} follows {leader:?} in group {group}, and not {expected}"
                    ));
                }
                let last = self.checks.groups.last_index(group);
                if applied != last {
                    return Some(format!(
                        "member {number} has applied {applied} entries of {last} in group {group}"
                    ));
                }
                if is_silent {
                    return Some(format!("member {number} has no say in group {group}"));
                }
                let found = machine.process.as_ref().and_then(|process| process.group_membership(group));
                if let Some((_, found)) = found.filter(|(_, found)| *found != wanted) {
                    return Some(format!(
                        "member {number} has {found:?} in group {group}, and not {wanted:?}"
                    ));
                }
            }
            if groups > 1
                && level >= FeatureLevel::SPLIT_POINTS
                && let Some(what) = self.unsettled_streams(machine)
            {
                return Some(what);
            }
        }
        None
    }

    /// Something that the groups of a member do not yet know of each other.
    fn unsettled_streams(&self, machine: &Machine) -> Option<String> {
        let (number, process) = (machine.number, machine.process.as_ref()?);
        let state = process.state.read();
        let home = state.tree();
        for group in 1..self.plan.settings.groups {
            let stream = home.streams().to_group(group);
            if let Some(stream) = stream.filter(|stream| stream.acknowledged() < stream.last()) {
                return Some(format!(
                    "member {number} has unacknowledged items to group {group}: {stream:?}"
                ));
            }
            let expected = |path: &str| home.split_points().get(path).and(home.acl(path));
            let differs = |state: &Replicated| {
                names::SPLIT_POINTS.into_iter().find(|path| state.tree().acl(path) != expected(path))
            };
            if let Some(path) = process.look_at_group(group, differs).flatten() {
                let found = process.look_at_group(group, |state| {
                    let tree = state.tree();
                    format!(
                        "{:?} with {:?}",
                        tree.acl(path),
                        tree.children_as_of(path, Zxid(i64::MAX)).map(|children| children.names)
                    )
                });
                let expected = expected(path);
                return Some(format!(
                    "member {number} has {path} in group {group} with {found:?}, and at home {expected:?}"
                ));
            }
        }
        None
    }
}

/// Entry and zxid of a state.
fn zxid_at(state: &Replicated) -> (u64, Zxid) {
    (state.applied().0, state.tree().zxid())
}
