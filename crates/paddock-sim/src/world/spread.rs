//! Znodes that are spread over groups in the world: an operator moves slots, and the run is judged when it is over.

use paddock_chance::Chance;
use paddock_model::dump;
use paddock_proto::GroupsCommand;
use paddock_replica::{Input, LogEntry};
use paddock_tree::{SLOTS, slot_of};

use super::World;
use crate::checks::Checked;
use crate::checks::one_order::states::MemberStates;
use crate::machine::process::SimProcess;
use crate::names;

/// An operator moves slots after one tick in this number, of all members together.
const MOVES_ONE_IN: u64 = 40;
/// Or adds a split point, or takes one away.
const CHANGES_ONE_IN: u64 = 60;

impl World {
    /// A group beside the home group has come to this entry.
    pub(super) fn follow_group(&mut self, group: u32, entry: &LogEntry) {
        let checks = &mut self.checks;
        let Some(spread) = &mut checks.spread else { return };
        let writes = spread.committed(group, entry);
        writes.iter().for_each(|write| checks.truth.follow_elsewhere(write));
    }

    /// Now and then an operator moves slots of a split point, through any member.
    pub(super) fn move_slots(&mut self, member: u8, dice: &mut Chance) {
        let path = *dice.pick(&names::SPLIT_POINTS);
        let command = if dice.one_in(MOVES_ONE_IN) {
            let name = *dice.pick(&["x", "y", "z", "u", "v", "w"]);
            let slot = slot_of(name).unwrap_or_default();
            let (first, last) = match dice.below(4) {
                0 => (0, slot),
                1 => (slot, SLOTS - 1),
                _ => (slot, slot),
            };
            let group = dice.between(1, u64::from(self.plan.settings.groups) - 1) as u32;
            GroupsCommand::Move { path, first, last, group }
        } else if dice.one_in(CHANGES_ONE_IN) {
            let split = GroupsCommand::Split { path };
            if dice.one_in(2) { split } else { GroupsCommand::Join { path } }
        } else {
            return;
        };
        let now = self.now;
        self.trace.note(now, format_args!("an operator asks {member} for {command:?}"));
        let mut body = Vec::new();
        command.encode(&mut body);
        if let Some(process) = self.machine(member).process.as_mut() {
            process.put(Input::BetweenGroups(body));
        }
    }

    /// The run is over.
    pub(super) fn judge_spread(&mut self) -> Checked {
        let World { clients, checks, .. } = self;
        let Some(spread) = &mut checks.spread else { return Ok(()) };
        for client in clients.iter().filter(|client| client.conn().is_some() && client.is_content()) {
            client.note_rest(&mut spread.history);
        }
        let order = spread.order(&names::SPLIT_POINTS)?;
        if let Err(violation) = spread.judge(&order) {
            for (position, placed) in (1..).zip(order.writes()) {
                self.trace.note(self.now, format_args!("{position}: {placed}"));
            }
            return Err(violation);
        }
        let processes: Vec<&SimProcess> =
            self.members().filter_map(|machine| machine.process.as_ref()).collect();
        for machine in self.members() {
            let process = machine.process.as_ref().expect("a settled member runs");
            let state = process.state.read();
            // A group that the member does not have is looked at where it is.
            let groups = (1..self.plan.settings.groups).filter_map(|group| {
                let dumped = |process: &SimProcess| process.look_at_group(group, |state| dump(state.tree()));
                let here = dumped(process);
                Some((group, here.or_else(|| processes.iter().find_map(|process| dumped(process)))?))
            });
            let states = MemberStates { home: state.tree(), groups: groups.collect() };
            states.check(machine.number, &order)?;
        }
        let (count, spread) = (order.len(), order.writes().filter(|placed| placed.group > 0).count());
        let now = self.now;
        self.trace
            .note(now, format_args!("{count} commands stand in one order, {spread} of them of other groups"));
        Ok(())
    }
}
