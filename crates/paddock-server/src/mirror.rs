//! A server of a state that lives elsewhere: the owner of its `Mirror` tells it of changes there.
//!
//! Either it serves reads alone, as a ZooKeeper in read-only mode does: clients that may only read get sessions that live as long as their
//! connections, all others are closed, and writes are refused. Or it serves everybody, as an observer of ZooKeeper does, and what it cannot do
//! itself goes to the source (`forwarding.rs`). Then a member may take its place ([`crate::Server::take_over`]) while its clients stay connected.

mod forwarding;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use paddock_member::Clock as _;
use paddock_proto::{ErrorCode, OpCode, ReplyHeader, SessionId};
use paddock_replica::Role;
use paddock_state::{ClientInput, ConnId, Connected, Outboxes, QueuedRead, Resumption, Serving, State};
use paddock_tree::{AppliedTransaction, Guess, InstallError, Tree, Znode};
use parking_lot::RwLock;

use crate::engine::MemberHandle;
use crate::error::ServerError;
use crate::host::post;
use crate::shared::Shared;
use crate::threads::spawn;
use forwarding::Forwarding;
pub use forwarding::{Held, SourceLink, SourceRequest};

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
    /// Shows a change, and tells its watchers.
    pub fn show(&self, change: AppliedTransaction) {
        // After the server's end no reader is left.
        let _ = self.messages.send(Message::Change(Box::new(change)));
    }

    /// Shows another state. All connections are closed: it is not known which watches would have fired.
    pub fn replace(&self, tree: Tree) {
        let _ = self.messages.send(Message::Replace(Box::new(tree)));
    }

    /// The source is connected, and everything has been shown that it had then.
    pub fn begin_link(&self, link: SourceLink) {
        let _ = self.messages.send(Message::Source(SourceEvent::Linked(link)));
    }

    /// The source is not connected any more.
    pub fn end_link(&self) {
        let _ = self.messages.send(Message::Source(SourceEvent::Lost));
    }

    /// The source was heard: it has told everything that it knew until then.
    pub fn note_heard(&self) {
        let _ = self.messages.send(Message::Source(SourceEvent::Heard));
    }

    /// The oldest sync is answered.
    pub fn caught_up(&self) {
        let _ = self.messages.send(Message::Source(SourceEvent::CaughtUp));
    }

    /// The source has looked for a session whose client came here; `lives` is false if it has ended.
    pub fn revalidated(&self, session: SessionId, lives: bool) {
        let _ = self.messages.send(Message::Source(SourceEvent::Revalidated(session, lives)));
    }

    /// Holds back what clients ask from now on. The receiver is told once the source has answered all that it was sent, and has nothing that is
    /// not shown; it is not if that is lost meanwhile, and then nothing is held back.
    pub fn hold(&self) -> mpsc::Receiver<Held> {
        let (done, held) = mpsc::channel();
        let _ = self.messages.send(Message::Source(SourceEvent::Hold(done)));
        held
    }

    /// Requests that are held back go to the source after all.
    pub fn release(&self) {
        let _ = self.messages.send(Message::Source(SourceEvent::Release));
    }
}

/// The way to the mirror, for workers, and to the member that takes its place.
#[derive(Clone, Debug)]
pub(crate) struct MirrorHandle {
    messages: Sender<Message>,
    /// Locked for writing while the member takes over, so that no input overtakes another.
    successor: Arc<RwLock<Option<MemberHandle>>>,
}

/// Parts of a mirror that has ended, for the member in its place.
#[derive(Debug)]
pub(crate) struct Retired {
    /// Inputs that were not answered, in their order.
    pub(crate) held: Vec<ClientInput>,
    /// Connections that stay, with their sessions.
    pub(crate) serving: Serving,
}

impl MirrorHandle {
    /// Hands inputs of clients over and leaves the vector empty.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        self.work_off(inputs, 0, || {});
    }

    /// Hands inputs over, as every engine does; a member that has taken over may work at once on this thread.
    pub(crate) fn work_off(&self, inputs: &mut Vec<ClientInput>, turns_max: usize, meanwhile: impl FnMut()) {
        if inputs.is_empty() {
            return;
        }
        let successor = self.successor.read();
        match &*successor {
            Some(member) => member.work_off(inputs, turns_max, meanwhile),
            None => drop(self.messages.send(Message::Clients(std::mem::take(inputs)))),
        }
    }

    /// The member that has taken over.
    pub(crate) fn successor(&self) -> Option<MemberHandle> {
        self.successor.read().clone()
    }

    /// Ends the mirror; `begin` makes the member that goes on in its place. No client is served until it returns.
    pub(crate) fn succeed<T>(
        &self,
        begin: impl FnOnce(Retired) -> Result<(MemberHandle, T), ServerError>,
    ) -> Result<T, ServerError> {
        let mut successor = self.successor.write();
        let (sender, retired) = bounded(1);
        let _ = self.messages.send(Message::Retire(sender));
        let retired = retired.recv().map_err(|_| ServerError::Panicked)?;
        let (member, begun) = begin(retired)?;
        *successor = Some(member);
        Ok(begun)
    }

    pub(crate) fn close(&self) {
        match self.successor() {
            Some(member) => member.close(),
            None => drop(self.messages.send(Message::Close)),
        }
    }
}

#[derive(Debug)]
enum Message {
    Clients(Vec<ClientInput>),
    Change(Box<AppliedTransaction>),
    Replace(Box<Tree>),
    Source(SourceEvent),
    Retire(Sender<Retired>),
    Close,
}

/// Events of the source: of its connection, and of requests that it was sent.
enum SourceEvent {
    Linked(SourceLink),
    Lost,
    Heard,
    CaughtUp,
    Revalidated(SessionId, bool),
    Hold(mpsc::Sender<Held>),
    Release,
}

impl fmt::Debug for SourceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SourceEvent::Linked(_) => "Linked",
            SourceEvent::Lost => "Lost",
            SourceEvent::Heard => "Heard",
            SourceEvent::CaughtUp => "CaughtUp",
            SourceEvent::Revalidated(..) => "Revalidated",
            SourceEvent::Hold(_) => "Hold",
            SourceEvent::Release => "Release",
        })
    }
}

/// Clients that a mirror serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorMode {
    /// Clients that may only read.
    ReadOnly,
    /// All: what it cannot do itself goes to the source.
    Forwarding,
}

/// Starts the thread that answers what the workers cannot.
pub(crate) fn start(shared: &Arc<Shared>, mode: MirrorMode) -> (Mirror, MirrorHandle, JoinHandle<()>) {
    let (messages, received) = unbounded();
    let next_session = SESSIONS | (shared.clock.now().wall_ms & 0xff_ffff_ffff) << 16;
    let mut engine = MirrorEngine {
        outboxes: Outboxes::new(shared.inner_worker() + 1),
        shared: shared.clone(),
        conns: HashSet::new(),
        next_session,
        forwarding: (mode == MirrorMode::Forwarding).then(|| Box::new(Forwarding::new(next_session))),
    };
    engine.tick();
    let thread = spawn("mirror", move || engine.run(&received));
    let handle = MirrorHandle { messages: messages.clone(), successor: Arc::default() };
    (Mirror { messages }, handle, thread)
}

struct MirrorEngine {
    shared: Arc<Shared>,
    outboxes: Outboxes,
    /// Connections with sessions, if only reads are served.
    conns: HashSet<ConnId>,
    next_session: i64,
    /// Present if all clients are served.
    forwarding: Option<Box<Forwarding>>,
}

impl MirrorEngine {
    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Retire(retired)) => {
                    let forwarding =
                        self.forwarding.as_mut().expect("whoever only reads stays with the copy");
                    let (held, serving) = forwarding.retire();
                    // The member that asked waits for it.
                    let _ = retired.send(Retired { held, serving });
                    return;
                }
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.tick();
        }
    }

    /// The state may be old, and says so by its zxid; clients that only read are not closed for that.
    fn tick(&self) {
        let now_ms = self.shared.clock.monotonic_ms();
        let (role, confirmed_ms) = match &self.forwarding {
            None => (Role::ReadOnly, now_ms),
            Some(forwarding) if forwarding.is_serving() => (Role::Observer, forwarding.confirmed_ms(now_ms)),
            Some(forwarding) => (Role::Looking, forwarding.confirmed_ms(now_ms)),
        };
        self.shared.set_role(role);
        self.shared.set_confirmed(confirmed_ms);
        self.shared.state.read().state().sweep_watches();
    }

    fn take(&mut self, message: Message) {
        let shared = self.shared.clone();
        let mut replicated = shared.state.write();
        let state = replicated.state_mut();
        self.outboxes.begin_round();
        match message {
            Message::Clients(inputs) => inputs.into_iter().for_each(|input| match &mut self.forwarding {
                Some(forwarding) => forwarding.take(input, state, &mut self.outboxes),
                None => self.answer(input, state),
            }),
            Message::Change(change) => match self.change(&change, state) {
                Ok(()) => {
                    if let Some(forwarding) = &mut self.forwarding {
                        forwarding.note_transaction(&change, state, &mut self.outboxes);
                    }
                }
                Err(error) => {
                    // What is told comes from a state that holds together.
                    tracing::error!(%error, zxid = %change.zxid, "a change cannot be shown: closing client connections");
                    self.close_all(state);
                }
            },
            Message::Replace(tree) => {
                state.replace(*tree);
                self.close_all(state);
            }
            Message::Source(event) => self.note_source(event, state),
            Message::Retire(_) | Message::Close => unreachable!("they end the loop"),
        }
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.look_at_hold(state);
        }
        let woken = post(&shared, &mut self.outboxes, None);
        drop(replicated);
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.send();
        }
        woken.into_iter().for_each(|worker| shared.mailbox(worker).wake());
    }

    /// A server of reads alone has no use for the source.
    fn note_source(&mut self, event: SourceEvent, state: &State) {
        let now_ms = self.shared.clock.monotonic_ms();
        let Some(forwarding) = &mut self.forwarding else { return };
        match event {
            SourceEvent::Linked(link) => forwarding.begin_link(link, now_ms),
            SourceEvent::Lost => forwarding.end_link(state, &mut self.outboxes),
            SourceEvent::Heard => forwarding.note_heard(now_ms),
            SourceEvent::CaughtUp => forwarding.note_caught_up(state, &mut self.outboxes),
            SourceEvent::Revalidated(session, lives) => {
                forwarding.note_revalidated(session, lives, state, &mut self.outboxes);
            }
            SourceEvent::Hold(done) => forwarding.hold(done),
            SourceEvent::Release => forwarding.release(state, &mut self.outboxes),
        }
    }

    fn change(&mut self, change: &AppliedTransaction, state: &mut State) -> Result<(), InstallError> {
        for &(session, timeout_ms) in &change.began {
            state.tree_mut().install_session(session, timeout_ms, self.shared.config.member);
        }
        let znodes: Vec<(&str, Option<Znode>)> =
            change.znodes.iter().map(|(path, znode)| (path.as_str(), znode.clone())).collect();
        state.install(change.zxid, &znodes, &mut self.outboxes)?;
        for &session in &change.ended {
            // A session that still owns znodes is of a source that keeps them: it is shown as it is.
            let _ = state.tree_mut().uninstall_session(session);
        }
        Ok(())
    }

    fn close_all(&mut self, state: &State) {
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.close_all(state, &mut self.outboxes);
        }
        for conn in self.conns.drain() {
            self.outboxes.close(conn);
        }
    }

    fn answer(&mut self, input: ClientInput, state: &State) {
        match input {
            ClientInput::Connect { conn, timeout_ms, may_only_read, .. } => {
                let session = SessionId(self.next_session);
                self.next_session += 1;
                self.connect(conn, session, timeout_ms, may_only_read, state);
            }
            ClientInput::Resume { conn, resumption, may_only_read } => {
                let Resumption { session, timeout_ms, .. } = resumption;
                match state.tree().session_timeout_ms(session) {
                    Some(_) => self.connect(conn, session, timeout_ms, may_only_read, state),
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
            ClientInput::Touch { .. } | ClientInput::Bind { .. } => {}
        }
    }

    fn connect(
        &mut self,
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
        may_only_read: bool,
        state: &State,
    ) {
        if may_only_read {
            self.conns.insert(conn);
            let connected = Connected { session, timeout_ms, read_only: true };
            self.outboxes.connected(conn, connected, &state.tree().password(session));
        } else {
            self.outboxes.close(conn);
        }
    }
}
