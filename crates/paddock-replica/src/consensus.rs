//! The Raft library behind a small interface. Nothing outside this module and its entry log knows it.

use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, Message, MessageType, SnapshotMetadata};
use raft::{Config, RawNode, ReadState, SnapshotStatus, StateRole};

use crate::entry_log::EntryLog;
use crate::message;

/// An entry of the Raft log as it goes to the transaction log. Its payload is a batch of commands, or empty for
/// the entry with which a leader begins its term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub index: u64,
    pub term: u64,
    pub payload: Bytes,
}

/// What a member must remember of its votes: 24 bytes in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    pub term: u64,
    pub vote: u64,
    pub commit: u64,
}

impl HardState {
    pub fn encode(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (chunk, value) in bytes.chunks_exact_mut(8).zip([self.term, self.vote, self.commit]) {
            chunk.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// `None` for bytes that `encode` did not write.
    pub fn decode(bytes: &[u8]) -> Option<HardState> {
        let bytes: &[u8; 24] = bytes.try_into().ok()?;
        let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at * 8 + i]));
        Some(HardState { term: field(0), vote: field(1), commit: field(2) })
    }
}

/// Who belongs to the ensemble.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    pub voters: Vec<u64>,
}

impl Membership {
    pub fn encode(&self) -> Vec<u8> {
        self.voters.iter().flat_map(|id| id.to_le_bytes()).collect()
    }

    /// `None` for bytes that `encode` did not write.
    pub fn decode(bytes: &[u8]) -> Option<Membership> {
        let (ids, rest) = bytes.as_chunks::<8>();
        let voters = ids.iter().map(|id| u64::from_le_bytes(*id)).collect();
        rest.is_empty().then_some(Membership { voters })
    }
}

/// What was found on disk.
#[derive(Debug)]
pub struct Recovered {
    /// Index and term of the last entry in the snapshot; zeros without one.
    pub snapshot: (u64, u64),
    pub membership: Membership,
    pub hard_state: HardState,
    /// All entries behind the snapshot, without a gap.
    pub entries: Vec<LogEntry>,
}

/// Who leads, and since when: each change of either is a new beginning for what was on its way to a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    pub(crate) leader: Option<u64>,
    pub(crate) term: u64,
}

/// What a round of the library asks for.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) hard_state: Option<HardState>,
    /// To be given back by `persisted` once all of this is on disk.
    pub(crate) number: u64,
    pub(crate) committed: Vec<LogEntry>,
    /// A leader's messages need not wait for its disk.
    pub(crate) messages: Letters,
    /// A follower's answers promise what is on its disk: they leave after `persisted`.
    pub(crate) messages_once_persisted: Letters,
    /// Answers to `ask_index`: the question, and the index.
    pub(crate) answers: Vec<(u64, u64)>,
    /// A snapshot takes the place of the state and the log before anything else of the round.
    pub(crate) install: Option<Install>,
}

/// Messages and the members they are for.
pub(crate) type Letters = Vec<(u64, Vec<u8>)>;

/// A snapshot that has come from the leader and takes the place of everything that is here. `Replica::installed` is to be
/// told when it has, before the round is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    pub index: u64,
    pub term: u64,
    pub membership: Membership,
}

pub(crate) struct Consensus {
    node: RawNode<EntryLog>,
    /// Whether this member is the only one that votes.
    is_alone: bool,
    seed: u64,
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
    /// How much is handed over to be applied at a time.
    const COMMITTED_BYTES_PER_ROUND: u64 = 4 << 20;

    /// The same `seed` makes the same election timeouts.
    pub(crate) fn new(member: u64, seed: u64, bytes_kept: usize, recovered: Recovered) -> Consensus {
        let conf_state = ConfState { voters: recovered.membership.voters, ..ConfState::default() };
        let is_alone = conf_state.voters == [member];
        let HardState { term, vote, commit } = recovered.hard_state;
        let last = recovered.entries.last().map_or(recovered.snapshot.0, |entry| entry.index);
        // The commit index is written lazily: the snapshot may be ahead of it, never the entries behind it.
        let commit = commit.clamp(recovered.snapshot.0, last);
        let term = recovered.entries.last().map_or(recovered.snapshot.1, |entry| entry.term).max(term);
        let hard_state = raft::eraftpb::HardState { term, vote, commit, ..Default::default() };

        let mut log = EntryLog::new(recovered.snapshot, conf_state, hard_state, bytes_kept);
        recovered.entries.into_iter().for_each(|entry| log.append(to_raft(entry)));
        let config = Config {
            applied: recovered.snapshot.0,
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
            // Nobody else can lead: there is no reason to wait for a timeout.
            node.campaign().expect("a follower may always campaign");
        }
        let mut consensus = Consensus { node, is_alone, seed };
        consensus.set_election_timeout();
        consensus
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Who leads, as far as this member knows, and in which term.
    pub(crate) fn leadership(&self) -> Leadership {
        let leader = self.node.raft.leader_id;
        Leadership { leader: (leader != raft::INVALID_ID).then_some(leader), term: self.node.raft.term }
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Takes a message of another member. What it cannot use it drops, as Raft may.
    pub(crate) fn step(&mut self, message: Message) {
        if let Err(error) = self.node.step(message) {
            tracing::debug!(%error, "message of another member dropped");
        }
        self.set_election_timeout();
    }

    pub(crate) fn tick(&mut self) {
        self.node.tick();
        self.set_election_timeout();
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
        assert!(self.is_leader(), "only a leader proposes");
        let message = Message {
            msg_type: MessageType::MsgPropose,
            from: self.node.raft.id,
            entries: vec![Entry { data: payload, ..Entry::default() }].into(),
            ..Message::default()
        };
        self.node.raft.step(message).expect("a leader without a transfer under way takes every proposal");
    }

    /// The next thing to do, if there is one.
    pub(crate) fn round(&mut self) -> Option<Round> {
        if !self.node.has_ready() {
            return None;
        }
        let mut ready = self.node.ready();
        let install = self.begin_install(ready.snapshot().get_metadata());
        let entries = ready.take_entries();
        let letters = |messages: Vec<Message>| messages.into_iter().filter_map(message::letter).collect();
        let round = Round {
            install,
            answers: ready.take_read_states().iter().filter_map(|state| self.answer(state)).collect(),
            messages: letters(ready.take_messages()),
            messages_once_persisted: letters(ready.take_persisted_messages()),
            hard_state: ready.hs().map(|hs| HardState { term: hs.term, vote: hs.vote, commit: hs.commit }),
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
    pub(crate) fn ask_index(&mut self, question: u64) {
        let mut context = self.node.raft.id.to_le_bytes().to_vec();
        context.extend_from_slice(&question.to_le_bytes());
        self.node.read_index(context);
    }

    /// The answer to a question of this member, out of the context that it gave.
    fn answer(&self, state: &ReadState) -> Option<(u64, u64)> {
        let (member, rest) = state.request_ctx.split_first_chunk::<8>()?;
        let question = u64::from_le_bytes(*rest.first_chunk::<8>()?);
        (u64::from_le_bytes(*member) == self.node.raft.id).then_some((question, state.index))
    }

    fn begin_install(&mut self, metadata: &SnapshotMetadata) -> Option<Install> {
        if metadata.index == 0 {
            return None;
        }
        let conf_state = metadata.get_conf_state().clone();
        let membership = Membership { voters: conf_state.voters.clone() };
        self.is_alone = membership.voters == [self.node.raft.id];
        self.node.mut_store().restore(metadata.index, metadata.term, conf_state);
        Some(Install { index: metadata.index, term: metadata.term, membership })
    }

    /// There is a snapshot file up to this entry.
    pub(crate) fn has_snapshot(&mut self, index: u64, term: u64) {
        self.node.mut_store().has_snapshot(index, term);
    }

    /// Whether a snapshot should be taken soon, for a member that lags.
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

fn from_raft(entry: Entry) -> LogEntry {
    LogEntry { index: entry.index, term: entry.term, payload: entry.data }
}

fn to_raft(entry: LogEntry) -> Entry {
    Entry { index: entry.index, term: entry.term, data: entry.payload, ..Entry::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(entries: Vec<LogEntry>, hard_state: HardState) -> Consensus {
        let membership = Membership { voters: vec![1] };
        Consensus::new(1, 0, 0, Recovered { snapshot: (0, 0), membership, hard_state, entries })
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
        let mut consensus = alone(vec![entry(1), entry(2)], HardState { term: 3, vote: 1, commit: 1 });
        let committed = settle(&mut consensus);
        assert_eq!(committed[..2], [entry(1), entry(2)]);
        assert!(consensus.node.raft.term > 3);
    }

    #[test]
    fn hard_state_and_membership_come_back() {
        let hard_state = HardState { term: 9, vote: 2, commit: 77 };
        assert_eq!(HardState::decode(&hard_state.encode()), Some(hard_state));
        assert_eq!(HardState::decode(&[1]), None);
        let membership = Membership { voters: vec![1, 2, 300] };
        assert_eq!(Membership::decode(&membership.encode()), Some(membership));
        assert_eq!(Membership::decode(&[1, 2]), None);
    }
}
