//! How an ensemble begins, and how a member without data finds the one that is there.
//!
//! A member that has nothing, no entry and no snapshot, asks the members that its configuration names. If most of the
//! voters have nothing either, this is a new ensemble: each of them writes the same first entry, which says who votes.
//! If one of them belongs to an ensemble already, this member is new to it, or has lost its data. Then it waits to be
//! told everything, and has no say before: it might have promised something once that it does not know any more.
//!
//! The founders agree on the id of their ensemble (`cluster.rs`). A founder that was away when the first leader wrote it down, and had
//! not heard of the number that became it, hears of the ensemble from most of its voters.
//!
//! Who has written the first entry and knows no leader yet proves nothing. It may have slept since the founding, and the
//! member that asks may have led the others meanwhile and lost its data: those two must not begin anew. Nobody needs it
//! either: whoever heard that another member has nothing has told that member the same of itself.

use std::collections::{BTreeSet, VecDeque};

use paddock_proto::OpCode;
use paddock_proto::jute::Writer;
use paddock_state::Now;
use paddock_tree::{Origin, Tree};
use raft::eraftpb::{Message, MessageType};

use super::inquiry::Inquiry;
use super::{Effects, Replica, ReplicaOptions, first_session_id};
use crate::Recovered;
use crate::batch::BatchBuilder;
use crate::configuration::ConfigurationEntry as About;
use crate::consensus::Consensus;
use crate::message::{Condition, Greeting, PeerMessage, Ruling};
use crate::{Cluster, HardState, LogEntry, Membership};

/// The number of the round that the founding is. No round of the library has it.
const FOUNDING_ROUND: u64 = 0;
/// The term of the first entry. Nobody leads in it.
const FIRST_TERM: u64 = 1;
/// In the place of the entry up to which a member has to learn: it has to ask first which term it is.
const BEFORE_ASKING: u64 = HardState::TERM_UNKNOWN;
/// It has asked, and waits for its leader to say up to which entry.
const BEFORE_HEARING: u64 = u64::MAX - 1;

/// How far a member without data has come.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// Others without data, besides this one.
    others: BTreeSet<u64>,
    /// The first entry is on its way to the disk.
    is_writing: bool,
}

impl Replica {
    /// What this member has to say for itself.
    pub(super) fn condition(&self) -> Condition {
        match self.beginning {
            Some(_) => Condition::Empty,
            None if self.refusing.is_learning() => Condition::Learning,
            None if self.written.term <= FIRST_TERM => Condition::Founding,
            None => Condition::Established,
        }
    }

    /// Begins as the disk demands: founds, learns, or waits for admission.
    pub(super) fn begin(&mut self, now: Now, tree: &Tree) {
        self.note_starts(tree);
        let may_have_ensemble = !self.options.founding.members.is_empty();
        if may_have_ensemble && self.cluster == Cluster::None && tree.ensemble().is_none() {
            self.cluster = Cluster::Proposed(cluster_id(self.options.process, now));
        }
        let is_empty = self.consensus.is_empty();
        match self.silent_until {
            Some(BEFORE_ASKING) => self.await_state(),
            Some(_) => self.refusing.begin_learning(),
            None if is_empty && self.cluster.known().is_some() => self.await_state(),
            None if is_empty => self.beginning = Some(Beginning::default()),
            None if !self.consensus.is_alone() => self.begin_admission(),
            None => {}
        }
        self.consensus.set_silent(self.is_silent());
    }

    /// True if this member keeps out of elections.
    pub(super) fn is_silent(&self) -> bool {
        self.beginning.is_some() || self.silent_until.is_some() || self.awaits_admission()
    }

    pub(super) fn note_starts(&mut self, tree: &Tree) {
        let starts = (1..=u8::MAX).filter_map(|id| Some((id.into(), tree.incarnation(id)?)));
        self.starts = starts.collect();
    }

    pub(super) fn tick_beginning(&mut self) {
        self.catch_up_before_voting();
        self.finish_learning();
        let is_founding = matches!(self.cluster, Cluster::Proposed(_)) && !self.consensus.is_alone();
        let asks = self.beginning.is_some() || self.is_inquiring() || self.awaits_admission() || is_founding;
        if !asks {
            return;
        }
        let question = self.greeting(true, None);
        let asked = self.asked();
        self.letters.extend(asked.into_iter().map(|id| (id, question.clone())));
    }

    /// What this member says when it meets another one.
    pub(super) fn greeting(&self, is_question: bool, ruling: Option<Ruling>) -> Vec<u8> {
        let (condition, leadership) = (self.condition(), self.consensus.leadership());
        let membership = self.consensus.membership().clone();
        let (term, leader, found) = (leadership.term, leadership.leader, self.found);
        let greeting = Greeting { condition, is_question, term, membership, leader, found, ruling };
        PeerMessage::Greeting(greeting).encode()
    }

    /// Another member says how it stands with it.
    pub(super) fn on_greeting(&mut self, from: u64, cluster: Cluster, greeting: Greeting) {
        let condition = greeting.condition;
        if greeting.is_question {
            self.answer_greeting(from, cluster, &greeting);
        }
        if self.cluster.shares_log_with(cluster) {
            self.on_admission_answered(from, &greeting);
            if condition == Condition::Established {
                self.note_ready(from);
            }
        }
        let Some(beginning) = &mut self.beginning else {
            return self.on_inquiry_answered(from, cluster, greeting);
        };
        if matches!(condition, Condition::Established | Condition::Learning) {
            tracing::info!(member = from, "there is an ensemble already: waiting to be told its state");
            beginning.others.clear();
            self.await_state();
            self.on_inquiry_answered(from, cluster, greeting);
        } else if condition == Condition::Empty {
            beginning.others.insert(from);
        }
    }

    fn answer_greeting(&mut self, from: u64, cluster: Cluster, greeting: &Greeting) {
        let condition = greeting.condition;
        let has_nothing = matches!(condition, Condition::Empty | Condition::Learning);
        let ruling = self.rule(from, &greeting.found);
        // Whoever has nothing knows that already.
        let ruling = ruling.filter(|_| !has_nothing && self.cluster.shares_log_with(cluster));
        self.letters.push((from, self.greeting(false, ruling)));
        if has_nothing && self.condition() == Condition::Established {
            self.consensus.begin_anew(from);
        }
    }

    /// A peer belongs to another ensemble.
    pub(super) fn on_foreign(&mut self, from: u64, cluster: Cluster) {
        self.has_met_foreign = true;
        self.foreign.push((from, cluster.id()));
    }

    /// An id that stands in the log is this member's proposal from then on, as long as it is not known that the entry is
    /// committed.
    pub(super) fn note_name(&mut self, entries: &[LogEntry]) {
        if matches!(self.cluster, Cluster::Proposed(_))
            && let Some(id) = entries.iter().rev().find_map(LogEntry::named_cluster)
        {
            self.cluster = Cluster::Proposed(id);
        }
    }

    /// The state says of which ensemble it is. A member that has been told the id by others may be on its way there, through
    /// a log in which a survivor has begun an ensemble of its own.
    pub(super) fn note_cluster(&mut self, id: u64) {
        if self.cluster.known().is_none() {
            self.cluster = Cluster::Known(id);
        }
    }

    /// From now on this member does not vote until it knows as much as the ensemble did when it came.
    pub(super) fn await_state(&mut self) {
        self.beginning = None;
        self.inquiry = Some(Inquiry::default());
        self.silent_until = Some(BEFORE_ASKING);
        self.consensus.set_silent(true);
        self.refusing.begin_learning();
    }

    /// It is known which term it is: who leads in an earlier one is not listened to.
    pub(super) fn end_inquiry(&mut self) {
        self.inquiry = None;
        self.silent_until = Some(BEFORE_HEARING);
    }

    /// A leader speaks to this member. If it has nothing, there is an ensemble: what is committed now is what this member
    /// may have helped to commit before.
    pub(super) fn note_leader(&mut self, message: &Message) {
        match message.msg_type {
            MessageType::MsgHeartbeat => return self.note_heartbeat(message),
            MessageType::MsgAppend => {}
            _ => return,
        }
        if self.beginning.is_some() {
            self.await_state();
        }
        self.note_unheard_leader(message.from);
        if self.is_inquiring() || message.term < self.consensus.leadership().term {
            return;
        }
        if self.silent_until == Some(BEFORE_HEARING) {
            self.silent_until = Some(message.commit.max(1));
        }
    }

    /// A heartbeat tells up to where this member has acknowledged what is committed.
    fn note_heartbeat(&mut self, message: &Message) {
        let is_of_now = message.term == self.consensus.leadership().term;
        if is_of_now && self.silent_until.is_none() && message.commit > self.consensus.last_entry() {
            self.on_outdated(message.from);
        }
    }

    /// What stands in the log before the leader's own first entry may count too, so one of its term must have come.
    fn catch_up_before_voting(&mut self) {
        let Some(until) = self.silent_until else { return };
        if self.applied >= until && self.applied_term == self.leadership.term {
            tracing::info!("this member has caught up: it takes part in elections");
            self.silent_until = None;
            self.consensus.set_silent(self.is_silent());
            self.number_this_start_anew();
        }
    }

    /// Without data nobody knows which numbers the starts of this member had before, and the clock may have gone back. What
    /// came from clients before it was known that there is an ensemble was never sent.
    fn number_this_start_anew(&mut self) {
        let Origin { member, incarnation } = self.outstanding.origin();
        let last_start = self.starts.get(&self.options.member).copied().unwrap_or_default();
        let was_used = last_start >= incarnation;
        let incarnation = if was_used { last_start + Recovered::INCARNATIONS_APART } else { incarnation };
        self.next_session = self.next_session.max(first_session_id(self.options.member, incarnation));
        self.outstanding = self.outstanding.begin_anew(Origin { member, incarnation });
        (self.batch, self.items) = (BatchBuilder::new(), VecDeque::new());
    }

    /// A member that has learned serves clients once that, and the number of its start, are on disk.
    fn finish_learning(&mut self) {
        let incarnation = self.outstanding.origin().incarnation;
        let is_written = (self.written.silent_until, self.written.incarnation) == (0, incarnation);
        if self.silent_until.is_none() && is_written && self.unsynced_round.is_none() {
            self.refusing.end_learning();
        }
    }

    fn is_founded(&self) -> bool {
        let voters = &self.options.founding.membership.voters;
        let Some(beginning) = self.beginning.as_ref().filter(|beginning| !beginning.is_writing) else {
            return false;
        };
        let present = beginning.others.iter().filter(|id| voters.contains(id)).count() + 1;
        voters.contains(&self.options.member) && present > voters.len() / 2 && self.consensus.is_empty()
    }

    /// Writes the first entry, if it is time.
    pub(super) fn found(&mut self, effects: &mut Effects) {
        if !self.is_founded() {
            return;
        }
        if let Some(beginning) = &mut self.beginning {
            beginning.is_writing = true;
        }
        let (entry, hard_state) = self.first_entry();
        tracing::debug!(voters = ?self.options.founding.membership.voters, "founding");
        effects.entries.push(entry);
        effects.hard_state = Some(hard_state);
        effects.round = Some(FOUNDING_ROUND);
        self.written = hard_state;
    }

    fn first_entry(&self) -> (LogEntry, HardState) {
        let payload = About::Founding(self.options.founding.membership.clone()).encode();
        let term = self.written.term.max(FIRST_TERM);
        let hard_state = HardState { term, commit: 1, silent_until: 0, ..self.written };
        (LogEntry { index: 1, term: FIRST_TERM, payload }, hard_state)
    }

    /// The first entry is on disk: the log begins.
    pub(super) fn on_founded(&mut self) {
        let (entry, hard_state) = self.first_entry();
        let membership = Membership::default();
        let mut recovered = Recovered::new((0, 0), membership, hard_state, vec![entry]);
        recovered.cluster = self.cluster;
        let ReplicaOptions { member, seed, entry_bytes_kept, .. } = self.options;
        self.consensus = Consensus::new(member, seed, entry_bytes_kept, recovered);
        self.beginning = None;
    }

    pub(super) fn is_writing_first_entry(&self) -> bool {
        self.beginning.as_ref().is_some_and(|beginning| beginning.is_writing)
    }

    pub(super) fn is_founding(&self, round: u64) -> bool {
        round == FOUNDING_ROUND && self.is_writing_first_entry()
    }

    /// The first leader says who the members are, and what the ensemble is called.
    pub(super) fn name_ensemble(&mut self, now: Now) {
        // Behind the first entry of its own a leader knows all that was ever said.
        let knows_all = self.consensus.is_leader() && self.applied_term == self.consensus.leadership().term;
        let is_due = knows_all && self.wanted.is_none() && !self.is_named;
        if !is_due || self.options.founding.members.is_empty() {
            return;
        }
        self.is_named = true;
        let cluster = match self.cluster {
            Cluster::Proposed(id) => id,
            Cluster::None | Cluster::Known(_) => cluster_id(self.options.process, now),
        };
        let all = self.options.founding.members.clone();
        let takes_part = |line: &&str| {
            let id = line.strip_prefix("server.").and_then(|rest| rest.split('=').next()?.parse().ok());
            id.is_some_and(|id| self.consensus.membership().contains(id))
        };
        let present: String = all.lines().filter(takes_part).map(|line| format!("{line}\n")).collect();
        let mut body = Vec::new();
        body.put_i64(cluster as i64);
        body.put_string(&present);
        self.say(OpCode::FoundEnsemble, &body);
        if present.len() < all.len() {
            tracing::info!("a member alone becomes an ensemble: the others of its configuration are to join");
            let mut body = Vec::new();
            [-1, -1].iter().for_each(|&null| body.put_i32(null));
            body.put_string(&all);
            body.put_i64(-1);
            self.say(OpCode::Reconfig, &body);
        }
    }
}

impl Replica {
    /// What comes behind the entry that names the ensemble waits until that is committed. So whoever has any of it on disk
    /// knows to which ensemble it belongs, and cannot be taken for a member of another one.
    pub(super) fn may_go_on_before_name(&mut self) -> bool {
        if self.wanted.is_some() || self.options.founding.members.is_empty() {
            return true;
        }
        self.is_named && !std::mem::replace(&mut self.is_name_proposed, true)
    }
}

/// A number that no other ensemble has, for all that is known: never 0.
fn cluster_id(seed: u64, now: Now) -> u64 {
    let mixed = (seed ^ (now.wall_ms as u64).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)) | 1
}
