//! Machines in the world: their processes begin, work, talk, and end.

use crate::numbering::machine_of;
use paddock_member::{IdentityError, MemberError, RecoveryError, open_message};
use paddock_replica::raft_id;
use paddock_replica::testing::{MessageFacts, describe};
use paddock_replica::{Input, LogEntry, Role};

use super::meanwhile::{Meanwhile, Witnessed};
use super::{Act, World, WorldEvent};
use crate::checks::{Checked, agreement, elections, ensure, ephemerals, features, recovery};
use crate::faults::End;
use crate::machine::disk::SimDisk;
use crate::machine::process::{NextWork, SimProcess};
use crate::machine::shell::RoundOutput;
use crate::network::Fate;
use crate::time::SimDuration;
use crate::wire::WirePacket;

const TICK: SimDuration = SimDuration::millis(paddock_member::Member::TICK_MS);
/// Interval at which workers report sessions.
const TOUCHES: SimDuration = SimDuration::millis(100);
/// Interval at which the housekeeper looks after the log.
const HOUSE: SimDuration = SimDuration::millis(100);
/// Before a process that ended by itself is started again, at most.
const RESTART: SimDuration = SimDuration::seconds(1);
/// One of so many steps that apply something is followed by a look at the whole state.
const LOOK_ONE_IN: u64 = 50;
const PROGRESS: &str = "progress";
const AGREEMENT: &str = "agreement";
const ISOLATION: &str = "isolation";

impl World {
    pub(super) fn start(&mut self, member: u8) -> Checked {
        let (now, settings) = (self.now, self.plan.settings.clone());
        let machine = self.machine(member);
        if machine.process.is_some() || machine.faults.is_out_of_service {
            return Ok(());
        }
        if let Some(disk) = machine.faults.neighbours_disk.take() {
            return self.start_with_disk_of_another(member, &disk);
        }
        if machine.blame.has_lost_data || machine.blame.is_damaged {
            self.checks.elections.forgets(member);
            self.checks.groups.forgets_votes(member);
        }
        let is_led = self.leaders().next().is_some();
        let machine = self.machine(member);
        if machine.faults.is_copy && !is_led {
            // Without a leader there is no member that could judge its disk.
            self.plan_in(RESTART, WorldEvent::Start { member });
            return Ok(());
        }
        machine.faults.is_copy = false;
        if settings.is_spare(member) && self.checks.truth.model().members().is_none() {
            // No client adds a member to an ensemble that is not there yet.
            self.plan_in(RESTART, WorldEvent::Start { member });
            return Ok(());
        }
        let machine = self.machine(member);
        let (last, applied, acknowledged) =
            (machine.last_logged_entry(), machine.promises.applied, machine.promises.acknowledged);
        let (written, voted) = (machine.last_logged_vote(), machine.promises.voted);
        let is_disturbed = machine.faults.is_disturbed || machine.blame.is_damaged || machine.is_full(now);
        let has_own_disk = !machine.blame.is_damaged && !machine.blame.is_foreign;
        if has_own_disk {
            recovery::check_log(member, last.map(|(index, _)| index), applied)?;
            recovery::check_acknowledged(member, last.unwrap_or_default(), acknowledged)?;
            recovery::check_vote(member, written, voted)?;
        }
        let started = machine.start(now, &settings);
        let is_disturbed = is_disturbed || machine.disk.is_dead();
        if let Err(error) = started {
            self.trace.note(now, format_args!("{member} does not start: {error}"));
            features::check_error(member, &error)?;
            recovery::check_start(member, is_disturbed, &error)?;
            let machine = self.machine(member);
            machine.faults.is_out_of_service = machine.blame.is_damaged;
            let end = if machine.disk.is_dead() { machine.faults.death } else { End::Killed };
            self.end(member, end);
            self.plan_in(RESTART, WorldEvent::Start { member });
            return Ok(());
        }
        let local = self.machine(member).now(now);
        let replayed = self.machine(member).process.as_mut().map(SimProcess::take_replayed);
        if let Some(replayed) = replayed.filter(|_| !self.machine(member).blame.is_foreign) {
            let (home, others): (Vec<_>, Vec<_>) = replayed.into_iter().partition(|(group, _)| *group == 0);
            let home: Vec<LogEntry> = home.into_iter().map(|(_, entry)| entry).collect();
            self.note_committed(member, &home, others, local.monotonic_ms)?;
        }
        if let Some(process) = &self.machines[usize::from(member) - 1].process {
            let state = process.state.read();
            let applied = state.applied();
            self.trace.note(now, format_args!("{member} starts, log to {last:?}, state of {applied:?}"));
            let machine = &self.machines[usize::from(member) - 1];
            let checked = recovery::check_state(member, &state, &self.checks.truth);
            let wrong = machine.blame.flipped.clone().filter(|_| checked.is_err());
            if !machine.blame.is_foreign && wrong.is_none() {
                checked?;
            }
            self.checks.sessions.begins(member, last.unwrap_or_default().0);
            drop(state);
            let machine = self.machine(member);
            (machine.blame.was_wrong, machine.blame.wrong) = (wrong.is_some(), wrong);
        }
        self.begin_process(member)
    }

    /// A member's number is compared with that of its disk before anything else is read.
    fn start_with_disk_of_another(&mut self, member: u8, disk: &SimDisk) -> Checked {
        let (now, settings) = (self.now, self.plan.settings.clone());
        let started = self.machine(member).start_with(disk, now, &settings);
        let is_refused = matches!(
            &started,
            Err(MemberError::Recovery(RecoveryError::Identity(IdentityError::AnotherMember { configured, .. })))
                if *configured == settings.numbering.number(member)
        );
        self.trace.note(now, format_args!("{member} is refused the disk of another member: {started:?}"));
        ensure!(is_refused, ISOLATION, "member {member} starts with the disk of another member: {started:?}");
        self.plan_in(RESTART, WorldEvent::Start { member });
        Ok(())
    }

    fn begin_process(&mut self, member: u8) -> Checked {
        self.end_twin();
        for (span, what) in [(TICK, Act::Tick), (TOUCHES, Act::Touches), (HOUSE, Act::KeepHouse)] {
            let first = SimDuration(self.chance.below(span.0));
            self.plan_act(member, first, what);
        }
        self.work(member)
    }

    fn plan_act(&mut self, member: u8, span: SimDuration, what: Act) {
        let life = self.machine(member).life;
        self.plan_in(span, WorldEvent::Process { member, life, what });
    }

    pub(super) fn act(&mut self, member: u8, life: u64, what: Act) -> Checked {
        let now = self.now;
        let machine = self.machine(member);
        if machine.life != life || machine.process.is_none() {
            return Ok(());
        }
        if machine.is_paused(now) {
            self.freeze(member, WorldEvent::Process { member, life, what });
            return Ok(());
        }
        let (clock, local) = (machine.clock, machine.now(now));
        let process = machine.process.as_mut().expect("that was just looked at");
        match what {
            Act::Work => process.is_woken = false,
            Act::Tick => process.tick_is_due(),
            Act::Done => {
                process.is_busy = false;
                machine.disk.complete_sync();
            }
            Act::Mail { worker } => {
                let packets = process.beside(local).deliver(worker);
                self.send_packets(packets);
                self.wake(member);
                return Ok(());
            }
            Act::Turns => {
                process.are_turns_planned = false;
                let packets = process.beside(local).take_turns();
                self.send_packets(packets);
                self.wake(member);
                return Ok(());
            }
            Act::Touches => {
                let packets = process.beside(local).report_heard();
                self.send_packets(packets);
                self.plan_act(member, clock.world_span(TOUCHES), Act::Touches);
                self.wake(member);
                return Ok(());
            }
            Act::Walk => {
                if process.beside(local).walk() {
                    let pause = SimDuration(self.chance.mostly_low(50, 20_000));
                    self.plan_act(member, pause, Act::Walk);
                }
                return self.look_after(member, Ok(()));
            }
            Act::KeepHouse => {
                let kept = process.keep_house().map(drop);
                self.plan_act(member, HOUSE, Act::KeepHouse);
                return self.look_after(member, kept);
            }
        }
        self.work(member)
    }

    /// Tells the engine, some time from now, that something is in its inbox.
    pub(super) fn wake(&mut self, member: u8) {
        self.plan_turns(member);
        let Some(process) = self.machine(member).process.as_mut() else { return };
        if process.has_work() && !process.is_woken {
            process.is_woken = true;
            let delay = SimDuration(self.chance.mostly_low(1, 300));
            self.plan_act(member, delay, Act::Work);
        }
    }

    /// Lets connections go on, some time from now, whose turns were cut short.
    fn plan_turns(&mut self, member: u8) {
        let Some(process) = self.machine(member).process.as_mut() else { return };
        if process.has_put_off() && !process.are_turns_planned {
            process.are_turns_planned = true;
            let delay = SimDuration(self.chance.mostly_low(1, self.plan.turns.0));
            self.plan_act(member, delay, Act::Turns);
        }
    }

    /// Lets the engine work until it rests, or waits for its disk.
    fn work(&mut self, member: u8) -> Checked {
        let (now, sync) = (self.now, self.plan.sync);
        let machine = self.machine(member);
        let local = machine.now(now);
        let Some(mut process) = machine.process.take_if(|process| !process.is_busy) else {
            return Ok(());
        };
        let (disk, mut round_output) = (machine.disk.clone(), RoundOutput::default());
        let mut meanwhile = Meanwhile::new(self, member);
        let next = process.turn(local, &disk, &mut round_output, &mut meanwhile);
        let Witnessed { heard, passed } = meanwhile.into_witnessed();
        let machine = self.machine(member);
        let process = machine.process.insert(process);
        let goes_on = machine.blame.is_told_to_stop && matches!(next, Ok(NextWork::Rest));
        ensure!(
            !goes_on,
            AGREEMENT,
            "member {member} goes on with a state of which it was told that most have another"
        );
        let applied = process.state.read().applied().0;
        machine.promises.applied = machine.promises.applied.max(applied);
        let pause = match next {
            Ok(NextWork::Synced) => Some(machine.sync_takes(now, sync)),
            _ => None,
        };
        if let (Some(pause), Some(process)) = (pause, machine.process.as_mut()) {
            (process.is_busy, process.last_sync) = (true, pause);
            self.plan_act(member, pause, Act::Done);
        }
        if self.machine(member).process.as_mut().is_some_and(SimProcess::has_ticked) {
            let span = self.machine(member).clock.world_span(TICK);
            self.plan_act(member, span, Act::Tick);
            self.look_if_removed(member)?;
            self.look_at_contact(member, local.monotonic_ms)?;
            self.submit_to_groups(member);
        }
        self.plan_turns(member);
        self.look_at_role(member);
        // Memory that was damaged may be right again at the end of the entry, and was not within it.
        let was_wrong = self.machine(member).blame.wrong.is_some();
        self.note_output(member, round_output, local.monotonic_ms)?;
        // What the engine said in this turn it said without knowing of them.
        for session in heard {
            self.checks.sessions.heard(member, session, local.monotonic_ms);
        }
        for seen in passed.iter().filter(|_| !was_wrong) {
            agreement::check_passed(member, seen, &self.checks.truth)?;
        }
        self.look_after(member, next.map(drop))
    }

    /// A member that was removed, and knows, serves no client.
    fn look_if_removed(&mut self, member: u8) -> Checked {
        let machine = &self.machines[usize::from(member) - 1];
        let Some(process) = machine.process.as_ref().filter(|_| !machine.blame.is_foreign) else {
            return Ok(());
        };
        let state = process.state.read();
        let ensemble = state.tree().ensemble();
        let is_removed = ensemble
            .is_some_and(|ensemble| !ensemble.all_members().any(|other| machine_of(other.id) == member));
        self.checks.moves.tick(member, is_removed);
        self.checks.moves.check_removed(member, process.conns().map(|conn| process.session(conn)))
    }

    fn look_at_contact(&mut self, member: u8, now_ms: u64) -> Checked {
        let machine = &self.machines[usize::from(member) - 1];
        let Some(process) = machine.process.as_ref().filter(|_| !machine.blame.is_foreign) else {
            return Ok(());
        };
        let (confirmed_ms, applied) = (process.confirmed_ms(), process.state.read().applied().0);
        self.checks.contact.check(member, (now_ms, self.now), confirmed_ms, applied)
    }

    /// Hands on what a member had to say.
    fn note_output(&mut self, member: u8, round_output: RoundOutput, now_ms: u64) -> Checked {
        if self.machine(member).blame.is_foreign {
            return self.note_foreign_output(member, round_output);
        }
        let has_applied = !round_output.committed.is_empty();
        self.note_committed(member, &round_output.committed, round_output.committed_in_groups, now_ms)?;
        self.send_what_is_said(member, round_output.letters)?;
        for worker in round_output.woken {
            let (least, most) = self.plan.mail;
            let delay = SimDuration(self.chance.mostly_low(least.0, most.0));
            self.plan_act(member, delay, Act::Mail { worker });
        }
        if round_output.orders_snapshot {
            let delay = SimDuration(self.chance.mostly_low(1, 5000));
            self.plan_act(member, delay, Act::Walk);
        }
        let has_been_wrong =
            |number: u8| self.machines.iter().any(|m| m.number == number && m.blame.has_been_wrong);
        ensure!(
            has_been_wrong(member) || round_output.differing.iter().all(|other| has_been_wrong(*other)),
            AGREEMENT,
            "member {member} says that it differs from {:?}",
            round_output.differing
        );
        self.check_agreement(member, has_applied)
    }

    /// A member has applied entries, or has a state with them: of the home group, and of the others behind the number of their group.
    fn note_committed(
        &mut self,
        member: u8,
        committed: &[LogEntry],
        in_groups: Vec<(u32, LogEntry)>,
        now_ms: u64,
    ) -> Checked {
        for entry in committed {
            self.trace.note(
                self.now,
                format_args!("{member} applies entry {} of term {}", entry.index, entry.term),
            );
            if let Some(raised) = entry.raised_level() {
                let builds = self.machines.iter().map(|machine| (machine.number, machine.build));
                features::check_raised(member, raised.level, builds)?;
            }
            self.checks.committed(member, entry, now_ms)?;
            if self.checks.sessions.has_expired() {
                let believers = self.believers();
                self.checks.sessions.check_beliefs(self.now, &believers)?;
            }
        }
        self.look_at_groups(member, in_groups)
    }

    /// Checks what a member says to others, and sends it.
    fn send_what_is_said(&mut self, member: u8, letters: Vec<(u8, Vec<u8>)>) -> Checked {
        for (to, bytes) in letters {
            self.look_at_group_letter(member, to, &bytes)?;
            let MessageFacts { entries, term, campaign, vote, acknowledges, hands_over, digest, .. } =
                MessageFacts::of(&bytes);
            self.machine(member).promises.told_digests.extend(digest);
            if let Some(acknowledged) = acknowledges {
                self.machine(member).acknowledges(acknowledged);
            }
            if hands_over {
                self.deafen_if_planned(member);
            }
            if let Some((term, is_told)) = campaign {
                self.checks.elections.check_campaign(member, term, is_told)?;
                self.votes(member, term, member)?;
            }
            if let Some(term) = vote {
                self.checks.elections.check_vote(member, term, to)?;
                self.votes(member, term, to)?;
            }
            for entry in entries.iter().filter(|entry| entry.term == term) {
                self.checks.sessions.proposed(member, entry)?;
                self.checks.contact.proposed(entry, self.now);
            }
            self.send_letter(member, to, bytes);
        }
        Ok(())
    }

    /// Checks the state of a member, unless its memory was damaged.
    fn check_agreement(&mut self, member: u8, has_applied: bool) -> Checked {
        if self.machine(member).blame.wrong.is_some() {
            return self.look_if_learned(member);
        }
        let looks = has_applied && self.chance.one_in(LOOK_ONE_IN);
        let Some(process) = &self.machines[usize::from(member) - 1].process else { return Ok(()) };
        let state = process.state.read();
        agreement::check_digest(member, &state, &mut self.checks.truth)?;
        if looks {
            agreement::check_state(member, &state, &self.checks.truth)?;
            ephemerals::check_owners(member, state.tree())?;
        }
        Ok(())
    }

    /// A member whose state was wrong may have got the right one, in a snapshot.
    fn look_if_learned(&mut self, member: u8) -> Checked {
        let Some(process) = &self.machines[usize::from(member) - 1].process else { return Ok(()) };
        let is_right = agreement::check_state(member, &process.state.read(), &self.checks.truth).is_ok();
        if is_right {
            self.machine(member).blame.wrong = None;
        }
        Ok(())
    }

    /// A member of another ensemble says what it likes, and has no part in this one.
    fn note_foreign_output(&mut self, member: u8, round_output: RoundOutput) -> Checked {
        let role = self.machine(member).process.as_ref().map(|process| process.role());
        ensure!(
            matches!(role, None | Some(Role::Looking | Role::ReadOnly)),
            ISOLATION,
            "member {member} has the disk of another ensemble, and is {role:?} in this one"
        );
        for (to, bytes) in round_output.letters {
            self.send_letter(member, to, bytes);
        }
        Ok(())
    }

    /// A member lets others know of its vote.
    fn votes(&mut self, member: u8, term: u64, candidate: u8) -> Checked {
        let id = raft_id(self.plan.settings.numbering.number(candidate));
        let machine = self.machine(member);
        machine.votes(term, id);
        if machine.blame.is_damaged || machine.promises.forgot == 0 {
            return Ok(());
        }
        let (last, forgot) = (machine.last_logged_entry().map(|(index, _)| index), machine.promises.forgot);
        elections::Elections::check_has_learned(member, last, forgot)
    }

    /// Looks whether the process lives and who it thinks that it is.
    fn look_after(&mut self, member: u8, went: Result<(), MemberError>) -> Checked {
        let now = self.now;
        if let Some(span) = self.machine(member).take_filled(now) {
            self.trace.note(
                now,
                format_args!("the disk of {member} is full for {span}, at a snapshot of the leader"),
            );
            self.plan_in(span, WorldEvent::Room { member });
        }
        let machine = self.machine(member);
        let is_dead = machine.disk.is_dead();
        let is_diverged = machine.blame.was_wrong && matches!(went, Err(MemberError::Diverged { .. }));
        if let Err(error) = &went {
            features::check_error(member, error)?;
            // A snapshot that has come takes the place of the log, and there is no way back.
            let has_no_room = machine.is_full(now) && matches!(error, MemberError::Incoming(_));
            let is_disturbed =
                machine.faults.is_disturbed || machine.blame.is_damaged || is_dead || has_no_room;
            self.trace.note(now, format_args!("{member} stops: {error}"));
            let is_disturbed = is_disturbed || is_diverged;
            ensure!(is_disturbed, PROGRESS, "member {member} stops without need: {error}");
        }
        if went.is_err() || is_dead {
            let end = self.machine(member).faults.death;
            self.end(member, end);
            if is_diverged && !is_dead {
                let forgets = self.checks.truth.last_index();
                self.machine(member).puts_state_aside(forgets);
                self.checks.groups.loses_data(member);
            }
            let down = SimDuration(self.chance.mostly_low(10_000, RESTART.0));
            self.plan_in(down, WorldEvent::Start { member });
            return Ok(());
        }
        Ok(())
    }

    fn look_at_role(&mut self, member: u8) {
        if self.machine(member).blame.is_foreign {
            return;
        }
        let now = self.now;
        let machine = self.machine(member);
        let role = machine.process.as_ref().map(|process| process.role());
        let now_ms = machine.now(now).monotonic_ms;
        self.checks.sessions.look_at(member, role, now_ms);
    }

    /// Something happens to a paused machine: it waits.
    pub(super) fn freeze(&mut self, member: u8, event: WorldEvent) {
        self.frozen.entry(member).or_default().push(event);
    }

    /// Lets events happen now that have waited, if the machine goes on.
    pub(super) fn thaw(&mut self, member: u8) {
        let now = self.now;
        if !self.machine(member).is_paused(now) {
            let frozen = self.frozen.remove(&member).unwrap_or_default();
            frozen.into_iter().for_each(|event| self.queue.plan(now, event));
        }
    }

    /// The process is gone. Its connections break; no other machine learns that at once from a machine without power.
    pub(super) fn end(&mut self, member: u8, end: End) {
        let now = self.now;
        if self.twin.as_ref().is_some_and(|twin| twin.member == member) {
            self.end_twin();
        }
        self.trace.note(now, format_args!("{member} ends: {end:?}"));
        let machine = self.machine(member);
        let now_ms = machine.now(now).monotonic_ms;
        machine.end(now, end == End::PowerCut);
        self.thaw(member);
        self.checks.sessions.look_at(member, None, now_ms);
        self.checks.elections.ends(member);
        self.checks.moves.ends(member);
        self.checks.contact.ends(member);
        self.network.reset(member);
        if end != End::PowerCut {
            let conns = self.wires.iter().filter(|(_, wire)| wire.member == member);
            let packets = conns.map(|(conn, _)| (*conn, WirePacket::Closed)).collect();
            self.send_packets(packets);
        }
    }

    pub(super) fn send_letter(&mut self, from: u8, to: u8, bytes: Vec<u8>) {
        for (at, resets) in self.network.send(self.now, from, to) {
            let bytes = bytes.clone();
            self.queue.plan(at, WorldEvent::Letter { from, to, resets, bytes });
        }
    }

    pub(super) fn letter(&mut self, from: u8, to: u8, resets: u64, bytes: Vec<u8>) -> Checked {
        let now = self.now;
        match self.network.fate(now, from, to, resets) {
            Fate::Arrives => {}
            Fate::Lost => return Ok(()),
            Fate::Held(until) => {
                self.queue.plan(until, WorldEvent::Letter { from, to, resets, bytes });
                return Ok(());
            }
        }
        let late_until = self.machine(to).home_late_until;
        if late_until > now && open_message(bytes.clone()).is_some_and(|(group, _)| group == 0) {
            self.queue.plan(late_until, WorldEvent::Letter { from, to, resets, bytes });
            return Ok(());
        }
        let mut leads =
            |from: u8, to: u8| self.machine(from).process.as_ref().map(|process| process.links.lead_to(to));
        // A sender that has ended since had a link if the receiver has one.
        if leads(from, to) == Some(false) || leads(to, from) != Some(true) {
            return Ok(());
        }
        let machine = self.machine(to);
        if machine.is_deaf(now) {
            self.freeze(to, WorldEvent::Letter { from, to, resets, bytes });
            return Ok(());
        }
        let now_ms = machine.now(now).monotonic_ms;
        match open_message(bytes.clone()) {
            Some((group, message)) if group > 0 => {
                let about = describe(&message);
                self.trace.note(now, format_args!("{from} to {to}, group {group}: {about}"));
            }
            _ => self.trace.note(now, format_args!("{from} to {to}: {}", describe(&bytes))),
        }
        let glimpse = MessageFacts::of(&bytes);
        // A process that has just begun is not heard while the one before it may still live.
        let is_heard = self.machine(from).is_heard(now);
        for session in glimpse.heard.into_iter().filter(|_| is_heard) {
            self.checks.sessions.heard(to, session, now_ms);
        }
        if glimpse.promises {
            self.checks.elections.promised(to);
        }
        if let Some(right) = glimpse.diverged {
            self.machine(to).is_told(right);
        }
        self.copy_to_twin(from, to, &bytes)?;
        let number = self.plan.settings.numbering.number(from);
        let process = self.machine(to).process.as_mut().expect("that was just looked at");
        process.put(Input::Peer { from: raft_id(number), bytes });
        self.wake(to);
        Ok(())
    }
}
