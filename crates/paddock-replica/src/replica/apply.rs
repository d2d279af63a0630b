//! Carrying out what has been committed: the state changes, watches fire, whoever waits is answered.

use std::collections::VecDeque;

use paddock_proto::jute::Writer;
use paddock_proto::{OpCode, ReplyHeader, SessionId, Write, WriteReply, Xid};
use paddock_tree::{Command, Outcome};

use super::{Applied, Effects, Item, Local, Replica};
use crate::batch::commands;
use crate::outbox::ok;
use crate::{ConnId, Now, Outboxes, State};

impl Replica {
    /// Applies what was committed, answers whoever waits for it, and answers the requests that need no entry.
    pub fn apply(
        &mut self,
        now: Now,
        effects: &mut Effects,
        state: &mut State,
        out: &mut Outboxes,
    ) -> Applied {
        out.begin_round();
        let mut applied = Applied::default();
        for entry in effects.committed.drain(..) {
            let mut items = self.items_of(entry.index);
            for command in commands(&entry.payload) {
                let item = self.run_until_command(now, &mut items, state, out);
                self.apply_command(now, &command, item, state, out);
                applied.commands += 1;
            }
            let rest = self.run_until_command(now, &mut items, state, out);
            assert!(rest.is_none(), "entry {} has fewer commands than were proposed", entry.index);
            state.set_applied(entry.index, entry.term);
            self.consensus.applied(entry.index);
            applied.entries += 1;
        }
        if std::mem::take(&mut effects.locals) {
            self.run_locals(now, state, out);
        }
        applied
    }

    fn items_of(&mut self, index: u64) -> VecDeque<Item> {
        match self.proposals.front() {
            Some(proposal) if proposal.index == index => {
                self.proposals.pop_front().expect("the front was just seen").items
            }
            Some(proposal) => {
                assert!(proposal.index > index, "entry {} was never applied", proposal.index);
                VecDeque::new()
            }
            None => VecDeque::new(),
        }
    }

    fn run_locals(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        if self.proposals.is_empty() && self.batch.commands() == 0 {
            let mut items = std::mem::take(&mut self.items);
            let command = self.run_until_command(now, &mut items, state, out);
            assert!(command.is_none(), "a command waits without an entry");
        }
        if std::mem::take(&mut self.garbage_due) {
            self.remove_garbage(now, state);
        }
    }

    /// Runs the items in front of the next command and returns that command's own.
    fn run_until_command(
        &mut self,
        now: Now,
        items: &mut VecDeque<Item>,
        state: &State,
        out: &mut Outboxes,
    ) -> Option<Item> {
        while let Some(item) = items.pop_front() {
            if item.is_command() {
                return Some(item);
            }
            self.run(now, item, state, out);
        }
        None
    }

    fn run(&mut self, now: Now, item: Item, state: &State, out: &mut Outboxes) {
        match item {
            Item::Local(Local { client, .. }) if out.is_full(client.conn) => {
                tracing::warn!(session = %client.session, "connection closed: it asks for too much at once");
                out.close(client.conn);
            }
            Item::Local(Local { client, xid, op, body }) => {
                out.reply(client.conn, |out| state.answer(&client, xid, op, &body, out));
            }
            Item::Resume { conn, session, timeout_ms } => {
                if self.liveness.resume(session, timeout_ms, now.monotonic_ms) {
                    self.serve(conn, session, state, out);
                    out.connected(conn, session, timeout_ms);
                } else {
                    out.expired(conn);
                }
            }
            Item::Disconnect { conn } => {
                state.drop_watches(conn);
                self.serving.end_conn(conn);
            }
            Item::Write { .. } | Item::Connect { .. } | Item::Own => {
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
        match (&command.write, &outcome.result) {
            (Ok(Write::CreateSession { timeout_ms }), Ok(_)) => {
                self.liveness.add(command.session, *timeout_ms, now.monotonic_ms);
                self.skip_session_id(command.session);
            }
            (Ok(Write::CloseSession), _) => self.liveness.remove(command.session),
            _ => {}
        }
        match item {
            Some(Item::Write { conn, xid }) => self.answer_write(conn, xid, command, &outcome, state, out),
            Some(Item::Connect { conn }) => self.answer_connect(conn, command, &outcome, state, out),
            _ => self.end_serving(command, state, out),
        }
    }

    fn answer_write(
        &mut self,
        conn: ConnId,
        xid: Xid,
        command: &Command<'_>,
        outcome: &Outcome<'_>,
        state: &State,
        out: &mut Outboxes,
    ) {
        match &outcome.result {
            Ok(reply) => out.write_reply(conn, ok(xid, outcome.zxid), |out| reply.encode(out)),
            Err(error) => {
                let header = ReplyHeader { error: Some(*error), ..ok(xid, outcome.zxid) };
                out.write_reply(conn, header, |_| {});
            }
        }
        self.end_serving(command, state, out);
    }

    fn answer_connect(
        &mut self,
        conn: ConnId,
        command: &Command<'_>,
        outcome: &Outcome<'_>,
        state: &State,
        out: &mut Outboxes,
    ) {
        match (&command.write, &outcome.result) {
            (Ok(Write::CreateSession { timeout_ms }), Ok(WriteReply::Done)) => {
                self.serve(conn, command.session, state, out);
                out.connected(conn, command.session, *timeout_ms);
            }
            _ => out.expired(conn),
        }
    }

    /// A closed session's connection is closed as well, behind the reply if it asked for it itself.
    fn end_serving(&mut self, command: &Command<'_>, state: &State, out: &mut Outboxes) {
        if !matches!(command.write, Ok(Write::CloseSession)) {
            return;
        }
        if let Some(conn) = self.serving.end_session(command.session) {
            state.drop_watches(conn);
            out.close(conn);
        }
    }

    fn remove_garbage(&mut self, now: Now, state: &State) {
        for path in state.tree().expired_nodes(now.wall_ms, self.options.garbage_max) {
            let mut body = Vec::new();
            body.put_string(&path);
            self.submit_own(now, SessionId::NONE, OpCode::DeleteContainer, &body, Item::Own);
        }
    }
}
