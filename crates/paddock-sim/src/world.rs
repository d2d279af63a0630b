//! The world: machines, clients, what is between them, and what is to happen. One thing happens at a time; nothing happens
//! that was not planned by something that happened before.

mod builds;
mod clients;
mod groups;
mod healing;
mod machines;
mod meanwhile;
mod nemesis;
mod spread;
mod twins;

use std::collections::BTreeMap;

use paddock_chance::Chance;
use paddock_state::ConnId;

use crate::checks::{Checked, Checks, Violation, ensure};
use crate::client::{ClientLoad, SimClient};
use crate::faults::SlowPart;
use crate::machine::Machine;
use crate::machine::twin::Twin;
use crate::network::Network;
use crate::plan::RunPlan;
use crate::queue::Queue;
use crate::time::{SimDuration, Time};
use crate::trace::{Telling, Trace};
use clients::Wire;
use healing::HealingStage;

/// A run has no end if it has this many steps.
const STEPS_MAX: u64 = 5_000_000;

/// Time of the first upgrade of a machine.
const FIRST_UPGRADE: SimDuration = SimDuration::seconds(3);

#[derive(Debug)]
pub(crate) enum WorldEvent {
    /// A machine's process is to be started, if it is not running.
    Start {
        member: u8,
    },
    /// A process does something by itself. It concerns only the process of that life.
    Process {
        member: u8,
        life: u64,
        what: Act,
    },
    Letter {
        from: u8,
        to: u8,
        resets: u64,
        bytes: Vec<u8>,
    },
    /// The next one from a client arrives.
    Frame {
        conn: ConnId,
    },
    /// The next one to a client arrives.
    Packet {
        conn: ConnId,
    },
    Client {
        number: usize,
    },
    /// The next fault of the plan.
    Fault {
        number: usize,
    },
    /// A pause of a machine ends.
    Thaw {
        member: u8,
    },
    /// A tick of the twin, if there is one.
    TwinTicks,
    /// There is room again on a full disk.
    Room {
        member: u8,
    },
    /// A machine is to be upgraded, or an upgrade to be taken back.
    Builds,
    /// A member that has become slow while it led should have handed the lead over. `handovers` are those of before.
    LookAtSlowLeader {
        member: u8,
        part: SlowPart,
        handovers: u64,
    },
    /// The leader ends.
    EndLeader,
    PowerCutOfAll {
        down: SimDuration,
    },
    /// Faults end, and then one thing after the other must become right.
    Stage,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The engine goes on.
    Work,
    Tick,
    /// A worker looks into its mailbox.
    Mail {
        worker: usize,
    },
    /// Connections whose turns were cut short go on.
    Turns,
    /// The workers report who was heard.
    Touches,
    /// The snapshot's thread goes on.
    Walk,
    KeepHouse,
    /// The disk is done.
    Done,
}

/// Account of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) violation: Option<Violation>,
    pub(crate) steps: u64,
    pub(crate) trace: u64,
    pub(crate) entries: u64,
    pub(crate) writes: u64,
    pub(crate) faults: u64,
}

pub(crate) struct World {
    plan: RunPlan,
    now: Time,
    steps: u64,
    queue: Queue<WorldEvent>,
    chance: Chance,
    trace: Trace,
    network: Network,
    machines: Vec<Machine>,
    /// Events that have happened to machines since they were paused.
    frozen: BTreeMap<u8, Vec<WorldEvent>>,
    clients: Vec<SimClient>,
    wires: BTreeMap<ConnId, Wire>,
    conns: u64,
    checks: Checks,
    /// A second process with the number of a member.
    twin: Option<Twin>,
    stage: HealingStage,
    /// Time since which all is well.
    calm_since: Option<(Time, usize)>,
    client_load: ClientLoad,
    struck: u64,
    /// For how long.
    deaf_once_handed_over: Option<SimDuration>,
    /// The power of all is cut this time after a group beside the home group has begun, for the second one.
    founders_end: Option<(SimDuration, SimDuration)>,
    /// By then a leader has heard of all members that came back with older disks.
    old_disks_judged_at: Time,
}

impl World {
    pub(crate) fn new(plan: RunPlan, telling: Telling) -> World {
        let seed = plan.seed;
        let part = |part: &str, number: usize| Chance::of(seed, &format!("{part} {number}"));
        let machine = |number: u8| {
            Machine::new(
                number,
                plan.settings.first_build(number),
                plan.has_batteries,
                part("machine", number.into()),
            )
        };
        let client = |(number, habits): (usize, &crate::client::Habits)| {
            SimClient::new(number, habits.clone(), part("client", number))
        };
        let mut world = World {
            now: Time(0),
            steps: 0,
            queue: Queue::new(),
            chance: part("world", 0),
            trace: Trace::new(telling),
            network: Network::new(plan.weather.clone(), part("network", 0)),
            machines: (1..=plan.settings.machines()).map(machine).collect(),
            frozen: BTreeMap::new(),
            clients: plan.clients.iter().enumerate().map(client).collect(),
            wires: BTreeMap::new(),
            conns: 0,
            checks: Checks::new(plan.settings.linearizable_reads, plan.settings.answer_limits()),
            twin: None,
            stage: HealingStage::Faults,
            calm_since: None,
            client_load: ClientLoad::Busy,
            struck: 0,
            deaf_once_handed_over: None,
            founders_end: None,
            old_disks_judged_at: Time(0),
            plan,
        };
        if world.plan.settings.moves_slots {
            world.checks.spread();
        }
        world.begin();
        world
    }

    fn begin(&mut self) {
        for member in 1..=self.plan.settings.machines() {
            let at = Time(self.chance.below(500_000));
            self.queue.plan(at, WorldEvent::Start { member });
        }
        for number in 0..self.clients.len() {
            self.queue.plan(Time(self.chance.below(3_000_000)), WorldEvent::Client { number });
        }
        for (number, planned) in self.plan.faults.iter().enumerate() {
            self.queue.plan(planned.at, WorldEvent::Fault { number });
        }
        if self.plan.settings.upgrades.is_some() {
            self.queue.plan(Time(0) + FIRST_UPGRADE, WorldEvent::Builds);
        }
        self.queue.plan(Time(0) + self.plan.length, WorldEvent::Stage);
    }

    /// Lives until the end, or until something must not be.
    pub(crate) fn live(mut self) -> (Account, Vec<String>) {
        let violation = self.go_on().err();
        if let Some(violation) = &violation {
            self.trace.note(self.now, format_args!("VIOLATION {violation}"));
        }
        let account = Account {
            violation,
            steps: self.steps,
            trace: self.trace.hash(),
            entries: self.checks.truth.last_index(),
            writes: self.clients.iter().map(SimClient::acknowledged).sum(),
            faults: self.struck,
        };
        (account, self.trace.into_lines())
    }

    /// Lives until nothing goes wrong any more. Whatever was noticed, it is another ensemble's.
    fn live_through_faults(&mut self) {
        while self.stage == HealingStage::Faults && self.step().is_ok() {}
    }

    fn go_on(&mut self) -> Checked {
        while self.stage != HealingStage::Over {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Checked {
        let Some((at, event)) = self.queue.next() else {
            unreachable!("there is always a stage to come");
        };
        self.now = at;
        self.steps += 1;
        ensure!(self.steps < STEPS_MAX, "progress", "the run does not come to its end");
        self.happen(event)
    }

    fn happen(&mut self, event: WorldEvent) -> Checked {
        match event {
            WorldEvent::Start { member } => self.start(member),
            WorldEvent::Process { member, life, what } => self.act(member, life, what),
            WorldEvent::Letter { from, to, resets, bytes } => self.letter(from, to, resets, bytes),
            WorldEvent::Frame { conn } => self.frame(conn),
            WorldEvent::Packet { conn } => self.packet(conn),
            WorldEvent::Client { number } => self.client_acts(number),
            WorldEvent::Fault { number } => self.strike(self.plan.faults[number].fault),
            WorldEvent::Thaw { member } => {
                self.thaw(member);
                Ok(())
            }
            WorldEvent::Room { member } => {
                let now = self.now;
                self.machine(member).make_room(now);
                Ok(())
            }
            WorldEvent::TwinTicks => self.twin_ticks(),
            WorldEvent::Builds => self.change_builds(),
            WorldEvent::LookAtSlowLeader { member, part, handovers } => {
                self.look_at_slow_leader(member, part, handovers)
            }
            WorldEvent::EndLeader => self.end_leader(),
            WorldEvent::PowerCutOfAll { down } => self.cut_power(down),
            WorldEvent::Stage => self.next_stage(),
        }
    }

    fn plan_in(&mut self, span: SimDuration, event: WorldEvent) {
        self.queue.plan(self.now + span, event);
    }

    fn machine(&mut self, member: u8) -> &mut Machine {
        &mut self.machines[usize::from(member) - 1]
    }
}
