//! The heart of a member: `step` takes what happened, `collect` says what the disk has to do, `apply` (in its own file)
//! carries out what has been committed and answers.
//!
//! What a connection hands over is answered in the order in which it was handed over: writes travel as commands of
//! a log entry, and everything else stands between them as an item of the same proposal. So a read behind a write
//! sees that write and nothing its connection asked for later.

mod apply;

use std::collections::VecDeque;

use paddock_proto::jute::Writer;
use paddock_proto::{IdList, OpCode, SessionId, Xid};
use paddock_tree::Command;

use crate::batch::BatchBuilder;
use crate::consensus::Consensus;
use crate::liveness::Liveness;
use crate::serving::Serving;
use crate::{Client, ConnId, HardState, LogEntry, Now, Recovered, State};

#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// This member's number in the ensemble, 1 to 255.
    pub member: u64,
    /// Sessions expire at whole ticks.
    pub tick_ms: u64,
    /// How often empty containers and expired TTL znodes are looked for.
    pub garbage_interval_ms: u64,
    /// How many of them are removed at a time.
    pub garbage_max: usize,
}

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    /// A write of a connection, encoded by `Command::encode`.
    Write { conn: ConnId, xid: Xid, command: Vec<u8> },
    /// Anything else that has to wait for the connection's writes.
    Local(Local),
    /// A client wants a new session.
    Connect { conn: ConnId, timeout_ms: i32 },
    /// A client with the right password wants its session back.
    Resume { conn: ConnId, session: SessionId, timeout_ms: i32 },
    /// The connection is gone.
    Disconnect { conn: ConnId },
    /// The session was heard on a connection of this member.
    Touch { session: SessionId },
    /// Everything in the log up to and including this round is on disk.
    Persisted { round: u64 },
    /// A tenth of an election timeout has passed.
    Tick,
}

/// A request that is answered from this member's own state.
#[derive(Debug)]
pub struct Local {
    pub client: Client,
    pub xid: Xid,
    pub op: OpCode,
    pub body: Vec<u8>,
}

/// What is to be done. The shell carries it out and reports `Input::Persisted`.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be written in this order: the hard state first.
    pub hard_state: Option<HardState>,
    pub entries: Vec<LogEntry>,
    /// The round to report once the above is synced.
    pub round: Option<u64>,
    /// To be given to `Replica::apply`.
    pub committed: Vec<LogEntry>,
    /// Whether requests wait that need no entry: `Replica::apply` answers them.
    pub locals: bool,
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.round.is_none() && self.committed.is_empty() && !self.locals
    }
}

/// How far a call of `apply` came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub entries: usize,
    pub commands: usize,
}

/// What waits for its turn.
#[derive(Debug)]
enum Item {
    /// These stand for the commands of the entry, in its order.
    Write {
        conn: ConnId,
        xid: Xid,
    },
    Connect {
        conn: ConnId,
    },
    /// The member's own command: nobody waits for an answer.
    Own,
    /// These stand between the commands.
    Local(Local),
    Resume {
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
    },
    Disconnect {
        conn: ConnId,
    },
}

impl Item {
    fn is_command(&self) -> bool {
        matches!(self, Item::Write { .. } | Item::Connect { .. } | Item::Own)
    }
}

#[derive(Debug)]
struct Proposal {
    index: u64,
    items: VecDeque<Item>,
}

#[derive(Debug)]
pub struct Replica {
    options: ReplicaOptions,
    consensus: Consensus,
    /// What came in since the last proposal.
    batch: BatchBuilder,
    items: VecDeque<Item>,
    /// What has been proposed and not been applied, by index.
    proposals: VecDeque<Proposal>,
    liveness: Liveness,
    serving: Serving,
    next_session: i64,
    next_garbage_ms: u64,
    garbage_due: bool,
    /// The vote as it was last written.
    written_vote: (u64, u64),
    /// A round that was handed out to be synced and has not been reported.
    unsynced_round: Option<u64>,
}

impl Replica {
    /// So many bytes of commands make an entry full.
    const BATCH_BYTES: usize = 1 << 20;
    /// A session that was heard is reported by `Input::Touch` after this time at the latest.
    pub const TOUCH_DELAY_MS: u64 = 200;

    /// A member with what it found on disk. Every session gets its whole timeout anew.
    pub fn new(options: ReplicaOptions, recovered: Recovered, state: &State, now: Now) -> Replica {
        assert!(
            (1..=255).contains(&options.member),
            "a member's number is the top byte of its sessions' ids"
        );
        assert!(state.applied() == recovered.snapshot, "the state is the snapshot's");
        let written_vote = (recovered.hard_state.term, recovered.hard_state.vote);
        let mut liveness = Liveness::new(options.tick_ms);
        for (session, timeout_ms) in state.tree().sessions() {
            liveness.add(session, timeout_ms, now.monotonic_ms);
        }
        let mut replica = Replica {
            next_session: first_session_id(options.member, now.wall_ms),
            next_garbage_ms: now.monotonic_ms + options.garbage_interval_ms,
            consensus: Consensus::new(options.member, recovered),
            batch: BatchBuilder::new(),
            items: VecDeque::new(),
            proposals: VecDeque::new(),
            serving: Serving::default(),
            garbage_due: false,
            unsynced_round: None,
            written_vote,
            liveness,
            options,
        };
        state.tree().sessions().for_each(|(session, _)| replica.skip_session_id(session));
        replica
    }

    pub fn step(&mut self, now: Now, input: Input) {
        match input {
            Input::Write { conn, xid, command } => self.submit(now, &command, Item::Write { conn, xid }),
            Input::Local(local) => self.items.push_back(Item::Local(local)),
            Input::Connect { conn, timeout_ms } => self.on_connect(now, conn, timeout_ms),
            Input::Resume { conn, session, timeout_ms } => {
                self.items.push_back(Item::Resume { conn, session, timeout_ms });
            }
            Input::Disconnect { conn } => self.items.push_back(Item::Disconnect { conn }),
            Input::Touch { session } => self.liveness.touch(session, now.monotonic_ms),
            Input::Persisted { round } => self.on_persisted(round),
            Input::Tick => self.on_tick(now),
        }
    }

    fn submit(&mut self, now: Now, command: &[u8], item: Item) {
        if self.batch.len() + command.len() > Replica::BATCH_BYTES {
            self.propose();
        }
        self.batch.push(command, now.wall_ms);
        self.items.push_back(item);
    }

    /// Submits what no client has sent in this form.
    fn submit_own(&mut self, now: Now, session: SessionId, op: OpCode, body: &[u8], item: Item) {
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, op, body, &mut command);
        self.submit(now, &command, item);
    }

    fn on_connect(&mut self, now: Now, conn: ConnId, timeout_ms: i32) {
        let session = SessionId(self.next_session);
        self.next_session += 1;
        let mut body = Vec::new();
        body.put_i32(timeout_ms);
        self.submit_own(now, session, OpCode::CreateSession, &body, Item::Connect { conn });
    }

    fn on_tick(&mut self, now: Now) {
        self.consensus.tick();
        if !self.consensus.is_leader() {
            return;
        }
        for session in self.liveness.expire(now.monotonic_ms.saturating_sub(Replica::TOUCH_DELAY_MS)) {
            tracing::info!(%session, "session expired");
            self.submit_own(now, session, OpCode::CloseSession, &[], Item::Own);
        }
        if now.monotonic_ms >= self.next_garbage_ms {
            self.next_garbage_ms = now.monotonic_ms + self.options.garbage_interval_ms;
            self.garbage_due = true;
        }
    }

    /// Turns what was submitted into an entry of the log.
    fn propose(&mut self) {
        if self.batch.commands() == 0 || !self.consensus.is_leader() {
            return;
        }
        let index = self.consensus.propose(self.batch.take());
        let items = std::mem::take(&mut self.items);
        self.proposals.push_back(Proposal { index, items });
    }

    /// Gathers what is to be done now. To be called, and its effects carried out, until there are none.
    pub fn collect(&mut self, effects: &mut Effects) {
        self.propose();
        if self.batch.commands() == 0 && !self.items.is_empty() {
            // Nothing to write stands behind these: they follow the last write under way.
            match self.proposals.back_mut() {
                Some(last) => last.items.append(&mut self.items),
                None => effects.locals = true,
            }
        }
        effects.locals |= self.garbage_due;
        while let Some(round) = self.consensus.round() {
            effects.committed.extend(round.committed);
            self.record(round.hard_state, round.entries, round.number, effects);
        }
    }

    /// What of a round must reach the disk. A commit index alone need not: it is found again.
    fn record(
        &mut self,
        hard_state: Option<HardState>,
        entries: Vec<LogEntry>,
        round: u64,
        effects: &mut Effects,
    ) {
        let vote = hard_state.map_or(self.written_vote, |hs| (hs.term, hs.vote));
        let nothing_new = entries.is_empty() && vote == self.written_vote;
        if nothing_new && self.unsynced_round.is_none() {
            self.consensus.persisted(round);
            return;
        }
        if vote != self.written_vote {
            self.written_vote = vote;
            effects.hard_state = hard_state;
        }
        effects.entries.extend(entries);
        effects.round = Some(round);
        self.unsynced_round = Some(round);
    }

    fn on_persisted(&mut self, round: u64) {
        self.consensus.persisted(round);
        self.unsynced_round = self.unsynced_round.filter(|&last| last > round);
    }

    /// An id that was given out by this member, perhaps before it was restarted, is never given out again.
    fn skip_session_id(&mut self, used: SessionId) {
        let same_member = (used.0 ^ self.next_session) >> 56 == 0;
        if same_member {
            self.next_session = self.next_session.max(used.0 + 1);
        }
    }
}

/// Where a member starts to count its sessions, so that ids are never used twice: its number, then the time.
fn first_session_id(member: u64, wall_ms: i64) -> i64 {
    let time = ((wall_ms as u64) << 24) >> 8;
    ((member << 56) | (time & 0x00ff_ffff_ffff_ffff)) as i64
}
