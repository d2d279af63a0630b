//! The heart of a member: `step` takes what happened, `collect` says what the disk has to do, `apply` (in its own file)
//! carries out what has been committed and answers.
//!
//! What a connection hands over is answered in the order in which it was handed over: writes travel as commands of
//! a batch, and everything else stands between them as an item of the same batch. So a read behind a write sees that
//! write and nothing its connection asked for later.
//!
//! Batches are numbered and stay with the member until they have been applied here (`outstanding.rs`). They go to the
//! leader, who may be this member, and again to the next leader; the state lets each number count once. So a change of
//! leader makes answers late, and loses or repeats nothing.

mod apply;
mod outstanding;
mod transfer;

use std::collections::{BTreeSet, VecDeque};

use paddock_proto::{IdList, OpCode, SessionId, Xid};
use paddock_tree::{Command, Origin};

use crate::batch::{BatchBuilder, EntryBuilder, batches};
use crate::consensus::{Consensus, Install, Leadership, Letters};
use crate::liveness::Liveness;
use crate::message::PeerMessage;
use crate::serving::Serving;
use crate::{Client, ConnId, HardState, LogEntry, Now, Outboxes, Recovered, State};
use outstanding::Outstanding;
use transfer::Transfer;
pub use transfer::{SnapshotRead, SnapshotWrite};

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
    /// How many bytes of applied entries are kept in memory for members that lag a little. Who lags more gets a snapshot.
    pub entry_bytes_kept: usize,
    /// Chance, for elections: the same seed makes the same choices.
    pub seed: u64,
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
    /// Another member says something: what `Effects::messages` gave it. Messages may be lost and come late.
    Peer { from: u64, bytes: Vec<u8> },
    /// There is a snapshot file up to this entry.
    SnapshotTaken { index: u64, term: u64 },
    /// What `Effects::snapshot_reads` asked for, and whether the snapshot ends with it; none if it is not there any more.
    SnapshotRead { read: SnapshotRead, piece: Option<(Vec<u8>, bool)> },
    /// What `Effects::snapshot_writes` asked for is done: so many bytes are written, and if it was the last piece, the
    /// snapshot is synced and has been checked. Not good: nothing of it is left.
    SnapshotWritten { index: u64, offset: u64, is_last: bool, is_good: bool },
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
    /// To other members, now: they need not wait for the disk.
    pub messages: Vec<(u64, Vec<u8>)>,
    /// Pieces of this member's snapshot that another one wants.
    pub snapshot_reads: Vec<SnapshotRead>,
    /// Pieces of the leader's snapshot that have come.
    pub snapshot_writes: Vec<SnapshotWrite>,
    /// A snapshot should be taken soon: a member lags behind all entries that are kept.
    pub wants_snapshot: bool,
    /// Before anything else of the round is written: the snapshot that has come whole takes the place of log and state.
    pub install: Option<Install>,
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
        self.messages.is_empty()
            && self.snapshot_reads.is_empty()
            && self.snapshot_writes.is_empty()
            && !self.wants_snapshot
            && self.round.is_none()
            && self.committed.is_empty()
            && !self.locals
    }
}

/// How far a call of `apply` came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub entries: usize,
    pub commands: usize,
}

/// What a member is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There are no others.
    Alone,
    Leader,
    Follower,
    /// Nobody leads, as far as it knows: writes wait.
    Looking,
}

/// What waits for its turn.
#[derive(Debug)]
enum Item {
    /// These stand for the commands of the batch, in its order.
    Write {
        conn: ConnId,
        xid: Xid,
    },
    /// A client waits for its session, a new one or its own.
    Session {
        conn: ConnId,
    },
    /// The member's own command: nobody waits for an answer.
    Own,
    /// These stand between the commands.
    Local(Local),
    Disconnect {
        conn: ConnId,
    },
}

impl Item {
    fn is_command(&self) -> bool {
        matches!(self, Item::Write { .. } | Item::Session { .. } | Item::Own)
    }

    /// Who waits for it.
    fn conn(&self) -> Option<ConnId> {
        match self {
            Item::Write { conn, .. } | Item::Session { conn } => Some(*conn),
            Item::Local(local) => Some(local.client.conn),
            Item::Own | Item::Disconnect { .. } => None,
        }
    }

    /// Whether it has to see what was written anywhere before it was asked.
    fn is_sync(&self) -> bool {
        matches!(self, Item::Local(Local { op: OpCode::Sync, .. }))
    }
}

#[derive(Debug)]
pub struct Replica {
    options: ReplicaOptions,
    consensus: Consensus,
    /// What came in since the last batch was closed.
    batch: BatchBuilder,
    items: VecDeque<Item>,
    /// Closed batches that have not been applied here.
    outstanding: Outstanding,
    /// What a leader proposes next: batches of all members.
    entry: EntryBuilder,
    /// As it was when the outstanding batches were sent.
    leadership: Leadership,
    /// Ticks since an outstanding batch was sent or applied.
    ticks_without_progress: u32,
    /// Sessions that were heard here and are to be reported to the leader.
    heard: BTreeSet<SessionId>,
    /// A snapshot on its way to this member.
    transfer: Option<Transfer>,
    /// The last entry that was applied here.
    applied: u64,
    /// The entry up to which a snapshot has taken the place of the state, until the library may know it.
    installed: Option<u64>,
    /// To leave with the next effects.
    letters: Letters,
    reads: Vec<SnapshotRead>,
    writes: Vec<SnapshotWrite>,
    liveness: Liveness,
    serving: Serving,
    next_session: i64,
    next_garbage_ms: u64,
    garbage_due: bool,
    /// The vote as it was last written.
    written_vote: (u64, u64),
    /// A round that was handed out to be synced and has not been reported.
    unsynced_round: Option<u64>,
    persisted_round: u64,
    /// Messages that promise what stands on disk after a round.
    held: VecDeque<(u64, Letters)>,
}

impl Replica {
    /// So many bytes of commands make a batch full.
    const BATCH_BYTES: usize = 1 << 20;
    /// So many bytes of batches make an entry full.
    const ENTRY_BYTES: usize = 1 << 20;
    /// A session that was heard is reported by `Input::Touch` after this time at the latest.
    pub const TOUCH_DELAY_MS: u64 = 200;
    /// How much later than that the leader may hear of it: ticks, and the way.
    const HEARD_DELAY_MS: u64 = 300;
    /// After so many ticks in which nothing came back, outstanding batches are sent again: they may have been lost.
    const RESEND_TICKS: u32 = 20;

    /// A member with what it found on disk. Every session gets its whole timeout anew.
    pub fn new(options: ReplicaOptions, recovered: Recovered, state: &State, now: Now) -> Replica {
        assert!(
            (1..=255).contains(&options.member),
            "a member's number is the top byte of its sessions' ids"
        );
        assert!(state.applied() == recovered.snapshot, "the state is the snapshot's");
        let written_vote = (recovered.hard_state.term, recovered.hard_state.vote);
        let member = options.member as u8;
        let incarnation = next_incarnation(member, now, state, &recovered.entries);
        let mut replica = Replica {
            next_session: first_session_id(options.member, now.wall_ms),
            next_garbage_ms: now.monotonic_ms + options.garbage_interval_ms,
            consensus: Consensus::new(options.member, options.seed, options.entry_bytes_kept, recovered),
            batch: BatchBuilder::new(),
            items: VecDeque::new(),
            outstanding: Outstanding::new(Origin { member, incarnation }),
            entry: EntryBuilder::new(),
            leadership: Leadership::default(),
            ticks_without_progress: 0,
            heard: BTreeSet::new(),
            transfer: None,
            applied: state.applied().0,
            installed: None,
            letters: Letters::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            held: VecDeque::new(),
            serving: Serving::default(),
            garbage_due: false,
            unsynced_round: None,
            persisted_round: 0,
            written_vote,
            liveness: Liveness::new(options.tick_ms),
            options,
        };
        replica.adopt_sessions(now, state);
        replica
    }

    /// What this member is to the others now, as far as it knows.
    pub fn role(&self) -> Role {
        match self.consensus.leadership().leader {
            _ if self.consensus.is_alone() => Role::Alone,
            Some(leader) if leader == self.options.member => Role::Leader,
            Some(_) => Role::Follower,
            None => Role::Looking,
        }
    }

    pub fn step(&mut self, now: Now, input: Input) {
        match input {
            Input::Write { conn, xid, command } => self.submit(&command, Item::Write { conn, xid }),
            Input::Local(local) => self.items.push_back(Item::Local(local)),
            Input::Connect { conn, timeout_ms } => self.on_connect(conn, timeout_ms),
            Input::Resume { conn, session, timeout_ms } => self.on_resume(now, conn, session, timeout_ms),
            Input::Disconnect { conn } => self.items.push_back(Item::Disconnect { conn }),
            Input::Touch { session } => self.hear(now, session),
            Input::Peer { from, bytes } => self.on_message(now, from, &bytes),
            Input::SnapshotTaken { index, term } => self.consensus.has_snapshot(index, term),
            Input::SnapshotRead { read, piece } => self.on_read(read, piece),
            Input::SnapshotWritten { index, offset, is_last, is_good } => {
                self.on_written(index, offset, is_last, is_good);
            }
            Input::Persisted { round } => self.on_persisted(round),
            Input::Tick => self.on_tick(now),
        }
    }

    fn submit(&mut self, command: &[u8], item: Item) {
        if self.batch.len() + command.len() > Replica::BATCH_BYTES {
            self.close_batch();
        }
        self.batch.push(command);
        self.items.push_back(item);
    }

    /// Submits what no client has sent in this form.
    fn submit_own(&mut self, session: SessionId, op: OpCode, body: &[u8], item: Item) {
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, op, body, &mut command);
        self.submit(&command, item);
    }

    fn on_connect(&mut self, conn: ConnId, timeout_ms: i32) {
        let session = SessionId(self.next_session);
        self.next_session += 1;
        let body = timeout_ms.to_be_bytes();
        self.submit_own(session, OpCode::CreateSession, &body, Item::Session { conn });
    }

    /// A client comes back. That goes through the log too: what the session has on its way on another member must not
    /// come after what it asks from now on.
    fn on_resume(&mut self, now: Now, conn: ConnId, session: SessionId, timeout_ms: i32) {
        self.hear(now, session);
        let body = timeout_ms.to_be_bytes();
        self.submit_own(session, OpCode::ResumeSession, &body, Item::Session { conn });
    }

    fn hear(&mut self, now: Now, session: SessionId) {
        self.liveness.touch(session, now.monotonic_ms);
        if !self.consensus.is_leader() {
            self.heard.insert(session);
        }
    }

    fn on_message(&mut self, now: Now, from: u64, bytes: &[u8]) {
        match PeerMessage::decode(bytes) {
            Ok(PeerMessage::Raft(message)) if message.from == from => {
                self.consensus.step(message);
                self.follow_leadership(now);
            }
            Ok(PeerMessage::Raft(message)) => {
                tracing::error!(
                    from,
                    claimed = message.from,
                    "message of one member in the name of another dropped"
                );
            }
            Ok(PeerMessage::Forward(batch)) => self.on_forward(now, from, &batch),
            Ok(PeerMessage::Heard(sessions)) => {
                sessions.into_iter().for_each(|session| self.liveness.touch(session, now.monotonic_ms));
            }
            Ok(PeerMessage::Offer(offer)) if offer.from == from => self.on_offer(offer),
            Ok(PeerMessage::Offer(_)) => tracing::error!(from, "offer in the name of another member dropped"),
            Ok(PeerMessage::Fetch { index, offset }) => {
                self.reads.push(SnapshotRead { to: from, index, offset });
            }
            Ok(PeerMessage::Piece(piece)) => self.on_piece(from, piece),
            Ok(PeerMessage::Gone { index }) => self.on_gone(from, index),
            Err(error) => tracing::error!(from, %error, "message of another member cannot be read"),
        }
    }

    /// A batch for the leader. Who is none drops it: the sender will notice that another one leads.
    fn on_forward(&mut self, now: Now, from: u64, batch: &[u8]) {
        if !self.consensus.is_leader() {
            return;
        }
        if self.entry.len() + batch.len() > Replica::ENTRY_BYTES {
            self.propose();
        }
        if let Err(error) = self.entry.add_foreign(batch, now.wall_ms) {
            tracing::error!(from, %error, "batch of another member cannot be read");
        }
    }

    fn on_tick(&mut self, now: Now) {
        self.consensus.tick();
        self.ticks_without_progress += 1;
        self.tick_transfer();
        self.ask_questions();
        if !self.consensus.is_leader() {
            return;
        }
        let delay_ms = match self.consensus.is_alone() {
            true => Replica::TOUCH_DELAY_MS,
            false => Replica::TOUCH_DELAY_MS + Replica::HEARD_DELAY_MS,
        };
        for session in self.liveness.expire(now.monotonic_ms.saturating_sub(delay_ms)) {
            tracing::info!(%session, "session expired");
            self.submit_own(SessionId::NONE, OpCode::ExpireSession, &session.0.to_be_bytes(), Item::Own);
        }
        if now.monotonic_ms >= self.next_garbage_ms {
            self.next_garbage_ms = now.monotonic_ms + self.options.garbage_interval_ms;
            self.garbage_due = true;
        }
    }

    /// Numbers what was submitted.
    fn close_batch(&mut self) {
        if self.batch.commands() > 0 {
            if self.outstanding.is_empty() {
                self.ticks_without_progress = 0;
            }
            self.outstanding.push_batch(&mut self.batch, std::mem::take(&mut self.items));
        }
    }

    /// Finds a place for what waits and needs no entry.
    fn place_locals(&mut self, effects: &mut Effects) {
        if self.items.is_empty() {
            return;
        }
        let items = std::mem::take(&mut self.items);
        if !self.consensus.is_alone() && items.iter().any(Item::is_sync) {
            self.outstanding.push_sync(items);
            self.ask_questions();
            return;
        }
        // Nothing to write stands behind these: they follow what is under way.
        match self.outstanding.last_items() {
            Some(last) => last.extend(items),
            None => {
                self.items = items;
                effects.locals = true;
            }
        }
    }

    fn ask_questions(&mut self) {
        for question in self.outstanding.unanswered() {
            self.consensus.ask_index(question);
        }
    }

    /// Sends outstanding batches to the leader: new ones, or all if it is another leader or nothing came back.
    fn send_batches(&mut self, now: Now, effects: &mut Effects) {
        self.follow_leadership(now);
        if self.ticks_without_progress >= Replica::RESEND_TICKS {
            self.ticks_without_progress = 0;
            self.outstanding.send_all_again();
        }
        let Some(leader) = self.leadership.leader else { return };
        for batch in self.outstanding.unsent() {
            if self.consensus.is_leader() {
                if self.entry.len() + batch.len() > Replica::ENTRY_BYTES {
                    self.propose();
                }
                self.entry.add(&batch, now.wall_ms);
            } else {
                effects.messages.push((leader, PeerMessage::Forward(batch).encode()));
            }
        }
    }

    /// A new leader, this member or another, is sent everything anew.
    fn follow_leadership(&mut self, now: Now) {
        let leadership = self.consensus.leadership();
        if leadership == self.leadership {
            return;
        }
        if !self.consensus.is_alone() {
            tracing::info!(leader = leadership.leader, term = leadership.term, "leadership changed");
        }
        self.leadership = leadership;
        // Its sender will send it again, to whoever leads now.
        self.entry = EntryBuilder::new();
        // Another leader makes its own offer.
        self.transfer = None;
        self.outstanding.send_all_again();
        self.ticks_without_progress = 0;
        // What a former leader heard is not known here.
        self.liveness.renew_all(now.monotonic_ms);
    }

    fn tell_leader_who_was_heard(&mut self, effects: &mut Effects) {
        if let Some(leader) = self.leadership.leader.filter(|_| !self.heard.is_empty()) {
            let sessions = std::mem::take(&mut self.heard).into_iter().collect();
            effects.messages.push((leader, PeerMessage::Heard(sessions).encode()));
        }
    }

    /// Turns the leader's batches into an entry of the log.
    fn propose(&mut self) {
        if !self.entry.is_empty() && self.consensus.is_leader() {
            self.consensus.propose(self.entry.take());
        }
    }

    /// Gathers what is to be done now. To be called, and its effects carried out, until there are none.
    pub fn collect(&mut self, now: Now, effects: &mut Effects) {
        self.close_batch();
        self.tell_leader_who_was_heard(effects);
        self.ask_for_piece(effects);
        effects.messages.append(&mut self.letters);
        effects.snapshot_reads.append(&mut self.reads);
        effects.snapshot_writes.append(&mut self.writes);
        self.send_batches(now, effects);
        self.propose();
        self.place_locals(effects);
        effects.locals |= self.garbage_due;
        while let Some(round) = self.consensus.round() {
            effects.committed.extend(round.committed);
            effects.messages.extend(round.messages);
            round.answers.into_iter().for_each(|(question, index)| self.outstanding.answer(question, index));
            self.held.push_back((round.number, round.messages_once_persisted));
            if round.install.is_some() {
                assert!(
                    effects.committed.is_empty(),
                    "entries before a snapshot are applied before it comes"
                );
                effects.install = round.install;
            }
            self.record(round.hard_state, round.entries, round.number, effects);
        }
        self.release_messages(effects);
        effects.locals |= self.outstanding.is_ready(self.applied);
        effects.wants_snapshot |= self.consensus.wants_snapshot();
    }

    /// The snapshot has taken the place of log and state. What this member's connections wait for may have been carried
    /// out in it, and what their watches waited for may have happened: they are closed, and their clients come back.
    pub fn installed(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        self.installed = Some(state.applied().0);
        self.applied = state.applied().0;
        let forgotten =
            self.outstanding.forget_through(state.tree().applied_batch(self.outstanding.origin()));
        for conn in forgotten.iter().filter_map(Item::conn).chain(self.serving.end_all()) {
            out.close(conn);
        }
        self.adopt_sessions(now, state);
    }

    /// Watches over the sessions of a state that was loaded, each with its whole timeout before it.
    fn adopt_sessions(&mut self, now: Now, state: &State) {
        self.liveness = Liveness::new(self.options.tick_ms);
        for (session, timeout_ms) in state.tree().sessions() {
            self.liveness.add(session, timeout_ms, now.monotonic_ms);
            self.skip_session_id(session);
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
        let nothing_new = entries.is_empty() && vote == self.written_vote && effects.install.is_none();
        if nothing_new && self.unsynced_round.is_none() {
            self.on_persisted(round);
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
        if let Some(index) = self.installed.take() {
            self.consensus.applied(index);
        }
        self.unsynced_round = self.unsynced_round.filter(|&last| last > round);
        self.persisted_round = round;
    }

    /// What the disk now holds may be promised.
    fn release_messages(&mut self, effects: &mut Effects) {
        while let Some((_, messages)) = self.held.pop_front_if(|(round, _)| *round <= self.persisted_round) {
            effects.messages.extend(messages);
        }
    }

    /// An id that was given out by this member, perhaps before it was restarted, is never given out again.
    fn skip_session_id(&mut self, used: SessionId) {
        let same_member = (used.0 ^ self.next_session) >> 56 == 0;
        if same_member {
            self.next_session = self.next_session.max(used.0 + 1);
        }
    }
}

/// Higher than every incarnation before, even if the clock went back.
fn next_incarnation(member: u8, now: Now, state: &State, entries: &[LogEntry]) -> u64 {
    let logged = entries.iter().flat_map(|entry| batches(&entry.payload)).map(|batch| batch.origin);
    let logged = logged.filter(|origin| origin.member == member).map(|origin| origin.incarnation);
    let last = logged.chain(state.tree().incarnation(member)).max();
    (now.wall_ms as u64).max(last.map_or(0, |last| last + 1))
}

/// Where a member starts to count its sessions, so that ids are never used twice: its number, then the time.
fn first_session_id(member: u64, wall_ms: i64) -> i64 {
    let time = ((wall_ms as u64) << 24) >> 8;
    ((member << 56) | (time & 0x00ff_ffff_ffff_ffff)) as i64
}
