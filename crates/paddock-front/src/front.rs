//! The front: all connections of one worker, between their bytes and the engine.
//!
//! The worker brings what its sockets have read, and sends what [`Front::unsent`] gives. Requests that the engine has to
//! answer are collected for it; its parcels come back through [`Host::take_mail`]. This file is the table of connections; a connection's
//! turn, in which its requests are taken, stands in `front/turn.rs`.

mod turn;

use std::net::SocketAddr;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use paddock_proto::{Id, SessionId, Zxid};
use paddock_state::{CONTACT_MAX_LEAST_MS, ClientInput, ConnId, Outbox, Parcel, contact_max_ms};

use crate::connection::Connection;
use crate::handed_bytes::HandedBytes;
use crate::host::{FrontEvent, Host, Served};
use crate::long_multis::LongMultis;
use crate::output::{LargeBuffers, SharedEvent, clear};
use crate::outstanding::FrontOutstanding;
use crate::rates::RateSettings;
use crate::short_lists::ShortLists;
use crate::{Condition, Settings};
use turn::Turn;

/// A connection for which mail has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub conn: ConnId,
    /// Input may be taken that was not before, or the connection is to be closed.
    pub has_changed: bool,
}

/// Parcels of one delivery above which a connection is flushed once for all that it got, and not once for each.
const REACHED_TURNS_MAX: usize = 256;
/// Input of a turn that may hold many requests, in bytes.
const MANY_REQUESTS_BYTES: usize = 256;
/// The longest time in milliseconds for which connections are not looked at while nothing is heard. Others may hold so much memory meanwhile that
/// those which do not move are to be closed.
const PATIENCE_MAX_MS: u64 = 500;

/// Makes one of those that are about the same connection.
fn merge(reached: &mut Vec<Reached>) {
    reached.sort_unstable_by_key(|one| one.conn);
    reached.dedup_by(|later, earlier| {
        let is_same = later.conn == earlier.conn;
        earlier.has_changed |= is_same && later.has_changed;
        is_same
    });
}

type Connections<H> = HashMap<ConnId, Box<Connection<H>>, FixedState>;

#[derive(Debug)]
pub struct Front<H: Host> {
    settings: Settings,
    conns: Connections<H>,
    /// Inputs for the engine that were not handed over yet.
    inputs: Vec<ClientInput>,
    /// Room for their bytes.
    handed: HandedBytes,
    /// Lists behind writes that need no look at the state.
    short_lists: ShortLists,
    /// Requests that the engine has to answer, those in `inputs` included.
    outstanding: FrontOutstanding,
    rates: Arc<RateSettings>,
    /// Long multis among them, and connections that wait to add theirs.
    long_multis: LongMultis,
    /// As many there were when the engine's mail came last.
    outstanding_before_mail: usize,
    /// Connections that were heard since the last report.
    heard: Vec<ConnId>,
    reached: Vec<Reached>,
    /// Buffers for the replies of turns that have many.
    buffers: LargeBuffers,
    /// Emptied mail, kept for its memory.
    mail: Outbox,
    /// Clients held much together when that was looked at last.
    is_memory_short: bool,
    /// The shortest time without contact, in milliseconds, after which a connection of a session that was ever served here is closed.
    contact_max_ms: u64,
}

impl<H: Host> Front<H> {
    pub fn new(settings: Settings) -> Front<H> {
        Front {
            outstanding: FrontOutstanding::new(&settings.limits.counters.outstanding),
            rates: settings.limits.counters.rates.get(),
            settings,
            conns: Connections::default(),
            inputs: Vec::new(),
            handed: HandedBytes::default(),
            short_lists: ShortLists::default(),
            long_multis: LongMultis::default(),
            outstanding_before_mail: 0,
            heard: Vec::new(),
            reached: Vec::new(),
            buffers: LargeBuffers::default(),
            mail: Outbox::default(),
            is_memory_short: false,
            contact_max_ms: u64::MAX,
        }
    }

    /// Takes other settings, which count from the next request on. Limits that all fronts share have to be the same ones as before.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.outstanding.follow(&self.settings.limits.counters.outstanding);
        self.rates = self.settings.limits.counters.rates.get();
    }

    /// Takes a new connection in. Its number must never have been used before.
    pub fn accept(&mut self, conn: ConnId, address: SocketAddr, stats: H::Stats) {
        self.accept_proven(conn, address, stats, &[]);
    }

    /// The same for a connection whose client has proved these identities before its first byte.
    pub fn accept_proven(&mut self, conn: ConnId, address: SocketAddr, stats: H::Stats, ids: &[Id]) {
        let connection = Connection::new(conn, address, stats, ids, &self.settings.limits);
        let former = self.conns.insert(conn, Box::new(connection));
        assert!(former.is_none(), "connection numbers are never used again");
    }

    /// The connections that have not been told to leave.
    pub fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.conns.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    pub fn len(&self) -> usize {
        self.conns.len()
    }

    /// The session that a connection serves; none for a connection that is gone.
    pub fn session(&self, conn: ConnId) -> SessionId {
        self.conns.get(&conn).map_or(SessionId::NONE, |connection| connection.session())
    }

    /// Condition of a connection; `None` if it is gone.
    pub fn condition(&self, conn: ConnId, host: &H) -> Option<Condition> {
        self.conns.get(&conn).map(|connection| connection.condition(host, &self.settings.limits))
    }

    /// Answers the four-letter word that [`Condition::word`] asks for.
    pub fn answer_word(&mut self, conn: ConnId, text: &str) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.answer_word(text);
        }
    }

    /// Requests that the engine has to answer, of all connections.
    pub fn outstanding(&self) -> usize {
        self.outstanding.now()
    }

    /// As many there were when the engine's mail came last.
    pub fn outstanding_before_mail(&self) -> usize {
        self.outstanding_before_mail
    }

    /// Inputs for the engine that were not handed over yet.
    pub fn inputs(&mut self) -> &mut Vec<ClientInput> {
        &mut self.inputs
    }

    /// Takes bytes that a client has sent at this time of the monotonic clock, and the requests in them as far as the connection
    /// takes any. Returns true if some were answered at once.
    pub fn receive(&mut self, conn: ConnId, bytes: &[u8], now_ms: u64, host: &H) -> bool {
        let Some(mut connection) = self.conns.remove(&conn) else { return false };
        let served = self.take_input(&mut connection, bytes, now_ms, host);
        if served.replies > 0 {
            host.note(FrontEvent::Served { conn: &connection.stats, served, since_ms: now_ms });
        }
        self.conns.insert(conn, connection);
        served.replies > 0
    }

    /// Takes requests that had to wait. To be called when the condition says that input is taken, and that there is some.
    pub fn resume(&mut self, conn: ConnId, now_ms: u64, host: &H) -> bool {
        self.receive(conn, &[], now_ms, host)
    }

    fn take_input(&mut self, connection: &mut Connection<H>, bytes: &[u8], now_ms: u64, host: &H) -> Served {
        if connection.close_without_contact(now_ms, host) {
            return Served { replies: 0, zxid: Zxid(0) };
        }
        let mut input = std::mem::take(&mut connection.input);
        let is_fresh = input.is_empty();
        if !is_fresh {
            input.extend_from_slice(bytes);
        }
        connection.begin_turn();
        let has_many = bytes.len() >= MANY_REQUESTS_BYTES && connection.borrow_buffer(&mut self.buffers);
        let mut turn = Turn::new(self, now_ms, host);
        let pending = if is_fresh { bytes } else { &input };
        let taken = if connection.protocol.is_compressed() {
            turn.take_blocks(connection, pending)
        } else {
            turn.take_frames(connection, pending)
        };
        let served = turn.end();
        if has_many {
            connection.give_back_buffer(&mut self.buffers);
        }
        if is_fresh {
            input.extend_from_slice(&bytes[taken..]);
        } else {
            input.drain(..taken);
        }
        if input.is_empty() {
            clear(&mut input);
        }
        connection.input = input;
        connection.count_memory(bytes.len(), &self.settings.limits);
        served
    }

    /// Puts the engine's mail into the connections' outputs. [`Front::take_reached`] tells whom it has reached.
    pub fn deliver(&mut self, host: &H) {
        self.deliver_beside(None, host);
    }

    /// Delivers while one connection is out of the table, because its requests are being taken.
    fn deliver_beside(&mut self, mut current: Option<&mut Connection<H>>, host: &H) {
        let mut mail = std::mem::take(&mut self.mail);
        if host.take_mail(&mut mail) {
            let now = host.now();
            self.outstanding_before_mail = self.outstanding.now();
            let mut shared = SharedEvent::default();
            for (conn, parcel) in mail.iter() {
                let connection = match &mut current {
                    Some(current) if current.client().conn == conn => &mut **current,
                    // A connection that has ended in the meantime needs nothing any more.
                    _ => match self.conns.get_mut(&conn) {
                        Some(connection) => &mut **connection,
                        None => continue,
                    },
                };
                if let Parcel::Connected(connected, _) = parcel {
                    self.contact_max_ms = self.contact_max_ms.min(contact_max_ms(connected.timeout_ms));
                }
                let long_bytes = connection.long_bytes();
                let is_answer = connection.deliver(parcel, &mut shared, (now, host), &self.settings);
                self.long_multis.end(long_bytes - connection.long_bytes());
                connection.count_memory(0, &self.settings.limits);
                self.outstanding.subtract(usize::from(is_answer), &self.settings.limits.counters.outstanding);
                let has_changed = connection.take_change();
                match self.reached.last_mut() {
                    Some(last) if last.conn == conn => last.has_changed |= has_changed,
                    _ => self.reached.push(Reached { conn, has_changed }),
                }
            }
            mail.clear();
        }
        self.mail = mail;
        self.admit_long_multis();
    }

    /// Lets connections go on that wait for the long multis of others, in the order in which they came.
    fn admit_long_multis(&mut self) {
        while let Some(conn) = self.long_multis.next_waiting(&self.settings.limits) {
            // A connection that is gone waits for nothing.
            let Some(connection) = self.conns.get_mut(&conn) else { continue };
            connection.end_wait_for_long_multis();
            self.reached.push(Reached { conn, has_changed: connection.take_change() });
            break;
        }
    }

    /// Moves the connections to which something has been delivered since this was called last into `reached`.
    pub fn take_reached(&mut self, reached: &mut Vec<Reached>) {
        // Events of many watchers come in turns: each connection would be flushed once for each of its events.
        if self.reached.len() > REACHED_TURNS_MAX {
            merge(&mut self.reached);
        }
        reached.append(&mut self.reached);
    }

    /// Sends what is unsent by `write`, which returns the number of bytes that it took, until all is sent or it fails.
    pub fn send<E>(
        &mut self,
        conn: ConnId,
        mut write: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let Some(connection) = self.conns.get_mut(&conn) else { return Ok(()) };
        loop {
            let unsent = connection.unsent();
            if unsent.is_empty() {
                return Ok(());
            }
            let sent = write(unsent)?;
            connection.advance(sent, &mut self.buffers, &self.settings.limits);
        }
    }

    /// The client cannot read what is unsent any more: the connection is to be closed.
    pub fn abandon(&mut self, conn: ConnId) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.abandon();
            connection.count_memory(0, &self.settings.limits);
        }
    }

    /// The connection has ended; its session lives on until its time is up.
    pub fn leave(&mut self, conn: ConnId, host: &H) {
        let Some(mut connection) = self.conns.remove(&conn) else { return };
        if self.conns.is_empty() {
            self.contact_max_ms = u64::MAX;
        }
        self.long_multis.end(connection.long_bytes());
        let unanswered = connection.give_up(host, self.settings.audit.as_deref());
        self.outstanding.subtract(unanswered, &self.settings.limits.counters.outstanding);
        connection.let_go_of_memory(&self.settings.limits);
        // The session was heard until now, whenever the next report would have been.
        if connection.is_heard && connection.session() != SessionId::NONE {
            self.inputs.push(ClientInput::Touch { session: connection.session() });
        }
        self.inputs.push(ClientInput::Disconnect { conn });
        self.admit_long_multis();
    }

    /// Tells the engine which sessions were heard since this was called last. To be called within `paddock_state::TOUCH_DELAY_MS` once
    /// [`Front::has_heard`].
    pub fn report_heard(&mut self) {
        for conn in self.heard.drain(..) {
            let Some(connection) = self.conns.get_mut(&conn) else { continue };
            connection.is_heard = false;
            if connection.session() != SessionId::NONE {
                self.inputs.push(ClientInput::Touch { session: connection.session() });
            }
        }
    }

    /// True if sessions were heard since the last report of them.
    #[inline]
    pub fn has_heard(&self) -> bool {
        !self.heard.is_empty()
    }

    /// Time in milliseconds after which connections are to be looked at as by [`Front::close_without_contact`] and
    /// [`Front::look_after_memory`], though none is heard; `None` if there are none.
    pub fn patience_ms(&self, host: &H) -> Option<u64> {
        let has_waiting = self.is_memory_short || self.long_multis.has_waiting();
        if self.conns.is_empty() {
            return None;
        }
        if has_waiting || self.settings.limits.counters.buffers.is_short() {
            return Some(0);
        }
        let silence_ms = host.monotonic_ms().saturating_sub(host.confirmed_ms());
        Some(self.contact_max_ms.saturating_sub(silence_ms).min(PATIENCE_MAX_MS))
    }

    /// Closes the connections of sessions that others may end soon without this member. To be called with
    /// [`Front::report_heard`], and when [`Front::patience_ms`] says.
    pub fn close_without_contact(&mut self, host: &H) {
        let now_ms = host.monotonic_ms();
        if now_ms.saturating_sub(host.confirmed_ms()) <= CONTACT_MAX_LEAST_MS {
            return;
        }
        for (conn, connection) in &mut self.conns {
            if connection.close_without_contact(now_ms, host) && connection.take_change() {
                self.reached.push(Reached { conn: *conn, has_changed: true });
            }
        }
    }
}

impl<H: Host> Front<H> {
    /// Closes connections that hold memory and do not move, while clients hold much together, and lets those look again that had to wait for
    /// that. To be called with [`Front::close_without_contact`].
    pub fn look_after_memory(&mut self, host: &H) {
        // A connection that was let go on may not be able to: then the next one may.
        self.admit_long_multis();
        let limits = &self.settings.limits;
        let was_short = std::mem::replace(&mut self.is_memory_short, limits.counters.buffers.is_short());
        if !was_short && !self.is_memory_short {
            return;
        }
        let now_ms = host.monotonic_ms();
        for (conn, connection) in &mut self.conns {
            connection.look_after_memory(now_ms, limits);
            if connection.take_change() {
                self.reached.push(Reached { conn: *conn, has_changed: true });
            }
        }
    }
}
