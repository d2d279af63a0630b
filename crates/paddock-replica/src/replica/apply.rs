//! Applying what has been committed: the state changes, watches fire, connections that wait are answered.

use std::collections::VecDeque;

use paddock_proto::jute::Writer;
use paddock_proto::{ErrorCode, GroupsCommand, OpCode, SessionId, Write, WriteReply};
use paddock_state::{ConnId, Connected, Now, Outboxes, ProvenIds, QueuedRead, Resumption, State};
use paddock_tree::{Command, Outcome, OutcomeNote, Tree};

use super::Replica;
use crate::batch::{Batch, batches, floor};
use crate::configuration::ConfigurationEntry;
use crate::held_state::{HeldState, Stretch};
use crate::queued_item::QueuedItem;
use crate::raft_id::{all_logged, raft_id};
use crate::read_only::{ReadOnlyRequest, ReadOnlyTurn};
use crate::{Applied, Effects, Membership, Replicated};

impl Replica<'_> {
    /// Applies what was committed, answers those that wait for it, and answers the requests that need no entry.
    pub fn apply(&mut self, now: Now, effects: &mut Effects, held: &mut impl HeldState) -> Applied {
        held.parts().1.begin_round();
        let (mut applied, mut stretch) =
            (Applied::default(), Stretch::new(self.presence.options.work_at_once));
        for entry in effects.committed.drain(..) {
            let before = held.parts().0.tree().zxid();
            match ConfigurationEntry::decode(&entry.payload) {
                Some(change) => self.apply_configuration(entry.index, change, held.parts().0),
                None => {
                    held.parts().0.tree_mut().begin_entry(floor(&entry.payload));
                    for batch in batches(&entry.payload) {
                        applied.commands += self.apply_batch(now, &batch, held, &mut stretch);
                    }
                }
            }
            let replicated = held.parts().0;
            let (index, term) = (entry.index, entry.term);
            replicated.set_applied(entry, before);
            self.group.consensus.applied(index);
            self.group.applied.set(index, term);
            self.group.digests.take(index, replicated.tree());
            applied.entries += 1;
        }
        if self.group.is_home() {
            self.presence.contact.note_applied(self.group.applied.index());
        }
        let (replicated, out) = held.parts();
        while let Some(mut items) = self.group.requests.take_ready(self.group.applied.index()) {
            let command = self.run_until_command(&mut items, replicated.state(), out);
            assert!(command.is_none(), "a command waits with a sync");
        }
        if std::mem::take(&mut effects.locals) {
            self.run_locals(now, replicated.state(), out);
        }
        applied.members_changed = self.group.membership.take_changed();
        applied
    }

    /// Carries out an entry about the ensemble itself.
    fn apply_configuration(&mut self, index: u64, change: ConfigurationEntry, replicated: &mut Replicated) {
        if self.group.consensus.apply_configuration(index, &change) {
            self.group.durability.make_commit_due();
            let Membership { voters, learners, voters_outgoing, .. } = self.group.consensus.membership();
            let [voters, learners, voters_outgoing] =
                [voters, learners, voters_outgoing].map(|ids| all_logged(ids));
            tracing::info!(?voters, ?learners, ?voters_outgoing, "membership changed");
        }
        let tree = replicated.tree_mut();
        match &change {
            ConfigurationEntry::Founding(_) | ConfigurationEntry::Change(_) => {}
            ConfigurationEntry::Groups { count, founders, replicas } => {
                self.apply_groups(index, (*count, founders, *replicas), tree);
            }
            ConfigurationEntry::Refounding { cluster, members, .. } => {
                // A survivor begins an ensemble of its own.
                tree.refound_ensemble(*cluster, members);
                self.note_members(replicated.state());
            }
            ConfigurationEntry::Level(raised) => self.apply_level(raised, tree),
            ConfigurationEntry::Roster(roster) => self.apply_roster(roster, tree),
            ConfigurationEntry::Promotion { roster } => self.apply_promotion(*roster, tree),
        }
        replicated.set_membership(self.group.consensus.membership().clone());
    }

    fn note_members(&mut self, state: &State) {
        self.follow_ensemble(state.tree());
        self.group.membership.note_changed();
    }

    /// Applies a batch unless it was applied before; returns how many commands that were.
    fn apply_batch(
        &mut self,
        now: Now,
        batch: &Batch<'_>,
        held: &mut impl HeldState,
        stretch: &mut Stretch,
    ) -> usize {
        let state = held.parts().0.state_mut();
        let is_numbered = batch.number != Batch::UNNUMBERED;
        if is_numbered && !state.tree_mut().admit(batch.origin, batch.number) {
            let replicated = held.parts().0;
            if replicated.applied_log().is_kept() {
                batch.commands().for_each(|_| replicated.note_outcome(None));
            }
            return 0;
        }
        let mut items = VecDeque::new();
        if is_numbered {
            self.group.disk_age.note_start(raft_id(batch.origin.member), batch.origin.incarnation);
            self.note_number_used_up();
        }
        if is_numbered && batch.origin == self.group.requests.origin() && !self.group.read_only.is_learning()
        {
            items = self.group.requests.applied(batch.number);
        }
        let mut commands = 0;
        let mut ahead = batch.known_paths();
        for command in batch.commands() {
            let (replicated, out) = held.parts();
            let state = replicated.state_mut();
            if commands % Tree::LOOK_AHEAD_PATHS == 0 && state.tree().is_worth_looking_ahead() {
                let paths: Vec<&str> = ahead.by_ref().take(Tree::LOOK_AHEAD_PATHS).flatten().collect();
                state.tree().look_ahead(&paths);
            }
            let item = self.run_until_command(&mut items, state, out);
            let refusal = self.remove_long(&command, held);
            let (replicated, out) = held.parts();
            let state = replicated.state_mut();
            let outcome = self.apply_command(now, &command, refusal, item, state, out);
            let changes = outcome.changes.len();
            commands += 1;
            let is_over = stretch.is_over(changes, out.take_events());
            if replicated.applied_log().is_kept() {
                replicated.note_outcome(Some(OutcomeNote::of(&command, &outcome)));
            }
            if is_over {
                yield_within_entry(held);
            }
        }
        let (replicated, out) = held.parts();
        let rest = self.run_until_command(&mut items, replicated.state(), out);
        assert!(rest.is_none(), "batch {} has fewer commands than were submitted", batch.number);
        commands
    }

    /// Carries out the long part of a command that removes many znodes. Returns the error with which the command is to be refused.
    fn remove_long(&self, command: &Command<'_>, held: &mut impl HeldState) -> Option<ErrorCode> {
        let mut removal =
            held.parts().0.tree().long_removal(command, self.presence.options.removed_at_once)?;
        loop {
            match removal.look_up(held.parts().0.tree()) {
                Ok(true) => yield_within_entry(held),
                Ok(false) => break,
                Err(error) => return Some(error),
            }
        }
        loop {
            let (replicated, out) = held.parts();
            replicated.state_mut().remove_portion(&mut removal, command, out)?;
            yield_within_entry(held);
        }
    }

    fn run_locals(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        self.answer_in_read_only(state, out);
        let mut items = self.group.requests.take_first();
        let command = self.run_until_command(&mut items, state, out);
        assert!(command.is_none(), "a command waits without an entry");
        for body in self.group.garbage.find(now, state.tree()) {
            self.announce(OpCode::DeleteContainer, &body);
        }
    }

    /// Runs the items in front of the next command and returns that command's own.
    fn run_until_command(
        &mut self,
        items: &mut VecDeque<QueuedItem>,
        state: &State,
        out: &mut Outboxes,
    ) -> Option<QueuedItem> {
        while let Some(item) = items.pop_front() {
            if item.is_command() {
                return Some(item);
            }
            self.run(item, state, out);
        }
        None
    }

    fn run(&mut self, item: QueuedItem, state: &State, out: &mut Outboxes) {
        match item {
            QueuedItem::Read(QueuedRead { client, .. }) if out.is_full(client.conn) => {
                tracing::warn!(session = %client.session, "connection closed: it asks for too much at once");
                out.close(client.conn);
            }
            QueuedItem::Read(read) => state.answer_queued(&read, out),
            QueuedItem::Disconnect { conn } => {
                self.group.membership.forget_conn(conn);
                self.presence.sessions.end_conn(conn);
                // A session that came back before this had its turn has closed the gate of a connection that was gone.
                self.presence.gates.forget(conn);
            }
            QueuedItem::Write { .. } | QueuedItem::Session { .. } | QueuedItem::Abandoned => {
                unreachable!("commands are applied, not run")
            }
        }
    }

    /// From now on `conn` serves the session; the connection that did is closed and told no more events.
    fn serve(&mut self, conn: ConnId, session: SessionId, out: &mut Outboxes) {
        if let Some(former) = self.presence.sessions.serve(session, conn) {
            out.close(former);
        }
    }

    /// Applies a command, or refuses it with an error that is known already. Returns the outcome.
    fn apply_command<'c>(
        &mut self,
        now: Now,
        command: &Command<'c>,
        refusal: Option<ErrorCode>,
        item: Option<QueuedItem>,
        state: &mut State,
        out: &mut Outboxes,
    ) -> Outcome<'c> {
        let outcome = match refusal {
            Some(error) => state.tree_mut().refuse(error),
            None => state.apply(command, out),
        };
        if outcome.result.is_ok() && self.group.is_home() {
            self.follow_session(now, command, state, out);
        }
        match item {
            Some(QueuedItem::Write { conn, request }) if begins_change_of_members(command, &outcome) => {
                self.group.membership.await_settled(conn, request);
            }
            Some(QueuedItem::Write { conn, request }) => {
                out.answer(conn, request, outcome.zxid, &outcome.result);
                if let Ok(Write::Reconfig(asked)) = &command.write {
                    self.explain_refusal(now, asked, state.tree());
                    self.presence.gates.open(conn);
                }
            }
            Some(QueuedItem::Session { conn }) => self.answer_session(conn, command, &outcome, state, out),
            _ => {}
        }
        if outcome.result.is_ok()
            && self.group.is_home()
            && let Some(session) = command.ended_session()
            && let Some(conn) = self.presence.sessions.end_session(session)
        {
            // While znodes are spread, answers of before may wait for other groups, and the client is told in front of them what those have changed: its watches go with the
            // connection.
            if !state.tree().are_znodes_spread() {
                self.presence.watches().drop_conn(conn);
            }
            out.close(conn);
        }
        outcome
    }

    /// Answers the connection that waits for a change of members: it is in force, or has failed.
    fn answer_change_of_members(&mut self, error: Option<ErrorCode>, state: &State, out: &mut Outboxes) {
        let Some((conn, request)) = self.group.membership.take_waiting() else { return };
        self.presence.gates.open(conn);
        out.write_reply(conn, request, (state.tree().zxid(), error), |out| {
            if error.is_none() {
                let (data, stat) = state.tree().config();
                out.put_buffer(Some(data));
                stat.encode(out);
            }
        });
    }

    fn answer_session(
        &mut self,
        conn: ConnId,
        command: &Command<'_>,
        outcome: &Outcome<'_>,
        state: &State,
        out: &mut Outboxes,
    ) {
        match (&command.write, &outcome.result) {
            (
                Ok(
                    Write::CreateSession { timeout_ms }
                    | Write::ResumeSession { timeout_ms, is_asking: false, .. },
                ),
                Ok(WriteReply::Done),
            ) => {
                self.serve(conn, command.session, out);
                self.connect(conn, command.session, *timeout_ms, false, state, out);
            }
            // The command was withdrawn when its connection was gone. Nothing is taken any more of the one that serves the session here, whose
            // client comes back.
            _ if command.session == SessionId::NONE => {
                if let Some(former) = self.presence.gates.predecessor(conn) {
                    self.presence.sessions.end_conn(former);
                    out.close(former);
                }
                out.close(conn);
            }
            (Ok(Write::ResumeSession { timeout_ms, is_asking: true, .. }), Ok(WriteReply::Done)) => {
                self.connect(conn, command.session, *timeout_ms, false, state, out);
            }
            // The session has moved since its member asked for it. If the client is still here, it has not moved by itself to another member:
            // an older request of its own came late, or this member had not heard of one.
            (
                Ok(Write::ResumeSession { timeout_ms, is_keyed, is_asking: false, .. }),
                Err(ErrorCode::SessionMoved),
            ) if self.group.requests.has_asked_for_session(conn) => {
                let resumption = Resumption {
                    session: command.session,
                    timeout_ms: *timeout_ms,
                    is_keyed: *is_keyed,
                    is_asking: false,
                    moves: state.tree().session_moves(command.session),
                    ids: ProvenIds::of(command.ids),
                };
                self.resume(conn, &resumption);
            }
            // Another member with the same low byte in its number has made this id before.
            (Ok(Write::CreateSession { timeout_ms }), Err(ErrorCode::BadArguments))
                if self.group.requests.has_asked_for_session(conn) =>
            {
                self.begin_session(conn, *timeout_ms, &ProvenIds::of(command.ids));
            }
            (_, refusal) => {
                self.close_former(command.session, out);
                // The session lives: it is bound to an identity that was not known where the client was let in, or served elsewhere.
                let lives = matches!(refusal, Err(ErrorCode::NoAuth | ErrorCode::SessionMoved));
                if lives { out.close(conn) } else { out.expired(conn) }
            }
        }
    }

    fn connect(
        &self,
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
        read_only: bool,
        state: &State,
        out: &mut Outboxes,
    ) {
        out.connected(conn, Connected { session, timeout_ms, read_only }, &state.tree().password(session));
    }

    /// A connection whose gate was closed for a client that may not have the session: nothing of it is taken any more, and its own
    /// client comes back.
    fn close_former(&mut self, session: SessionId, out: &mut Outboxes) {
        let is_behind_gate =
            |conn: &ConnId| self.presence.gates.closed_forever().any(|closed| closed == *conn);
        if self.presence.sessions.conn(session).filter(is_behind_gate).is_some() {
            self.end_serving(session, out);
        }
    }

    /// Follows what a command does to its session, or to the ensemble.
    fn follow_session(&mut self, now: Now, command: &Command<'_>, state: &State, out: &mut Outboxes) {
        match command.write {
            Ok(Write::CreateSession { timeout_ms }) => {
                self.presence.sessions.add(
                    command.session,
                    timeout_ms,
                    now.monotonic_ms,
                    raft_id(command.member),
                );
            }
            Ok(Write::SetSecret { .. }) => self.group.applied.has_secret = true,
            Ok(Write::ResumeSession { timeout_ms, is_asking: false, .. }) => {
                self.presence.sessions.liveness.resume(command.session, timeout_ms, now.monotonic_ms);
                if raft_id(command.member) != self.presence.options.member {
                    // It is served elsewhere now: the connection here is one that its client has given up.
                    self.end_serving(command.session, out);
                }
            }
            Ok(Write::Reconfig(_) | Write::FoundEnsemble { .. }) => self.note_members(state),
            Ok(Write::SettleReconfig { error }) => {
                self.note_members(state);
                self.answer_change_of_members(error, state, out);
            }
            Ok(Write::BetweenGroups(GroupsCommand::Split { .. } | GroupsCommand::Join { .. })) => {
                self.follow_split_points(state.tree());
            }
            _ => {
                if let Some(session) = command.ended_session() {
                    self.presence.sessions.liveness.remove(session);
                }
                if matches!(command.write, Ok(Write::ExpireSession { .. })) {
                    self.presence.sessions.ended_through = self.group.applied.index() + 1;
                }
            }
        }
    }

    /// The connection of a session that has moved is closed.
    fn end_serving(&mut self, session: SessionId, out: &mut Outboxes) {
        if let Some(conn) = self.presence.sessions.end_serving(session) {
            out.close(conn);
        }
    }

    /// Tells connections that read-only mode has begun or ended, and answers its requests.
    fn answer_in_read_only(&mut self, state: &State, out: &mut Outboxes) {
        match self.group.read_only.take_turn() {
            Some(ReadOnlyTurn::Began) if !self.group.is_home() => {
                let abandoned = self.group.requests.abandon();
                abandoned.iter().filter_map(QueuedItem::conn).for_each(|conn| out.close(conn));
            }
            Some(ReadOnlyTurn::Began) => self.abandon_waiting(state, out),
            Some(ReadOnlyTurn::Ended) => {
                self.group.read_only.take_conns().into_iter().for_each(|conn| out.close(conn));
            }
            None => {}
        }
        while let Some(request) = self.group.read_only.pop() {
            match request {
                // Its connection was closed when the mode began.
                ReadOnlyRequest::Read(read) if self.group.read_only.refuses_reads() => {
                    out.close(read.client.conn)
                }
                ReadOnlyRequest::Read(read) => self.run(QueuedItem::Read(read), state, out),
                ReadOnlyRequest::Disconnect { conn } => {
                    self.run(QueuedItem::Disconnect { conn }, state, out);
                }
                ReadOnlyRequest::Refused { conn, request } => {
                    let refusal = (state.tree().zxid(), Some(ErrorCode::NotReadOnly));
                    out.write_reply(conn, request, refusal, |_| {});
                }
                ReadOnlyRequest::Connect { conn, session, timeout_ms, may_only_read } => {
                    let session = self.read_only_session(session, may_only_read, state);
                    self.connect_read_only(conn, session, timeout_ms, state, out);
                }
            }
        }
    }

    /// The session of a client that connects in read-only mode; `None` if it is not served.
    fn read_only_session(
        &mut self,
        session: Option<SessionId>,
        may_only_read: bool,
        state: &State,
    ) -> Option<SessionId> {
        let is_known = session.is_none_or(|session| state.tree().session_timeout_ms(session).is_some());
        // When the mode has just ended, a client comes back for a session with which it can write.
        let is_served = self.group.read_only.is_active()
            && !self.group.read_only.refuses_reads()
            && !self.presence.cluster.has_met_foreign();
        if !may_only_read || !is_known || !is_served {
            return None;
        }
        // A new one is known here only, and only as long as its connection.
        Some(session.unwrap_or_else(|| self.presence.sessions.take_id()))
    }

    fn connect_read_only(
        &mut self,
        conn: ConnId,
        session: Option<SessionId>,
        timeout_ms: i32,
        state: &State,
        out: &mut Outboxes,
    ) {
        match session {
            Some(session) => {
                self.group.read_only.add_conn(conn);
                self.connect(conn, session, timeout_ms, true, state, out);
            }
            None => out.close(conn),
        }
    }

    /// Closes the connections that wait: it is unknown whether, and when, their writes will be carried out. Their clients ask
    /// elsewhere.
    fn abandon_waiting(&mut self, state: &State, out: &mut Outboxes) {
        for item in self.group.requests.abandon() {
            match item {
                QueuedItem::Disconnect { .. } => self.run(item, state, out),
                item => item.conn().into_iter().for_each(|conn| out.close(conn)),
            }
        }
        if let Some((conn, _)) = self.group.membership.take_waiting() {
            out.close(conn);
        }
        self.presence.gates.closed_forever().for_each(|conn| out.close(conn));
        if self.group.read_only.refuses_reads() {
            self.presence.sessions.end_all().into_iter().for_each(|conn| out.close(conn));
            for conn in self.group.read_only.take_conns() {
                self.presence.sessions.end_conn(conn);
                out.close(conn);
            }
        }
    }
}

/// Lets others have the state for a moment, who must not take it for the state between two entries.
fn yield_within_entry(held: &mut impl HeldState) {
    held.parts().0.set_within_entry(true);
    held.yield_to_others();
    held.parts().0.set_within_entry(false);
}

fn begins_change_of_members(command: &Command<'_>, outcome: &Outcome<'_>) -> bool {
    matches!(command.write, Ok(Write::Reconfig(_))) && outcome.result.is_ok()
}
