//! After the faults: the ensemble must elect, converge, serve, and have lost nothing. Then a member that leads nothing is killed and
//! started again, which clients of others may not notice. Then the power of all is cut at once, and the ensemble must elect, converge, serve,
//! and have lost nothing again.

use crate::numbering::machine_of;
use std::collections::BTreeSet;

use paddock_chance::Chance;
use paddock_proto::Xid;
use paddock_replica::{Role, raft_id};

use super::{World, WorldEvent};
use crate::checks::{Checked, agreement, ensure, ephemerals, sessions, watching};
use crate::client::{ClientLoad, SimClient};
use crate::faults::End;
use crate::machine::Machine;
use crate::time::{SimDuration, Time};

const CHECKER: &str = "healing";
/// Interval at which the world looks if all is well, and the time for which it does so.
const LOOK: SimDuration = SimDuration::millis(250);
const PATIENCE: SimDuration = SimDuration::seconds(180);
/// Time after which nothing is on its way to a client any more that asks for nothing.
const CALM: SimDuration = SimDuration::seconds(5);
/// Time for which clients are busy in a world without faults.
const BUSY: SimDuration = SimDuration::seconds(4);
/// Time within which a request is answered, once those before it are, while a member is gone that leads nothing.
const ANSWERED: SimDuration = SimDuration::millis(1500);

/// The last thing that has happened to the ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    Faults,
    /// This member, which led nothing, was killed.
    Killed {
        member: u8,
    },
    PowerCut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HealingStage {
    Faults,
    /// Nothing is wrong any more, and clients are busy.
    Busy {
        after: Blow,
        since: Time,
        acknowledged: u64,
        until: Time,
    },
    /// They wait for what they have asked for.
    Settling {
        after: Blow,
        until: Time,
    },
    Over,
}

impl World {
    pub(super) fn next_stage(&mut self) -> Checked {
        match self.stage {
            HealingStage::Faults => {
                self.mend_everything();
                self.replace_gone_clients();
                self.be_busy(Blow::Faults);
            }
            HealingStage::Busy { after: Blow::Killed { member }, since, .. } if self.now - since < BUSY => {
                self.check_waits(member)?;
                self.plan_in(LOOK, WorldEvent::Stage);
            }
            HealingStage::Busy { after, acknowledged, until, .. } => {
                let serves = self.acknowledged() > acknowledged;
                let wrong = self
                    .machines
                    .iter()
                    .find(|machine| machine.blame.wrong.is_some())
                    .map(|machine| machine.number);
                ensure!(
                    serves || self.now < until,
                    CHECKER,
                    "no write is served {PATIENCE} after all was mended"
                );
                ensure!(
                    wrong.is_none() || self.now < until,
                    CHECKER,
                    "{PATIENCE} after all was mended member {wrong:?} still has a wrong state"
                );
                if serves && wrong.is_none() {
                    self.client_load = ClientLoad::Quiet;
                    self.stage = HealingStage::Settling { after, until: self.now + PATIENCE };
                }
                self.plan_in(LOOK, WorldEvent::Stage);
            }
            HealingStage::Settling { after, until } => match self.unsettled() {
                None if self.is_calm() => self.settled(after)?,
                None => {
                    ensure!(self.now < until, CHECKER, "{PATIENCE} after all was mended logs still grow");
                    self.plan_in(LOOK, WorldEvent::Stage);
                }
                Some(what) => {
                    self.calm_since = None;
                    ensure!(self.now < until, CHECKER, "{PATIENCE} after all was mended {what}");
                    self.plan_in(LOOK, WorldEvent::Stage);
                }
            },
            HealingStage::Over => unreachable!("nothing happens after the end"),
        }
        Ok(())
    }

    fn be_busy(&mut self, after: Blow) {
        self.client_load = ClientLoad::Busy;
        let (since, acknowledged) = (self.now, self.acknowledged());
        self.stage = HealingStage::Busy { after, since, acknowledged, until: self.now + PATIENCE };
        self.plan_in(if let Blow::Killed { .. } = after { LOOK } else { BUSY }, WorldEvent::Stage);
    }

    /// A client of another member than the one that was killed is answered as ever.
    fn check_waits(&self, killed: u8) -> Checked {
        // Leaders may change with the members, and connections wait for each other's buffers.
        if self.checks.truth.model().changes_members() || self.plan.settings.has_small_buffers() {
            return Ok(());
        }
        for (number, client) in self.clients.iter().enumerate() {
            let member = client.conn().and_then(|conn| self.wires.get(&conn)).map(|wire| wire.member);
            let waits = client.waits_for(self.now).filter(|(time, _)| *time > ANSWERED);
            let Some((time, Xid(xid))) = waits.filter(|_| member.is_some_and(|member| member != killed))
            else {
                continue;
            };
            ensure!(
                false,
                CHECKER,
                "client {number} of member {} waits for {time} for the answer to #{xid}, while member {killed} is gone that led nothing",
                member.unwrap_or_default()
            );
        }
        Ok(())
    }

    /// A member that leads no group, and that none needs.
    fn led_by_others(&self) -> Option<u8> {
        let leads = |machine: &&Machine| {
            machine.process.as_ref().is_none_or(|process| {
                matches!(process.role(), Role::Leader | Role::Alone)
                    || process.group_standings().iter().any(|standing| standing.leads)
            })
        };
        let groups = 0..self.checks.groups.count();
        let can_spare = |id| groups.clone().all(|group| self.can_spare(group, id));
        let number = |machine: &Machine| raft_id(self.plan.settings.numbering.number(machine.number));
        let mut members = self.members().filter(|machine| can_spare(number(machine)));
        members.find(|machine| !leads(machine)).map(|machine| machine.number)
    }

    fn acknowledged(&self) -> u64 {
        self.clients.iter().map(SimClient::acknowledged).sum()
    }

    fn replace_gone_clients(&mut self) {
        let (first, count) = (self.clients.len(), self.plan.clients.len());
        for number in first..first + count {
            let chance = Chance::of(self.plan.seed, &format!("client {number}"));
            let habits = self.plan.clients[number - first].clone();
            self.clients.push(SimClient::new(number, habits, chance));
            self.plan_in(SimDuration::ZERO, WorldEvent::Client { number });
        }
    }

    /// Machines that belong to the ensemble, and do not wait for an operator.
    pub(super) fn members(&self) -> impl Iterator<Item = &Machine> {
        let members = self.checks.truth.model().members();
        self.machines.iter().filter(move |machine| {
            let belongs = members
                .as_ref()
                .is_none_or(|members| members.iter().any(|member| machine_of(*member) == machine.number));
            belongs && !machine.faults.is_out_of_service
        })
    }

    /// True while clients, and others that ask for something, do so all the time.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.stage, HealingStage::Faults | HealingStage::Busy { .. })
    }

    /// Something that is not yet as it should be.
    fn unsettled(&self) -> Option<String> {
        let last = self.checks.truth.last_index();
        for machine in self.members() {
            let number = machine.number;
            let Some(process) = &machine.process else {
                return Some(format!("member {number} does not run"));
            };
            if process.role() == Role::Looking {
                return Some(format!("member {number} knows no leader"));
            }
            let state = process.state.read();
            let applied = state.applied().0;
            if applied != last {
                return Some(format!("member {number} has applied {applied} entries of {last}"));
            }
            let served = process.conns().map(|conn| process.session(conn));
            if let Some(session) = sessions::ended_one(state.tree(), served) {
                return Some(format!(
                    "member {number} has a connection of session {session}, which has ended"
                ));
            }
        }
        if self.leaders().count() != 1 {
            return Some(format!("these lead: {:?}", self.leaders().collect::<Vec<_>>()));
        }
        if let Some(number) = self.clients.iter().position(|client| !client.is_content()) {
            return Some(format!("client {number} waits: {:?}", self.clients[number]));
        }
        let model = self.checks.truth.model();
        if let Some(what) = self.unsettled_level() {
            return Some(what);
        }
        if let Some(what) = self.unsettled_groups() {
            return Some(what);
        }
        if model.changes_members() {
            return Some("members are changing".to_owned());
        }
        let mut gone = self.clients.iter().flat_map(SimClient::abandoned);
        gone.find(|session| model.has_session(*session)).map(|session| format!("session {session} lives on"))
    }

    /// True if events are not waited for: while znodes are spread, they leave when all groups have come as far as they. An entry that comes meanwhile, as for a
    /// znode whose time is over, may bring new ones.
    fn is_calm(&mut self) -> bool {
        let Some(spread) = &self.checks.spread else { return true };
        let here = (self.now, spread.entry_count());
        let (since, entries) = *self.calm_since.get_or_insert(here);
        if entries < here.1 {
            self.calm_since = Some(here);
        }
        entries == here.1 && self.now - since >= CALM
    }

    fn settled(&mut self, after: Blow) -> Checked {
        self.trace.note(self.now, format_args!("all is well"));
        self.calm_since = None;
        for machine in self.members() {
            let process = machine.process.as_ref().expect("a settled member runs");
            let (number, state) = (machine.number, process.state.read());
            agreement::check_state(number, &state, &self.checks.truth)?;
            ephemerals::check_owners(number, state.tree())?;
            let gone = self.clients.iter().flat_map(SimClient::abandoned);
            ephemerals::check_gone(number, state.tree(), gone)?;
            if self.checks.spread.is_some() {
                continue;
            }
            let conns: BTreeSet<_> = process.conns().collect();
            let served = self.clients.iter().filter(|c| c.conn().is_some_and(|conn| conns.contains(&conn)));
            let knows_all =
                served.clone().count() == conns.len() && served.clone().all(SimClient::is_certain_of_watches);
            let expected = served.map(|client| client.watches_held(&self.checks.truth)).sum();
            watching::check_held(number, state.state().watches().count(), expected, knows_all)?;
        }
        match after {
            Blow::Faults => {
                if let Some(member) = self.led_by_others() {
                    self.end(member, End::Killed);
                    let delay = SimDuration(self.chance.below(300_000));
                    self.plan_in(delay, WorldEvent::Start { member });
                    self.be_busy(Blow::Killed { member });
                } else {
                    self.end_all();
                }
            }
            Blow::Killed { .. } => self.end_all(),
            Blow::PowerCut => {
                self.stage = HealingStage::Over;
                return self.judge_spread();
            }
        }
        Ok(())
    }

    fn end_all(&mut self) {
        for member in 1..=self.plan.settings.machines() {
            self.end(member, End::PowerCut);
            let delay = SimDuration(self.chance.below(1_000_000));
            self.plan_in(delay, WorldEvent::Start { member });
        }
        self.be_busy(Blow::PowerCut);
    }
}
