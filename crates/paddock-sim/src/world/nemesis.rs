//! Faults, carried out.

use paddock_chance::Chance;
use paddock_proto::MemberNumber;
use paddock_replica::{GroupStanding, Role, member_number};

use super::{World, WorldEvent};
use crate::checks::{Checked, ensure};
use crate::client::Habits;
use crate::faults::{End, Fault, Moment, SlowPart, Whom};
use crate::machine::Machine;
use crate::machine::disk::SimDisk;
use crate::machine::setup::Settings;
use crate::names;
use crate::network::{Disturbance, Trouble};
use crate::numbering::machine_of;
use crate::plan::RunPlan;
use crate::time::{SimDuration, Time};
use crate::trace::Telling;

/// Time that another ensemble has lived whose disks come here.
const FOREIGN_LIFE: SimDuration = SimDuration::seconds(5);
/// After this time a leader has heard of a member that was started, and judged its disk.
const LEADER_KNOWS: SimDuration = SimDuration::millis(2500);
/// A leader that has become slow leads for this time at most.
const SLOW_LEADER_MAX: SimDuration = SimDuration::seconds(2);
/// A leader is sure that it is slow for this time before it hands over.
const SLOW_FOR: SimDuration = SimDuration::millis(800);
/// Syncs of that time.
const SLOW_SYNCS_MIN: usize = 3;
/// After this time a leader has looked at what its syncs take, or has begun to hand over.
const LEADER_LOOKS: SimDuration = SimDuration::millis(300);
/// A member counts with answers of before for this time.
const QUICK_ANSWERS_COUNT: SimDuration = SimDuration::millis(500);
/// After this time another leader follows one that has ended.
const NEXT_LEADER: SimDuration = SimDuration::seconds(4);

impl World {
    /// The power of all machines is cut.
    pub(super) fn cut_power(&mut self, down: SimDuration) -> Checked {
        if self.stage != super::HealingStage::Faults {
            return Ok(());
        }
        (1..=self.plan.settings.machines()).try_for_each(|member| self.take_down(member, End::PowerCut, down))
    }

    pub(super) fn strike(&mut self, fault: Fault) -> Checked {
        if self.stage != super::HealingStage::Faults {
            return Ok(());
        }
        self.struck += 1;
        self.trace.note(self.now, format_args!("fault {fault:?}"));
        match fault {
            Fault::End { whom, end, down } => self.take_down(self.whom(whom), end, down)?,
            Fault::EndAtDisk { whom, operations, moment, end } => {
                let member = self.whom(whom);
                let machine = self.machine(member);
                machine.faults.death = end;
                machine.disk.die_after(operations, moment);
            }
            Fault::EndWithinEntry { whom, moments, end } => {
                let member = self.whom(whom);
                let machine = self.machine(member);
                (machine.faults.death, machine.faults.dies_within_entry) = (end, Some(moments));
            }
            Fault::EndTwice { whom, operations, again } => {
                let member = self.whom(whom);
                let machine = self.machine(member);
                (machine.faults.death, machine.faults.power_cut_in_recovery) = (End::Killed, Some(again));
                machine.disk.die_after(operations, Moment::After);
            }
            Fault::EndInElection { whom, down, operations } => {
                let member = self.whom(whom);
                self.take_down(member, End::Killed, down)?;
                let machine = self.machine(member);
                machine.faults.death = End::Killed;
                machine.disk.die_after(operations, Moment::After);
            }
            Fault::PowerCutOfAll { down } => self.cut_power(down)?,
            Fault::PowerCutOfFounders { after, down } => self.founders_end = Some((after, down)),
            Fault::NewDisk { whom, down } => {
                let member = self.whom(whom);
                if self.may_lose_data(member) {
                    self.replace_disk(member, down)?;
                }
            }
            Fault::ForeignDisk { whom, down, dice } => {
                let member = self.whom(whom);
                if self.may_lose_data(member) && !self.machine(member).blame.is_foreign {
                    self.replace_disk(member, down)?;
                    let disk = World::disk_of_another_ensemble(&self.plan, dice, member);
                    let machine = self.machine(member);
                    (machine.disk, machine.blame.is_foreign) = (disk, true);
                }
            }
            Fault::NeighboursDisk { whom, down } => self.mix_up_disks(self.whom(whom), down)?,
            Fault::Twin { whom, span, dice } => self.start_twin(self.whom(whom), span, dice)?,
            Fault::WrongState { member, dice } => self.corrupt_state(member, dice),
            Fault::OldDisk { member, down } => self.copy_or_put_back(member, down, 0)?,
            Fault::OldDiskAndClock { member, down, ahead_ms } => {
                self.copy_or_put_back(member, down, ahead_ms)?;
            }
            Fault::NewDiskAndEnd { whom, down, operations } => {
                let member = self.whom(whom);
                if self.may_lose_data(member) {
                    self.replace_disk(member, down)?;
                    let machine = self.machine(member);
                    machine.faults.death = End::PowerCut;
                    machine.disk.die_after(operations, Moment::After);
                }
            }
            Fault::NewDisksApart { down, span } => {
                if let Some((voter, observer)) = self.loser_and_observer() {
                    self.replace_disk(voter, down)?;
                    self.replace_disk(observer, down)?;
                    let side = 1 << voter | 1 << observer;
                    self.strike_network(Fault::Cut { side, holds: false, span });
                }
            }
            Fault::NewDiskBesideSleeper { leads, down, span } => {
                if let Some((member, sleeper)) = self.loser_and_sleeper(leads) {
                    self.replace_disk(member, down)?;
                    let side = 1 << member | 1 << sleeper;
                    let sleep = self.machine(sleeper).paused_until - self.now;
                    self.strike_network(Fault::Cut { side, holds: false, span: sleep + span });
                }
            }
            Fault::DeafOnceHandedOver { span } => self.deaf_once_handed_over = Some(span),
            Fault::Pause { whom, span, deaf } => {
                let (member, until) = (self.whom(whom), self.now + span);
                let machine = self.machine(member);
                machine.paused_until = machine.paused_until.max(until);
                machine.deaf_until = machine.deaf_until.max(until + deaf);
                self.plan_in(span, WorldEvent::Thaw { member });
                self.plan_in(span + deaf, WorldEvent::Thaw { member });
            }
            Fault::HomeLate { whom, span } => {
                let (member, until) = (self.whom(whom), self.now + span);
                let machine = self.machine(member);
                machine.home_late_until = machine.home_late_until.max(until);
            }
            Fault::WallJump { whom, by_ms } => {
                let (member, now) = (self.whom(whom), self.now);
                self.machine(member).clock.jump_wall(now, by_ms);
            }
            Fault::MonotonicJump { whom, by } => {
                let (member, now) = (self.whom(whom), self.now);
                self.machine(member).clock.jump_monotonic(now, by);
                self.checks.sessions.clock_jumps(member, now);
                self.checks.groups.clock_jumps(by.0 / 1000);
            }
            Fault::Drift { whom, millionths } => {
                let (member, now) = (self.whom(whom), self.now);
                self.machine(member).clock.set_drift(now, millionths);
            }
            Fault::SlowLeader { part, by, span } => self.slow_leader(part, by, span),
            Fault::SlowDisk { .. }
            | Fault::FailingDisk { .. }
            | Fault::FullDisk { .. }
            | Fault::FullDiskAtInstall { .. }
            | Fault::Flip { .. } => {
                self.strike_disk(fault);
            }
            _ => self.strike_network(fault),
        }
        Ok(())
    }

    /// Ends a process, if there is one, and lets it begin again after a while.
    pub(super) fn take_down(&mut self, member: u8, end: End, down: SimDuration) -> Checked {
        let now = self.now;
        let machine = self.machine(member);
        let is_resting =
            machine.process.as_ref().is_some_and(|process| !process.is_busy && !process.has_work());
        if end == End::Orderly && is_resting && !machine.is_paused(now) {
            let (local, process) = (machine.now(now), machine.process.take());
            let ended = process.map_or(Ok(()), |process| process.end(local, &machine.disk));
            if let Err(error) = ended {
                self.trace.note(now, format_args!("{member} does not end well: {error}"));
            }
        }
        self.end(member, end);
        self.plan_in(down, WorldEvent::Start { member });
        Ok(())
    }

    fn strike_disk(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::SlowDisk { whom, by, span } => {
                let member = self.whom(whom);
                self.machine(member).be_slow(by, now + span);
            }
            Fault::FailingDisk { whom, fault, after } => {
                let member = self.whom(whom);
                let machine = self.machine(member);
                machine.faults.is_disturbed = true;
                machine.disk.fail_after(fault, after);
            }
            Fault::FullDisk { whom, room, span } => {
                let member = self.whom(whom);
                self.machine(member).fill_disk(room, now + span);
                self.plan_in(span, WorldEvent::Room { member });
            }
            Fault::FullDiskAtInstall { member, span } => self.machine(member).fill_disk_at_install(span),
            Fault::Flip { whom, place, dice } => {
                let member = self.whom(whom);
                if self.may_lose_data(member) {
                    let flipped = self.machine(member).flip(place, Chance::new(dice));
                    self.trace.note(now, format_args!("{member} has a bit flipped in {flipped:?}"));
                }
            }
            _ => unreachable!("that is no fault of a disk"),
        }
    }

    /// The disk of the leader becomes slow, or its links do, if all others are as they should be, and another member could lead.
    fn slow_leader(&mut self, part: SlowPart, by: SimDuration, span: SimDuration) {
        let now = self.now;
        let is_slow = |machine: &Machine| machine.faults.slow.1 > now;
        let leaders: Vec<u8> = self.leaders().collect();
        if let [member] = leaders[..]
            && self.machines.len() > 1
            && !self.machines.iter().any(is_slow)
            && self.has_room()
        {
            match part {
                SlowPart::Disk => self.machine(member).be_slow(by, now + span),
                SlowPart::Links => {
                    self.machine(member).be_slow(SimDuration::ZERO, now + span);
                    let (whom, by) = (Whom::Member(member), SimDuration(by.0 / 2));
                    self.strike_network(Fault::Slow { whom, by, span });
                }
            }
            let process = self.machine(member).process.as_ref();
            let handovers = process.map_or(0, |process| process.slow_handovers());
            self.plan_in(SLOW_LEADER_MAX, WorldEvent::LookAtSlowLeader { member, part, handovers });
        }
    }

    /// A leader with a slow disk, or slow links, has handed over, once and no more, unless it had done so before: then it may rest.
    pub(super) fn look_at_slow_leader(
        &mut self,
        member: u8,
        part: SlowPart,
        handovers_before: u64,
    ) -> Checked {
        let now = self.now;
        let is_slow = self.machine(member).faults.slow.1 > now;
        let must_hand_over = is_slow && self.has_room() && self.must_know(member, part);
        let leads = must_hand_over && self.leaders().any(|leader| leader == member);
        let process = self.machine(member).process.as_ref();
        let handovers = process.map_or(0, |process| process.slow_handovers());
        ensure!(
            handovers_before > 0 || !leads,
            "slow leaders",
            "member {member} still leads, {SLOW_LEADER_MAX} after it has become slow: {part:?}"
        );
        ensure!(
            handovers <= handovers_before + 1,
            "slow leaders",
            "member {member} has handed the lead over {handovers} times"
        );
        Ok(())
    }

    /// True if no member's disk is full, or is to be: one that cannot install a snapshot has nothing to lead with.
    fn has_room(&self) -> bool {
        let lacks = |machine: &Machine| machine.faults.full_at_install.is_some() || machine.is_full(self.now);
        !self.machines.iter().any(lacks)
    }

    /// True if a member has synced often enough for long enough to be sure that it is slow: while its clients write elsewhere it cannot know.
    fn must_know(&mut self, member: u8, part: SlowPart) -> bool {
        let now = self.now;
        let faults = &self.machine(member).faults;
        let takes = match part {
            SlowPart::Disk => faults.slow.0 + LEADER_LOOKS,
            SlowPart::Links => QUICK_ANSWERS_COUNT + LEADER_LOOKS,
        };
        let Some(seen) = faults.slow_syncs.first().map(|first| *first + takes) else { return false };
        let is_of_then = |began: &&Time| **began > seen && **began + takes <= now;
        seen + SLOW_FOR + LEADER_LOOKS <= now
            && faults.slow_syncs.iter().filter(is_of_then).count() >= SLOW_SYNCS_MIN
    }

    /// Less than half of the members may lose, in the whole run, what they were sure of. Those that know nothing yet would
    /// be missed as much.
    fn may_lose_data(&self, member: u8) -> bool {
        let groups = self.checks.groups.count();
        let learns = |machine: &Machine| {
            let standings =
                machine.process.as_ref().map(|process| process.group_standings()).unwrap_or_default();
            let is_other = machine.number != member && machine.process.is_some();
            let awaits = |standing: &GroupStanding| {
                standing.is_silent || standing.awaits_vote || standing.last_entry == 0
            };
            let has_all = self.plan.settings.replicas > 0 || standings.len() >= groups as usize;
            is_other && (!has_all || standings.iter().any(awaits))
        };
        // A group's own log says which voters it has; the groups come to the home group's members one after the other.
        if groups > 1 && self.machines.iter().any(learns) {
            return false;
        }
        if self.plan.settings.replicas > 0 && !(1..groups).all(|group| self.may_lose_replica(member, group)) {
            return false;
        }
        let groups = if self.plan.settings.replicas > 0 { 0..1 } else { 0..groups };
        let memberships = self.checks.truth.model().memberships();
        if self.plan.changes_members() && !memberships.is_empty() {
            let has_a_say = |number: &MemberNumber| {
                let machine = machine_of(*number);
                let mut machines = self.machines.iter().filter(|other| other.number == machine);
                machine != member && machines.any(|machine| machine.has_a_say(groups.clone()))
            };
            let is_left = |[voters, _]: &[Vec<MemberNumber>; 2]| {
                let loses = voters.iter().any(|number| machine_of(*number) == member);
                !loses || 2 * voters.iter().filter(|number| has_a_say(number)).count() > voters.len()
            };
            return memberships.iter().all(is_left);
        }
        let voters =
            || self.machines.iter().filter(|machine| !self.plan.settings.is_observer(machine.number));
        let stay = |machine: &&Machine| machine.number != member && machine.has_a_say(groups.clone());
        2 * voters().filter(stay).count() > voters().count() || self.plan.settings.is_observer(member)
    }

    /// True if most voters of a group that not all members have keep their promises when a member loses its data.
    fn may_lose_replica(&self, member: u8, group: u32) -> bool {
        let keeps = |id: &&u64| {
            let machine = member_number(**id).map(machine_of).filter(|machine| *machine != member);
            let machine =
                machine.and_then(|number| self.machines.iter().find(|other| other.number == number));
            machine.is_some_and(|machine| machine.has_a_say(group..group + 1))
        };
        let is_of =
            |voters: &Vec<u64>| voters.iter().any(|id| member_number(*id).map(machine_of) == Some(member));
        let stays =
            |voters: &Vec<u64>| !is_of(voters) || 2 * voters.iter().filter(keeps).count() > voters.len();
        let mut known = self.checks.groups.voters(group).peekable();
        known.peek().is_some() && known.all(stays)
    }

    /// The machine gets a new disk while it is down.
    fn replace_disk(&mut self, member: u8, down: SimDuration) -> Checked {
        self.take_down(member, End::PowerCut, down)?;
        let forgets = self.checks.truth.last_index();
        self.machine(member).replace_disk(forgets);
        self.checks.groups.loses_data(member);
        Ok(())
    }

    /// The disk of the member with this number in an ensemble of other machines that has lived for a while, and well.
    fn disk_of_another_ensemble(plan: &RunPlan, dice: u64, member: u8) -> SimDisk {
        let settings = Settings { hosts: names::FOREIGN_HOSTS, ..plan.settings.clone() };
        let clients = plan.clients.iter().cloned().map(Habits::of_user).collect();
        let (faults, length) = (Vec::new(), FOREIGN_LIFE);
        let plan = RunPlan { seed: dice, settings, clients, faults, length, ..plan.clone() };
        let mut world = World::new(plan, Telling::Hash);
        world.live_through_faults();
        let machine = world.machine(member);
        machine.end(Time(0) + FOREIGN_LIFE, false);
        machine.disk.copy(dice)
    }

    /// A disk is copied, or such a copy put back: while another member leads that has heard what was acknowledged since. If the clock is
    /// put ahead for a while, the member is started again meanwhile, and another leader follows before the copy is put back, who knows of
    /// that start by its number and by nothing else.
    fn copy_or_put_back(&mut self, member: u8, down: SimDuration, ahead_ms: i64) -> Checked {
        let leaders: Vec<u8> = self.leaders().collect();
        let do_all_run = self.machines.iter().all(|machine| machine.process.is_some());
        let is_led = leaders.len() == 1 && !leaders.contains(&member);
        if !do_all_run || !is_led || !self.may_lose_data(member) {
            return Ok(());
        }
        let known_start = self.checks.truth.last_start(member);
        let (now, is_nobody_judged) = (self.now, self.now >= self.old_disks_judged_at);
        let machine = self.machine(member);
        if machine.faults.copy.is_none() {
            machine.copy_disk();
            if ahead_ms > 0 {
                machine.clock.jump_wall(now, ahead_ms);
                machine.faults.ahead = Some((ahead_ms, known_start));
                self.take_down(member, End::Killed, down)?;
            }
            return Ok(());
        }
        let (acknowledged, _) = machine.promises.acknowledged;
        // An answer may be under way for as long as its link lives. It counts for nothing, and the member's next process may forget it.
        if !self.has_heard(leaders[0], member, acknowledged) {
            return Ok(());
        }
        let machine = self.machine(member);
        let (ahead_ms, known_before) = machine.faults.ahead.take().unwrap_or_default();
        machine.clock.jump_wall(now, -ahead_ms);
        // The leader has to stay while it judges another member's disk.
        let is_start_known = ahead_ms > 0 && known_start > known_before && is_nobody_judged;
        let down = if is_start_known { down + NEXT_LEADER } else { down };
        if let Some(leader) = leaders.first().filter(|_| is_start_known) {
            self.take_down(*leader, End::Killed, SimDuration::millis(100))?;
        }
        self.replace_disk(member, down)?;
        let machine = self.machine(member);
        machine.disk = machine.faults.copy.take().expect("that was just looked at");
        machine.faults.is_copy = true;
        machine.promises.forgot = acknowledged;
        self.old_disks_judged_at = self.now + down + LEADER_KNOWS;
        self.plan_in(down + LEADER_KNOWS, WorldEvent::EndLeader);
        Ok(())
    }

    /// True if a leader knows that a member has everything up to `index`.
    fn has_heard(&self, leader: u8, member: u8, index: u64) -> bool {
        let number = self.plan.settings.numbering.number(member);
        let process = &self.machines[usize::from(leader) - 1].process;
        process.as_ref().is_some_and(|process| process.matched(number) >= Some(index))
    }

    /// A machine is started with a copy of the disk of the next member that has been started once.
    fn mix_up_disks(&mut self, member: u8, down: SimDuration) -> Checked {
        let (before, after) = self.machines.split_at(usize::from(member));
        let has_identity =
            |other: &&Machine| other.number != member && !other.blame.is_damaged && other.has_identity();
        let Some(neighbour) = after.iter().chain(before).find(has_identity) else { return Ok(()) };
        let (number, disk) = (neighbour.number, neighbour.disk.copy(self.plan.seed));
        self.trace.note(self.now, format_args!("{member} is to start with the disk of {number}"));
        self.take_down(member, End::Killed, down)?;
        self.machine(member).faults.neighbours_disk = Some(disk);
        Ok(())
    }

    /// Memory of a member is damaged while all run, another member leads, and no other member's was: with two wrong ones of
    /// three it could not be said who is right.
    fn corrupt_state(&mut self, member: u8, dice: u64) {
        let leaders: Vec<u8> = self.leaders().collect();
        let do_all_run = self.machines.iter().all(|machine| machine.process.is_some());
        let is_led = leaders.len() == 1 && !leaders.contains(&member);
        let is_only_one =
            self.machines.iter().all(|other| other.number == member || !other.blame.has_been_wrong);
        let is_right =
            self.machine(member).promises.applied > 0 && self.machine(member).blame.wrong.is_none();
        if do_all_run && is_led && is_only_one && is_right && self.may_lose_data(member) {
            let flipped = self.machine(member).flip_in_memory(Chance::new(dice));
            self.trace.note(self.now, format_args!("{member} has a bit flipped in memory, in {flipped:?}"));
        }
    }

    /// The leader ends, when it has told all members with older disks what they have forgotten.
    pub(super) fn end_leader(&mut self) -> Checked {
        let is_time = self.stage == super::HealingStage::Faults && self.now >= self.old_disks_judged_at;
        let leader = self.leaders().next().filter(|_| is_time);
        leader.map_or(Ok(()), |leader| self.take_down(leader, End::Killed, SimDuration::seconds(2)))
    }

    /// A voter that may lose its data, and an observer.
    fn loser_and_observer(&self) -> Option<(u8, u8)> {
        let is_observer = |member: &u8| self.plan.settings.is_observer(*member);
        let observer = (1..=self.plan.settings.members).find(is_observer)?;
        let mut voters = (1..=self.plan.settings.members).filter(|member| !is_observer(member));
        voters.find(|member| self.may_lose_data(*member)).map(|voter| (voter, observer))
    }

    /// A member that may lose its data and does not lead, while one sleeps that does, as far as it knows, or does not.
    /// Another member leads.
    fn loser_and_sleeper(&self, leads: bool) -> Option<(u8, u8)> {
        let leaders: Vec<u8> = self.leaders().collect();
        let sleeps = |member: &u8| self.machines[usize::from(*member) - 1].is_paused(self.now);
        let mut members = 1..=self.plan.settings.members;
        let sleeper = members.clone().find(|member| sleeps(member) && leaders.contains(member) == leads)?;
        let may_lose =
            |member: &u8| *member != sleeper && !leaders.contains(member) && self.may_lose_data(*member);
        let loser = members.find(may_lose)?;
        leaders.iter().any(|leader| *leader != sleeper).then_some((loser, sleeper))
    }

    /// A member hands the lead over now.
    pub(super) fn deafen_if_planned(&mut self, member: u8) {
        if let Some(span) = self.deaf_once_handed_over.take() {
            let whom = Whom::Member(member);
            self.strike_network(Fault::OneWay { whom, outwards: false, holds: true, span });
        }
    }

    fn strike_network(&mut self, fault: Fault) {
        let (all, now): (u64, Time) = (!0, self.now);
        match fault {
            Fault::Cut { side, holds, span } => {
                self.disturb(side, !side, Trouble::Cut { holds }, now, span);
                self.disturb(!side, side, Trouble::Cut { holds }, now, span);
            }
            Fault::CutOff { whom, holds, span } => {
                let one = self.bit(whom);
                self.strike_network(Fault::Cut { side: one, holds, span });
            }
            Fault::Loss { permille, span } => self.disturb(all, all, Trouble::Loss(permille), now, span),
            Fault::OneWay { whom, outwards, holds, span } => {
                let one = self.bit(whom);
                let (from, to) = if outwards { (one, all) } else { (all, one) };
                self.disturb(from, to, Trouble::Cut { holds }, now, span);
            }
            Fault::Slow { whom, by, span } => {
                let one = self.bit(whom);
                self.disturb(one, all, Trouble::Slow(by), now, span);
                self.disturb(all, one, Trouble::Slow(by), now, span);
            }
            Fault::HearsLate { whom, by, span } => {
                let one = self.bit(whom);
                self.disturb(all, one, Trouble::Slow(by), now, span);
                self.disturb(one, all, Trouble::Cut { holds: false }, now + SimDuration(by.0 / 2), span);
            }
            Fault::ClientsCut { whom, span } => {
                self.disturb(all, self.bit(whom), Trouble::ClientsCut, now, span);
            }
            Fault::Reset { whom } => self.network.reset(self.whom(whom)),
            Fault::ClientReset { client } => {
                let number = client % self.clients.len() as u64;
                self.break_connection(number as usize);
            }
            _ => unreachable!("that is no fault of the network"),
        }
    }

    fn disturb(&mut self, from: u64, to: u64, what: Trouble, since: Time, span: SimDuration) {
        self.network.disturb(Disturbance { from, to, what, since, until: since + span });
    }

    fn bit(&self, whom: Whom) -> u64 {
        1 << self.whom(whom)
    }

    fn whom(&self, whom: Whom) -> u8 {
        match whom {
            Whom::Member(member) => member,
            Whom::Leader(otherwise) => self.leaders().next().unwrap_or(otherwise),
        }
    }

    /// Members that think that they lead.
    pub(super) fn leaders(&self) -> impl Iterator<Item = u8> {
        let leads = |machine: &&Machine| {
            let role = machine.process.as_ref().map(|process| process.role());
            matches!(role, Some(Role::Leader | Role::Alone))
        };
        self.machines.iter().filter(leads).map(|machine| machine.number)
    }

    /// Nothing is wrong any more, and a member that found its disk damaged has a new one.
    pub(super) fn mend_everything(&mut self) {
        self.end_twin();
        self.network.heal();
        let (now, last) = (self.now, self.checks.truth.last_index());
        let foreign =
            self.machines.iter().filter(|machine| machine.blame.is_foreign).map(|machine| machine.number);
        for member in foreign.collect::<Vec<u8>>() {
            self.end(member, End::Killed);
        }
        for machine in &mut self.machines {
            machine.mend(now);
            if machine.faults.is_out_of_service || machine.blame.is_foreign {
                machine.replace_disk(last);
                self.checks.groups.loses_data(machine.number);
            }
        }
        for member in 1..=self.plan.settings.machines() {
            self.thaw(member);
            self.queue.plan(now + SimDuration(self.chance.below(1_000_000)), WorldEvent::Start { member });
        }
        self.trace.note(now, format_args!("everything is mended"));
    }
}
