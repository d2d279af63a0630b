//! Messages of other members, and what a member that has no say yet does about them.

use paddock_state::Now;
use paddock_tree::{FeatureLevel, Origin, digest_of_members};
use raft::eraftpb::{Message, MessageType};

use super::Replica;
use crate::admission::AdmissionState;
use crate::configuration::check_levels;
use crate::consensus::Consensus;
use crate::digests::ToldDigest;
use crate::effects::{SnapshotRead, SnapshotWrite};
use crate::founding::first_entry;
use crate::message::{Condition, ConfirmationLimits, Envelope, Greeting, PeerMessage, Purpose, Ruling};
use crate::processes::Speaker;
use crate::raft_id::{all_logged, logged};
use crate::{Cluster, Founding, Membership, Recovered, ReplicaOptions};

impl Replica<'_> {
    pub(super) fn on_lost_link(&mut self, peer: u64) {
        self.presence.processes.lose(peer);
        self.presence.levels.forget(peer);
        // A lease is the promise that no other member leads before an election timeout is over, whatever becomes of links.
        if self.presence.options.lease_clock_bound_ms.is_none() {
            self.group.consensus.lost_link(peer);
        }
    }

    pub(super) fn on_message(&mut self, now: Now, from: u64, message: &[u8]) {
        let opened =
            Envelope::open(message).and_then(|(envelope, body)| Ok((envelope, PeerMessage::decode(body)?)));
        let (envelope, message) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                return tracing::error!(from = logged(from), %error, "message of another member cannot be read");
            }
        };
        if self.cluster().is_foreign_to(envelope.cluster) {
            return self.presence.cluster.note_foreign(from, envelope.cluster, is_only_of_leader(&message));
        }
        self.presence.cluster.note_own(from);
        // The log is about to begin: a message for the one before is lost.
        if self.group.joining.is_writing_first_entry()
            || !self.hears(from, envelope.process, now.monotonic_ms)
        {
            return;
        }
        // Once the founding stands in the log, the others who founded have the same proposal, or have it from the log soon. A
        // member that comes with another one later was not among them, or has forgotten.
        if let PeerMessage::Greeting(greeting) = &message
            && self.group.is_home()
            && self.group.consensus.is_empty()
        {
            let has_begun = matches!(greeting.condition, Condition::Established | Condition::Founding);
            self.presence.cluster.agree(envelope.cluster, has_begun);
        }
        match message {
            PeerMessage::Greeting(greeting) => self.on_greeting(from, envelope, greeting),
            // A member without data belongs to no ensemble yet, and asks all the same.
            PeerMessage::AskMembers(mark) => {
                let answer = self.presence.told_members.answer(mark);
                let answer = answer.map(|(version, lines)| PeerMessage::Members { version, lines }.encode());
                self.group.outgoing.messages.extend(answer.map(|answer| (from, answer)));
            }
            PeerMessage::Members { version, lines } => self.presence.told_members.hear(version, &lines),
            message if self.cluster().shares_log_with(envelope.cluster) => {
                self.on_log_message(now, (from, envelope.process), message);
            }
            // This member has no data, and hears that there is an ensemble.
            PeerMessage::Raft(message) if self.cluster().known().is_none() => self.note_leader(&message),
            _ => {}
        }
    }

    /// True if a message is to be heard that comes from `process` in the name of `from`.
    fn hears(&mut self, from: u64, process: u64, now_ms: u64) -> bool {
        match self.presence.processes.hear(from, process, now_ms) {
            Speaker::Known => true,
            Speaker::Successor => {
                self.presence.levels.forget(from);
                self.presence.successions.push(from);
                self.note_restart(from);
                true
            }
            Speaker::NewRival => {
                tracing::error!(
                    member = logged(from),
                    "two processes run with one member number: the second one is not heard; stop it, or give it its own"
                );
                false
            }
            Speaker::Rival => false,
        }
    }

    /// A leader that hears of a member again knows which entries it had acknowledged, and that it may not have them any
    /// more.
    pub fn note_restart(&mut self, member: u64) {
        if self.group.consensus.is_leader()
            && let Some(acknowledged) = self.group.consensus.forget_matched(member)
            && let Some(leading) = &mut self.group.leading
        {
            leading.note_restart(member, acknowledged);
        }
    }

    /// Takes a message of a member of the same ensemble.
    fn on_log_message(&mut self, now: Now, (from, process): (u64, u64), message: PeerMessage) {
        match message {
            PeerMessage::Confirmed { number, limits } => self.on_confirmed(number, limits),
            // What cannot be written is sent again when there is room.
            message if self.presence.is_disk_full && !self.group.consensus.is_leader() => {
                self.note_speaker(from, &message);
            }
            PeerMessage::Raft(message) if message.from == from => self.on_raft_message(now, message),
            PeerMessage::Raft(message) => {
                tracing::error!(
                    from,
                    claimed = message.from,
                    "message of one member in the name of another dropped"
                );
            }
            PeerMessage::Forward(batch) => self.on_forward(now, from, &batch),
            PeerMessage::Heard { number, sessions } => {
                for session in sessions {
                    self.presence.sessions.liveness.touch(session, now.monotonic_ms);
                }
                if let Some(leading) = &mut self.group.leading {
                    leading.confirming.receive(from, process, number);
                }
            }
            PeerMessage::Offer(_) if self.group.joining.is_inquiring() => {}
            PeerMessage::Offer(offer) if offer.from == from => self.on_offer(offer),
            PeerMessage::Offer(_) => tracing::error!(from, "offer in the name of another member dropped"),
            PeerMessage::Fetch { index, offset } => self.on_fetch(SnapshotRead { to: from, index, offset }),
            PeerMessage::Piece(piece) => {
                self.group.transfer.receiver.on_piece(from, piece, &mut self.group.outgoing.snapshot_writes);
            }
            PeerMessage::Gone { index } => self.group.transfer.receiver.on_gone(from, index),
            PeerMessage::Damaged { index } => {
                if self.group.transfer.complaints.note(from, index) {
                    self.group.consensus.want_snapshot();
                }
            }
            PeerMessage::Digest { index, digest, is_in_doubt } => {
                self.on_digest(ToldDigest { from, index, digest, is_in_doubt });
            }
            PeerMessage::Diverged { index, digest } => self.group.digests.on_diverged(index, digest),
            PeerMessage::WantsLead => self.on_wants_lead(from),
            PeerMessage::FileList { lines } => self.presence.file_lists.hear(from, &lines),
            PeerMessage::Roster(report) => self.presence.rosters.hear(self.group.number, report),
            PeerMessage::RosterOf { group, report } => self.presence.rosters.hear(group, report),
            PeerMessage::Present { profile, lead_us, level } => {
                self.presence.lead_times.hear(from, lead_us, now.monotonic_ms);
                self.presence.levels.hear(from, level, now.monotonic_ms);
                self.presence.processes.profiles.hear(from, profile);
            }
            PeerMessage::Probe { sent_ms } => {
                self.group.outgoing.messages.push((from, PeerMessage::Probed { sent_ms }.encode()));
            }
            PeerMessage::Probed { sent_ms } => {
                self.presence.link_times.answered(from, sent_ms, now.monotonic_ms);
            }
            PeerMessage::Clock { wall_ms } => {
                self.presence.clocks.hear(from, wall_ms, now.monotonic_ms);
            }
            PeerMessage::Greeting(_) | PeerMessage::AskMembers(_) | PeerMessage::Members { .. } => {}
        }
    }

    /// The leader had a report of this process. A leader of a former term confirms nothing, and a confirmation for another process with this
    /// member's number is none for this one. One of an earlier build has no limits, and counts at once.
    fn on_confirmed(&mut self, number: u64, limits: Option<ConfirmationLimits>) {
        let ended_through = match limits {
            Some(limits) if limits.process != self.presence.options.process => return,
            Some(limits) if limits.term < self.group.consensus.leadership().term => return,
            Some(limits) => limits.ended_through,
            None => 0,
        };
        self.presence.contact.confirm(number, ended_through, self.group.applied.index());
    }

    fn on_raft_message(&mut self, now: Now, message: Message) {
        if self.is_late_founder() {
            return;
        }
        self.note_leader(&message);
        if self.group.joining.is_inquiring() {
            return;
        }
        if let Err(unknown) = check_levels(&message, self.presence.options.known_level) {
            return self.presence.levels.refuse(unknown);
        }
        if self.group.is_home() && message.msg_type == MessageType::MsgHeartbeat {
            self.presence.contact.note_heartbeat();
        }
        self.group.consensus.step(message);
        self.follow_leadership(now);
    }

    /// Takes a batch for the leader. One that does not lead drops it: the sender will notice that another member leads.
    fn on_forward(&mut self, now: Now, from: u64, batch: &[u8]) {
        if !self.group.consensus.takes_proposals() {
            return;
        }
        self.make_room_for(batch.len());
        match self.group.leading.as_mut().map(|leading| leading.add_foreign(batch, now)) {
            // The sender tells of them in its next report only. They are heard now, so that no end of theirs is proposed behind this.
            Some(Ok(resumed)) => {
                resumed
                    .into_iter()
                    .for_each(|session| self.presence.sessions.liveness.touch(session, now.monotonic_ms));
            }
            Some(Err(error)) => {
                tracing::error!(from = logged(from), %error, "batch of another member cannot be read")
            }
            None => {}
        }
    }

    fn note_speaker(&mut self, from: u64, message: &PeerMessage) {
        let PeerMessage::Raft(message) = message else { return };
        if !self.group.is_home() {
            return;
        }
        if matches!(message.msg_type, MessageType::MsgHeartbeat | MessageType::MsgAppend) {
            self.presence.contact.note_speaker(from);
        }
        if message.msg_type == MessageType::MsgHeartbeat {
            self.presence.contact.note_heartbeat();
        }
    }

    fn on_digest(&mut self, told: ToldDigest) {
        if !self.group.consensus.is_leader() {
            return self.group.digests.compare_with_leader(told);
        }
        if let Some(leading) = &mut self.group.leading {
            let (own, membership) = (self.presence.options.member, self.group.consensus.membership());
            let out = &mut self.group.outgoing.messages;
            self.group.digests.judge(own, told, &mut leading.digests, membership, out);
        }
    }

    fn on_offer(&mut self, offer: Message) {
        if offer.get_snapshot().get_metadata().index <= self.group.consensus.committed() {
            // The snapshot was here before, and the answer was lost: the library says what this member has.
            self.group.consensus.step(offer);
        } else {
            self.group.transfer.receiver.on_offer(offer);
        }
    }

    /// Another member asks for a piece of this one's snapshot.
    fn on_fetch(&mut self, read: SnapshotRead) {
        if let Some(leading) = &mut self.group.leading {
            leading.offers.note_fetch(read.to);
        }
        self.group.outgoing.snapshot_reads.push(read);
    }

    /// A piece of this member's snapshot was read, or the snapshot is not there any more.
    pub(super) fn on_snapshot_read(&mut self, read: SnapshotRead, piece: Option<(Vec<u8>, bool)>) {
        let SnapshotRead { to, index, offset } = read;
        let message = match piece {
            Some((bytes, is_last)) => PeerMessage::Piece(SnapshotWrite { index, offset, bytes, is_last }),
            None => {
                self.group.consensus.snapshot_failed(to);
                PeerMessage::Gone { index }
            }
        };
        self.group.outgoing.messages.push((to, message.encode()));
    }

    /// Makes again the offers of snapshots that seem to be lost.
    pub(super) fn renew_offers(&mut self) {
        let Some(leading) = &mut self.group.leading else { return };
        let followers = self.group.consensus.followers();
        let gets_one = |id: &u64| followers.get(id).is_some_and(|follower| follower.gets_snapshot);
        let offered: Vec<u64> = self.group.consensus.membership().all().filter(gets_one).collect();
        for member in leading.offers.tick(&offered) {
            self.group.consensus.snapshot_failed(member);
        }
    }

    /// Now and then tells the other members that this one runs.
    pub(super) fn tell_presence(&mut self, now: Now) {
        if self.presence.processes.tick() {
            self.tell_clock(now);
            let profile = self.presence.processes.profiles.own().to_vec();
            let (lead_us, level) = (self.presence.lead_times.own_us(), self.presence.levels.own());
            self.tell_others(&PeerMessage::Present { profile, lead_us, level });
        }
    }

    /// While something is written, asks the other voters how long the way to them is.
    pub(super) fn probe_links(&mut self, now: Now) {
        let (own, now_ms) = (self.presence.options.member, now.monotonic_ms);
        let voters = &self.group.consensus.membership().voters;
        if voters.contains(&own) && self.presence.link_times.tick(self.group.consensus.last_entry()) {
            let probe = PeerMessage::Probe { sent_ms: now_ms }.encode();
            let knows = |voter: u64| {
                self.presence.levels.told(voter, now_ms).is_some_and(|level| level >= FeatureLevel::HOSTS)
            };
            for voter in voters.iter().copied().filter(|voter| *voter != own && knows(*voter)) {
                self.presence.link_times.probed(voter, now_ms);
                self.group.outgoing.messages.push((voter, probe.clone()));
            }
        }
        let quorum_us = self.presence.link_times.quorum_us(voters, own, now_ms);
        self.presence.lead_times.set_quorum_us(quorum_us);
    }

    /// Sends a message to all other members of the group.
    pub(super) fn tell_others(&mut self, message: &PeerMessage) {
        let (own, message) = (self.presence.options.member, message.encode());
        let others = self.group.consensus.membership().all().filter(|id| *id != own);
        self.group.outgoing.messages.extend(others.map(|id| (id, message.clone())));
    }

    /// Greeting of this member: a question to another one, or an answer with a leader's ruling.
    pub(super) fn greeting(&self, purpose: Purpose, ruling: Option<Ruling>) -> Vec<u8> {
        let (condition, leadership) = (self.condition(), self.group.consensus.leadership());
        let (membership, addresses) =
            (self.group.consensus.membership().clone(), self.group.membership.addresses());
        let (term, leader, found) = (leadership.term, leadership.leader, self.group.disk_age.found());
        let applied = self.group.applied.index();
        let greeting =
            Greeting { condition, purpose, term, membership, addresses, leader, found, ruling, applied };
        PeerMessage::Greeting(greeting).encode()
    }

    fn condition(&self) -> Condition {
        self.group.joining.condition(self.group.read_only.is_learning(), self.group.durability.written().term)
    }

    fn on_greeting(&mut self, from: u64, Envelope { cluster, process }: Envelope, greeting: Greeting) {
        let condition = greeting.condition;
        match greeting.purpose {
            // No leader is to count on a replica that may be let go: see `own_placement.rs`.
            Purpose::Question if self.is_replica_needless() => return,
            Purpose::Question => {
                if let Some(leading) = &mut self.group.leading {
                    leading.note_question(from);
                }
                self.answer_greeting(from, (cluster, process), &greeting);
            }
            Purpose::Answer { asker } if asker == self.presence.options.process => {}
            // Another process with this member's number has asked.
            Purpose::Answer { .. } => return,
        }
        if self.cluster().shares_log_with(cluster) {
            self.on_admission_answered(from, &greeting);
            if condition == Condition::Established {
                self.group.membership.note_ready(from);
            }
        }
        if !self.group.joining.is_without_data() {
            self.on_inquiry_answered(from, cluster, greeting);
        } else if self.is_late_founder() {
            // What the others say of themselves is no matter.
        } else if matches!(condition, Condition::Established | Condition::Learning) {
            tracing::info!(
                member = logged(from),
                "there is an ensemble already: waiting to be told its state"
            );
            self.await_state();
            self.on_inquiry_answered(from, cluster, greeting);
        } else if condition == Condition::Empty {
            self.group.joining.note_empty(from);
        } else {
            self.group.joining.note_begun(from);
        }
    }

    fn answer_greeting(&mut self, from: u64, (cluster, asker): (Cluster, u64), greeting: &Greeting) {
        let has_nothing = matches!(greeting.condition, Condition::Empty | Condition::Learning);
        let ruling = self.rule(from, greeting);
        // A member that has nothing knows that already.
        let ruling = ruling.filter(|_| !has_nothing && self.cluster().shares_log_with(cluster));
        self.group.outgoing.messages.push((from, self.greeting(Purpose::Answer { asker }, ruling)));
        if has_nothing && self.condition() == Condition::Established {
            self.group.consensus.begin_anew(from);
        }
    }

    /// This leader's judgement of the disk of a member that was started; `None` from a member that does not lead.
    fn rule(&mut self, member: u64, greeting: &Greeting) -> Option<Ruling> {
        if !self.group.consensus.takes_proposals() {
            return None;
        }
        let acknowledged =
            self.group.leading.as_ref().and_then(|leading| leading.acknowledged_before(member));
        Some(self.group.disk_age.rule(member, &greeting.found, acknowledged))
    }

    fn on_admission_answered(&mut self, from: u64, greeting: &Greeting) {
        let own = (self.group.applied.index(), self.group.consensus.membership());
        match self.group.joining.note_admission((from, greeting), own) {
            AdmissionState::Waiting => {}
            AdmissionState::Admitted => self.group.consensus.set_silent(self.group.joining.is_silent()),
            AdmissionState::Outdated => self.on_outdated(from),
        }
    }

    /// A member begins with the members that its snapshot names, and reads in its log that some of them have left: then those that stayed are enough.
    fn reconsider_admission(&mut self) {
        let applied = self.group.applied.index();
        if self.group.joining.awaits_admission()
            && applied == self.group.consensus.committed()
            && !self.group.consensus.may_gain_voters_behind(applied)
            && self.group.joining.reconsider_admission((applied, self.group.consensus.membership()))
        {
            self.group.consensus.set_silent(self.group.joining.is_silent());
        }
    }

    /// This member's disk is older than what it has acknowledged.
    fn on_outdated(&mut self, leader: u64) {
        tracing::error!(
            leader,
            last_entry = self.group.disk_age.found().last.1,
            "this member's disk is older than what it has acknowledged: it learns before it votes or serves clients; do \
             not put back copies of a member's directory"
        );
        self.await_state();
    }

    /// From now on this member does not vote until it knows as much as the ensemble did when it came.
    pub(super) fn await_state(&mut self) {
        self.group.joining.await_state();
        self.group.consensus.set_silent(true);
        self.group.read_only.begin_learning();
        if self.group.is_home() {
            self.presence.rosters.set_knows_home(false);
            self.presence.learned_through = u64::MAX;
        }
    }

    fn on_inquiry_answered(&mut self, from: u64, cluster: Cluster, greeting: Greeting) {
        if self.group.joining.is_inquiring() {
            if let Some((cluster, term)) = self.group.joining.note_answer(from, cluster, greeting) {
                let id = format!("{cluster:016x}");
                tracing::info!(term, cluster = id, "learned the current term from a quorum");
                self.presence.cluster.learn(cluster);
                self.group.consensus.adopt_term(term);
            }
        } else if self.group.is_home() && self.cluster().known().is_none() {
            let is_founded = self.is_founded_by(from, &greeting);
            let vouched = self.group.joining.note_voucher(from, cluster, greeting);
            if let Some(cluster) = cluster.known().filter(|_| is_founded).or(vouched) {
                self.presence.cluster.learn(cluster);
            }
        }
    }

    /// True if this member's log has begun and names no ensemble, and the greeting is that of a founder whose ensemble has come to be: it
    /// names the same members at the same addresses. One such word is enough, where otherwise most voters have to vouch for an
    /// ensemble: another founder may have lost its disk, and cannot.
    fn is_founded_by(&self, from: u64, greeting: &Greeting) -> bool {
        let Founding { membership, members, .. } = &self.presence.options.founding;
        self.presence.cluster.is_unnamed()
            && !self.group.consensus.is_empty()
            && greeting.condition == Condition::Established
            && membership.voters.contains(&from)
            && greeting.addresses.is_some_and(|addresses| digest_of_members(members) == Some(addresses))
    }

    /// True if this member has never had anything of its group, and writes the first entry once it has a say in the home group, as the other founders may have done
    /// long ago: it has nothing to learn before it votes.
    fn is_late_founder(&self) -> bool {
        self.presence.rosters.may_be_new(self.group.number)
            && self.group.joining.is_first_time(&self.group.founding, self.presence.learned_through)
    }

    /// A leader speaks to this member. If it has nothing, there is an ensemble.
    fn note_leader(&mut self, message: &Message) {
        if self.group.is_home() && is_of_leader(message) {
            self.presence.told_members.note_leader(message.from);
        }
        match message.msg_type {
            MessageType::MsgHeartbeat => return self.note_heartbeat(message),
            MessageType::MsgAppend => {}
            _ => return,
        }
        if self.group.joining.is_without_data() {
            self.await_state();
        }
        let Message { from, term, commit, .. } = *message;
        self.group.joining.note_append(from, term, commit, self.group.consensus.leadership().term);
    }

    /// A heartbeat tells up to which entry this member has acknowledged what is committed.
    fn note_heartbeat(&mut self, message: &Message) {
        let is_of_now = message.term == self.group.consensus.leadership().term;
        let is_learning = self.group.joining.silent_until().is_some();
        if is_of_now && !is_learning && message.commit > self.group.consensus.last_entry() {
            self.on_outdated(message.from);
        }
    }

    /// Each tick of a member that has no say yet.
    pub(super) fn tick_joining(&mut self) {
        self.reconsider_admission();
        if self.group.joining.catch_up(self.group.applied.get(), self.group.leadership.term) {
            tracing::info!("caught up: taking part in elections");
            if self.group.is_home() {
                let has_groups = self.group.applied.groups > 1;
                self.presence.learned_through = if has_groups { self.group.applied.index() } else { 0 };
            }
            self.group.consensus.set_silent(self.group.joining.is_silent());
            self.number_this_start_anew();
        }
        if self.group.disk_age.is_number_used_up
            && !self.group.read_only.has_work()
            && self.group.joining.silent_until().is_none()
        {
            self.number_this_start_anew();
        }
        self.finish_learning();
        if let Some(unheard) = self.group.joining.tick_founding(&self.group.founding) {
            tracing::warn!(
                members = ?all_logged(&unheard),
                "most members have no data, and would found an ensemble; it waits for members that were never heard and may have data: \
                 start them, or start one of the others with --found-by-majority if there is nothing to be found"
            );
        }
        let is_founding = matches!(self.cluster(), Cluster::Proposed(_)) && !self.group.consensus.is_alone();
        if self.group.joining.has_questions() || is_founding {
            let question = self.greeting(Purpose::Question, None);
            self.ask_all(&question);
        }
    }

    /// Asks all members of which this one knows, in its configuration, its log or by answers.
    fn ask_all(&mut self, question: &[u8]) {
        let asked =
            self.group.joining.asked(&self.group.founding.membership, self.group.consensus.membership());
        self.group.outgoing.messages.extend(asked.into_iter().map(|id| (id, question.to_vec())));
    }

    /// Each tick of a member: one that hears no leader asks whether others are on the list by now. The leader that it knows may be one of long ago, by which it was
    /// let go.
    pub(super) fn seek_members(&mut self) {
        if self.group.consensus.is_alone() || self.group.consensus.is_leader() {
            self.presence.told_members.note_leader(self.presence.options.member);
        }
        if let Some(mark) = self.presence.told_members.tick() {
            self.ask_all(&PeerMessage::AskMembers(mark).encode());
        }
    }

    /// Without all of its data a member does not know which numbers its starts had before, and the clock may have gone back. No
    /// connection waits for requests that came under the number that it had. Those that
    /// have been sent may still come into the log, in batches whose numbers must not be given again: then this start gets another number, too.
    pub(super) fn number_this_start_anew(&mut self) {
        let Origin { member, incarnation } = self.group.requests.origin();
        let last_start = self.group.disk_age.last_start(self.presence.options.member);
        let was_used = last_start >= incarnation || self.group.requests.has_numbered();
        let next = || Recovered::next_start(last_start.max(incarnation), self.presence.options.process);
        let incarnation = if was_used { next() } else { incarnation };
        self.group.disk_age.is_number_used_up = false;
        self.group.disk_age.begin_anew(incarnation);
        if self.group.is_home() {
            self.presence.sessions.begin_start(self.presence.options.member, incarnation);
        }
        self.group.requests.begin_anew(Origin { member, incarnation });
    }

    /// The state knows a start of this member that its disk has forgotten, and that the members which admitted it did not know of then. What it
    /// sends under its number may be refused for ever: it takes another one, once its clients have been sent away.
    pub(super) fn note_number_used_up(&mut self) {
        if self.group.disk_age.is_number_used_up
            || self.group.read_only.is_learning()
            || !self.group.disk_age.has_forgotten_start()
        {
            return;
        }
        tracing::error!(
            start = self.group.disk_age.found().start,
            last_start = self.group.disk_age.last_start(self.presence.options.member),
            "the ensemble knows a start of this member that its disk has forgotten, and may refuse its writes: it closes its \
             connections and goes on as another start; do not put back copies of a member's directory"
        );
        self.group.disk_age.is_number_used_up = true;
        self.group.read_only.begin_learning();
    }

    /// A member that has learned serves clients once that, and the number of its start, are on disk.
    fn finish_learning(&mut self) {
        let written = self.group.durability.written();
        let is_written =
            (written.silent_until, written.incarnation) == (0, self.group.requests.origin().incarnation);
        let is_numbered = is_written && !self.group.disk_age.is_number_used_up;
        if self.group.joining.silent_until().is_none() && is_numbered && self.group.durability.is_synced() {
            self.group.read_only.end_learning();
        }
    }

    /// The first entry is on disk: the log begins.
    pub(super) fn on_founded(&mut self) {
        let (entry, hard_state) =
            first_entry(&self.group.founding.membership, self.group.durability.written());
        let mut recovered = Recovered::new((0, 0), Membership::default(), hard_state, vec![entry]);
        recovered.cluster = self.cluster();
        let ReplicaOptions { member, entry_bytes_kept, .. } = self.presence.options;
        self.group.consensus = Consensus::new(member, self.group.seed, entry_bytes_kept, recovered);
        self.group.joining.end_founding();
    }
}

/// True for messages that only a leader sends, to those whom it takes for members.
fn is_only_of_leader(message: &PeerMessage) -> bool {
    match message {
        PeerMessage::Offer(_) => true,
        PeerMessage::Raft(message) => is_of_leader(message),
        _ => false,
    }
}

fn is_of_leader(message: &Message) -> bool {
    matches!(message.msg_type, MessageType::MsgHeartbeat | MessageType::MsgAppend)
}
