//! A worker: one thread with its own runtime that serves its share of the connections.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use paddock_cross_check::CrossCheck;
use paddock_front::{Condition, Front, Reached};
use paddock_proto::Id;
use paddock_replica::Role;
use paddock_state::ConnId;
use paddock_statistics::stats::{ConnStats, TooMany};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::flush_queue::{self, FlushQueue};
use super::group_commit::{GroupCommit, Outstanding};
use super::host::WorkerHost;
use super::tls_session::{SCRATCH_BYTES, TlsSession};
use super::wire::Wire;
use crate::clock;
use crate::engine::BORROWED_TURNS_MAX;
use crate::engines::EngineHandle;
use crate::reports::word_thread::WordThread;
use crate::server_limit::ServerLimit;
use crate::shared::Shared;

/// After this time in milliseconds without another one, a connection is taken to be the only one that wants something.
const ALONE_MS: u64 = 20;

/// Requests between two reports of sessions that may have grown what clients hold in memory.
const MANY_REQUESTS: u32 = 100;

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) number: usize,
    host: WorkerHost,
    engine: EngineHandle,
    words: WordThread,
    front: RefCell<Front<WorkerHost>>,
    /// Number of changes of the settings that the front has seen.
    settings_changes: Cell<u64>,
    wires: RefCell<HashMap<ConnId, Rc<Wire>>>,
    next_conn: Cell<u64>,
    /// All connections read into this.
    pub(super) scratch: RefCell<Box<[u8]>>,
    /// Kept for its memory.
    reached: RefCell<Vec<Reached>>,
    /// The connection that asked for something last, and since when no other one has, in milliseconds.
    talker: Cell<Option<(ConnId, u64)>>,
    /// No other one has for some time.
    is_one_alone: Cell<bool>,
    pub(super) group_commit: GroupCommit,
    pub(super) flush_queue: FlushQueue,
    /// Sessions were heard since the last report of them.
    has_heard: Cell<bool>,
    heard: Notify,
    /// Held by the connection that has a turn which may take long. The others of that kind queue, so that other ready connections wait for one
    /// of them, and not for all.
    pub(super) heavy_turn: tokio::sync::Mutex<()>,
}

/// A connection that is counted and not opened yet.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) conn: ConnId,
    pub(super) address: SocketAddr,
    stats: Arc<ConnStats>,
    pub(super) socket: TcpStream,
}

impl Worker {
    pub(super) fn new(number: usize, shared: Arc<Shared>, engine: EngineHandle, words: WordThread) -> Worker {
        Worker {
            number,
            settings_changes: Cell::new(shared.live.changes()),
            front: RefCell::new(Front::new(shared.of_front())),
            host: WorkerHost::new(shared, number),
            engine,
            words,
            wires: RefCell::default(),
            next_conn: Cell::new(1),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into()),
            reached: RefCell::default(),
            talker: Cell::default(),
            is_one_alone: Cell::default(),
            group_commit: GroupCommit::default(),
            flush_queue: FlushQueue::default(),
            has_heard: Cell::default(),
            heard: Notify::new(),
            heavy_turn: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.host.shared
    }

    /// Gives the front other settings, if they have changed.
    pub(super) fn renew_settings(&self) {
        let changes = self.shared().live.changes();
        if self.settings_changes.replace(changes) != changes {
            self.front.borrow_mut().set_settings(self.shared().of_front());
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.wires.borrow().len()
    }

    /// Counts a new connection; `None` if there are too many. It is to be opened, or let go by `dismiss`.
    pub(super) fn admit(&self, socket: std::net::TcpStream) -> io::Result<Option<Admitted>> {
        let address: SocketAddr = socket.peer_addr()?;
        let number = self.next_conn.replace(self.next_conn.get() + 1);
        let conn = ConnId::new(self.number, number);
        let stats = Arc::new(ConnStats::new(address, clock::wall_ms()));
        let shared = self.shared();
        let settings = shared.settings();
        let (of_address_max, max) = (settings.connections_per_address_max, settings.connections_max);
        let admitted = shared.statistics.clients.admit(conn, stats.clone(), of_address_max, max);
        if let Err(reason) = admitted {
            let limit = match reason {
                TooMany::FromAddress => ServerLimit::ConnectionsOfAddress,
                TooMany::InAll => ServerLimit::Connections,
            };
            self.shared().hit(limit, address, &"");
            return Ok(None);
        }
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Some(Admitted { conn, address, stats, socket: TcpStream::from_std(socket)? }))
    }

    /// Lets a connection go that was never opened.
    pub(super) fn dismiss(&self, conn: ConnId) {
        self.shared().statistics.clients.leave(conn);
    }

    /// Takes an admitted connection in. With TLS, its client has proved the identities `ids`.
    pub(super) fn open(&self, admitted: Admitted, tls: Option<TlsSession>, ids: &[Id]) -> Rc<Wire> {
        let Admitted { conn, address, stats, socket } = admitted;
        stats.is_secure.store(tls.is_some(), Ordering::Relaxed);
        if tls.as_ref().is_none_or(|session| session.certificate().is_none()) {
            let events = &self.shared().statistics.server_metrics;
            let is_local = address.ip().to_canonical().is_loopback();
            let unproven = if is_local { &events.unproven_local } else { &events.unproven_remote };
            unproven.fetch_add(1, Ordering::Relaxed);
        }
        let wire = Rc::new(Wire::new(conn, socket, tls));
        self.wires.borrow_mut().insert(conn, wire.clone());
        self.shared().memory_pace.stir();
        if let Some(check) = self.cross_check() {
            check.opened(conn);
        }
        self.front.borrow_mut().accept_proven(conn, address, stats, ids);
        wire
    }

    fn cross_check(&self) -> Option<&CrossCheck> {
        self.shared().opened.cross_check.as_ref()
    }

    /// The connection has ended.
    pub(super) fn leave(&self, conn: ConnId) {
        self.wires.borrow_mut().remove(&conn);
        self.shared().memory_pace.stir();
        if let Some(check) = self.cross_check() {
            check.closed(conn);
        }
        self.front.borrow_mut().leave(conn, &self.host);
        self.shared().statistics.clients.leave(conn);
        self.hand_over();
        if self.shared().life.is_stopping() {
            self.shared().mailboxes.of(self.number).wake();
        }
    }

    pub(super) fn condition(&self, wire: &Wire) -> Option<Condition> {
        self.front.borrow().condition(wire.conn, &self.host)
    }

    /// A connection has its turn: the requests in what has come are taken.
    pub(super) fn receive(&self, wire: &Wire, bytes: &[u8]) {
        let now_ms = self.host.begin_turn();
        self.host.times().received(bytes.len());
        if let Some(check) = self.cross_check() {
            check.received(wire.conn, bytes);
        }
        let has_read = self.front.borrow_mut().receive(wire.conn, bytes, now_ms, &self.host);
        self.flush_reached();
        if !self.has_heard.get() && self.front.borrow().has_heard() {
            self.has_heard.set(true);
            self.heard.notify_one();
        }
        self.end_turn(wire.conn, now_ms, has_read);
    }

    /// Returns when a session was heard that is to be reported.
    pub(super) async fn heard(&self) {
        self.heard.notified().await;
    }

    /// Time after which connections are to be looked at, though none was heard; `None` if there are none.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.front.borrow().patience_ms(&self.host).map(Duration::from_millis)
    }

    /// Answers a four-letter word that takes long.
    pub(super) async fn answer_word(&self, wire: &Wire, word: [u8; 4]) {
        let text = self.words.ask(word).await;
        self.front.borrow_mut().answer_word(wire.conn, &text);
    }

    /// The engine gets what is for it, now or together with what others are about to ask. If no other connection is there, this thread
    /// need not be kept free for them while the engine works. The turn began at `now_ms`.
    fn end_turn(&self, conn: ConnId, now_ms: u64, has_read: bool) {
        let since_ms = match self.talker.get() {
            Some((talker, since_ms)) if talker == conn => since_ms,
            _ => now_ms,
        };
        self.talker.set(Some((conn, since_ms)));
        self.is_one_alone.set(now_ms - since_ms >= ALONE_MS);
        if self.is_one_alone.get() {
            return self.work_off();
        }
        if has_read {
            self.group_commit.has_read(now_ms);
        }
        let is_worthwhile = self.group_commit.is_worthwhile(now_ms, self.outstanding());
        if is_worthwhile && self.shared().engine.role() == Role::Alone {
            self.group_commit.begin();
        } else {
            self.hand_over();
        }
    }

    pub(super) fn outstanding(&self) -> Outstanding {
        let front = self.front.borrow();
        Outstanding { now: front.outstanding(), before: front.outstanding_before_mail() }
    }

    /// Inputs that were not handed over yet.
    pub(super) fn gathered(&self) -> usize {
        self.front.borrow_mut().inputs().len()
    }

    /// Lets the engine do on this thread what is for it, if it can.
    pub(super) fn work_off(&self) {
        let mut inputs = std::mem::take(self.front.borrow_mut().inputs());
        if self.is_one_alone.get() {
            self.engine.work_off(&mut inputs, BORROWED_TURNS_MAX, || self.deliver());
        } else {
            self.engine.work_off(&mut inputs, 1, || {});
        }
        let mut front = self.front.borrow_mut();
        if front.inputs().is_empty() {
            // There is room in it for as many again.
            *front.inputs() = inputs;
        }
        drop(front);
        self.deliver();
    }

    pub(super) fn hand_over(&self) {
        self.engine.hand_over(self.front.borrow_mut().inputs());
    }

    /// Tells the engine which sessions were heard, and closes the connections of those that others may end soon without this
    /// member, and of clients that do not read while little memory is left for others.
    pub(super) fn report_heard(&self) {
        if self.host.begin_samples() >= MANY_REQUESTS {
            self.shared().memory_pace.stir();
        }
        self.has_heard.set(false);
        self.front.borrow_mut().report_heard();
        self.hand_over();
        self.front.borrow_mut().close_without_contact(&self.host);
        self.front.borrow_mut().look_after_memory(&self.host);
        self.flush_reached();
    }

    /// Puts the mail into the connections' outputs and sends it.
    pub(super) fn deliver(&self) {
        self.front.borrow_mut().deliver(&self.host);
        self.flush_reached();
    }

    fn flush_reached(&self) {
        let mut reached = self.reached.take();
        self.front.borrow_mut().take_reached(&mut reached);
        for Reached { conn, has_changed } in reached.drain(..) {
            let Some(wire) = self.wires.borrow().get(&conn).cloned() else { continue };
            if !wire.flush(&mut self.front.borrow_mut(), self.cross_check()) || has_changed {
                wire.wake();
            }
        }
        *self.reached.borrow_mut() = reached;
    }

    /// Sends the replies that a connection's turn has made: together with others, or at once if no other connection is there.
    pub(super) fn send_soon(&self, wire: &Rc<Wire>) {
        let Some(condition) = self.condition(wire) else { return };
        let at_once = self.is_one_alone.get()
            || condition.is_closing
            || self.shared().life.is_stopping()
            || condition.unsent_bytes >= flush_queue::BYTES_MAX;
        if at_once {
            wire.flush(&mut self.front.borrow_mut(), self.cross_check());
        } else if self.flush_queue.add(wire) {
            self.flush_waiting();
        }
    }

    pub(super) fn flush_waiting(&self) {
        let wires = self.flush_queue.take();
        for wire in &wires {
            let is_flushed = wire.flush(&mut self.front.borrow_mut(), self.cross_check());
            let is_closing = self.condition(wire).is_none_or(|condition| condition.is_closing);
            // The task has to wait for a socket that does not take all, and to end a connection that has sent all.
            if !is_flushed || is_closing || self.shared().life.is_stopping() {
                wire.wake();
            }
        }
        self.flush_queue.give_back(wires);
    }

    pub(super) fn wake_all(&self) {
        self.wires.borrow().values().for_each(|wire| wire.wake());
    }
}
