//! Twins: second processes with the number of a member that runs, started somewhere else with a copy of its disk.
//!
//! Whatever is said to the member reaches the twin, too, and what the twin says comes in the member's name. The others have heard
//! the member first, so they hear nothing of the twin: it never has a say. It is gone before that would change, which is when a process
//! ends that they have heard, or when one begins that has heard no member yet.

use paddock_chance::Chance;
use paddock_replica::raft_id;
use paddock_replica::{Input, Role};

use super::{World, WorldEvent};
use crate::checks::{Checked, ensure};
use crate::machine::process::{NextWork, SimProcess};
use crate::machine::shell::RoundOutput;
use crate::machine::twin::Twin;
use crate::time::SimDuration;

const TICK: SimDuration = SimDuration::millis(paddock_member::Member::TICK_MS);
const CHECKER: &str = "isolation";

impl World {
    /// Starts a twin of a member, unless there is one, or a member has not been heard by all others yet.
    pub(super) fn start_twin(&mut self, member: u8, span: SimDuration, dice: u64) -> Checked {
        let (now, settings) = (self.now, self.plan.settings.clone());
        let mut machines = self.machines.iter();
        let are_all_heard =
            machines.len() > 1 && machines.all(|one| one.process.is_some() && one.is_heard(now));
        if self.twin.is_some() || !are_all_heard || self.leaders().count() != 1 {
            return Ok(());
        }
        let mut chance = Chance::new(dice);
        let machine = self.machine(member);
        let (disk, local) = (machine.disk.copy(chance.word()), machine.now(now));
        let config = settings.config(member, chance.word(), machine.build);
        let started = SimProcess::start(&disk, config, &settings, local);
        self.trace.note(now, format_args!("{member} has a twin: {:?}", started.as_ref().map(drop)));
        ensure!(started.is_ok(), CHECKER, "the twin of member {member} does not start: {started:?}");
        let Ok(process) = started else { return Ok(()) };
        self.twin = Some(Twin { member, ticks: span.0 / TICK.0, process, disk });
        self.plan_in(TICK, WorldEvent::TwinTicks);
        Ok(())
    }

    /// The twin is gone. What it has said and has not arrived yet is lost with it.
    pub(super) fn end_twin(&mut self) {
        if let Some(twin) = self.twin.take() {
            self.trace.note(self.now, format_args!("the twin of {} ends", twin.member));
            self.network.reset(twin.member);
        }
    }

    pub(super) fn twin_ticks(&mut self) -> Checked {
        let Some(twin) = &mut self.twin else { return Ok(()) };
        twin.ticks = twin.ticks.saturating_sub(1);
        if twin.ticks == 0 {
            self.end_twin();
            return Ok(());
        }
        twin.process.tick_is_due();
        self.plan_in(TICK, WorldEvent::TwinTicks);
        self.twin_works()
    }

    /// A message to a member reaches its twin as well.
    pub(super) fn copy_to_twin(&mut self, from: u8, to: u8, bytes: &[u8]) -> Checked {
        let Some(twin) = self.twin.as_mut().filter(|twin| twin.member == to) else { return Ok(()) };
        twin.process.put(Input::Peer {
            from: raft_id(self.plan.settings.numbering.number(from)),
            bytes: bytes.to_vec(),
        });
        self.twin_works()
    }

    fn twin_works(&mut self) -> Checked {
        let Some(twin) = &mut self.twin else { return Ok(()) };
        let (member, now) = (twin.member, self.now);
        let local = self.machines[usize::from(member) - 1].now(now);
        let mut round_output = RoundOutput::default();
        let mut next = twin.process.turn(local, &twin.disk, &mut round_output, &mut ());
        while matches!(next, Ok(NextWork::Synced)) {
            twin.disk.complete_sync();
            next = twin.process.turn(local, &twin.disk, &mut round_output, &mut ());
        }
        ensure!(next.is_ok(), CHECKER, "the twin of member {member} stops: {next:?}");
        let role = twin.process.role();
        ensure!(
            matches!(role, Role::Looking | Role::ReadOnly),
            CHECKER,
            "the twin of member {member} is {role:?}, beside the member"
        );
        for (to, bytes) in round_output.letters {
            self.send_letter(member, to, bytes);
        }
        Ok(())
    }
}
