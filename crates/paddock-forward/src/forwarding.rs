//! Requests that only the source of a mirror can carry out: writes, syncs and sessions go there, and come back among what it tells.
//!
//! A request is answered when the transaction that it became is shown, behind everything that came before it. Answers on a connection keep
//! their order: what stands behind a write of the same connection waits for it.
//!
//! Invariant: a connection with a queue has something in it that the source has not answered.

use std::collections::{HashMap, HashSet, VecDeque};

use paddock_proto::{ErrorCode, IdList, OpCode, SessionId};
use paddock_state::{
    ClientInput, ConnId, Connected, Outboxes, QueuedRead, RequestId, Resumption, Serving, State,
};
use paddock_tree::{AppliedTransaction, Command};

use crate::contract::{Effects, Held, SourceRequest};
use crate::mirror::Retired;

/// Numbers of requests begin here: clients number theirs upwards from 1 or from the time, and are told apart by that.
const FIRST_XID: i32 = i32::MIN;
/// Numbers from here on mean something special.
const XID_END: i32 = -1000;

/// A request that the source has been sent, by the number that it got.
#[derive(Debug)]
enum Pending {
    Write { conn: ConnId, session: SessionId, request: RequestId },
    Session { conn: ConnId, session: SessionId, timeout_ms: i32 },
}

impl Pending {
    fn session(&self) -> SessionId {
        match self {
            Pending::Write { session, .. } | Pending::Session { session, .. } => *session,
        }
    }
}

/// A request of a connection that has not been answered.
#[derive(Debug)]
enum Waiting {
    /// A write, by the number that the source knows.
    Write(i32),
    Sync(QueuedRead),
    Read(QueuedRead),
    /// An operation that the source does not have.
    Unknown(RequestId),
}

/// Reason of a sync.
#[derive(Clone, Copy, Debug)]
enum SyncFor {
    /// The connection's client has asked for it.
    Client(ConnId),
    /// The connection's client has asked if its session lives, which is not known here.
    Asking { conn: ConnId, session: SessionId, timeout_ms: i32 },
    /// The last one before the cut-over.
    CutOver,
}

/// A wait for the moment at which nothing is under way.
#[derive(Debug)]
struct Hold {
    /// The source was asked for the last time.
    has_asked: bool,
    is_caught_up: bool,
}

#[derive(Debug)]
pub(crate) struct Forwarding {
    /// True while the source is connected.
    is_linked: bool,
    /// Requests for the source that have not been sent.
    outgoing: Vec<SourceRequest>,
    /// Present once nothing is under way, until it is told.
    at_rest: Option<Held>,
    next_session: i64,
    next_xid: i32,
    conns: HashSet<ConnId>,
    serving: Serving,
    /// Timeouts of sessions that were served here, in milliseconds.
    timeouts: HashMap<SessionId, i32>,
    pending: HashMap<i32, Pending>,
    queues: HashMap<ConnId, VecDeque<Waiting>>,
    /// Syncs that are under way.
    syncs: VecDeque<SyncFor>,
    revalidations: Vec<(SessionId, ConnId, i32)>,
    /// Inputs that wait for the cut-over, or for its end.
    held: Option<Vec<ClientInput>>,
    hold: Option<Hold>,
    /// Nothing is under way, and the source is not needed any more.
    is_fenced: bool,
    /// The source was lost since then: it may have ended sessions, and has to be asked for each again.
    was_lost_at_rest: bool,
    /// Monotonic time in milliseconds at which the source was heard last.
    heard_ms: u64,
}

impl Forwarding {
    /// Sessions that begin here get ids from this one on.
    pub(crate) fn new(next_session: i64) -> Forwarding {
        Forwarding {
            is_linked: false,
            outgoing: Vec::new(),
            at_rest: None,
            next_session,
            next_xid: FIRST_XID,
            conns: HashSet::new(),
            serving: Serving::default(),
            timeouts: HashMap::new(),
            pending: HashMap::new(),
            queues: HashMap::new(),
            syncs: VecDeque::new(),
            revalidations: Vec::new(),
            held: None,
            hold: None,
            is_fenced: false,
            was_lost_at_rest: false,
            heard_ms: 0,
        }
    }

    /// True if clients can be served.
    pub(crate) fn is_serving(&self) -> bool {
        self.is_linked || self.is_fenced
    }

    /// Monotonic time in milliseconds up to which no session can have been ended without being told here.
    pub(crate) fn confirmed_ms(&self, now_ms: u64) -> u64 {
        if self.is_fenced { now_ms } else { self.heard_ms }
    }

    pub(crate) fn note_heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    pub(crate) fn begin_link(&mut self, now_ms: u64) {
        (self.is_linked, self.heard_ms) = (true, now_ms);
    }

    /// The source is gone: it is not known what became of what is under way, and sessions may be ended. Clients ask again.
    pub(crate) fn end_link(&mut self, state: &State, out: &mut Outboxes) {
        self.is_linked = false;
        if self.is_fenced {
            self.was_lost_at_rest = true;
        } else {
            self.close_all(state, out);
            self.release(state, out);
        }
    }

    /// Closes all connections.
    pub(crate) fn close_all(&mut self, state: &State, out: &mut Outboxes) {
        let mut conns: Vec<ConnId> = self.conns.drain().collect();
        conns.sort_unstable();
        for conn in conns {
            state.watches().drop_conn(conn);
            out.close(conn);
        }
        self.outgoing.clear();
        self.serving.end_all();
        self.timeouts.clear();
        self.pending.clear();
        self.queues.clear();
        self.syncs.clear();
        self.revalidations.clear();
    }

    /// Requests for the source, and whether nothing is under way any more. Without a connection requests are lost.
    pub(crate) fn take_effects(&mut self) -> Effects {
        let mut requests = std::mem::take(&mut self.outgoing);
        if !self.is_linked {
            requests.clear();
        }
        Effects { requests, held: self.at_rest.take() }
    }

    /// True from `hold` on, until it is told that nothing is under way.
    pub(crate) fn is_coming_to_rest(&self) -> bool {
        self.hold.is_some()
    }

    pub(crate) fn take(&mut self, input: ClientInput, state: &State, out: &mut Outboxes) {
        match &mut self.held {
            Some(held) if !matches!(input, ClientInput::Touch { .. }) => {
                // Its connection was closed, and has not heard of it. Connections that ask for a session ask for nothing else before they get it.
                if asking_conn(&input).is_some_and(|conn| !self.conns.contains(&conn)) {
                    return;
                }
                if let ClientInput::Disconnect { conn: gone } = &input {
                    // A session that was asked for by a connection that is gone may be served elsewhere when this is let go.
                    held.retain(|input| !asks_for_session(input, *gone));
                }
                held.push(input);
            }
            _ => self.answer(input, state, out),
        }
    }

    fn answer(&mut self, input: ClientInput, state: &State, out: &mut Outboxes) {
        match input {
            ClientInput::Connect { conn, .. } | ClientInput::Resume { conn, .. } if !self.is_linked => {
                self.conns.insert(conn);
                out.close(conn);
            }
            ClientInput::Connect { conn, timeout_ms, .. } => self.begin_session(conn, timeout_ms),
            // The source knows no identities: a client that has shown none yet is only told that the session lives.
            ClientInput::Resume { conn, resumption, .. } if resumption.is_asking => {
                let Resumption { session, timeout_ms, .. } = resumption;
                self.conns.insert(conn);
                if state.tree().session_timeout_ms(session).is_some() {
                    answer_asking(conn, session, timeout_ms, state, out);
                } else {
                    // The session may have begun at the source just now.
                    self.syncs.push_back(SyncFor::Asking { conn, session, timeout_ms });
                    self.outgoing.push(SourceRequest::Sync { session: SessionId::NONE });
                }
            }
            ClientInput::Bind { .. } | ClientInput::Seen { .. } => {}
            ClientInput::Resume { conn, resumption, .. } => {
                let Resumption { session, timeout_ms, .. } = resumption;
                self.conns.insert(conn);
                self.revalidations.push((session, conn, timeout_ms));
                self.outgoing.push(SourceRequest::Revalidate { session, timeout_ms });
            }
            ClientInput::Write { conn, request, op, command } if self.conns.contains(&conn) => {
                self.forward(conn, request, op, &command);
                self.run(conn, state, out);
            }
            ClientInput::Read(read) if self.conns.contains(&read.client.conn) => {
                let conn = read.client.conn;
                let waiting = if read.op == OpCode::Sync {
                    self.syncs.push_back(SyncFor::Client(conn));
                    self.outgoing.push(SourceRequest::Sync { session: read.client.session });
                    Waiting::Sync(read)
                } else {
                    Waiting::Read(read)
                };
                self.queues.entry(conn).or_default().push_back(waiting);
                self.run(conn, state, out);
            }
            // Its connection was closed, and has not heard of it.
            ClientInput::Write { .. } | ClientInput::Read(_) => {}
            ClientInput::Disconnect { conn } => {
                self.conns.remove(&conn);
                self.queues.remove(&conn);
                self.serving.end_conn(conn);
                state.watches().drop_conn(conn);
            }
            ClientInput::Touch { session } => {
                if self.serving.conn(session).is_some()
                    && let Some(&timeout_ms) = self.timeouts.get(&session)
                {
                    self.outgoing.push(SourceRequest::Touch { session, timeout_ms });
                }
            }
        }
    }

    fn begin_session(&mut self, conn: ConnId, timeout_ms: i32) {
        self.conns.insert(conn);
        let session = SessionId(self.next_session);
        self.next_session += 1;
        let xid = self.take_xid();
        self.pending.insert(xid, Pending::Session { conn, session, timeout_ms });
        let (ids, body) = (IdList::NONE.wire().to_vec(), timeout_ms.to_be_bytes().to_vec());
        self.outgoing.push(SourceRequest::Write { session, xid, op: OpCode::CreateSession, ids, body });
    }

    fn forward(&mut self, conn: ConnId, request: RequestId, op: OpCode, command: &[u8]) {
        let queue = self.queues.entry(conn).or_default();
        if !is_known_to_zookeeper(op) {
            queue.push_back(Waiting::Unknown(request));
            return;
        }
        let decoded = Command::decode(command).expect("a front encodes commands");
        let (_, body) = Command::request(command).expect("a front encodes commands");
        let session = decoded.session;
        let number = self.take_xid();
        self.queues.entry(conn).or_default().push_back(Waiting::Write(number));
        self.pending.insert(number, Pending::Write { conn, session, request });
        let (ids, body) = (decoded.ids.wire().to_vec(), body.to_vec());
        self.outgoing.push(SourceRequest::Write { session, xid: number, op, ids, body });
    }

    fn take_xid(&mut self) -> i32 {
        let xid = self.next_xid;
        self.next_xid = if xid + 1 >= XID_END { FIRST_XID } else { xid + 1 };
        xid
    }

    /// A transaction has been shown.
    pub(crate) fn note_transaction(
        &mut self,
        change: &AppliedTransaction,
        state: &State,
        out: &mut Outboxes,
    ) {
        let (session, number) = change.asked;
        if self.pending.get(&number).is_some_and(|pending| pending.session() == session) {
            match self.pending.remove(&number) {
                Some(Pending::Write { conn, request, .. }) => {
                    self.answer_write(conn, number, request, change, state, out);
                    self.run(conn, state, out);
                }
                Some(Pending::Session { conn, session, timeout_ms }) if self.conns.contains(&conn) => {
                    self.serve(conn, session, timeout_ms, state, out);
                }
                _ => {}
            }
        }
        for session in &change.ended {
            self.timeouts.remove(session);
            if let Some(conn) = self.serving.end_session(*session) {
                self.close(conn, state, out);
            }
        }
    }

    fn answer_write(
        &mut self,
        conn: ConnId,
        number: i32,
        request: RequestId,
        change: &AppliedTransaction,
        state: &State,
        out: &mut Outboxes,
    ) {
        // A connection that is gone waits for nothing.
        let Some(queue) = self.queues.get_mut(&conn) else { return };
        let first = queue.pop_front();
        assert!(matches!(first, Some(Waiting::Write(first)) if first == number), "answered in turn");
        match &change.answer {
            Ok(body) => out.write_reply(conn, request, (change.zxid, None), |out| {
                out.extend_from_slice(body);
            }),
            // As ZooKeeper does: its client is elsewhere by now, or has to ask for its session anew.
            Err(ErrorCode::SessionMoved | ErrorCode::SessionExpired) => {
                self.serving.end_conn(conn);
                self.close(conn, state, out);
            }
            Err(error) => out.write_reply(conn, request, (change.zxid, Some(*error)), |_| {}),
        }
    }

    /// The oldest sync is answered.
    pub(crate) fn note_caught_up(&mut self, state: &State, out: &mut Outboxes) {
        match self.syncs.pop_front() {
            Some(SyncFor::Client(conn)) => {
                let Some(queue) = self.queues.get_mut(&conn) else { return };
                if let Some(Waiting::Sync(read)) =
                    queue.pop_front_if(|first| matches!(first, Waiting::Sync(_)))
                {
                    answer_read(&read, state, out);
                }
                self.run(conn, state, out);
            }
            Some(SyncFor::Asking { conn, session, timeout_ms }) if self.conns.contains(&conn) => {
                answer_asking(conn, session, timeout_ms, state, out);
            }
            Some(SyncFor::CutOver) => {
                if let Some(hold) = &mut self.hold {
                    hold.is_caught_up = true;
                }
            }
            Some(SyncFor::Asking { .. }) | None => {}
        }
    }

    /// The source knows if a session lives whose client came here.
    pub(crate) fn note_revalidated(
        &mut self,
        session: SessionId,
        lives: bool,
        state: &State,
        out: &mut Outboxes,
    ) {
        let Some(place) = self.revalidations.iter().position(|(asked, ..)| *asked == session) else { return };
        let (_, conn, timeout_ms) = self.revalidations.remove(place);
        if !self.conns.contains(&conn) {
            return;
        }
        if lives && state.tree().session_timeout_ms(session).is_some() {
            self.serve(conn, session, timeout_ms, state, out);
        } else {
            out.expired(conn);
        }
    }

    fn serve(
        &mut self,
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
        state: &State,
        out: &mut Outboxes,
    ) {
        if let Some(former) = self.serving.begin(session, conn) {
            self.close(former, state, out);
        }
        self.timeouts.insert(session, timeout_ms);
        self.outgoing.push(SourceRequest::Touch { session, timeout_ms });
        let connected = Connected { session, timeout_ms, read_only: false };
        out.connected(conn, connected, &state.tree().password(session));
    }

    /// Closes a connection. What it asks for until it has heard of that is dropped: it would come behind what its session asks for on another
    /// connection.
    fn close(&mut self, conn: ConnId, state: &State, out: &mut Outboxes) {
        self.conns.remove(&conn);
        self.queues.remove(&conn);
        if let Some(held) = &mut self.held {
            held.retain(|input| asking_conn(input) != Some(conn));
        }
        state.watches().drop_conn(conn);
        out.close(conn);
    }

    /// Answers what waits for nothing any more.
    fn run(&mut self, conn: ConnId, state: &State, out: &mut Outboxes) {
        let Some(queue) = self.queues.get_mut(&conn) else { return };
        while let Some(first) =
            queue.pop_front_if(|first| matches!(first, Waiting::Read(_) | Waiting::Unknown(_)))
        {
            match first {
                Waiting::Read(read) => answer_read(&read, state, out),
                Waiting::Unknown(request) => {
                    let refusal = (state.tree().zxid(), Some(ErrorCode::Unimplemented));
                    out.write_reply(conn, request, refusal, |_| {});
                }
                Waiting::Write(_) | Waiting::Sync(_) => unreachable!("they wait"),
            }
        }
        if queue.is_empty() {
            self.queues.remove(&conn);
        }
    }

    /// Holds back what clients ask from now on, and tells when nothing is under way any more.
    pub(crate) fn hold(&mut self) {
        self.held.get_or_insert_default();
        self.hold = Some(Hold { has_asked: false, is_caught_up: false });
    }

    /// Tells the caller that waits for it that nothing is under way. To be called after everything that may have been the last of it.
    pub(crate) fn look_at_hold(&mut self, state: &State) {
        let is_quiet = self.pending.is_empty() && self.revalidations.is_empty() && self.syncs.is_empty();
        let Some(hold) = self.hold.as_mut().filter(|_| is_quiet) else { return };
        if !hold.has_asked {
            hold.has_asked = true;
            self.syncs.push_back(SyncFor::CutOver);
            self.outgoing.push(SourceRequest::Sync { session: SessionId::NONE });
        } else if hold.is_caught_up {
            let sessions = state.tree().sessions().map(|(session, _)| session);
            let elsewhere = sessions.filter(|session| self.serving.conn(*session).is_none()).collect();
            self.is_fenced = true;
            self.hold = None;
            self.at_rest = Some(Held { elsewhere });
        }
    }

    /// No member takes over: what was held back goes to the source.
    pub(crate) fn release(&mut self, state: &State, out: &mut Outboxes) {
        (self.hold, self.at_rest, self.is_fenced) = (None, None, false);
        if std::mem::take(&mut self.was_lost_at_rest) {
            self.close_all(state, out);
        }
        for input in self.held.take().unwrap_or_default() {
            self.answer(input, state, out);
        }
    }

    /// Ends it: inputs that were held back, and the connection of each session.
    pub(crate) fn retire(&mut self) -> Retired {
        assert!(self.is_fenced, "nothing is under way");
        Retired { held: self.held.take().unwrap_or_default(), serving: std::mem::take(&mut self.serving) }
    }
}

pub(crate) fn answer_read(read: &QueuedRead, state: &State, out: &mut Outboxes) {
    if out.is_full(read.client.conn) {
        out.close(read.client.conn);
    } else {
        state.answer_queued(read, out);
    }
}

/// Tells a client if the session lives that it has asked for.
fn answer_asking(conn: ConnId, session: SessionId, timeout_ms: i32, state: &State, out: &mut Outboxes) {
    if state.tree().session_timeout_ms(session).is_some() {
        let connected = Connected { session, timeout_ms, read_only: false };
        out.connected(conn, connected, &state.tree().password(session));
    } else {
        out.expired(conn);
    }
}

/// True if a connection asks for a session by this input.
fn asks_for_session(input: &ClientInput, of: ConnId) -> bool {
    matches!(input, ClientInput::Connect { conn, .. } | ClientInput::Resume { conn, .. } if *conn == of)
}

/// The connection on which a request was made, if the input is one.
fn asking_conn(input: &ClientInput) -> Option<ConnId> {
    match input {
        ClientInput::Write { conn, .. } => Some(*conn),
        ClientInput::Read(read) => Some(read.client.conn),
        _ => None,
    }
}

/// True for writes that every ZooKeeper has. Its members are not changed through a mirror of it.
fn is_known_to_zookeeper(op: OpCode) -> bool {
    use OpCode::{CloseSession, Create, Create2, CreateContainer, CreateTtl, Delete, Multi, SetAcl, SetData};
    matches!(
        op,
        Create | Create2 | CreateContainer | CreateTtl | Delete | SetData | SetAcl | Multi | CloseSession
    )
}

#[cfg(test)]
mod tests;
