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
//!
//! What a leader says by itself, such as that a session has ended, has no number and is kept nowhere: it counts if it comes
//! into the log in the leader's term. The next leader judges for itself.

mod admission;
mod apply;
mod confirming;
mod contact;
mod digests;
mod founding;
mod gates;
mod inquiry;
mod members;
mod outstanding;
mod processes;
mod refusing;
mod transfer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paddock_proto::{IdList, OpCode, SessionId, Xid};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, QueuedRead, TOUCH_DELAY_MS};
use paddock_tree::{Command, Origin};

use crate::batch::{Batch, BatchBuilder, EntryBuilder};
use crate::configuration::ConfigurationEntry;
use crate::consensus::{Consensus, Leadership};
use crate::effects::{Applied, Effects, Messages as Letters, SnapshotRead, SnapshotWrite};
use crate::liveness::Liveness;
use crate::message::{Envelope, FoundOnDisk, PeerMessage};
use crate::question::Question;
use crate::serving::Serving;
use crate::{Cluster, HardState, Input, LogEntry, Recovered, ReplicaOptions, Replicated};
use admission::Admission;
use confirming::Confirming;
use contact::Contact;
use digests::Digests;
use founding::Beginning;
use gates::Gates;
use inquiry::Inquiry;
use members::Wanted;
use outstanding::Outstanding;
use processes::Processes;
use refusing::Refusing;
use transfer::Transfer;

/// What a member is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There are no others.
    Alone,
    Leader,
    Follower,
    /// It follows and has no vote.
    Observer,
    /// Nobody leads, as far as it knows: writes wait. Or it was removed.
    Looking,
    /// Nothing can be written: there is no quorum, or no room on its disk.
    ReadOnly,
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
    /// Nobody waits for the answer any more.
    Abandoned,
    /// These stand between the commands.
    Read(QueuedRead),
    Disconnect {
        conn: ConnId,
    },
}

impl Item {
    fn is_command(&self) -> bool {
        matches!(self, Item::Write { .. } | Item::Session { .. } | Item::Abandoned)
    }

    /// Who waits for it.
    fn conn(&self) -> Option<ConnId> {
        match self {
            Item::Write { conn, .. } | Item::Session { conn } => Some(*conn),
            Item::Read(local) => Some(local.client.conn),
            Item::Abandoned | Item::Disconnect { .. } => None,
        }
    }

    /// Whether it has to see what was written anywhere before it was asked.
    fn needs_quorum(&self, replica: &Replica) -> bool {
        matches!(self, Item::Read(QueuedRead { op, .. }) if replica.needs_quorum(*op))
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
    /// What this leader says by itself.
    words: BatchBuilder,
    /// As it was when the outstanding batches were sent.
    leadership: Leadership,
    /// Ticks since an outstanding batch was sent or applied.
    ticks_without_progress: u32,
    contact: Contact,
    /// For a leader.
    confirming: Confirming,
    /// A snapshot on its way to this member.
    transfer: Option<Transfer>,
    /// Ticks since a member that this leader has offered a snapshot has asked for a piece.
    idle_offers: BTreeMap<u64, u32>,
    /// Until the next complaint about this member's snapshot counts.
    ticks_to_complaint: u32,
    /// The last entry that was applied here.
    applied: u64,
    applied_term: u64,
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
    /// The ensemble whose messages this member takes.
    cluster: Cluster,
    /// Peers that belong to another ensemble, and its id, since that was told last.
    foreign: Vec<(u64, u64)>,
    /// A peer was refused for that, so this member may stand at another one's address.
    has_met_foreign: bool,
    processes: Processes,
    admission: Option<Admission>,
    /// This member's disk as it was when the process was started.
    found: FoundOnDisk,
    /// The last entry that a process of a member had acknowledged to this leader, before another process followed it: the
    /// leader's term, then term, as far as it is known, and index of the entry.
    acknowledged_before: BTreeMap<u64, (u64, (Option<u64>, u64))>,
    /// Member and start of the processes whose disk this leader has found too old.
    complaints: BTreeSet<(u64, u64)>,
    /// The number of the last start of each member that the state knows of.
    starts: BTreeMap<u64, u64>,
    /// While this member has nothing.
    beginning: Option<Beginning>,
    inquiry: Option<Inquiry>,
    /// Members of an ensemble that exists, as a founder hears of them that has not heard whether its founding succeeded.
    vouchers: Inquiry,
    /// This member had nothing and has not caught up: see `founding.rs`. Up to this entry it has to; before its leader
    /// said up to which, up to the end of numbers.
    silent_until: Option<u64>,
    /// This member, as leader, has said who the members are, and has proposed that.
    is_named: bool,
    is_name_proposed: bool,
    /// Who is to take part, as the state says; `None` while there is no ensemble.
    wanted: Option<Wanted>,
    is_removed: bool,
    members_changed: bool,
    /// Who waits for the change of members that is under way.
    waits_for_members: Option<(ConnId, Xid)>,
    gates: Gates,
    refusing: Refusing,
    digests: Digests,
    /// Until then nobody else can have become leader.
    lease_until_ms: u64,
    /// The term in which this leader has asked another one to lead. That one may stand for election whenever it hears of
    /// this, so there is no lease any more.
    handed_over_in: Option<u64>,
    /// As it was last written.
    written: HardState,
    /// The membership has changed: that it is committed has to reach the disk soon.
    is_commit_due: bool,
    /// A round that was handed out to be synced and has not been reported.
    unsynced_round: Option<u64>,
    persisted_round: u64,
    /// The last round in which this member began a term, or gave its vote.
    vote_round: u64,
    /// Messages that promise what stands on disk after a round.
    held: VecDeque<(u64, Letters)>,
}

impl Replica {
    /// A tenth of an election timeout.
    pub const TICK_MS: u64 = 100;
    /// After a quorum has heard of its leader, none of it votes for another one for so long.
    const LEASE_MS: u64 = 9 * Replica::TICK_MS;
    /// So many bytes of commands make a batch full.
    const BATCH_BYTES: usize = 1 << 20;
    /// So many bytes of batches make an entry full.
    const ENTRY_BYTES: usize = 1 << 20;
    /// How much later than that the leader may hear of it: ticks, and the way.
    const HEARD_DELAY_MS: u64 = 300;
    /// After so many ticks in which nothing came back, outstanding batches are sent again: they may have been lost.
    const RESEND_TICKS: u32 = 20;

    /// A member with what it found on disk, for which `Recovered::begin` was called. Every session gets its whole timeout anew.
    pub fn new(options: ReplicaOptions, recovered: Recovered, state: &Replicated, now: Now) -> Replica {
        assert!(
            (1..=255).contains(&options.member),
            "a member's number is the top byte of its sessions' ids"
        );
        assert!(state.applied() == recovered.snapshot, "the state is the snapshot's");
        let written = recovered.hard_state;
        let member = options.member as u8;
        let incarnation = written.incarnation;
        assert!(incarnation > 0, "a member begins with the number of its start");
        let mut replica = Replica {
            cluster: recovered.cluster,
            found: recovered.found(),
            foreign: Vec::new(),
            has_met_foreign: false,
            processes: Processes::default(),
            admission: None,
            acknowledged_before: BTreeMap::new(),
            complaints: BTreeSet::new(),
            starts: BTreeMap::new(),
            vouchers: Inquiry::default(),
            next_session: first_session_id(options.member, incarnation),
            next_garbage_ms: now.monotonic_ms + options.garbage_interval_ms,
            consensus: Consensus::new(options.member, options.seed, options.entry_bytes_kept, recovered),
            batch: BatchBuilder::new(),
            items: VecDeque::new(),
            outstanding: Outstanding::new(Origin { member, incarnation }),
            entry: EntryBuilder::new(),
            words: BatchBuilder::new(),
            leadership: Leadership::default(),
            ticks_without_progress: 0,
            contact: Contact::new(now.monotonic_ms),
            confirming: Confirming::default(),
            transfer: None,
            idle_offers: BTreeMap::new(),
            ticks_to_complaint: 0,
            applied: state.applied().0,
            applied_term: state.applied().1,
            installed: None,
            letters: Letters::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            held: VecDeque::new(),
            serving: Serving::default(),
            garbage_due: false,
            unsynced_round: None,
            persisted_round: 0,
            vote_round: 0,
            beginning: None,
            inquiry: None,
            silent_until: Some(written.silent_until).filter(|until| *until > 0),
            is_named: false,
            is_name_proposed: false,
            wanted: None,
            is_removed: false,
            members_changed: false,
            waits_for_members: None,
            gates: Gates::default(),
            refusing: Refusing::default(),
            digests: Digests::default(),
            lease_until_ms: 0,
            handed_over_in: None,
            written,
            is_commit_due: false,
            liveness: Liveness::new(options.tick_ms),
            options,
        };
        replica.begin(now, state.tree());
        if replica.options.lease_clock_bound_ms.is_some() {
            replica.consensus.withhold_votes();
        }
        replica.follow_ensemble(state.tree());
        replica.adopt_sessions(now, state);
        replica
    }

    /// The ensemble that this member belongs to. It has to be on the disk before a round of work is reported as synced.
    pub fn cluster(&self) -> Cluster {
        self.cluster
    }

    /// What this member is to the others now, as far as it knows.
    pub fn role(&self) -> Role {
        match self.consensus.leadership().leader {
            _ if self.refusing.serves_nobody() || self.awaits_admission() => Role::Looking,
            _ if self.refusing.is_active() => Role::ReadOnly,
            _ if self.options.founding.members.is_empty() => Role::Alone,
            Some(leader) if leader == self.options.member => Role::Leader,
            Some(_) if self.consensus.membership().learners.contains(&self.options.member) => Role::Observer,
            Some(_) => Role::Follower,
            None => Role::Looking,
        }
    }

    pub fn step(&mut self, now: Now, input: Input) {
        if let Some(input) = self.gates.pass(input) {
            self.take(now, input);
        }
    }

    fn take(&mut self, now: Now, input: Input) {
        match input {
            Input::Client(input) if self.refusing.is_active() => self.on_refused(now, input),
            Input::Client(input) => self.on_client(now, input),
            Input::Peer { from, bytes } => self.on_message(now, from, &bytes),
            Input::LinkLost { peer } => self.on_lost_link(peer),
            Input::SnapshotTaken { index, term, membership } => {
                self.consensus.has_snapshot(index, term, membership);
            }
            Input::SnapshotRead { read, piece } => self.on_read(read, piece),
            Input::SnapshotWritten { index, offset, is_last, is_good } => {
                self.on_written(index, offset, is_last, is_good);
            }
            Input::Persisted { round } if self.is_founding(round) => self.on_founded(),
            Input::Persisted { round } => self.on_persisted(round),
            Input::DiskFull(is_full) => self.on_disk_full(now, is_full),
            Input::StepDown => self.step_down(),
            Input::Tick => self.on_tick(now),
        }
    }

    fn on_client(&mut self, now: Now, input: ClientInput) {
        match input {
            ClientInput::Write { conn, xid, command, .. } => self.submit(&command, Item::Write { conn, xid }),
            ClientInput::Read(read) => self.items.push_back(Item::Read(read)),
            ClientInput::Connect { conn, timeout_ms, .. } => self.on_connect(conn, timeout_ms),
            ClientInput::Resume { conn, session, timeout_ms, .. } => {
                self.on_resume(now, conn, session, timeout_ms);
            }
            ClientInput::Disconnect { conn } => self.items.push_back(Item::Disconnect { conn }),
            ClientInput::Touch { session } => self.hear(now, session),
        }
    }

    /// Takes an input of a client while nothing can be written.
    fn on_refused(&mut self, now: Now, input: ClientInput) {
        match input {
            ClientInput::Write { conn, xid, .. } => {
                self.gates.forget(conn);
                self.refusing.write(conn, xid);
            }
            ClientInput::Read(read) => {
                let needs_quorum = self.needs_quorum(read.op);
                self.refusing.read(read, needs_quorum);
            }
            ClientInput::Connect { conn, timeout_ms, may_only_read } => {
                self.refusing.greet(conn, None, timeout_ms, may_only_read);
            }
            ClientInput::Resume { conn, session, timeout_ms, may_only_read } => {
                self.hear(now, session);
                self.refusing.greet(conn, Some(session), timeout_ms, may_only_read);
            }
            ClientInput::Disconnect { conn } => self.refusing.disconnect(conn),
            ClientInput::Touch { session } => self.hear(now, session),
        }
    }

    fn on_lost_link(&mut self, peer: u64) {
        self.processes.lose(peer);
        // A lease is the promise that nobody else leads before an election timeout is over, whatever becomes of links.
        if self.options.lease_clock_bound_ms.is_none() {
            self.consensus.lost_link(peer);
        }
    }

    fn submit(&mut self, command: &[u8], item: Item) {
        if self.batch.len() + command.len() > Replica::BATCH_BYTES {
            self.close_batch();
        }
        self.batch.push(command);
        self.items.push_back(item);
    }

    /// Submits what a client waits for who has not sent it in this form.
    fn submit_session(&mut self, session: SessionId, op: OpCode, timeout_ms: i32, conn: ConnId) {
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, op, &timeout_ms.to_be_bytes(), &mut command);
        self.submit(&command, Item::Session { conn });
    }

    /// A leader's own word.
    fn say(&mut self, op: OpCode, body: &[u8]) {
        let mut command = Vec::new();
        Command::encode(SessionId::NONE, 0, IdList::NONE, op, body, &mut command);
        self.words.push(&command);
    }

    fn on_connect(&mut self, conn: ConnId, timeout_ms: i32) {
        let session = self.take_session_id();
        self.submit_session(session, OpCode::CreateSession, timeout_ms, conn);
    }

    fn take_session_id(&mut self) -> SessionId {
        let session = SessionId(self.next_session);
        self.next_session += 1;
        session
    }

    /// A client comes back. That goes through the log too: what the session has on its way on another member, or on another
    /// connection here, must not come after what it asks from now on.
    fn on_resume(&mut self, now: Now, conn: ConnId, session: SessionId, timeout_ms: i32) {
        self.hear(now, session);
        if let Some(former) = self.serving.conn(session) {
            self.gates.close_forever(former);
        }
        self.submit_session(session, OpCode::ResumeSession, timeout_ms, conn);
    }

    fn hear(&mut self, now: Now, session: SessionId) {
        self.liveness.touch(session, now.monotonic_ms);
        if !self.consensus.is_alone() {
            self.contact.hear(session);
        }
    }

    /// Every session that was heard here before this time of the member's monotonic clock was known then to a leader that
    /// a quorum followed. A member alone has nobody who could know more: the end of time.
    pub fn confirmed_ms(&self) -> u64 {
        if self.consensus.is_alone() { u64::MAX } else { self.contact.confirmed_ms() }
    }

    fn on_message(&mut self, now: Now, from: u64, message: &[u8]) {
        let opened =
            Envelope::open(message).and_then(|(envelope, body)| Ok((envelope, PeerMessage::decode(body)?)));
        let (envelope, message) = match opened {
            Ok(opened) => opened,
            Err(error) => return tracing::error!(from, %error, "message of another member cannot be read"),
        };
        if self.cluster.is_foreign_to(envelope.cluster) {
            return self.on_foreign(from, envelope.cluster);
        }
        // The log is about to begin: a message for the one before is lost.
        if self.is_writing_first_entry() || !self.hears(from, envelope.process, now.monotonic_ms) {
            return;
        }
        self.cluster = self.cluster.agree(envelope.cluster);
        match message {
            PeerMessage::Greeting(greeting) => self.on_greeting(from, envelope.cluster, greeting),
            message if self.cluster.shares_log_with(envelope.cluster) => {
                self.on_log_message(now, from, message)
            }
            // This member has no data, and hears that there is an ensemble.
            PeerMessage::Raft(message) if self.cluster.known().is_none() => self.note_leader(&message),
            _ => {}
        }
    }

    /// A message of a member of the same ensemble.
    fn on_log_message(&mut self, now: Now, from: u64, message: PeerMessage) {
        match message {
            PeerMessage::Confirmed { number } => self.contact.confirm(number),
            // What cannot be written is sent again when there is room.
            message if self.refusing.is_disk_full() && !self.consensus.is_leader() => {
                self.note_speaker(from, &message);
            }
            PeerMessage::Raft(message) if message.from == from => {
                self.note_leader(&message);
                if self.is_inquiring() {
                    return;
                }
                self.consensus.step(message);
                self.follow_leadership(now);
            }
            PeerMessage::Raft(message) => {
                tracing::error!(
                    from,
                    claimed = message.from,
                    "message of one member in the name of another dropped"
                );
            }
            PeerMessage::Forward(batch) => self.on_forward(now, from, &batch),
            PeerMessage::Heard { number, sessions } => {
                sessions.into_iter().for_each(|session| self.liveness.touch(session, now.monotonic_ms));
                if self.consensus.is_leader() {
                    self.confirming.receive(from, number);
                }
            }
            PeerMessage::Offer(_) if self.is_inquiring() => {}
            PeerMessage::Offer(offer) if offer.from == from => self.on_offer(offer),
            PeerMessage::Offer(_) => tracing::error!(from, "offer in the name of another member dropped"),
            PeerMessage::Fetch { index, offset } => self.on_fetch(SnapshotRead { to: from, index, offset }),
            PeerMessage::Piece(piece) => self.on_piece(from, piece),
            PeerMessage::Gone { index } => self.on_gone(from, index),
            PeerMessage::Damaged { index } => self.on_damaged(from, index),
            PeerMessage::Digest { index, digest, is_in_doubt } => {
                self.on_digest(from, index, digest, is_in_doubt);
            }
            PeerMessage::Diverged { index, digest } => self.on_diverged(index, digest),
            PeerMessage::Greeting(_) | PeerMessage::Present => {}
        }
    }

    /// A batch for the leader. Who is none drops it: the sender will notice that another one leads.
    fn on_forward(&mut self, now: Now, from: u64, batch: &[u8]) {
        if !self.consensus.takes_proposals() {
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
        // A snapshot that is not on disk yet has taken the place of entries that the library would look at before it stands
        // for election.
        if self.installed.is_none() {
            self.consensus.tick();
        }
        self.ticks_without_progress += 1;
        self.tick_transfer();
        self.is_name_proposed = false;
        self.tick_beginning();
        self.say_present();
        self.tick_digests();
        self.tick_refusing(now);
        self.tick_contact(now);
        self.ask_questions(now);
        self.reconcile();
        if !self.consensus.takes_proposals() || self.refusing.is_active() {
            return;
        }
        self.renew_offers();
        let delay_ms = match self.consensus.is_alone() {
            true => TOUCH_DELAY_MS,
            false => TOUCH_DELAY_MS + Replica::HEARD_DELAY_MS,
        };
        for session in self.liveness.expire(now.monotonic_ms.saturating_sub(delay_ms)) {
            tracing::info!(%session, "session expired");
            self.say(OpCode::ExpireSession, &session.0.to_be_bytes());
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
    fn place_locals(&mut self, now: Now, effects: &mut Effects) {
        if self.items.is_empty() {
            return;
        }
        let items = std::mem::take(&mut self.items);
        if !self.consensus.is_alone() && items.iter().any(|item| item.needs_quorum(self)) {
            self.outstanding.push_sync(now.monotonic_ms, items);
            self.ask_questions(now);
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

    fn ask_questions(&mut self, now: Now) {
        let Some(question) = self.outstanding.ask() else { return };
        if self.consensus.is_leader() && now.monotonic_ms < self.lease_until_ms {
            self.outstanding.answer(question, self.consensus.committed());
        } else {
            self.consensus.ask_index(question);
        }
    }

    /// A quorum has confirmed that this member leads, after it was asked for that.
    fn on_answer(&mut self, question: Question, index: u64, effects: &mut Effects) {
        if question.number == Question::OF_LEADER {
            return self.confirm_reports(question, effects);
        }
        let asked_ms = self.outstanding.answer(question, index);
        let is_heir_asked = self.handed_over_in == Some(self.consensus.leadership().term);
        let may_lease = self.consensus.takes_proposals() && !is_heir_asked;
        if let (Some(asked_ms), Some(bound_ms), true) =
            (asked_ms, self.options.lease_clock_bound_ms, may_lease)
        {
            self.lease_until_ms = asked_ms + Replica::LEASE_MS.saturating_sub(bound_ms);
        }
    }

    /// Sends outstanding batches to the leader: new ones, or all if it is another leader or nothing came back.
    fn send_batches(&mut self, now: Now, effects: &mut Effects) {
        self.follow_leadership(now);
        if self.ticks_without_progress >= Replica::RESEND_TICKS {
            self.ticks_without_progress = 0;
            self.outstanding.send_all_again();
        }
        let may_send = !self.refusing.is_learning() && !self.awaits_admission();
        let Some(leader) = self.leadership.leader.filter(|_| may_send) else { return };
        if self.consensus.is_leader() && !self.consensus.takes_proposals() {
            return;
        }
        if self.consensus.is_leader() && self.words.commands() > 0 {
            let words = self.words.take(self.outstanding.origin(), Batch::UNNUMBERED);
            self.entry.add(&words, now.wall_ms);
        }
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
        self.words = BatchBuilder::new();
        self.is_named = false;
        self.confirming.forget();
        self.contact.make_due();
        self.forget_offer_before(leadership.term);
        self.outstanding.send_all_again();
        self.ticks_without_progress = 0;
        self.lease_until_ms = 0;
        self.is_name_proposed = false;
        self.digests.begin_anew();
        self.reconsider_members();
        // What a former leader heard is not known here.
        self.liveness.renew_all(now.monotonic_ms);
    }

    /// Turns the leader's batches into an entry of the log.
    fn propose(&mut self) {
        if !self.entry.is_empty() && self.consensus.takes_proposals() && self.may_go_on_before_name() {
            self.consensus.propose(self.entry.take());
        }
    }

    /// Gathers what is to be done now. To be called, and its effects carried out, until there are none.
    pub fn collect(&mut self, now: Now, effects: &mut Effects) {
        self.found(effects);
        if self.is_writing_first_entry() {
            return;
        }
        self.name_ensemble(now);
        for input in self.gates.take_free() {
            self.step(now, input);
        }
        self.close_batch();
        self.tell_digests(effects);
        self.ask_for_piece(effects);
        effects.messages.append(&mut self.letters);
        effects.snapshot_reads.append(&mut self.reads);
        effects.snapshot_writes.append(&mut self.writes);
        self.send_batches(now, effects);
        self.report_to_leader(now, effects);
        self.propose();
        self.place_locals(now, effects);
        effects.locals |= self.garbage_due || self.refusing.has_work();
        while let Some(round) = self.consensus.round() {
            effects.committed.extend(round.committed);
            self.send_of_leader(round.vote, round.number, round.messages, effects);
            round.answers.into_iter().for_each(|(question, index)| self.on_answer(question, index, effects));
            self.ask_if_still_leading();
            self.held.push_back((round.number, round.messages_once_persisted));
            if round.install.is_some() {
                assert!(
                    effects.committed.is_empty(),
                    "entries before a snapshot are applied before it comes"
                );
                effects.install = round.install;
            }
            self.record(round.vote, round.entries, round.number, effects);
        }
        self.release_messages(effects);
        let envelope = Envelope { cluster: self.cluster, process: self.options.process };
        effects.messages.iter_mut().for_each(|(_, message)| envelope.seal(message));
        effects.foreign.append(&mut self.foreign);
        effects.locals |= self.outstanding.is_ready(self.applied);
        effects.wants_snapshot |= self.consensus.wants_snapshot();
    }

    /// The snapshot has taken the place of log and state. What this member's connections wait for may have been carried
    /// out in it, and what their watches waited for may have happened: they are closed, and their clients come back.
    pub fn installed(&mut self, now: Now, state: &Replicated, out: &mut Outboxes) {
        self.installed = Some(state.applied().0);
        (self.applied, self.applied_term) = state.applied();
        self.note_starts(state.tree());
        let forgotten =
            self.outstanding.forget_through(state.tree().applied_batch(self.outstanding.origin()));
        let waits = self.waits_for_members.take().map(|(conn, _)| conn);
        let served = self.serving.end_all().into_iter().chain(self.refusing.take_read_only());
        for conn in forgotten.iter().filter_map(Item::conn).chain(served).chain(waits) {
            out.close(conn);
        }
        self.follow_ensemble(state.tree());
        self.adopt_sessions(now, state);
    }

    /// Watches over the sessions of a state that was loaded, each with its whole timeout before it.
    fn adopt_sessions(&mut self, now: Now, state: &Replicated) {
        self.liveness = Liveness::new(self.options.tick_ms);
        for (session, timeout_ms) in state.tree().sessions() {
            self.liveness.add(session, timeout_ms, now.monotonic_ms);
            self.skip_session_id(session);
        }
    }

    /// What of a round must reach the disk. A commit index alone need not.
    fn record(
        &mut self,
        vote: Option<(u64, u64)>,
        entries: Vec<LogEntry>,
        round: u64,
        effects: &mut Effects,
    ) {
        self.note_name(&entries);
        let (term, vote) = vote.unwrap_or((self.written.term, self.written.vote));
        let silent_until = self.silent_until.unwrap_or_default();
        // Who restarts must not take part as it did before a change that is committed. Others know as little of what is
        // committed as this member has written down, so it goes with every entry; alone it is found again.
        let is_commit_due = std::mem::take(&mut self.is_commit_due);
        let commit = match is_commit_due || !self.consensus.is_alone() {
            true => self.consensus.committed(),
            false => self.written.commit,
        };
        let incarnation = self.outstanding.origin().incarnation;
        let promise = HardState { term, vote, commit, silent_until, incarnation };
        let is_promised = promise == HardState { commit, ..self.written };
        let nothing_new = entries.is_empty() && is_promised && !is_commit_due && effects.install.is_none();
        if nothing_new && self.unsynced_round.is_none() {
            self.on_persisted(round);
            return;
        }
        if promise != self.written {
            self.written = promise;
            effects.hard_state = Some(promise);
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

    /// A leader's messages need not wait for its disk, but for the term in which it leads. The only voter leads as soon as it
    /// begins a term, which it must not forget: it would lead again in the same one, and others have entries of it.
    fn send_of_leader(
        &mut self,
        vote: Option<(u64, u64)>,
        round: u64,
        messages: Letters,
        effects: &mut Effects,
    ) {
        if vote.is_some_and(|vote| vote != (self.written.term, self.written.vote)) {
            self.vote_round = round;
        }
        match self.vote_round > self.persisted_round {
            true => self.held.push_back((self.vote_round, messages)),
            false => effects.messages.extend(messages),
        }
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

/// Where a member starts to count its sessions, so that ids are never used twice: its number, then that of its start, which
/// is a time as a rule.
fn first_session_id(member: u64, incarnation: u64) -> i64 {
    let start = (incarnation << 24) >> 8;
    ((member << 56) | start) as i64
}
