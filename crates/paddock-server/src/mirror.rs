//! A server of reads alone, of a state that lives elsewhere: whoever holds its `Mirror` tells it what has changed there.
//!
//! It serves as a ZooKeeper in read-only mode does: clients that may only read get sessions that live as long as their connections, all others
//! are closed, and writes are refused.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use paddock_member::Clock as _;
use paddock_proto::{ErrorCode, OpCode, ReplyHeader, SessionId};
use paddock_replica::Role;
use paddock_state::{ClientInput, ConnId, Outboxes, QueuedRead, State};
use paddock_tree::{AppliedTransaction, Guess, InstallError, Tree, Znode};

use crate::engine::post;
use crate::shared::Shared;
use crate::threads::spawn;

/// Time between two notes that the server is alive, without which connections would be closed.
const TICK: Duration = Duration::from_millis(100);
/// Sessions of a mirror are none of an ensemble's: members have numbers below this, in the top byte of an id.
const SESSIONS: i64 = 0x7e << 56;

/// The way to a server that mirrors a state. Changes are shown in the order in which they are told.
#[derive(Clone, Debug)]
pub struct Mirror {
    messages: Sender<Message>,
}

impl Mirror {
    /// Shows a change, and tells whoever watches.
    pub fn show(&self, change: AppliedTransaction) {
        // After the server's end nobody looks.
        let _ = self.messages.send(Message::Change(Box::new(change)));
    }

    /// Shows another state. All connections are closed: nobody knows which watches would have fired.
    pub fn replace(&self, tree: Tree) {
        let _ = self.messages.send(Message::Replace(Box::new(tree)));
    }
}

/// The way to the mirror, for workers.
#[derive(Clone, Debug)]
pub(crate) struct MirrorHandle {
    messages: Sender<Message>,
}

impl MirrorHandle {
    /// Hands inputs of clients over and leaves the vector empty.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        if !inputs.is_empty() {
            let _ = self.messages.send(Message::Clients(std::mem::take(inputs)));
        }
    }

    pub(crate) fn close(&self) {
        let _ = self.messages.send(Message::Close);
    }
}

#[derive(Debug)]
enum Message {
    Clients(Vec<ClientInput>),
    Change(Box<AppliedTransaction>),
    Replace(Box<Tree>),
    Close,
}

/// Starts the thread that answers what the workers cannot.
pub(crate) fn start(shared: &Arc<Shared>) -> (Mirror, MirrorHandle, JoinHandle<()>) {
    let (messages, received) = unbounded();
    let mut engine = MirrorEngine {
        outboxes: Outboxes::new(shared.inner_worker() + 1),
        shared: shared.clone(),
        conns: HashSet::new(),
        next_session: SESSIONS | (shared.clock.now().wall_ms & 0xff_ffff_ffff) << 16,
    };
    engine.tick();
    let thread = spawn("mirror", move || engine.run(&received));
    (Mirror { messages: messages.clone() }, MirrorHandle { messages }, thread)
}

struct MirrorEngine {
    shared: Arc<Shared>,
    outboxes: Outboxes,
    /// Connections with sessions.
    conns: HashSet<ConnId>,
    next_session: i64,
}

impl MirrorEngine {
    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.tick();
        }
    }

    /// The state may be old, and says so by its zxid; clients are not closed for that.
    fn tick(&self) {
        self.shared.set_role(Role::ReadOnly);
        self.shared.set_confirmed(self.shared.clock.monotonic_ms());
        self.shared.state.read().state().sweep_watches();
    }

    fn take(&mut self, message: Message) {
        let shared = self.shared.clone();
        let mut replicated = shared.state.write();
        let state = replicated.state_mut();
        self.outboxes.begin_round();
        match message {
            Message::Clients(inputs) => inputs.into_iter().for_each(|input| self.answer(input, state)),
            Message::Change(change) => {
                if let Err(error) = self.change(&change, state) {
                    // What is told comes from a state that holds together.
                    tracing::error!(%error, zxid = %change.zxid, "a change cannot be shown: closing client connections");
                    self.close_all();
                }
            }
            Message::Replace(tree) => {
                state.replace(*tree);
                self.close_all();
            }
            Message::Close => unreachable!("it ends the loop"),
        }
        let woken = post(&shared, &mut self.outboxes, None);
        drop(replicated);
        woken.into_iter().for_each(|worker| shared.mailbox(worker).wake());
    }

    fn change(&mut self, change: &AppliedTransaction, state: &mut State) -> Result<(), InstallError> {
        for &(session, timeout_ms) in &change.began {
            state.tree_mut().install_session(session, timeout_ms, self.shared.config.member);
        }
        let znodes: Vec<(&str, Option<Znode>)> =
            change.znodes.iter().map(|(path, znode)| (path.as_str(), znode.clone())).collect();
        state.install(change.zxid, &znodes, &mut self.outboxes)?;
        for &session in &change.ended {
            // One that still owns znodes is of a source that keeps them: it is shown as it is.
            let _ = state.tree_mut().uninstall_session(session);
        }
        Ok(())
    }

    fn close_all(&mut self) {
        for conn in self.conns.drain() {
            self.outboxes.close(conn);
        }
    }

    fn answer(&mut self, input: ClientInput, state: &State) {
        match input {
            ClientInput::Connect { conn, timeout_ms, may_only_read } => {
                let session = SessionId(self.next_session);
                self.next_session += 1;
                self.connect(conn, session, timeout_ms, may_only_read);
            }
            ClientInput::Resume { conn, session, timeout_ms, may_only_read } => {
                match state.tree().session_timeout_ms(session) {
                    Some(_) => self.connect(conn, session, timeout_ms, may_only_read),
                    None => self.outboxes.expired(conn),
                }
            }
            ClientInput::Read(QueuedRead { client, .. }) if self.outboxes.is_full(client.conn) => {
                self.outboxes.close(client.conn);
            }
            ClientInput::Read(QueuedRead { client, xid, op, body }) => self
                .outboxes
                .reply(client.conn, |out| state.answer(&client, xid, op, &body, Guess::NONE, out)),
            ClientInput::Write { conn, xid, op, .. } => {
                let zxid = state.tree().zxid();
                if op == OpCode::CloseSession {
                    self.outboxes.write_reply(conn, ReplyHeader { xid, zxid, error: None }, |_| {});
                    self.outboxes.close(conn);
                } else {
                    let header = ReplyHeader::refused(xid, zxid, ErrorCode::NotReadOnly);
                    self.outboxes.write_reply(conn, header, |_| {});
                }
            }
            ClientInput::Disconnect { conn } => {
                self.conns.remove(&conn);
                state.drop_watches(conn);
            }
            ClientInput::Touch { .. } => {}
        }
    }

    fn connect(&mut self, conn: ConnId, session: SessionId, timeout_ms: i32, may_only_read: bool) {
        if may_only_read {
            self.conns.insert(conn);
            self.outboxes.connected(conn, session, timeout_ms, true);
        } else {
            self.outboxes.close(conn);
        }
    }
}
