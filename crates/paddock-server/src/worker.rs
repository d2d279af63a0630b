//! A worker: one thread with its own runtime that serves its share of the connections.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use paddock_member::Clock as _;
use paddock_proto::SessionId;
use paddock_replica::{Input, Replicated, Role};
use paddock_state::{CONTACT_MAX_LEAST_MS, ClientInput, ConnId, Outbox, TOUCH_DELAY_MS};
use parking_lot::RwLockReadGuard;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;

use crate::clock;
use crate::engine::BORROWED_TURNS_MAX;
use crate::gather::{Gathering, gather};
use crate::outgoing::{Outgoing, send_together};
use crate::shared::Shared;
use crate::stats::ConnStats;
use crate::wire::{self, Wire};

const SCRATCH_BYTES: usize = 64 << 10;
/// After this time without another a connection is taken to be the only one that wants something.
const ALONE_MS: u64 = 20;
/// How often sessions that were heard are reported; well within what expiry allows for.
const TOUCH_INTERVAL: Duration = Duration::from_millis(TOUCH_DELAY_MS / 2);

/// How long clients may take to read their last answers when the member stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    number: usize,
    wires: RefCell<HashMap<ConnId, Rc<Wire>>>,
    next_conn: Cell<u64>,
    /// What is to be handed to the engine at the end of this turn.
    pub(crate) inputs: RefCell<Vec<Input>>,
    /// All connections read into this.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    /// Emptied mail, kept for its memory.
    mail: RefCell<Outbox>,
    touched: RefCell<Vec<ConnId>>,
    /// The connection that asked for something last, and since when no other one has.
    talker: Cell<Option<(ConnId, u64)>>,
    /// Whether no other one has for some time.
    is_one_alone: Cell<bool>,
    pub(crate) gathering: Gathering,
    pub(crate) outgoing: Outgoing,
}

/// Runs a worker until the member stops and its last connection has ended.
pub(crate) fn run(number: usize, shared: Arc<Shared>, sockets: UnboundedReceiver<std::net::TcpStream>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system gives a worker its event queue");
    let worker = Rc::new(Worker {
        shared,
        number,
        wires: RefCell::default(),
        next_conn: Cell::new(1),
        inputs: RefCell::default(),
        scratch: RefCell::new(vec![0; SCRATCH_BYTES].into()),
        mail: RefCell::default(),
        touched: RefCell::default(),
        talker: Cell::default(),
        is_one_alone: Cell::default(),
        gathering: Gathering::default(),
        outgoing: Outgoing::default(),
    });
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        tokio::task::spawn_local(report_touches(worker.clone()));
        tokio::task::spawn_local(gather(worker.clone()));
        tokio::task::spawn_local(send_together(worker.clone()));
        tokio::task::spawn_local(accept(worker.clone(), sockets));
        deliver_mail(&worker).await;
    });
}

/// Takes new connections in.
async fn accept(worker: Rc<Worker>, mut sockets: UnboundedReceiver<std::net::TcpStream>) {
    while let Some(socket) = sockets.recv().await {
        if let Err(error) = worker.clone().admit(socket) {
            tracing::warn!(%error, "connection not taken");
        }
    }
}

/// Delivers what the engine sends. When the member stops, goes on until nobody is left who waits for an answer.
async fn deliver_mail(worker: &Rc<Worker>) {
    while !worker.shared.is_stopping() {
        worker.shared.mailbox(worker.number).woken().await;
        worker.deliver();
    }
    let drained = async {
        while !worker.wires.borrow().is_empty() {
            worker.wires.borrow().values().for_each(|wire| wire.nudge());
            worker.shared.mailbox(worker.number).woken().await;
            worker.deliver();
        }
    };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        tracing::warn!(connections = worker.wires.borrow().len(), "cut off: they do not read their answers");
    }
}

/// Reports which sessions were heard, and closes the connections of those that others may end soon without this member.
async fn report_touches(worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(TOUCH_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let touched = std::mem::take(&mut *worker.touched.borrow_mut());
        for conn in touched {
            let Some(wire) = worker.wires.borrow().get(&conn).cloned() else { continue };
            wire.touched.set(false);
            if wire.session() != SessionId::NONE {
                worker
                    .inputs
                    .borrow_mut()
                    .push(Input::Client(ClientInput::Touch { session: wire.session() }));
            }
        }
        worker.hand_over();
        worker.close_without_contact();
    }
}

impl Worker {
    fn close_without_contact(&self) {
        let now_ms = self.now_ms();
        if self.shared.silence_ms(now_ms, 0) > CONTACT_MAX_LEAST_MS {
            self.wires.borrow().values().for_each(|wire| {
                wire.close_without_contact(self, now_ms);
            });
        }
    }

    fn admit(self: Rc<Worker>, socket: std::net::TcpStream) -> io::Result<()> {
        let address: SocketAddr = socket.peer_addr()?;
        let number = self.next_conn.replace(self.next_conn.get() + 1);
        let conn = ConnId::new(self.number, number);
        let stats = Arc::new(ConnStats::new(address, clock::wall_ms()));
        let config = &self.shared.config;
        let admitted = self.shared.stats.admit(
            conn,
            stats.clone(),
            config.connections_per_address_max,
            config.connections_max,
        );
        if let Err(reason) = admitted {
            tracing::warn!(client = %address, ?reason, "too many connections");
            return Ok(());
        }
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let wire = Rc::new(Wire::new(conn, TcpStream::from_std(socket)?, stats));
        self.wires.borrow_mut().insert(conn, wire.clone());
        tokio::task::spawn_local(async move {
            wire::serve(wire, self.clone()).await;
            self.leave(conn);
        });
        Ok(())
    }

    /// The connection has ended; its session lives on until its time is up.
    fn leave(&self, conn: ConnId) {
        let wire = self.wires.borrow_mut().remove(&conn);
        if let Some(wire) = &wire {
            wire.give_up(self);
        }
        self.shared.stats.leave(conn);
        // It was heard until now, whenever the next report would have been.
        if let Some(wire) = wire.filter(|wire| wire.touched.get() && wire.session() != SessionId::NONE) {
            self.inputs.borrow_mut().push(Input::Client(ClientInput::Touch { session: wire.session() }));
        }
        self.inputs.borrow_mut().push(Input::Client(ClientInput::Disconnect { conn }));
        self.hand_over();
        if self.shared.is_stopping() {
            self.shared.mailbox(self.number).wake();
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.clock.monotonic_ms()
    }

    pub(crate) fn touch(&self, conn: ConnId) {
        self.touched.borrow_mut().push(conn);
    }

    /// A connection has had its turn, which began at `now_ms`: the engine gets what is for it, now or together with what others
    /// are about to ask. If nobody else is there, this thread need not be kept free for them while the engine works.
    pub(crate) fn end_turn(&self, conn: ConnId, now_ms: u64, has_read: bool) {
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
            self.gathering.has_read(now_ms);
        }
        if self.gathering.is_worthwhile(now_ms) && self.shared.role() == Role::Alone {
            self.gathering.begin();
        } else {
            self.hand_over();
        }
    }

    /// Lets the engine do on this thread what is for it, if it can.
    pub(crate) fn work_off(&self) {
        let mut inputs = std::mem::take(&mut *self.inputs.borrow_mut());
        match self.is_one_alone.get() {
            true => self.shared.engine.work_off(&mut inputs, BORROWED_TURNS_MAX, || self.deliver()),
            false => self.shared.engine.work_off(&mut inputs, 1, || {}),
        }
        self.deliver();
    }

    /// Sends the replies that a connection's turn has made.
    pub(crate) fn send_soon(&self, wire: &Rc<Wire>) {
        let at_once = self.is_one_alone.get() || wire.is_closing() || self.shared.is_stopping();
        self.outgoing.add(wire, self, at_once);
    }

    pub(crate) fn hand_over(&self) {
        self.shared.engine.hand_over(&mut self.inputs.borrow_mut());
    }

    /// Locks the state for reading, after which the events of all that it shows have been put into their
    /// connections' buffers: a client never reads what it has not been told of.
    pub(crate) fn lock_state(&self) -> RwLockReadGuard<'_, Replicated> {
        let state = self.shared.state.read();
        self.deliver();
        state
    }

    /// Puts the mail into the connections' buffers and sends it.
    pub(crate) fn deliver(&self) {
        let mut mail = std::mem::take(&mut *self.mail.borrow_mut());
        if self.shared.mailbox(self.number).take(&mut mail) {
            self.gathering.before_answers();
            let now = self.shared.clock.now();
            let mut reached: Vec<Rc<Wire>> = Vec::new();
            for (conn, parcel) in mail.iter() {
                // A connection that has ended in the meantime needs nothing any more.
                let Some(wire) = self.wires.borrow().get(&conn).cloned() else { continue };
                wire.deliver(parcel, self, now);
                if reached.last().is_none_or(|last| last.conn != conn) {
                    reached.push(wire);
                }
            }
            for wire in reached {
                if !wire.flush() {
                    wire.nudge();
                }
            }
            mail.clear();
        }
        *self.mail.borrow_mut() = mail;
    }
}
