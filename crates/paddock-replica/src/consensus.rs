//! The Raft library behind a small interface. Nothing outside this module, its entry log and what encodes entries and
//! messages knows it.

mod change;
mod laggards;

use bytes::Bytes;
use raft::eraftpb::{Entry, Message, MessageType, SnapshotMetadata};
use raft::{Config, RawNode, ReadState, SnapshotStatus, StateRole};

use crate::configuration::{from_raft, to_raft};
use crate::effects::{Install, Messages};
use crate::entry_log::EntryLog;
use crate::question::Question;
use crate::recovered::membership_at_start;
use crate::{HardState, LogEntry, Membership, Recovered, message};
use laggards::Laggards;

/// Leader and term. After each change of either, what was on its way to a leader is sent anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    pub(crate) leader: Option<u64>,
    pub(crate) term: u64,
}

/// One round of the Raft library: what it asks for.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) entries: Vec<LogEntry>,
    /// The term and the vote, if one of them has changed.
    pub(crate) vote: Option<(u64, u64)>,
    /// To be given back by `persisted` once all of this is on disk.
    pub(crate) number: u64,
    pub(crate) committed: Vec<LogEntry>,
    /// A leader's messages need not wait for its disk.
    pub(crate) messages: Messages,
    /// A follower's answers promise what is on its disk: they leave after `persisted`.
    pub(crate) messages_once_persisted: Messages,
    /// Answers to `ask_index`: the question, and the index.
    pub(crate) answers: Vec<(Question, u64)>,
    /// A snapshot takes the place of the state and the log before anything else of the round.
    pub(crate) install: Option<Install>,
}

pub(crate) struct Consensus {
    node: RawNode<EntryLog>,
    /// As of the last entry applied.
    membership: Membership,
    /// Entry up to which changes of the membership do not count: a survivor has begun anew with it.
    refounded: u64,
    /// This member lost what it had, or never had anything: until it has caught up it has no say in elections, where it
    /// might forget what it once promised.
    is_silent: bool,
    seed: u64,
    /// Ticks in which no vote is given: what this member promised before it was restarted may still hold.
    withheld: usize,
    /// Ticks until this member stands for election, because its link to the leader has ended.
    candidacy: Option<usize>,
    laggards: Laggards,
}

impl std::fmt::Debug for Consensus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let raft = &self.node.raft;
        write!(
            f,
            "Consensus {{ term: {}, role: {:?}, committed: {} }}",
            raft.term, raft.state, raft.raft_log.committed
        )
    }
}

impl Consensus {
    /// In ticks of `Replica`: ten are an election timeout, one a heartbeat.
    const ELECTION_TICKS: usize = 10;
    /// Ticks after which a member that takes no part in elections takes a silent leader for gone.
    const SILENCE_TICKS: usize = 2 * Consensus::ELECTION_TICKS;
    /// Bytes of entries that are handed over to be applied at a time.
    const COMMITTED_BYTES_PER_ROUND: u64 = 4 << 20;

    /// An equal `seed` makes equal election timeouts.
    pub(crate) fn new(member: u64, seed: u64, bytes_kept: usize, recovered: Recovered) -> Consensus {
        let (membership, refounded) = membership_at_start(&recovered);
        let HardState { term, vote, commit, .. } = recovered.hard_state;
        let applied = recovered.applied;
        let last = recovered.last_index();
        // The commit index is written lazily: the state may be ahead of it, never the entries behind it.
        let known = if applied.0 == 0 && !membership.is_empty() { 1 } else { 0 };
        let commit = commit.max(refounded).max(known).clamp(applied.0, last);
        let term = recovered.entries.last().map_or(applied.1, |entry| entry.term).max(term);
        let hard_state = raft::eraftpb::HardState { term, vote, commit, ..Default::default() };

        let is_alone = membership.is_alone(member);
        let mut log = EntryLog::new(applied, membership.clone(), hard_state, bytes_kept);
        log.begin_with_snapshot(recovered.snapshot, recovered.snapshot_membership);
        recovered.entries.into_iter().for_each(|entry| log.append(to_raft(entry)));
        let config = Config {
            applied: applied.0,
            election_tick: Consensus::ELECTION_TICKS,
            heartbeat_tick: 1,
            check_quorum: true,
            pre_vote: true,
            max_size_per_msg: 1 << 20,
            max_inflight_msgs: 256,
            max_committed_size_per_ready: Consensus::COMMITTED_BYTES_PER_ROUND,
            ..Config::new(member)
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let mut node = RawNode::new(&config, log, &logger).expect("the configuration above is valid");
        if is_alone {
            // No other member can lead: there is no reason to wait for a timeout.
            node.campaign().expect("a follower may always campaign");
        }
        let mut consensus = Consensus {
            node,
            membership,
            refounded,
            is_silent: false,
            seed,
            withheld: 0,
            candidacy: None,
            laggards: Laggards::default(),
        };
        consensus.set_election_timeout();
        consensus
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Leader and term, as far as this member knows.
    pub(crate) fn leadership(&self) -> Leadership {
        let leader = self.node.raft.leader_id;
        Leadership { leader: (leader != raft::INVALID_ID).then_some(leader), term: self.node.raft.term }
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.membership.is_alone(self.node.raft.id)
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    /// True if this member and another one are most of the voters, and that does not change.
    pub(crate) fn is_quorum_with(&self, other: u64) -> bool {
        let Membership { voters, .. } = &self.membership;
        let are_voters =
            other != self.node.raft.id && [self.node.raft.id, other].iter().all(|id| voters.contains(id));
        are_voters && voters.len() <= 3 && !self.membership.is_joint() && !self.is_changing()
    }

    /// The index of the last entry here.
    pub(crate) fn last_entry(&self) -> u64 {
        self.node.raft.raft_log.last_index()
    }

    pub(crate) fn last_term(&self) -> u64 {
        self.node.raft.raft_log.last_term()
    }

    /// Index and term of the last entry in the newest snapshot.
    pub(crate) fn snapshot(&self) -> (u64, u64) {
        self.node.store().newest_snapshot()
    }

    /// True if nothing has ever come here: no entry, no snapshot.
    pub(crate) fn is_empty(&self) -> bool {
        self.last_entry() == 0
    }

    /// Keeps this member out of elections, or lets it in again.
    pub(crate) fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    /// False for a member that keeps out of elections, and for one that was sent a snapshot and has not installed it, which it cannot while its disk has no room: the library would
    /// look for changes of members in entries that the snapshot stands for.
    fn may_stand(&self) -> bool {
        let log = &self.node.raft.raft_log;
        !self.is_silent && log.applied + 1 >= log.first_index()
    }

    /// From now on no leader is heard in an earlier term.
    pub(crate) fn adopt_term(&mut self, term: u64) {
        let raft = &mut self.node.raft;
        if term > raft.term {
            raft.become_follower(term, raft::INVALID_ID);
            self.set_election_timeout();
        }
    }

    /// Up to here everything is committed, as far as this member knows.
    pub(crate) fn committed(&self) -> u64 {
        self.node.raft.raft_log.committed
    }

    /// Takes a message of another member. What it cannot use it drops, as Raft may.
    pub(crate) fn step(&mut self, mut message: Message) {
        let is_vote =
            matches!(message.msg_type, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote);
        if is_vote && (self.is_silent || self.withheld > 0) {
            return;
        }
        // A leader that wants this member to lead does not know yet that it has been started again, or has no room for its snapshot.
        if !self.may_stand() && message.msg_type == MessageType::MsgTimeoutNow {
            return;
        }
        if message.msg_type == MessageType::MsgHeartbeat {
            // The leader may not have noticed yet that this member lost what it had.
            message.commit = message.commit.min(self.node.raft.raft_log.last_index());
        }
        let is_without_entries = message.msg_type == MessageType::MsgAppend && message.entries.is_empty();
        let committed_before = self.committed();
        if let Err(error) = self.node.step(message) {
            tracing::debug!(%error, "message of another member dropped");
        }
        if is_without_entries && self.committed() > committed_before {
            // The message told that what is here is committed, and the answer would be that it is here. A leader that has missed
            // the first such answer asks again with a heartbeat.
            let answer = self.node.raft.msgs.pop();
            assert!(answer.is_some_and(|answer| answer.msg_type == MessageType::MsgAppendResponse));
        }
        self.set_election_timeout();
    }

    /// For a whole election timeout this member casts no vote: before it was restarted it may have heard a leader whose
    /// lease still runs.
    pub(crate) fn withhold_votes(&mut self) {
        self.withheld = Consensus::ELECTION_TICKS;
    }

    /// A tick has passed. Without `sends_heartbeats` a leader sends none that asks nothing.
    pub(crate) fn tick(&mut self, sends_heartbeats: bool) {
        let queued = self.node.raft.msgs.len();
        self.tick_library();
        if !sends_heartbeats {
            let is_plain = |message: &Message| {
                message.msg_type == MessageType::MsgHeartbeat && message.context.is_empty()
            };
            let ticked = self.node.raft.msgs.split_off(queued);
            self.node.raft.msgs.extend(ticked.into_iter().filter(|message| !is_plain(message)));
        }
    }

    fn tick_library(&mut self) {
        self.withheld = self.withheld.saturating_sub(1);
        if !self.may_stand() {
            self.node.raft.election_elapsed += 1;
            self.forget_silent_leader();
        } else {
            self.node.tick();
            self.stand_for_election();
            self.forget_silent_leader();
            self.hold_entries();
        }
        self.set_election_timeout();
    }

    /// Forgets a leader that is silent for long. A member that may stand for election does so then; one that keeps out of elections,
    /// one without a vote, and one that was removed and does not know have no leader from then on, and say so to those who ask.
    fn forget_silent_leader(&mut self) {
        let stands = self.may_stand() && self.node.raft.promotable();
        let raft = &mut self.node.raft;
        let is_led = raft.state == StateRole::Follower && raft.leader_id != raft::INVALID_ID;
        if is_led && !stands && raft.election_elapsed >= Consensus::SILENCE_TICKS {
            raft.become_follower(raft.term, raft::INVALID_ID);
        }
    }

    /// The link to another member has ended. If that one leads, this member need not wait for a whole election timeout: it
    /// forgets the leader, so that it may vote for another, and stands for election itself soon. Those who still hear the
    /// leader ignore that, so a broken link between two members deposes no leader.
    pub(crate) fn lost_link(&mut self, peer: u64) {
        let raft = &mut self.node.raft;
        if raft.leader_id != peer || raft.state != StateRole::Follower {
            return;
        }
        // All followers lose a leader that dies at the same time. They stand one tick after the other: two at once would
        // each have half of the votes.
        let earlier =
            raft.prs().conf().voters().ids().iter().filter(|id| *id != peer && *id < raft.id).count();
        raft.become_follower(raft.term, raft::INVALID_ID);
        self.candidacy = raft.promotable().then_some(earlier);
        self.set_election_timeout();
    }

    fn stand_for_election(&mut self) {
        self.candidacy = match self.candidacy {
            Some(_) if self.leadership().leader.is_some() => None,
            Some(0) => {
                self.node.campaign().expect("a follower may always campaign");
                None
            }
            Some(ticks) => Some(ticks - 1),
            None => None,
        };
    }

    /// Replaces the library's own chance: between one and two timeouts, another one for each member and term.
    fn set_election_timeout(&mut self) {
        let raft = &mut self.node.raft;
        let mut hash = self.seed ^ raft.id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ raft.term;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let extra = ((hash >> 32) % Consensus::ELECTION_TICKS as u64) as usize;
        raft.set_randomized_election_timeout(Consensus::ELECTION_TICKS + extra);
    }

    /// Appends `payload` to the log of this leader.
    pub(crate) fn propose(&mut self, payload: Bytes) {
        assert!(self.takes_proposals(), "only a leader proposes, while it remains one");
        let message = Message {
            msg_type: MessageType::MsgPropose,
            from: self.node.raft.id,
            entries: vec![Entry { data: payload, ..Entry::default() }].into(),
            ..Message::default()
        };
        self.node.raft.step(message).expect("a leader that takes proposals takes every one");
    }

    /// The next thing to do, if there is one.
    pub(crate) fn round(&mut self) -> Option<Round> {
        if !self.node.has_ready() {
            return None;
        }
        let mut ready = self.node.ready();
        let install = self.begin_install(ready.snapshot().get_metadata());
        let entries = ready.take_entries();
        let to_peers = |messages: Vec<Message>| messages.into_iter().filter_map(message::to_peer).collect();
        let round = Round {
            install,
            answers: ready.take_read_states().iter().filter_map(answer).collect(),
            messages: to_peers(last_heartbeats(ready.take_messages())),
            messages_once_persisted: to_peers(ready.take_persisted_messages()),
            vote: ready.hs().map(|hs| (hs.term, hs.vote)),
            number: ready.number(),
            committed: ready.take_committed_entries().into_iter().map(from_raft).collect(),
            entries: entries.iter().cloned().map(from_raft).collect(),
        };
        entries.into_iter().for_each(|entry| self.node.mut_store().append(entry));
        self.node.advance_append_async(ready);
        Some(round)
    }

    /// Asks the leader, who asks a quorum, up to which index anything can have been acknowledged by now. The answer comes
    /// with a round, or never: then the question is to be asked again.
    pub(crate) fn ask_index(&mut self, question: Question) {
        self.node.read_index(question.encode());
    }

    fn begin_install(&mut self, metadata: &SnapshotMetadata) -> Option<Install> {
        if metadata.index == 0 {
            return None;
        }
        let membership = Membership::from_raft(metadata.get_conf_state());
        self.membership = membership.clone();
        self.refounded = 0;
        self.node.mut_store().restore(metadata.index, metadata.term, membership.clone());
        Some(Install { index: metadata.index, term: metadata.term, membership })
    }

    /// There is a snapshot file up to this entry, when these took part.
    pub(crate) fn has_snapshot(&mut self, index: u64, term: u64, membership: Membership) {
        self.node.mut_store().has_snapshot(index, term, membership);
    }

    /// A snapshot should be taken soon: the newest one may be damaged.
    pub(crate) fn want_snapshot(&self) {
        self.node.store().want_snapshot();
    }

    /// True if a snapshot should be taken soon, for a member that lags.
    pub(crate) fn wants_snapshot(&self) -> bool {
        self.node.store().take_wish()
    }

    /// Member `to` cannot have the snapshot that it was offered.
    pub(crate) fn snapshot_failed(&mut self, to: u64) {
        self.node.report_snapshot(to, SnapshotStatus::Failure);
    }

    /// Round `number` and all before it are on disk.
    pub(crate) fn persisted(&mut self, number: u64) {
        self.node.on_persist_ready(number);
    }

    /// Everything up to `index` has been applied.
    pub(crate) fn applied(&mut self, index: u64) {
        self.node.advance_apply_to(index);
        self.node.mut_store().trim(index);
    }
}

/// Leaves out heartbeats behind which another one goes to the same member. Each carries the newest question, whose answer answers those
/// before it.
fn last_heartbeats(mut messages: Vec<Message>) -> Vec<Message> {
    let is_heartbeat = |message: &Message| message.msg_type == MessageType::MsgHeartbeat;
    if messages.iter().filter(|message| is_heartbeat(message)).nth(1).is_none() {
        return messages;
    }
    let mut told = Vec::new();
    messages.reverse();
    messages.retain(|message| {
        let is_older = is_heartbeat(message) && told.contains(&message.to);
        if is_heartbeat(message) {
            told.push(message.to);
        }
        !is_older
    });
    messages.reverse();
    messages
}

fn answer(state: &ReadState) -> Option<(Question, u64)> {
    Some((Question::decode(&state.request_ctx)?, state.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(entries: Vec<LogEntry>, hard_state: HardState) -> Consensus {
        let membership = Membership::new(vec![1], vec![]);
        Consensus::new(1, 0, 0, Recovered::new((0, 0), membership, hard_state, entries))
    }

    /// Runs rounds until there is nothing to do; returns what was committed.
    fn settle(consensus: &mut Consensus) -> Vec<LogEntry> {
        let mut committed = Vec::new();
        while let Some(round) = consensus.round() {
            consensus.persisted(round.number);
            committed.extend(round.committed);
            if let Some(last) = committed.last() {
                consensus.applied(last.index);
            }
        }
        committed
    }

    #[test]
    fn a_member_alone_leads_at_once_and_commits_what_it_persisted() {
        let mut consensus = alone(vec![], HardState::default());
        assert!(consensus.is_leader());
        settle(&mut consensus);
        consensus.propose(Bytes::from_static(b"a"));
        let index = consensus.node.raft.raft_log.last_index();
        let round = consensus.round().unwrap();
        assert_eq!(round.entries.len(), 1);
        assert!(
            consensus.round().is_none_or(|next| next.committed.is_empty()),
            "committed before it was persisted"
        );
        consensus.persisted(round.number);
        let committed = settle(&mut consensus);
        assert_eq!(committed.iter().map(|e| e.index).collect::<Vec<_>>(), [index]);
    }

    #[test]
    fn after_a_restart_everything_in_the_log_is_committed_again() {
        let entry = |index| LogEntry { index, term: 3, payload: Bytes::from_static(b"x") };
        let mut consensus = alone(
            vec![entry(1), entry(2)],
            HardState { term: 3, vote: 1, commit: 1, ..HardState::default() },
        );
        let committed = settle(&mut consensus);
        assert_eq!(committed[..2], [entry(1), entry(2)]);
        assert!(consensus.node.raft.term > 3);
    }

    #[test]
    fn a_member_that_keeps_out_of_elections_forgets_a_leader_that_is_silent() {
        let heartbeat =
            Message { msg_type: MessageType::MsgHeartbeat, from: 2, to: 1, term: 1, ..Message::default() };
        let hard_state = HardState { term: 1, ..HardState::default() };
        let recovered = Recovered::new((1, 1), Membership::new(vec![1, 2, 3], vec![]), hard_state, vec![]);
        let mut consensus = Consensus::new(1, 0, 0, recovered);
        consensus.set_silent(true);
        for _ in 0..2 {
            consensus.step(heartbeat.clone());
            for _ in 1..Consensus::SILENCE_TICKS {
                consensus.tick(true);
                assert_eq!(consensus.leadership().leader, Some(2));
            }
        }
        consensus.tick(true);
        assert_eq!(consensus.leadership().leader, None);
        assert_eq!(consensus.node.raft.state, StateRole::Follower);
        consensus.step(heartbeat);
        assert_eq!(consensus.leadership().leader, Some(2), "it is heard again");
    }

    #[test]
    fn a_member_without_room_for_a_snapshot_stands_once_it_is_installed() {
        let membership = Membership::new(vec![1, 2, 3], vec![]);
        let hard_state = HardState { term: 2, commit: 5, ..HardState::default() };
        let mut consensus =
            Consensus::new(1, 0, 0, Recovered::new((5, 2), membership.clone(), hard_state, vec![]));
        let mut snapshot =
            Message { msg_type: MessageType::MsgSnapshot, from: 2, to: 1, term: 2, ..Message::default() };
        let metadata = snapshot.mut_snapshot().mut_metadata();
        (metadata.index, metadata.term) = (9, 2);
        metadata.mut_conf_state().voters = membership.voters.clone();
        consensus.step(snapshot);
        let round = consensus.round().unwrap();
        assert_eq!(round.install.map(|install| install.index), Some(9));
        let told =
            Message { msg_type: MessageType::MsgTimeoutNow, from: 2, to: 1, term: 2, ..Message::default() };
        consensus.step(told);
        for _ in 0..3 * Consensus::ELECTION_TICKS {
            consensus.tick(true);
        }
        assert_eq!(consensus.leadership().leader, None, "the leader is not heard any more");
        assert_eq!(consensus.node.raft.state, StateRole::Follower);
        consensus.persisted(round.number);
        consensus.applied(9);
        for _ in 0..2 * Consensus::ELECTION_TICKS {
            consensus.tick(true);
        }
        assert_eq!(consensus.node.raft.state, StateRole::PreCandidate);
    }

    #[test]
    fn a_member_that_keeps_out_of_elections_does_not_take_the_lead_when_it_is_told_to() {
        let membership = Membership::new(vec![1, 2, 3], vec![]);
        let told =
            Message { msg_type: MessageType::MsgTimeoutNow, from: 2, to: 1, term: 1, ..Message::default() };
        for is_silent in [true, false] {
            let hard_state = HardState { term: 1, ..HardState::default() };
            let recovered = Recovered::new((1, 1), membership.clone(), hard_state, vec![]);
            let mut consensus = Consensus::new(1, 0, 0, recovered);
            consensus.set_silent(is_silent);
            consensus.step(told.clone());
            assert_eq!(consensus.node.raft.state == StateRole::Candidate, !is_silent);
        }
    }
}
