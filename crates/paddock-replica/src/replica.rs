//! One member: `step` takes an input, `collect` says what the shell has to do (`replica/collect.rs`), `apply` carries out what has
//! been committed and answers (`replica/apply.rs`).
//!
//! A member's parts stand in [`Presence`] (once) and in [`Group`] (for each Raft group). Each part has its own file beside this one, takes
//! what it needs as arguments, and does not know the others; only this file and those below it know all.
//!
//! Batches are numbered and stay with the member until they have been applied here (`outstanding.rs`). They go to the
//! leader, who may be this member, and again to the next leader; the state lets each number count once. So a change of
//! leader makes answers late, and loses or repeats nothing.

mod apply;
mod between;
mod collect;
mod groups;
mod levels;
mod peers;
mod rosters;
mod standing;

use std::collections::BTreeMap;

use paddock_proto::{OpCode, SessionId};
use paddock_state::{ClientInput, ConnId, Now, Outboxes, ProvenIds, Resumption, Serving, TOUCH_DELAY_MS};
use paddock_tree::{Command, Tree};

use crate::founding::{FOUNDING_ROUND, reconfig_to};
use crate::group::Group;
use crate::lead_times::SlowPart;
use crate::membership::Follower;
use crate::membership_change::{LeaderView, MembershipAction};
use crate::message::{PeerMessage, Purpose};
use crate::options::TICK_MS;
use crate::own_cluster::new_cluster_id;
use crate::presence::Presence;
use crate::queued_item::QueuedItem;
use crate::raft_id::logged;
use crate::read_only::{ReadOnlyRequest, Verdicts};
use crate::rosters::OtherGroups;
use crate::{Cluster, HardState, Input, Replicated};
pub use groups::{founders_of, leading_order};
pub use standing::{FollowerStanding, GroupStanding, MemberFacts, OtherGroup, Role, Standing};

/// A group of a member, with what the member has once for all its groups: everything that is done, is done here.
#[derive(Debug)]
pub struct Replica<'a> {
    presence: &'a mut Presence,
    group: &'a mut Group,
}

impl<'a> Replica<'a> {
    pub fn new(presence: &'a mut Presence, group: &'a mut Group) -> Replica<'a> {
        Replica { presence, group }
    }
}

impl Replica<'_> {
    /// Time between two `Input::Tick`s, in milliseconds: a tenth of an election timeout.
    pub const TICK_MS: u64 = TICK_MS;
    /// Time in milliseconds by which a leader may hear of a session later than the member that serves it: ticks, and the way.
    const HEARD_DELAY_MS: u64 = 300;

    /// Begins with the state of the newest snapshot. Every session gets its whole timeout anew.
    pub fn open(&mut self, state: &Replicated, now: Now) {
        self.begin(now, state.tree());
        self.withhold_votes();
        self.follow_ensemble(state.tree());
        self.presence.sessions.adopt(state.tree(), now.monotonic_ms);
        // A snapshot does not tell which entries have ended sessions.
        self.presence.sessions.ended_through = self.group.applied.index();
    }

    fn withhold_votes(&mut self) {
        if self.presence.options.lease_clock_bound_ms.is_some() {
            self.group.consensus.withhold_votes();
        }
    }

    /// Names what may be founded, then begins as the disk demands.
    fn begin(&mut self, now: Now, tree: &Tree) {
        self.group.disk_age.adopt(tree);
        let may_have_ensemble = !self.presence.options.founding.members.is_empty();
        if may_have_ensemble && self.cluster() == Cluster::None && tree.ensemble().is_none() {
            self.presence.cluster.propose(new_cluster_id(self.presence.options.process, now));
        }
        let is_empty = self.group.consensus.is_empty();
        if is_empty && self.group.joining.silent_until().is_none() && self.cluster().known().is_some() {
            self.await_state();
            self.group.consensus.set_silent(self.group.joining.is_silent());
        } else {
            self.begin_with_disk(None);
        }
    }

    /// Learns, founds or waits for admission, as the disk demands. Another group than the home group was not there before the entry `not_before` of that one.
    fn begin_with_disk(&mut self, not_before: Option<u64>) {
        match self.group.joining.silent_until() {
            Some(HardState::TERM_UNKNOWN) => self.await_state(),
            Some(_) => self.group.read_only.begin_learning(),
            None if self.group.consensus.is_empty() => match not_before {
                Some(index) => self.group.joining.begin_founding_since(index),
                None => self.group.joining.begin_founding(),
            },
            None if !self.group.consensus.is_alone() => {
                self.group.joining.begin_admission(self.group.consensus.membership())
            }
            None => {}
        }
        self.group.consensus.set_silent(self.group.joining.is_silent());
    }

    fn cluster(&self) -> Cluster {
        self.presence.cluster()
    }

    /// Takes an input. What is to be done about it, `collect` says.
    pub fn step(&mut self, now: Now, input: Input) {
        if let Some(input) = self.presence.gates.pass(input) {
            self.take(now, input);
        }
    }

    fn take(&mut self, now: Now, input: Input) {
        match input {
            Input::Client(input) if self.group.read_only.is_active() => {
                self.on_client_in_read_only(now, input)
            }
            Input::Client(input) => self.on_client(now, input),
            Input::Peer { from, bytes } => self.on_message(now, from, &bytes),
            Input::LinkLost { peer } => self.on_lost_link(peer),
            Input::SnapshotTaken { index, term, membership } => {
                self.group.consensus.has_snapshot(index, term, membership);
            }
            Input::SnapshotRead { read, piece } => self.on_snapshot_read(read, piece),
            Input::SnapshotWritten { index, offset, is_last, is_good } => {
                let out = &mut self.group.outgoing.messages;
                if let Some(offer) =
                    self.group.transfer.receiver.on_written(index, offset, is_last, is_good, out)
                {
                    self.group.consensus.step(offer);
                }
            }
            Input::Persisted { round: FOUNDING_ROUND } if self.group.joining.is_writing_first_entry() => {
                self.on_founded();
            }
            Input::Persisted { round } => self.on_persisted(round),
            Input::DiskFull(is_full) => self.on_disk_full(now, is_full),
            Input::StepDown => self.step_down(),
            Input::RequestLead => self.request_lead(),
            Input::BetweenGroups(body) => self.order_between_groups(&body),
            Input::FileMembers(lines) => self.presence.file_lists.replace_own(&lines),
            Input::Profile(profile) => self.presence.processes.profiles.set_own(profile),
            Input::Tick => self.on_tick(now),
        }
    }

    /// Connections serve these sessions already, which the state has. To be called before anything of them is taken.
    pub fn adopt(&mut self, now: Now, serving: Serving) {
        for session in serving.sessions() {
            self.hear(now, session);
        }
        self.presence.sessions.adopt_serving(serving);
    }

    fn on_client(&mut self, now: Now, input: ClientInput) {
        match input {
            ClientInput::Write { conn, request, command, .. } => {
                self.group.requests.submit(&command, QueuedItem::Write { conn, request });
            }
            ClientInput::Read(read) => self.group.requests.push(QueuedItem::Read(read)),
            ClientInput::Connect { conn, timeout_ms, ids, .. } => {
                self.begin_session(conn, timeout_ms, &ids);
            }
            ClientInput::Resume { conn, resumption, .. } => self.on_resume(now, conn, &resumption),
            ClientInput::Bind { session, ids, .. } => {
                let command = session_command(session, OpCode::BindSession, &ids, &[]);
                // No connection waits for it.
                self.group.requests.submit(&command, QueuedItem::Abandoned);
            }
            ClientInput::Disconnect { conn } => self.group.requests.disconnect(conn),
            ClientInput::Touch { session } => self.hear(now, session),
            // Zxids of one group need not be awaited.
            ClientInput::Seen { .. } => {}
        }
    }

    /// Takes an input of a client while nothing can be written.
    fn on_client_in_read_only(&mut self, now: Now, input: ClientInput) {
        let request = match input {
            ClientInput::Write { conn, request, .. } => {
                self.presence.gates.forget(conn);
                ReadOnlyRequest::Refused { conn, request }
            }
            ClientInput::Read(read) if self.needs_quorum(read.op) => {
                ReadOnlyRequest::Refused { conn: read.client.conn, request: read.request }
            }
            ClientInput::Read(read) => ReadOnlyRequest::Read(read),
            ClientInput::Connect { conn, timeout_ms, may_only_read, .. } => {
                ReadOnlyRequest::Connect { conn, session: None, timeout_ms, may_only_read }
            }
            // The client proves the same when it comes back, and says the same.
            ClientInput::Bind { .. } | ClientInput::Seen { .. } => return,
            ClientInput::Resume { conn, resumption, may_only_read } => {
                let Resumption { session, timeout_ms, is_asking, .. } = resumption;
                if !is_asking {
                    self.hear(now, session);
                }
                ReadOnlyRequest::Connect { conn, session: Some(session), timeout_ms, may_only_read }
            }
            ClientInput::Disconnect { conn } => {
                self.group.requests.forget_conn(conn);
                ReadOnlyRequest::Disconnect { conn }
            }
            ClientInput::Touch { session } => return self.hear(now, session),
        };
        self.group.read_only.push(request);
    }

    /// True if a request has to see what was written anywhere before it.
    fn needs_quorum(&self, op: OpCode) -> bool {
        op == OpCode::Sync || self.presence.options.linearizable_reads
    }

    /// Asks for a session under an id that this member has not made before.
    fn begin_session(&mut self, conn: ConnId, timeout_ms: i32, ids: &ProvenIds) {
        let session = self.presence.sessions.take_id();
        self.submit_session(session, OpCode::CreateSession, ids, &timeout_ms.to_be_bytes(), conn);
    }

    /// Submits the command for a session that a client waits for, who has not sent it in this form.
    fn submit_session(&mut self, session: SessionId, op: OpCode, ids: &ProvenIds, body: &[u8], conn: ConnId) {
        let command = session_command(session, op, ids, body);
        self.group.requests.submit_session(&command, conn);
    }

    /// A client comes back. That goes through the log too: what the session has on its way on another member, or on another
    /// connection here, must not come after what it asks from now on.
    fn on_resume(&mut self, now: Now, conn: ConnId, resumption: &Resumption) {
        let session = resumption.session;
        // A client that has not shown who it is changes nothing for the one that is served.
        if !resumption.is_asking {
            self.hear(now, session);
            if let Some(former) = self.presence.sessions.conn(session) {
                self.presence.gates.close_forever(former, conn);
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
        self.presence.sessions.liveness.touch(session, now.monotonic_ms);
        if !self.group.consensus.is_alone() {
            self.presence.contact.hear(session);
        }
    }

    fn on_disk_full(&mut self, now: Now, is_full: bool) {
        self.presence.is_disk_full = is_full;
        if is_full {
            self.step_down();
        }
        self.judge_read_only(now);
    }

    fn judge_read_only(&mut self, now: Now) {
        let voters = &self.group.consensus.membership().voters;
        let verdicts = Verdicts {
            is_disk_full: self.presence.is_disk_full,
            is_removed: self.group.membership.is_removed(self.group.read_only.is_learning()),
            is_in_doubt: self.group.digests.is_in_doubt(),
            is_disputed: self
                .presence
                .cluster
                .is_disputed(voters, &self.presence.options.founding.membership.voters),
        };
        if self.group.read_only.judge(verdicts) {
            // No client could come back to a session meanwhile.
            if self.group.is_home() {
                self.presence.sessions.renew_all(now.monotonic_ms);
            }
        }
    }

    /// Hands the lead over, if this member has it and there is a member to take it.
    fn step_down(&mut self) {
        if let Some(transferee) = self.transferee().filter(|_| self.group.consensus.is_leader()) {
            tracing::info!(to = logged(transferee), "handing the lead over");
            self.hand_over(transferee);
        }
    }

    /// The members as this leader sees them. A member that has no say yet, because it was just started, is as good as away: it neither votes nor leads, and while
    /// it is asked to lead nothing is proposed, nor is it admitted.
    fn followers(&self) -> BTreeMap<u64, Follower> {
        let is_asking =
            |member: u64| self.group.leading.as_ref().is_some_and(|leading| leading.is_asking(member));
        let mut followers = self.group.consensus.followers();
        for (_, follower) in followers.iter_mut().filter(|(member, _)| is_asking(**member)) {
            (follower.is_active, follower.is_heard) = (false, false);
        }
        followers
    }

    /// The voter that would lose the least time as leader, if there is another one that is there.
    fn transferee(&self) -> Option<u64> {
        let (own, followers) = (self.presence.options.member, self.followers());
        let others = self.group.consensus.membership().voters.iter().filter(|id| **id != own);
        let heard = others.filter_map(|id| Some((*id, followers.get(id)?)));
        let heard = heard.filter(|(_, follower)| follower.is_heard);
        heard.max_by_key(|(_, follower)| follower.matched).map(|(id, _)| id)
    }

    /// Hands the lead over if this leader's disk, or its way to a quorum, has become much slower than that of another voter.
    fn leave_if_slow(&mut self, now: Now) {
        if !self.group.consensus.takes_proposals() || self.group.consensus.is_changing() {
            return self.presence.lead_times.rest();
        }
        let (own, followers) = (self.presence.options.member, self.followers());
        let others = self.group.consensus.membership().voters.iter().copied().filter(|voter| *voter != own);
        let committed = self.group.consensus.committed();
        let can_lead = others.filter(|voter| {
            followers.get(voter).is_some_and(|follower| follower.can_lead_at_once(committed))
        });
        let takes_ms = self.presence.lead_times.own_us().unwrap_or_default() / 1000;
        if let Some((successor, part)) = self.presence.lead_times.successor(can_lead, now.monotonic_ms) {
            let to = logged(successor);
            match part {
                SlowPart::Disk => tracing::warn!(
                    sync_ms = takes_ms,
                    to,
                    "the disk of this leader is much slower than that of another member: handing the lead over"
                ),
                SlowPart::Links => tracing::warn!(
                    quorum_ms = takes_ms,
                    to,
                    "the way of this leader to a quorum is much longer than that of another member: handing the lead over"
                ),
            }
            self.hand_over(successor);
        }
    }

    /// Asks the leader, if another member is known to lead, to hand the lead over to this one.
    fn request_lead(&mut self) {
        if let Some(leader) =
            self.group.consensus.leadership().leader.filter(|leader| *leader != self.presence.options.member)
        {
            self.group.outgoing.messages.push((leader, PeerMessage::WantsLead.encode()));
        }
    }

    /// Hands the lead over to a voter that wants it. One that is not heard cannot take it.
    fn on_wants_lead(&mut self, from: u64) {
        let has_vote = self.group.consensus.membership().voters.contains(&from);
        let is_there = || self.followers().get(&from).is_some_and(|follower| follower.is_heard);
        if self.group.consensus.takes_proposals() && has_vote && is_there() {
            tracing::info!(to = logged(from), "handing the lead over to a member that asked for it");
            self.hand_over(from);
        }
    }

    /// Asks another voter to lead. It may do so any time later, and no member waits for a lease to be over then.
    fn hand_over(&mut self, transferee: u64) {
        if let Some(leading) = &mut self.group.leading {
            leading.lease.hand_over();
        }
        self.group.consensus.transfer(transferee);
    }

    /// Announces a command of this leader; one that does not lead announces nothing.
    fn announce(&mut self, op: OpCode, body: &[u8]) {
        if let Some(leading) = &mut self.group.leading {
            leading.announce(op, body);
        }
    }

    fn on_tick(&mut self, now: Now) {
        let sends_heartbeats = self.group.is_home() || self.presence.processes.is_heartbeat_of_groups();
        self.group.consensus.tick(sends_heartbeats);
        self.group.requests.tick();
        self.group.transfer.complaints.tick();
        self.group.transfer.receiver.tick();
        let stamps = self.stamp_clock();
        if let Some(leading) = &mut self.group.leading {
            leading.tick();
            leading.set_stamps(stamps);
        }
        self.tick_joining();
        self.group.digests.tick();
        self.group.read_only.tick(self.group.consensus.leadership().leader.is_some());
        self.judge_read_only(now);
        self.ask_questions(now);
        if self.group.is_home() {
            self.tick_member(now);
        } else {
            self.seek_lead(now);
            self.follow_roster();
            self.change_membership();
            self.tell_roster();
            self.follow_ensemble_level();
        }
        if self.group.consensus.takes_proposals() && !self.group.read_only.is_active() {
            if self.group.is_home() {
                self.propose_secret(now);
                self.raise_level(now);
                self.found_groups();
                self.add_split_points(now);
                self.expire_sessions(now);
            }
            self.renew_offers();
            self.group.garbage.tick(now);
        } else {
            self.group.garbage.rest(now);
        }
        self.note_log_end(now);
    }

    /// The part of a tick that a member does once: it does it with its home group.
    fn tick_member(&mut self, now: Now) {
        self.presence.sessions.tick(now.monotonic_ms);
        self.tell_presence(now);
        self.seek_members();
        self.judge_clocks(now);
        if self.group.consensus.is_alone() {
            self.presence.contact.be_alone(now.monotonic_ms);
        } else {
            self.presence.contact.tick();
        }
        self.presence.rosters.set_knows_home(!self.group.joining.is_silent());
        self.follow_files(now);
        self.change_membership();
        self.pass_reports_on();
        self.probe_links(now);
        self.leave_if_slow(now);
    }

    /// Notes how far the log of this leader goes now, by which the lag of its followers is told.
    fn note_log_end(&mut self, now: Now) {
        let Some(leading) = &mut self.group.leading else { return };
        let had_by_all = self.group.consensus.followers().values().map(|follower| follower.matched).min();
        let last = self.group.consensus.last_entry();
        leading.log_ends.note(last, had_by_all.unwrap_or(last), now.monotonic_ms);
    }

    fn expire_sessions(&mut self, now: Now) {
        let heard_delay_ms = if self.group.consensus.is_alone() { 0 } else { Replica::HEARD_DELAY_MS };
        let delay_ms = TOUCH_DELAY_MS + heard_delay_ms;
        for session in self.presence.sessions.liveness.expire(now.monotonic_ms.saturating_sub(delay_ms)) {
            tracing::info!(%session, "session expired");
            self.presence.sessions.expired += 1;
            self.announce(OpCode::ExpireSession, &session.0.to_be_bytes());
        }
        // A client that comes back from now on comes too late: its session's end stands in front of that.
        self.place_announcements(now);
    }

    /// Tells the leader which members this one's file has; a leader asks for the change that most files want.
    fn follow_files(&mut self, now: Now) {
        let present = self.group.membership.settled_members();
        if let (Some(lines), Some(leader)) = (self.presence.file_lists.tick(present), self.other_leader()) {
            self.group.outgoing.messages.push((leader, PeerMessage::FileList { lines }.encode()));
        }
        if !self.group.consensus.takes_proposals() || self.group.consensus.is_changing() {
            return;
        }
        let voters = &self.group.consensus.membership().voters;
        if let Some(lines) =
            self.presence.file_lists.next_members(self.presence.options.member, voters, present)
            && self.has_level_for(now, &lines)
        {
            tracing::info!(
                members = %lines.trim_end().replace('\n', " "),
                "most members' configuration files have other members or addresses: changing them"
            );
            self.announce(OpCode::Reconfig, &reconfig_to(&lines));
        }
    }

    /// Brings the membership nearer to what the state wants, if this member leads.
    fn change_membership(&mut self) {
        let consensus = &self.group.consensus;
        if !self.group.membership.has_target() || !consensus.takes_proposals() || consensus.is_changing() {
            return;
        }
        let is_home = self.group.is_home();
        let view = LeaderView {
            own: self.presence.options.member,
            membership: self.group.consensus.membership(),
            committed: self.group.consensus.committed(),
            followers: self.followers(),
            others: if is_home { self.presence.rosters.others() } else { OtherGroups::NotAwaited },
        };
        for action in self.group.membership.tick(&view) {
            match action {
                MembershipAction::Propose(step) => self.group.consensus.change(&step),
                MembershipAction::HandOver { transferee } => self.hand_over(transferee),
                MembershipAction::StepDown => self.step_down(),
                MembershipAction::Promote => self.propose_promotion(),
                MembershipAction::Settle(error) => {
                    let body = error.map_or(0, |error| error.code()).to_be_bytes();
                    self.announce(OpCode::SettleReconfig, &body);
                }
                MembershipAction::AskReadiness { member } => {
                    let question = self.greeting(Purpose::Question, None);
                    self.group.outgoing.messages.push((member, question));
                }
            }
        }
        if is_home {
            self.await_groups();
        }
    }

    /// Takes the members of the ensemble from the state.
    fn follow_ensemble(&mut self, tree: &Tree) {
        (self.group.applied.has_secret, self.group.applied.level) = (tree.has_secret(), tree.feature_level());
        self.group.applied.groups = tree.groups().count();
        if self.group.applied.groups > 1 {
            self.presence.rosters.follow(tree);
            self.follow_placement(tree);
        }
        self.presence.ensemble_level = self.group.applied.level;
        self.follow_split_points(tree);
        self.group.membership.follow(self.presence.options.member, tree, self.group.applied.index());
        if let Some(ensemble) = tree.ensemble() {
            self.presence.cluster.note_state(ensemble.cluster);
            self.presence.told_members.follow(ensemble);
        }
    }

    fn on_persisted(&mut self, round: u64) {
        self.group.consensus.persisted(round);
        if let Some(index) = self.group.applied.take_installed() {
            self.group.consensus.applied(index);
        }
        self.group.durability.persisted(round);
    }

    /// The snapshot has taken the place of log and state. What this member's connections wait for may have been carried
    /// out in it, and what their watches waited for may have happened: they are closed, and their clients come back.
    pub fn installed(&mut self, now: Now, state: &Replicated, out: &mut Outboxes) {
        let before = (self.group.applied.groups, self.group.applied.index());
        self.group.applied.install(state.applied());
        self.group.disk_age.adopt(state.tree());
        self.note_number_used_up();
        if !self.group.is_home() {
            return self.installed_in_other(state);
        }
        self.presence.sessions.ended_through =
            self.presence.sessions.ended_through.max(self.group.applied.index());
        self.presence.contact.note_applied(self.group.applied.index());
        let last_batch = state.tree().applied_batch(self.group.requests.origin());
        let forgotten = self.group.requests.forget_through(last_batch);
        let waiting = self.group.membership.take_waiting().map(|(conn, _)| conn);
        let served = self.presence.sessions.end_all().into_iter().chain(self.group.read_only.take_conns());
        for conn in forgotten.iter().filter_map(QueuedItem::conn).chain(served).chain(waiting) {
            out.close(conn);
        }
        self.follow_ensemble(state.tree());
        let (groups, index) = before;
        self.note_new_groups(groups, state.tree(), index + 1);
        self.presence.sessions.adopt(state.tree(), now.monotonic_ms);
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
