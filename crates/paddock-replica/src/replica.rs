//! One member: `step` takes an input, `collect` says what the shell has to do (`replica/collect.rs`), `apply` carries out what has
//! been committed and answers (`replica/apply.rs`).
//!
//! [`Replica`] is a list of its parts. Each part has its own file beside this one, takes what it needs as arguments, and does not
//! know the others; only this file and those below it know all.
//!
//! Batches are numbered and stay with the member until they have been applied here (`outstanding.rs`). They go to the
//! leader, who may be this member, and again to the next leader; the state lets each number count once. So a change of
//! leader makes answers late, and loses or repeats nothing.

mod apply;
mod collect;
mod peers;
mod standing;

use paddock_proto::{OpCode, SessionId};
use paddock_state::{
    ClientInput, ConnId, Garbage, Now, Outboxes, ProvenIds, Resumption, Serving, TOUCH_DELAY_MS,
};
use paddock_tree::{Command, Origin, Tree};

use crate::applied_position::AppliedPosition;
use crate::consensus::{Consensus, Leadership};
use crate::contact::Contact;
use crate::digests::Digests;
use crate::disk_age::DiskAge;
use crate::durability::Durability;
use crate::effects::QueuedEffects;
use crate::file_lists::FileLists;
use crate::founding::{FOUNDING_ROUND, reconfig_to};
use crate::gates::Gates;
use crate::joining::Joining;
use crate::leading::Leading;
use crate::member_profiles::MemberProfiles;
use crate::membership_change::{LeaderView, MembershipAction, MembershipChange};
use crate::message::{PeerMessage, Purpose};
use crate::options::TICK_MS;
use crate::own_cluster::{OwnCluster, new_cluster_id};
use crate::processes::Processes;
use crate::queued_item::QueuedItem;
use crate::read_only::{ReadOnly, ReadOnlyRequest, Verdicts};
use crate::requests::Requests;
use crate::sessions::Sessions;
use crate::snapshot_transfer::{SnapshotComplaints, SnapshotReceiver};
use crate::{Cluster, HardState, Input, Recovered, ReplicaOptions, Replicated};
pub use standing::{FollowerStanding, Standing};

/// Part of a member in its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There are no other members.
    Alone,
    Leader,
    Follower,
    /// The member follows and has no vote.
    Observer,
    /// No leader is known: writes wait. Or the member was removed.
    Looking,
    /// Nothing can be written: there is no quorum, or no room on its disk.
    ReadOnly,
}

/// One member of an ensemble.
#[derive(Debug)]
pub struct Replica {
    options: ReplicaOptions,
    consensus: Consensus,
    /// Leader and term, as the parts have been told.
    leadership: Leadership,
    /// Present only while this member leads.
    leading: Option<Leading>,
    applied: AppliedPosition,
    durability: Durability,
    requests: Requests,
    sessions: Sessions,
    contact: Contact,
    gates: Gates,
    /// The state has a secret for passwords of sessions.
    has_secret: bool,
    read_only: ReadOnly,
    joining: Joining,
    cluster: OwnCluster,
    processes: Processes,
    profiles: MemberProfiles,
    file_lists: FileLists,
    disk_age: DiskAge,
    /// The number of this start is of no use, and clients are sent away before the start gets another one.
    is_number_used_up: bool,
    membership: MembershipChange,
    receiver: SnapshotReceiver,
    complaints: SnapshotComplaints,
    digests: Digests,
    garbage: Garbage,
    outgoing: QueuedEffects,
}

impl Replica {
    /// Time between two `Input::Tick`s, in milliseconds: a tenth of an election timeout.
    pub const TICK_MS: u64 = TICK_MS;
    /// Time in milliseconds by which a leader may hear of a session later than the member that serves it: ticks, and the way.
    const HEARD_DELAY_MS: u64 = 300;

    /// A member as its disk describes it, for which `Recovered::begin` was called. Every session gets its whole timeout anew.
    pub fn new(options: ReplicaOptions, recovered: Recovered, state: &Replicated, now: Now) -> Replica {
        assert!(
            (1..=255).contains(&options.member),
            "a member's number is the top byte of its sessions' ids"
        );
        assert!(state.applied() == recovered.snapshot, "the state is the snapshot's");
        let written = recovered.hard_state;
        let HardState { incarnation, silent_until, .. } = written;
        assert!(incarnation > 0, "a member begins with the number of its start");
        let mut replica = Replica {
            cluster: OwnCluster::new(recovered.cluster, &recovered.entries),
            disk_age: DiskAge::new(options.member, &recovered),
            consensus: Consensus::new(options.member, options.seed, options.entry_bytes_kept, recovered),
            leadership: Leadership::default(),
            leading: None,
            applied: AppliedPosition::new(state.applied()),
            durability: Durability::new(written),
            requests: Requests::new(Origin { member: options.member as u8, incarnation }),
            sessions: Sessions::new(options.tick_ms, options.member, incarnation),
            contact: Contact::new(now.monotonic_ms),
            gates: Gates::default(),
            has_secret: false,
            read_only: ReadOnly::default(),
            joining: Joining::new(options.member, silent_until),
            processes: Processes::default(),
            profiles: MemberProfiles::default(),
            file_lists: FileLists::new(&options.founding.members, options.founding.files_change_members),
            is_number_used_up: false,
            membership: MembershipChange::default(),
            receiver: SnapshotReceiver::default(),
            complaints: SnapshotComplaints::default(),
            digests: Digests::default(),
            garbage: Garbage::new(options.garbage_interval_ms, options.garbage_max, now),
            outgoing: QueuedEffects::default(),
            options,
        };
        replica.begin(now, state.tree());
        if replica.options.lease_clock_bound_ms.is_some() {
            replica.consensus.withhold_votes();
        }
        replica.follow_ensemble(state.tree());
        replica.sessions.adopt(state.tree(), now.monotonic_ms);
        // A snapshot does not tell which entries have ended sessions.
        replica.sessions.ended_through = replica.applied.index();
        replica
    }

    /// Begins as the disk demands: founds, learns, or waits for admission.
    fn begin(&mut self, now: Now, tree: &Tree) {
        self.disk_age.adopt(tree);
        let may_have_ensemble = !self.options.founding.members.is_empty();
        if may_have_ensemble && self.cluster() == Cluster::None && tree.ensemble().is_none() {
            self.cluster.propose(new_cluster_id(self.options.process, now));
        }
        let is_empty = self.consensus.is_empty();
        match self.joining.silent_until() {
            Some(HardState::TERM_UNKNOWN) => self.await_state(),
            Some(_) => self.read_only.begin_learning(),
            None if is_empty && self.cluster().known().is_some() => self.await_state(),
            None if is_empty => self.joining.begin_founding(),
            None if !self.consensus.is_alone() => self.joining.begin_admission(self.consensus.membership()),
            None => {}
        }
        self.consensus.set_silent(self.joining.is_silent());
    }

    /// The ensemble that this member belongs to. It has to be on the disk before a round of work is reported as synced.
    pub fn cluster(&self) -> Cluster {
        self.cluster.cluster()
    }

    /// Part of this member in its ensemble, as far as it knows.
    pub fn role(&self) -> Role {
        if self.read_only.refuses_reads() || self.joining.awaits_admission() {
            return Role::Looking;
        }
        if self.read_only.is_active() {
            return Role::ReadOnly;
        }
        if self.options.founding.members.is_empty() {
            return Role::Alone;
        }
        let own = self.options.member;
        match self.consensus.leadership().leader {
            Some(leader) if leader == own => Role::Leader,
            Some(_) if self.consensus.membership().learners.contains(&own) => Role::Observer,
            Some(_) => Role::Follower,
            None => Role::Looking,
        }
    }

    /// Time of this member's last contact with a quorum, in milliseconds of its monotonic clock: every session that was heard
    /// here before was known then to a leader that a quorum followed. A member alone has no other that could know more: the end
    /// of time.
    pub fn confirmed_ms(&self) -> u64 {
        if self.consensus.is_alone() { u64::MAX } else { self.contact.confirmed_ms() }
    }

    /// Takes an input. What is to be done about it, `collect` says.
    pub fn step(&mut self, now: Now, input: Input) {
        if let Some(input) = self.gates.pass(input) {
            self.take(now, input);
        }
    }

    fn take(&mut self, now: Now, input: Input) {
        match input {
            Input::Client(input) if self.read_only.is_active() => self.on_client_in_read_only(now, input),
            Input::Client(input) => self.on_client(now, input),
            Input::Peer { from, bytes } => self.on_message(now, from, &bytes),
            Input::LinkLost { peer } => self.on_lost_link(peer),
            Input::SnapshotTaken { index, term, membership } => {
                self.consensus.has_snapshot(index, term, membership);
            }
            Input::SnapshotRead { read, piece } => self.on_snapshot_read(read, piece),
            Input::SnapshotWritten { index, offset, is_last, is_good } => {
                let out = &mut self.outgoing.messages;
                if let Some(offer) = self.receiver.on_written(index, offset, is_last, is_good, out) {
                    self.consensus.step(offer);
                }
            }
            Input::Persisted { round: FOUNDING_ROUND } if self.joining.is_writing_first_entry() => {
                self.on_founded();
            }
            Input::Persisted { round } => self.on_persisted(round),
            Input::DiskFull(is_full) => self.on_disk_full(now, is_full),
            Input::StepDown => self.step_down(),
            Input::RequestLead => self.request_lead(),
            Input::Profile(profile) => self.profiles.set_own(profile),
            Input::Tick => self.on_tick(now),
        }
    }

    /// Connections serve these sessions already, which the state has. To be called before anything of them is taken.
    pub fn adopt(&mut self, now: Now, serving: Serving) {
        for session in serving.sessions() {
            self.hear(now, session);
        }
        self.sessions.adopt_serving(serving);
    }

    fn on_client(&mut self, now: Now, input: ClientInput) {
        match input {
            ClientInput::Write { conn, xid, command, .. } => {
                self.requests.submit(&command, QueuedItem::Write { conn, xid });
            }
            ClientInput::Read(read) => self.requests.push(QueuedItem::Read(read)),
            ClientInput::Connect { conn, timeout_ms, ids, .. } => {
                let session = self.sessions.take_id();
                self.submit_session(session, OpCode::CreateSession, &ids, &timeout_ms.to_be_bytes(), conn);
            }
            ClientInput::Resume { conn, resumption, .. } => self.on_resume(now, conn, &resumption),
            ClientInput::Bind { session, ids, .. } => {
                let command = session_command(session, OpCode::BindSession, &ids, &[]);
                // No connection waits for it.
                self.requests.submit(&command, QueuedItem::Abandoned);
            }
            ClientInput::Disconnect { conn } => self.requests.disconnect(conn),
            ClientInput::Touch { session } => self.hear(now, session),
        }
    }

    /// Takes an input of a client while nothing can be written.
    fn on_client_in_read_only(&mut self, now: Now, input: ClientInput) {
        let request = match input {
            ClientInput::Write { conn, xid, .. } => {
                self.gates.forget(conn);
                ReadOnlyRequest::Refused { conn, xid }
            }
            ClientInput::Read(read) if self.needs_quorum(read.op) => {
                ReadOnlyRequest::Refused { conn: read.client.conn, xid: read.xid }
            }
            ClientInput::Read(read) => ReadOnlyRequest::Read(read),
            ClientInput::Connect { conn, timeout_ms, may_only_read, .. } => {
                ReadOnlyRequest::Connect { conn, session: None, timeout_ms, may_only_read }
            }
            // The client proves the same when it comes back.
            ClientInput::Bind { .. } => return,
            ClientInput::Resume { conn, resumption, may_only_read } => {
                let Resumption { session, timeout_ms, is_asking, .. } = resumption;
                if !is_asking {
                    self.hear(now, session);
                }
                ReadOnlyRequest::Connect { conn, session: Some(session), timeout_ms, may_only_read }
            }
            ClientInput::Disconnect { conn } => {
                self.requests.forget_conn(conn);
                ReadOnlyRequest::Disconnect { conn }
            }
            ClientInput::Touch { session } => return self.hear(now, session),
        };
        self.read_only.push(request);
    }

    /// True if a request has to see what was written anywhere before it.
    fn needs_quorum(&self, op: OpCode) -> bool {
        op == OpCode::Sync || self.options.linearizable_reads
    }

    /// Submits the command for a session that a client waits for, who has not sent it in this form.
    fn submit_session(&mut self, session: SessionId, op: OpCode, ids: &ProvenIds, body: &[u8], conn: ConnId) {
        let command = session_command(session, op, ids, body);
        self.requests.submit_session(&command, conn);
    }

    /// A client comes back. That goes through the log too: what the session has on its way on another member, or on another
    /// connection here, must not come after what it asks from now on.
    fn on_resume(&mut self, now: Now, conn: ConnId, resumption: &Resumption) {
        let session = resumption.session;
        // A client that has not shown who it is changes nothing for the one that is served.
        if !resumption.is_asking {
            self.hear(now, session);
            if let Some(former) = self.sessions.conn(session) {
                self.gates.close_forever(former, conn);
            }
        }
        self.resume(conn, resumption);
    }

    fn resume(&mut self, conn: ConnId, resumption: &Resumption) {
        let Resumption { session, ids, .. } = resumption;
        self.submit_session(
            *session,
            OpCode::ResumeSession,
            ids,
            &resumption.body(Some(resumption.moves)),
            conn,
        );
    }

    fn hear(&mut self, now: Now, session: SessionId) {
        self.sessions.liveness.touch(session, now.monotonic_ms);
        if !self.consensus.is_alone() {
            self.contact.hear(session);
        }
    }

    fn on_disk_full(&mut self, now: Now, is_full: bool) {
        self.read_only.set_disk_full(is_full);
        if is_full {
            self.step_down();
        }
        self.judge_read_only(now);
    }

    fn judge_read_only(&mut self, now: Now) {
        let voters = &self.consensus.membership().voters;
        let verdicts = Verdicts {
            is_removed: self.membership.is_removed(),
            is_in_doubt: self.digests.is_in_doubt(),
            is_disputed: self.cluster.is_disputed(voters, &self.options.founding.membership.voters),
        };
        if self.read_only.judge(verdicts) {
            // Nobody could come back to a session meanwhile.
            self.sessions.liveness.renew_all(now.monotonic_ms);
        }
    }

    /// Hands the lead over, if this member has it and there is a member to take it.
    fn step_down(&mut self) {
        if let Some(transferee) = self.consensus.transferee().filter(|_| self.consensus.is_leader()) {
            tracing::info!(to = transferee, "handing the lead over");
            self.hand_over(transferee);
        }
    }

    /// Asks the leader, if another member is known to lead, to hand the lead over to this one.
    fn request_lead(&mut self) {
        if let Some(leader) =
            self.consensus.leadership().leader.filter(|leader| *leader != self.options.member)
        {
            self.outgoing.messages.push((leader, PeerMessage::WantsLead.encode()));
        }
    }

    /// Hands the lead over to a voter that wants it. One that is not heard cannot take it.
    fn on_wants_lead(&mut self, from: u64) {
        let has_vote = self.consensus.membership().voters.contains(&from);
        let is_there = || self.consensus.followers().get(&from).is_some_and(|follower| follower.is_heard);
        if self.consensus.takes_proposals() && has_vote && is_there() {
            tracing::info!(to = from, "handing the lead over to a member that asked for it");
            self.hand_over(from);
        }
    }

    /// Asks another voter to lead. It may do so any time later, and no member waits for a lease to be over then.
    fn hand_over(&mut self, transferee: u64) {
        if let Some(leading) = &mut self.leading {
            leading.lease.hand_over();
        }
        self.consensus.transfer(transferee);
    }

    /// Announces a command of this leader; one that does not lead announces nothing.
    fn announce(&mut self, op: OpCode, body: &[u8]) {
        if let Some(leading) = &mut self.leading {
            leading.announce(op, body);
        }
    }

    fn on_tick(&mut self, now: Now) {
        // A snapshot that is not on disk yet has taken the place of entries that the Raft library would look at before it stands
        // for election.
        if !self.applied.is_installing() {
            self.consensus.tick();
        }
        self.requests.tick();
        self.complaints.tick();
        self.receiver.tick();
        if let Some(leading) = &mut self.leading {
            leading.tick();
        }
        self.tick_joining();
        self.tell_presence();
        self.digests.tick();
        self.read_only.tick(self.consensus.leadership().leader.is_some());
        self.judge_read_only(now);
        if self.consensus.is_alone() {
            self.contact.be_alone(now.monotonic_ms);
        } else {
            self.contact.make_due();
        }
        self.ask_questions(now);
        self.follow_files();
        self.change_membership();
        if self.consensus.takes_proposals() && !self.read_only.is_active() {
            self.propose_secret(now);
            self.renew_offers();
            self.expire_sessions(now);
            self.garbage.tick(now);
        } else {
            self.garbage.rest(now);
        }
        self.note_log_end(now);
    }

    /// Notes how far the log of this leader goes now, by which the lag of its followers is told.
    fn note_log_end(&mut self, now: Now) {
        let Some(leading) = &mut self.leading else { return };
        let had_by_all = self.consensus.followers().values().map(|follower| follower.matched).min();
        let last = self.consensus.last_entry();
        leading.log_ends.note(last, had_by_all.unwrap_or(last), now.monotonic_ms);
    }

    fn expire_sessions(&mut self, now: Now) {
        let heard_delay_ms = if self.consensus.is_alone() { 0 } else { Replica::HEARD_DELAY_MS };
        let delay_ms = TOUCH_DELAY_MS + heard_delay_ms;
        for session in self.sessions.liveness.expire(now.monotonic_ms.saturating_sub(delay_ms)) {
            tracing::info!(%session, "session expired");
            self.sessions.expired += 1;
            self.announce(OpCode::ExpireSession, &session.0.to_be_bytes());
        }
        // A client that comes back from now on comes too late: its session's end stands in front of that.
        self.place_announcements(now);
    }

    /// Tells the leader which members this one's file has; a leader asks for the change that most files want.
    fn follow_files(&mut self) {
        let present = self.membership.settled_members();
        if let (Some(lines), Some(leader)) = (self.file_lists.tick(present), self.other_leader()) {
            self.outgoing.messages.push((leader, PeerMessage::FileList { lines }.encode()));
        }
        if !self.consensus.takes_proposals() || self.consensus.is_changing() {
            return;
        }
        let voters = &self.consensus.membership().voters;
        if let Some(lines) = self.file_lists.next_members(self.options.member, voters, present) {
            tracing::info!(
                members = %lines.trim_end().replace('\n', " "),
                "most members' configuration files have other members or addresses: changing them"
            );
            self.announce(OpCode::Reconfig, &reconfig_to(&lines));
        }
    }

    /// Brings the membership nearer to what the state wants, if this member leads.
    fn change_membership(&mut self) {
        if !self.consensus.takes_proposals() || self.consensus.is_changing() {
            return;
        }
        let view = LeaderView {
            own: self.options.member,
            membership: self.consensus.membership(),
            committed: self.consensus.committed(),
            followers: self.consensus.followers(),
        };
        for action in self.membership.tick(&view) {
            match action {
                MembershipAction::Propose(step) => self.consensus.change(&step),
                MembershipAction::HandOver { transferee } => self.hand_over(transferee),
                MembershipAction::StepDown => self.step_down(),
                MembershipAction::Settle(error) => {
                    let body = error.map_or(0, |error| error.code()).to_be_bytes();
                    self.announce(OpCode::SettleReconfig, &body);
                }
                MembershipAction::AskReadiness { member } => {
                    let question = self.greeting(Purpose::Question, None);
                    self.outgoing.messages.push((member, question));
                }
            }
        }
    }

    /// Takes the members of the ensemble from the state.
    fn follow_ensemble(&mut self, tree: &Tree) {
        self.has_secret = tree.has_secret();
        self.membership.follow(self.options.member, tree, self.applied.index());
        if let Some(ensemble) = tree.ensemble() {
            self.cluster.note_state(ensemble.cluster);
        }
    }

    fn on_persisted(&mut self, round: u64) {
        self.consensus.persisted(round);
        if let Some(index) = self.applied.take_installed() {
            self.consensus.applied(index);
        }
        self.durability.persisted(round);
    }

    /// The snapshot has taken the place of log and state. What this member's connections wait for may have been carried
    /// out in it, and what their watches waited for may have happened: they are closed, and their clients come back.
    pub fn installed(&mut self, now: Now, state: &Replicated, out: &mut Outboxes) {
        self.applied.install(state.applied());
        self.disk_age.adopt(state.tree());
        self.note_number_used_up();
        self.sessions.ended_through = self.sessions.ended_through.max(self.applied.index());
        self.contact.note_applied(self.applied.index());
        let last_batch = state.tree().applied_batch(self.requests.origin());
        let forgotten = self.requests.forget_through(last_batch);
        let waiting = self.membership.take_waiting().map(|(conn, _)| conn);
        let served = self.sessions.end_all().into_iter().chain(self.read_only.take_conns());
        for conn in forgotten.iter().filter_map(QueuedItem::conn).chain(served).chain(waiting) {
            out.close(conn);
        }
        self.follow_ensemble(state.tree());
        self.sessions.adopt(state.tree(), now.monotonic_ms);
    }
}

/// The command of a client's session, which it has not sent in this form.
fn session_command(session: SessionId, op: OpCode, ids: &ProvenIds, body: &[u8]) -> Vec<u8> {
    let mut command = Vec::new();
    ids.with(|ids| Command::encode(session, 0, ids, op, body, &mut command));
    command
}

#[cfg(test)]
mod tests;
