//! Collecting what is to be done: batches and reports for the leader, rounds of the Raft library, messages, questions.

use paddock_proto::{OpCode, encode};
use paddock_state::Now;

use super::Replica;
use crate::confirming::Reports;
use crate::durability::DiskRound;
use crate::effects::Effects;
use crate::founding::{FOUNDING_ROUND, first_entry, naming_commands};
use crate::leading::Leading;
use crate::message::{ConfirmationLimits, Envelope, PeerMessage};
use crate::own_cluster::new_cluster_id;
use crate::proposal_sizes::ProposalSizes;
use crate::question::Question;
use crate::queued_item::QueuedItem;
use crate::raft_id::{all_logged, logged};
use crate::requests::Placed;
use crate::{Cluster, HardState, LogEntry};

impl Replica<'_> {
    /// Collects what is to be done now. To be called, and its effects carried out, until there are none.
    pub fn collect(&mut self, now: Now, effects: &mut Effects) {
        self.found(effects);
        if self.group.joining.is_writing_first_entry() {
            return;
        }
        if self.group.is_home() {
            self.name_ensemble(now);
            for input in self.presence.gates.take_free() {
                self.step(now, input);
            }
        }
        self.group.requests.close_batch();
        self.group.digests.report(effects);
        if let Some(leader) = self.other_leader() {
            self.group.digests.tell(leader, &mut effects.messages);
        }
        self.group.transfer.receiver.ask_for_piece(&mut effects.messages);
        self.group.outgoing.move_to(effects);
        self.send_batches(now, effects);
        if self.group.is_home() {
            self.report_to_leader(now, effects);
            if let Some(sought) = self.presence.told_members.take_news() {
                effects.sought_members = Some(sought);
            }
        }
        self.propose();
        self.place_items(now, effects);
        effects.locals |= self.group.garbage.is_due() || self.group.read_only.has_work();
        self.collect_rounds(effects);
        self.group.durability.release_messages(&mut effects.messages);
        let envelope = Envelope { cluster: self.cluster(), process: self.presence.options.process };
        effects.messages.iter_mut().for_each(|(_, message)| envelope.seal(message));
        self.presence.cluster.report_foreign(&mut effects.foreign);
        effects.locals |= self.group.requests.is_ready(self.group.applied.index());
        effects.wants_snapshot |= self.group.consensus.wants_snapshot();
    }

    fn collect_rounds(&mut self, effects: &mut Effects) {
        while let Some(round) = self.group.consensus.round() {
            effects.committed.extend(round.committed);
            let out = &mut effects.messages;
            self.group.durability.send_of_leader(round.vote, round.number, round.messages, out);
            for (question, index) in round.answers {
                self.on_answer(question, index, effects);
            }
            self.ask_again(effects);
            self.group.durability.hold(round.number, round.messages_once_persisted);
            if round.install.is_some() {
                assert!(
                    effects.committed.is_empty(),
                    "entries before a snapshot are applied before it comes"
                );
                effects.install = round.install;
            }
            self.record(round.vote, round.entries, round.number, effects);
        }
        self.group.durability.record_silence(self.silent_until(), self.learned_through(), effects);
    }

    /// Entry up to which this member is silent, as its hard state says it.
    fn silent_until(&self) -> u64 {
        self.group.joining.silent_until().unwrap_or_default()
    }

    /// Entry up to which this member has learned the home group's state, as its hard state says it.
    fn learned_through(&self) -> u64 {
        match self.presence.learned_through {
            u64::MAX => self.group.durability.written().learned_through,
            through if self.group.is_home() => through,
            _ => 0,
        }
    }

    /// Records on disk what a round promises. `vote` is the term and the vote, if one of them has changed.
    fn record(
        &mut self,
        vote: Option<(u64, u64)>,
        entries: Vec<LogEntry>,
        number: u64,
        effects: &mut Effects,
    ) {
        if self.group.is_home() {
            self.presence.cluster.note_entries(&entries);
        }
        let written = self.group.durability.written();
        let (term, vote) = vote.unwrap_or((written.term, written.vote));
        let hard_state = HardState {
            term,
            vote,
            commit: self.group.consensus.committed(),
            silent_until: self.silent_until(),
            incarnation: self.group.requests.origin().incarnation,
            learned_through: self.learned_through(),
        };
        let is_in_ensemble = !self.group.consensus.is_alone();
        let round = DiskRound { number, hard_state, entries, is_in_ensemble };
        if !self.group.durability.record(round, effects) {
            self.on_persisted(number);
        }
    }

    /// Writes the first entry, if it is time.
    fn found(&mut self, effects: &mut Effects) {
        let founding = &self.group.founding;
        if !self.group.consensus.is_empty()
            || !self.group.joining.may_found(founding, self.presence.learned_through)
        {
            return;
        }
        // Members that began the group may have left it since, and may have come back without their data.
        if !self.group.is_home() && !self.presence.rosters.may_found(self.group.number) {
            return;
        }
        let founders = &founding.membership;
        self.group.joining.begin_writing_first_entry();
        let (entry, hard_state) = first_entry(founders, self.group.durability.written());
        tracing::debug!(voters = ?all_logged(&founders.voters), "founding");
        effects.entries.push(entry);
        effects.hard_state = Some(hard_state);
        effects.round = Some(FOUNDING_ROUND);
        self.group.durability.set_written(hard_state);
    }

    /// Announces who the members are, and what the ensemble is called, if this is the first leader.
    fn name_ensemble(&mut self, now: Now) {
        if self.group.membership.has_target() || self.presence.options.founding.members.is_empty() {
            return;
        }
        // Behind the first entry of its own a leader knows all that was ever said.
        let knows_all = self.group.consensus.is_leader()
            && self.group.applied.term() == self.group.consensus.leadership().term;
        let Some(leading) = self.group.leading.as_mut().filter(|leading| !leading.has_named_ensemble())
        else {
            return;
        };
        if !knows_all {
            return;
        }
        leading.note_named_ensemble();
        let cluster = match self.presence.cluster.cluster() {
            Cluster::Proposed(id) => id,
            Cluster::None | Cluster::Known(_) => new_cluster_id(self.presence.options.process, now),
        };
        let membership = self.group.consensus.membership();
        for (op, body) in naming_commands(cluster, &self.presence.options.founding.members, membership) {
            leading.announce(op, &body);
        }
    }

    /// The leader, if it is another member.
    pub(super) fn other_leader(&self) -> Option<u64> {
        self.group.leadership.leader.filter(|leader| *leader != self.presence.options.member)
    }

    /// Tells the parts when another member leads, this one or another, or in another term: everything is sent anew.
    pub(super) fn follow_leadership(&mut self, now: Now) {
        let leadership = self.group.consensus.leadership();
        if leadership == self.group.leadership {
            return;
        }
        if !self.group.consensus.is_alone() {
            let term = leadership.term;
            match leadership.leader {
                Some(leader) => tracing::info!(leader = logged(leader), term, "leader elected"),
                None => tracing::info!(term, "no leader: looking for one"),
            }
        }
        self.group.leadership = leadership;
        let (lease_clock_bound_ms, stamps) = (self.presence.options.lease_clock_bound_ms, self.stamp_clock());
        self.group.leading =
            self.group.consensus.is_leader().then(|| Leading::new(lease_clock_bound_ms, stamps));
        if self.group.is_home() {
            self.propose_secret(now);
            self.presence.contact.make_due();
            self.presence.file_lists.begin_anew();
            self.presence.rosters.begin_anew();
            // What a former leader heard is not known here.
            self.presence.sessions.renew_all(now.monotonic_ms);
        }
        self.group.transfer.receiver.forget_unless_of(leadership.term);
        self.group.requests.send_all_again();
        self.group.digests.tell_anew();
        self.group.membership.reconsider();
    }

    /// Proposes a secret for passwords of sessions, if the state has none, in front of everything that is still to come into the log:
    /// no session begins without it. If another one comes into the log before, that one counts.
    pub(super) fn propose_secret(&mut self, now: Now) {
        if self.group.applied.has_secret {
            return;
        }
        if let Some(leading) = &mut self.group.leading {
            let mut body = Vec::new();
            encode::secret(&mut body, &self.presence.options.secret);
            leading.announce(OpCode::SetSecret, &body);
        }
        self.place_announcements(now);
    }

    /// Sends outstanding batches to the leader: new ones, or all if it is another leader or nothing came back.
    fn send_batches(&mut self, now: Now, effects: &mut Effects) {
        self.follow_leadership(now);
        self.group.requests.resend_if_lost();
        let may_send = !self.group.read_only.is_learning() && !self.group.joining.awaits_admission();
        let Some(leader) = self.group.leadership.leader.filter(|_| may_send) else { return };
        if !self.group.consensus.is_leader() {
            let forwards = self.group.requests.unsent().into_iter().map(PeerMessage::Forward);
            return effects.messages.extend(forwards.map(|forward| (leader, forward.encode())));
        }
        if !self.group.consensus.takes_proposals() {
            return;
        }
        self.place_announcements(now);
        for batch in self.group.requests.unsent() {
            self.place(now, &batch);
        }
    }

    /// Puts what this leader has announced behind all that it has taken so far.
    pub(super) fn place_announcements(&mut self, now: Now) {
        let origin = self.group.requests.origin();
        let announced = self.group.leading.as_mut().map(|leading| leading.take_announcements(origin));
        announced.into_iter().flatten().for_each(|batch| self.place(now, &batch));
    }

    /// Puts a batch of this leader into the entry under construction, or into another one.
    fn place(&mut self, now: Now, batch: &[u8]) {
        self.make_room_for(batch.len());
        if let Some(leading) = &mut self.group.leading {
            leading.add_own(batch, now);
        }
    }

    /// Proposes the entry under construction if a batch of this many bytes does not fit into it.
    pub(super) fn make_room_for(&mut self, bytes: usize) {
        if self.group.leading.as_ref().is_some_and(|leading| !leading.has_room_for(bytes)) {
            self.propose();
            if let Some(leading) = &mut self.group.leading {
                leading.begin_entry();
            }
        }
    }

    /// Turns the leader's batches into entries of the log.
    fn propose(&mut self) {
        let is_ensemble_named = !self.group.is_home()
            || self.group.membership.has_target()
            || self.presence.options.founding.members.is_empty();
        let Some(leading) = self.group.leading.as_mut().filter(|_| self.group.consensus.takes_proposals())
        else {
            return;
        };
        while let Some(entry) = leading.take_entry(is_ensemble_named) {
            leading.proposals = Some(ProposalSizes::with(leading.proposals, entry.len()));
            self.group.consensus.propose(entry);
        }
    }

    /// Finds a place for items that need no entry.
    fn place_items(&mut self, now: Now, effects: &mut Effects) {
        let is_alone = self.group.consensus.is_alone();
        let is_linearizable = self.presence.options.linearizable_reads;
        let needs_quorum = |item: &QueuedItem| !is_alone && item.needs_quorum(is_linearizable);
        match self.group.requests.place_items(now.monotonic_ms, needs_quorum) {
            Placed::Behind => {}
            Placed::AwaitQuorum => self.ask_questions(now),
            Placed::First => effects.locals = true,
        }
    }

    /// Asks the leader the newest question without an answer. A leader with a lease answers at once.
    pub(super) fn ask_questions(&mut self, now: Now) {
        let Some(question) = self.group.requests.ask() else { return };
        let has_lease =
            self.group.leading.as_ref().is_some_and(|leading| leading.lease.is_valid(now.monotonic_ms));
        if self.group.consensus.is_leader() && has_lease {
            self.group.requests.answer(question, self.group.consensus.committed());
        } else {
            self.group.consensus.ask_index(question);
        }
    }

    /// A quorum has confirmed who leads, after it was asked for that.
    fn on_answer(&mut self, question: Question, index: u64, effects: &mut Effects) {
        if question.number == Question::OF_LEADER {
            return self.confirm_reports(question, effects);
        }
        let asked_ms = self.group.requests.answer(question, index);
        if let Some(asked_ms) = asked_ms
            && self.group.consensus.takes_proposals()
            && let Some(leading) = &mut self.group.leading
        {
            leading.lease.extend(asked_ms);
        }
    }

    /// Reports to the leader, who may be this member, which sessions were heard.
    fn report_to_leader(&mut self, now: Now, effects: &mut Effects) {
        let takes_turn = self.presence.contact.takes_turn();
        // Before it is admitted the leader may not listen to this process yet.
        if !self.presence.contact.is_due()
            || self.group.consensus.is_alone()
            || self.group.joining.awaits_admission()
        {
            return;
        }
        if self.group.consensus.is_leader() {
            let (number, _) = self.presence.contact.report(now.monotonic_ms);
            if let Some(leading) = &mut self.group.leading {
                leading.confirming.receive(
                    self.presence.options.member,
                    self.presence.options.process,
                    number,
                );
            }
            self.ask_if_still_leading(effects);
        } else if let Some(leader) = self.reachable_leader().filter(|_| takes_turn) {
            let (number, sessions) = self.presence.contact.report(now.monotonic_ms);
            effects.messages.push((leader, PeerMessage::Heard { number, sessions }.encode()));
        }
    }

    /// The leader to report to. A member whose disk is full takes nothing that would have to be written, and so forgets its
    /// leader. It reports to the one that speaks to it: the confirmation tells whether a quorum follows that one.
    fn reachable_leader(&self) -> Option<u64> {
        let leader = self.other_leader();
        if self.presence.is_disk_full { self.presence.contact.speaker().or(leader) } else { leader }
    }

    /// A leader whose question was under way when it should have asked the next one asks that now. Else the next tick is soon enough for what it
    /// was told since: one heartbeat for each tick carries all its questions.
    fn ask_again(&mut self, effects: &mut Effects) {
        if self.group.leading.as_ref().is_some_and(|leading| leading.confirming.is_behind()) {
            self.ask_if_still_leading(effects);
        }
    }

    /// A leader asks its quorum, if there are reports to confirm.
    fn ask_if_still_leading(&mut self, effects: &mut Effects) {
        let Some(leading) = self.group.leading.as_mut().filter(|_| self.group.consensus.is_leader()) else {
            return;
        };
        if !leading.confirming.is_question_due() {
            return;
        }
        self.confirm_with_question(effects);
        let question = self.group.requests.ask_as_leader();
        if let Some(leading) = &mut self.group.leading {
            leading.confirming.note_asked(question.asking);
        }
        self.group.consensus.ask_index(question);
    }

    /// Confirms the reports of members that are a quorum together with this leader, beside the question: where one of them finds no later term than
    /// this leader's, no member leads in one. It looks at the term before the confirmation counts, so its answer need not come back first.
    fn confirm_with_question(&mut self, effects: &mut Effects) {
        let Some(ended_through) = self.ended_through().filter(|_| self.has_applied_own_entry()) else {
            return;
        };
        let Some(leading) = &mut self.group.leading else { return };
        let consensus = &self.group.consensus;
        let reports = leading.confirming.take_received(|member| consensus.is_quorum_with(member));
        self.confirm(reports, ended_through, effects);
    }

    /// Confirms reports: a quorum followed this leader after it was asked.
    fn confirm_reports(&mut self, question: Question, effects: &mut Effects) {
        let Some(leading) =
            self.group.leading.as_mut().filter(|_| question.origin == self.group.requests.origin())
        else {
            return;
        };
        let reports = leading.confirming.answer(question.asking);
        // Ends that are not proposed yet have no entry that others could wait for: later reports are confirmed.
        let Some(ended_through) = self.ended_through() else { return };
        self.confirm(reports, ended_through, effects);
    }

    /// Entry up to which sessions may have been ended by this leader and by those before it; none if this leader has announced ends that stand in no entry.
    fn ended_through(&mut self) -> Option<u64> {
        let last = self.group.consensus.last_entry();
        let ended = self.group.leading.as_mut()?.ended_through(last)?;
        // Ends by former leaders are known once an entry of this term is applied.
        let knows_all = self.has_applied_own_entry();
        Some(if knows_all { ended.max(self.presence.sessions.ended_through) } else { last })
    }

    /// True once an entry of this leader's own term is applied.
    fn has_applied_own_entry(&self) -> bool {
        self.group.applied.term() == self.group.leadership.term
    }

    fn confirm(&mut self, reports: Reports, ended_through: u64, effects: &mut Effects) {
        let term = self.group.leadership.term;
        for (member, (process, number)) in reports {
            if member == self.presence.options.member {
                self.presence.contact.confirm(number, ended_through, self.group.applied.index());
            } else {
                let limits = Some(ConfirmationLimits { process, term, ended_through });
                effects.messages.push((member, PeerMessage::Confirmed { number, limits }.encode()));
            }
        }
    }
}
