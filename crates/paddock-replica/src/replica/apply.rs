//! Carrying out what has been committed: the state changes, watches fire, whoever waits is answered.

use std::collections::VecDeque;

use paddock_proto::jute::Writer;
use paddock_proto::{ErrorCode, OpCode, ReplyHeader, SessionId, Write, WriteReply, Xid};
use paddock_state::{ConnId, Now, Outboxes, QueuedRead, State};
use paddock_tree::{Command, Guess, Outcome, Tree};

use super::{Applied, ConfigurationEntry, Effects, Item, Replica};
use crate::batch::{Batch, batches};
use crate::{Membership, Replicated};

impl Replica {
    /// Applies what was committed, answers whoever waits for it, and answers the requests that need no entry.
    pub fn apply(
        &mut self,
        now: Now,
        effects: &mut Effects,
        replicated: &mut Replicated,
        out: &mut Outboxes,
    ) -> Applied {
        out.begin_round();
        let mut applied = Applied::default();
        for entry in effects.committed.drain(..) {
            match ConfigurationEntry::decode(&entry.payload) {
                Some(about) => self.apply_about(entry.index, about, replicated),
                None => {
                    for batch in batches(&entry.payload) {
                        applied.commands += self.apply_batch(now, &batch, replicated.state_mut(), out);
                    }
                }
            }
            replicated.set_applied(entry.index, entry.term);
            self.consensus.applied(entry.index);
            (self.applied, self.applied_term) = (entry.index, entry.term);
            self.digests.take(entry.index, replicated.tree());
            applied.entries += 1;
        }
        while let Some(mut items) = self.outstanding.take_ready(self.applied) {
            let command = self.run_until_command(&mut items, replicated.state(), out);
            assert!(command.is_none(), "a command waits with a sync");
        }
        if std::mem::take(&mut effects.locals) {
            self.run_locals(now, replicated.state(), out);
        }
        applied.members_changed = std::mem::take(&mut self.members_changed);
        applied
    }

    /// Carries out what an entry says of who takes part.
    fn apply_about(&mut self, index: u64, about: ConfigurationEntry, replicated: &mut Replicated) {
        if self.consensus.apply_configuration(index, &about) {
            self.is_commit_due = true;
            let Membership { voters, learners, voters_outgoing, .. } = self.consensus.membership();
            tracing::info!(?voters, ?learners, ?voters_outgoing, "membership changed");
        }
        if let ConfigurationEntry::Refounding { cluster, members, .. } = about {
            // A survivor begins an ensemble of its own.
            replicated.tree_mut().refound_ensemble(cluster, &members);
            self.note_members(replicated.state());
        }
        replicated.set_membership(self.consensus.membership().clone());
    }

    fn note_members(&mut self, state: &State) {
        self.follow_ensemble(state.tree());
        self.members_changed = true;
    }

    /// Applies a batch unless it was applied before; returns how many commands that were.
    fn apply_batch(&mut self, now: Now, batch: &Batch<'_>, state: &mut State, out: &mut Outboxes) -> usize {
        let is_numbered = batch.number != Batch::UNNUMBERED;
        if is_numbered && !state.tree_mut().admit(batch.origin, batch.number) {
            return 0;
        }
        let mut items = VecDeque::new();
        if is_numbered {
            self.starts.insert(batch.origin.member.into(), batch.origin.incarnation);
        }
        if is_numbered && batch.origin == self.outstanding.origin() && !self.refusing.is_learning() {
            items = self.outstanding.applied(batch.number);
            self.ticks_without_progress = 0;
        }
        let mut commands = 0;
        let mut ahead = batch.known_paths();
        for command in batch.commands() {
            if commands % Tree::LOOK_AHEAD_PATHS == 0 && state.tree().is_worth_looking_ahead() {
                let paths: Vec<&str> = ahead.by_ref().take(Tree::LOOK_AHEAD_PATHS).flatten().collect();
                state.tree().look_ahead(&paths);
            }
            let item = self.run_until_command(&mut items, state, out);
            self.apply_command(now, &command, item, state, out);
            commands += 1;
        }
        let rest = self.run_until_command(&mut items, state, out);
        assert!(rest.is_none(), "batch {} has fewer commands than were submitted", batch.number);
        commands
    }

    fn run_locals(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        self.refuse(state, out);
        if self.outstanding.is_empty() && self.batch.commands() == 0 {
            let mut items = std::mem::take(&mut self.items);
            let command = self.run_until_command(&mut items, state, out);
            assert!(command.is_none(), "a command waits without an entry");
        }
        if std::mem::take(&mut self.garbage_due) {
            self.remove_garbage(now, state);
        }
    }

    /// Runs the items in front of the next command and returns that command's own.
    fn run_until_command(
        &mut self,
        items: &mut VecDeque<Item>,
        state: &State,
        out: &mut Outboxes,
    ) -> Option<Item> {
        while let Some(item) = items.pop_front() {
            if item.is_command() {
                return Some(item);
            }
            self.run(item, state, out);
        }
        None
    }

    pub(super) fn run(&mut self, item: Item, state: &State, out: &mut Outboxes) {
        match item {
            Item::Read(QueuedRead { client, .. }) if out.is_full(client.conn) => {
                tracing::warn!(session = %client.session, "connection closed: it asks for too much at once");
                out.close(client.conn);
            }
            Item::Read(QueuedRead { client, xid, op, body }) => {
                out.reply(client.conn, |out| state.answer(&client, xid, op, &body, Guess::NONE, out));
            }
            Item::Disconnect { conn } => {
                self.waits_for_members.take_if(|(waiting, _)| *waiting == conn);
                state.drop_watches(conn);
                self.serving.end_conn(conn);
                // A session that came back before this had its turn has closed the gate of a connection that was gone.
                self.gates.forget(conn);
            }
            Item::Write { .. } | Item::Session { .. } | Item::Abandoned => {
                unreachable!("commands are applied, not run")
            }
        }
    }

    /// From now on `conn` serves the session; the connection that did is closed and told no more events.
    fn serve(&mut self, conn: ConnId, session: SessionId, state: &State, out: &mut Outboxes) {
        if let Some(former) = self.serving.begin(session, conn) {
            state.drop_watches(former);
            out.close(former);
        }
    }

    fn apply_command(
        &mut self,
        now: Now,
        command: &Command<'_>,
        item: Option<Item>,
        state: &mut State,
        out: &mut Outboxes,
    ) {
        let outcome = state.apply(command, out);
        if outcome.result.is_ok() {
            self.follow_session(now, command, state, out);
        }
        match item {
            Some(Item::Write { conn, xid }) if begins_change_of_members(command, &outcome) => {
                self.waits_for_members = Some((conn, xid));
            }
            Some(Item::Write { conn, xid }) => {
                self.answer_write(conn, xid, &outcome, out);
                if matches!(command.write, Ok(Write::Reconfig(_))) {
                    self.gates.open(conn);
                }
            }
            Some(Item::Session { conn }) => self.answer_session(conn, command, &outcome, state, out),
            _ => {}
        }
        if outcome.result.is_ok()
            && let Some(session) = ended_session(command)
        {
            self.end_serving(session, state, out);
        }
    }

    fn answer_write(&mut self, conn: ConnId, xid: Xid, outcome: &Outcome<'_>, out: &mut Outboxes) {
        match &outcome.result {
            Ok(reply) => out.write_reply(conn, ReplyHeader::ok(xid, outcome.zxid), |out| reply.encode(out)),
            Err(error) => {
                let header = ReplyHeader::refused(xid, outcome.zxid, *error);
                out.write_reply(conn, header, |_| {});
            }
        }
    }

    /// A change of members is in force, or has failed: whoever asked for it here is told.
    fn answer_change_of_members(&mut self, error: Option<ErrorCode>, state: &State, out: &mut Outboxes) {
        let Some((conn, xid)) = self.waits_for_members.take() else { return };
        self.gates.open(conn);
        let header = ReplyHeader { error, ..ReplyHeader::ok(xid, state.tree().zxid()) };
        out.write_reply(conn, header, |out| {
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
                Ok(Write::CreateSession { timeout_ms } | Write::ResumeSession { timeout_ms }),
                Ok(WriteReply::Done),
            ) => {
                self.serve(conn, command.session, state, out);
                out.connected(conn, command.session, *timeout_ms, false);
            }
            _ => out.expired(conn),
        }
    }

    /// What a command says of its session's life.
    fn follow_session(&mut self, now: Now, command: &Command<'_>, state: &State, out: &mut Outboxes) {
        match command.write {
            Ok(Write::CreateSession { timeout_ms }) => {
                self.liveness.add(command.session, timeout_ms, now.monotonic_ms);
                self.skip_session_id(command.session);
            }
            Ok(Write::ResumeSession { timeout_ms }) => {
                self.liveness.resume(command.session, timeout_ms, now.monotonic_ms);
                if u64::from(command.member) != self.options.member {
                    // It is served elsewhere now: the connection here is one that its client has given up.
                    self.end_serving(command.session, state, out);
                }
            }
            Ok(Write::Reconfig(_) | Write::FoundEnsemble { .. }) => self.note_members(state),
            Ok(Write::SettleReconfig { error }) => {
                self.note_members(state);
                self.answer_change_of_members(error, state, out);
            }
            _ => {
                if let Some(session) = ended_session(command) {
                    self.liveness.remove(session);
                }
            }
        }
    }

    /// The connection of a session that has ended or moved is closed, behind the reply if it asked for that itself.
    fn end_serving(&mut self, session: SessionId, state: &State, out: &mut Outboxes) {
        if let Some(conn) = self.serving.end_session(session) {
            state.drop_watches(conn);
            out.close(conn);
        }
    }

    fn remove_garbage(&mut self, now: Now, state: &State) {
        for path in state.tree().expired_nodes(now.wall_ms, self.options.garbage_max) {
            let mut body = Vec::new();
            body.put_string(&path);
            self.say(OpCode::DeleteContainer, &body);
        }
    }
}

fn begins_change_of_members(command: &Command<'_>, outcome: &Outcome<'_>) -> bool {
    matches!(command.write, Ok(Write::Reconfig(_))) && outcome.result.is_ok()
}

/// The session that a command ends, if it is not refused.
fn ended_session(command: &Command<'_>) -> Option<SessionId> {
    match command.write {
        Ok(Write::CloseSession) => Some(command.session),
        Ok(Write::ExpireSession { session }) => Some(session),
        _ => None,
    }
}
