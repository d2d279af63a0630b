//! One connection's socket: bytes to frames, steps to replies, and what the engine sends to the client.
//!
//! The task of the connection reads and parses. Replies are appended to `out` by whoever makes them, in the order
//! in which the client must see them, and written at once as far as the socket takes them.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paddock_proto::{ConnectResponse, SessionId, Zxid};
use paddock_state::{CONTACT_MAX_LEAST_MS, Client, ConnId, Now, Parcel, contact_max_ms};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::clickhouse::Packet;
use crate::connection::Connection;
use crate::socket;
use crate::spans::{Ending, Span};
use crate::stats::ConnStats;
use crate::turn::take_input;
use crate::worker::Worker;

/// A connection that has so much unanswered or unsent is not read from until there is less.
const WAITING_MAX: usize = 16 << 10;
const OUT_BYTES_MAX: usize = 16 << 20;
/// What the first reply is taken to be.
const REPLY_BYTES_FIRST: usize = 1 << 20;
/// A connection that leaves so many bytes unread is closed at the next event: events come whether it reads or not.
const EVENT_BYTES_MAX: usize = 64 << 20;
/// Buffers that grew beyond this are let go when they are empty.
pub(crate) const BUFFER_BYTES_KEPT: usize = 16 << 10;
/// A stranger who does not greet is sent away after this time.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client whose connection is to be closed may take to read what is left,
const CLOSING_TIMEOUT: Duration = Duration::from_secs(10);
/// and then to close its side.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Wakes one task of the same thread.
#[derive(Debug, Default)]
struct Nudge {
    is_given: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl Nudge {
    fn give(&self) {
        self.is_given.set(true);
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }

    /// Whether it was given since it was asked last. If not, the task is woken when it is.
    fn poll(&self, context: &Context<'_>) -> bool {
        let is_given = self.is_given.take();
        let mut waiting = self.waiting.borrow_mut();
        if !is_given && !waiting.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waiting = Some(context.waker().clone());
        }
        is_given
    }
}

/// A request that the engine has to answer.
#[derive(Debug)]
struct Waiting {
    /// When it was handed over.
    since_ms: u64,
    /// If it is traced.
    span: Option<Box<Span>>,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) conn: ConnId,
    socket: TcpStream,
    pub(crate) machine: RefCell<Connection>,
    pub(crate) out: RefCell<Vec<u8>>,
    /// What goes to the socket in the place of `out` where the client wants it compressed.
    packed: RefCell<Vec<u8>>,
    /// How much of `out`, or of `packed`, the socket has taken.
    sent: Cell<usize>,
    /// The requests that the engine has to answer.
    waiting: RefCell<VecDeque<Waiting>>,
    /// How large the next reply may be, by those before it. A connection begins with few requests under way, so that
    /// an unknown client cannot make the member hold gigabytes for it.
    reply_bytes_expected: Cell<usize>,
    /// To be closed once `out` is empty.
    closing: Cell<bool>,
    /// No packet more is sent, but for the rest of those that lie in `out`, if that was not dropped.
    is_abandoned: Cell<bool>,
    /// The worker is about to flush it, with others.
    pub(crate) is_outgoing: Cell<bool>,
    /// Heard since its session was last reported alive.
    pub(crate) touched: Cell<bool>,
    /// When the client asked for its session, in milliseconds; the end of time for a connection without one, or with one that
    /// only reads, which no other member can end.
    session_since_ms: Cell<u64>,
    /// Tells the task that there is something to do.
    changed: Nudge,
    pub(crate) stats: Arc<ConnStats>,
}

impl Wire {
    pub(crate) fn new(conn: ConnId, socket: TcpStream, stats: Arc<ConnStats>) -> Wire {
        let machine = Connection::new(conn, stats.address().ip());
        Wire {
            conn,
            socket,
            machine: RefCell::new(machine),
            out: RefCell::default(),
            packed: RefCell::default(),
            sent: Cell::new(0),
            waiting: RefCell::default(),
            reply_bytes_expected: Cell::new(REPLY_BYTES_FIRST),
            closing: Cell::new(false),
            is_abandoned: Cell::new(false),
            is_outgoing: Cell::new(false),
            touched: Cell::new(false),
            session_since_ms: Cell::new(u64::MAX),
            changed: Nudge::default(),
            stats,
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.machine.borrow().client().session
    }

    pub(crate) fn client(&self) -> Client {
        self.machine.borrow().client().clone()
    }

    /// Takes what the engine sends, now. `flush` has to follow.
    pub(crate) fn deliver(&self, parcel: Parcel<'_>, worker: &Worker, now: Now) {
        if let (Parcel::Connected { timeout_ms, read_only: false, .. }, Some(waiting)) =
            (parcel, self.waiting.borrow().front())
        {
            self.stats.timeout_ms.store(timeout_ms, Relaxed);
            self.session_since_ms.set(waiting.since_ms);
        }
        if self.is_abandoned.get() || self.close_without_contact(worker, now.monotonic_ms) {
            return;
        }
        match parcel {
            Parcel::Reply(bytes) => {
                let is_farewell =
                    self.waiting.borrow().len() == 1 && self.machine.borrow().wants_no_farewell();
                if !is_farewell {
                    self.send(Packet::Reply, bytes);
                }
                self.answered(bytes, worker, now);
            }
            Parcel::Event(bytes) => {
                if self.unsent() > EVENT_BYTES_MAX {
                    tracing::warn!(client = %self.stats.address(), "connection closed: it does not read its events");
                    return self.abandon();
                }
                self.send(Packet::Unasked, bytes);
                self.stats.sent.fetch_add(1, Relaxed);
                worker.shared.stats.sent.fetch_add(1, Relaxed);
            }
            Parcel::Connected { session, timeout_ms, read_only } => {
                let response = self.machine.borrow_mut().on_connected(session, timeout_ms, read_only);
                self.stats.set_session(session, timeout_ms);
                self.greet(response, worker, now);
            }
            Parcel::Expired => {
                let response = self.machine.borrow_mut().on_expired();
                self.greet(response, worker, now);
                self.close();
            }
            Parcel::Close => {
                if let Some(response) = self.machine.borrow().on_turned_away() {
                    self.send_greeting(&response);
                }
                // What was asked before may never be answered: an answer behind that would look like the missing one.
                self.is_abandoned.set(true);
                self.close();
            }
        }
    }

    /// In the client's form.
    fn send(&self, packet: Packet, frames: &[u8]) {
        let mut out = self.out.borrow_mut();
        let before = out.len();
        out.extend_from_slice(frames);
        self.machine.borrow_mut().translate(packet, &mut out, before);
    }

    /// The first packet, which is never compressed.
    pub(crate) fn send_greeting(&self, response: &ConnectResponse) {
        let is_compressed = self.machine.borrow().is_compressed();
        response.encode(&mut if is_compressed { &self.packed } else { &self.out }.borrow_mut());
    }

    /// A request has been handed to the engine, which will answer it.
    pub(crate) fn wait_for_engine(&self, since_ms: u64, span: Option<Box<Span>>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back(Waiting { since_ms, span });
        self.stats.waiting.store(waiting.len() as u32, Relaxed);
    }

    /// The connection has ended: what waits will not be answered.
    pub(crate) fn give_up(&self, worker: &Worker) {
        for waiting in self.waiting.take() {
            worker.gathering.answered();
            worker.shared.end_span(waiting.span, || Ending::Unanswered);
        }
    }

    /// Whether all that was handed to the engine has been answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    fn greet(&self, response: ConnectResponse, worker: &Worker, now: Now) {
        self.send_greeting(&response);
        self.answered(&[], worker, now);
        self.changed.give();
    }

    /// The oldest request with the engine has been answered.
    fn answered(&self, reply: &[u8], worker: &Worker, now: Now) {
        worker.gathering.answered();
        let mut waiting = self.waiting.borrow_mut();
        let Waiting { since_ms, span } = waiting.pop_front().expect("the engine answers each request once");
        worker.shared.end_span(span, || Ending::of_reply(reply));
        self.stats.waiting.store(waiting.len() as u32, Relaxed);
        let was_full = waiting.len() + 1 >= self.waiting_max();
        self.expect_replies_like(reply.len());
        let half_full = waiting.len() == self.waiting_max() / 2;
        if half_full || was_full || waiting.is_empty() && worker.shared.is_stopping() {
            self.changed.give();
        }
        let zxid = reply.get(8..16).map_or(0, |b| i64::from_be_bytes(b.try_into().expect("eight bytes")));
        let latency_ms = now.monotonic_ms.saturating_sub(since_ms);
        self.stats.answered(Zxid(zxid), now.wall_ms, latency_ms, 1);
        worker.shared.stats.latency.record(latency_ms, 1);
        worker.shared.stats.replies.record(reply.len());
        worker.shared.stats.sent.fetch_add(1, Relaxed);
    }

    /// Closes the connection if the member has had no contact to a quorum for so long that others may end the session soon:
    /// the client must not be told any more that it has one.
    pub(crate) fn close_without_contact(&self, worker: &Worker, now_ms: u64) -> bool {
        let silence_ms = worker.shared.silence_ms(now_ms, self.session_since_ms.get());
        if silence_ms <= CONTACT_MAX_LEAST_MS {
            return false;
        }
        let timeout_ms = self.stats.timeout_ms.load(Relaxed);
        let is_over = silence_ms > contact_max_ms(timeout_ms);
        if is_over && !self.is_abandoned.get() {
            worker.shared.note_lost_contact(silence_ms, timeout_ms);
            self.abandon();
        }
        is_over
    }

    /// Closes without sending what is left.
    fn abandon(&self) {
        self.is_abandoned.set(true);
        self.out.take();
        self.packed.take();
        self.sent.set(0);
        self.close();
    }

    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.changed.give();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Lets the task look again at what there is to do.
    pub(crate) fn nudge(&self) {
        self.changed.give();
    }

    /// Writes what the socket takes. False if it does not take all: then the task has to wait until it does.
    pub(crate) fn flush(&self) -> bool {
        let mut out = match self.machine.borrow().is_compressed() {
            false => self.out.borrow_mut(),
            true => self.pack(),
        };
        while self.sent.get() < out.len() {
            match self.socket.try_write(&out[self.sent.get()..]) {
                Ok(n) => self.sent.set(self.sent.get() + n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    // Nobody is there to read it.
                    drop(out);
                    self.abandon();
                    return true;
                }
            }
        }
        out.clear();
        self.sent.set(0);
        out.shrink_to(BUFFER_BYTES_KEPT);
        true
    }

    /// What is to be sent, compressed.
    fn pack(&self) -> RefMut<'_, Vec<u8>> {
        let (mut out, mut packed) = (self.out.borrow_mut(), self.packed.borrow_mut());
        paddock_proto::blocks::pack(&out, &mut packed);
        out.clear();
        out.shrink_to(BUFFER_BYTES_KEPT);
        packed
    }

    /// Whether there is something to send, and the worker is not about to do it.
    fn has_to_send(&self) -> bool {
        self.unsent() > 0 && !self.is_outgoing.get()
    }

    pub(crate) fn unsent(&self) -> usize {
        self.out.borrow().len() + self.packed.borrow().len() - self.sent.get()
    }

    /// Whether requests are read now.
    pub(crate) fn takes_requests(&self, worker: &Worker) -> bool {
        self.machine.borrow().takes_frames()
            && !self.closing.get()
            && !worker.shared.is_stopping()
            && self.waiting.borrow().len() < self.waiting_max()
            && self.unsent() < OUT_BYTES_MAX
    }

    /// How many requests may be under way, so that their replies have room.
    fn waiting_max(&self) -> usize {
        (OUT_BYTES_MAX / self.reply_bytes_expected.get()).clamp(1, WAITING_MAX)
    }

    /// A large reply counts at once, small ones little by little.
    fn expect_replies_like(&self, bytes: usize) {
        let expected = self.reply_bytes_expected.get();
        self.reply_bytes_expected.set((expected - expected / 8).max(bytes).max(1));
    }

    /// Whether the member's end is this connection's end: all its requests are answered.
    fn is_drained(&self, worker: &Worker) -> bool {
        worker.shared.is_stopping() && self.is_idle()
    }
}

/// What has come and is not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// As the socket gave it.
    pub(crate) bytes: Vec<u8>,
    /// What was in compressed blocks.
    pub(crate) unpacked: Vec<u8>,
}

impl Input {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.unpacked.is_empty()
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(wire: Rc<Wire>, worker: Rc<Worker>) {
    let mut input = Input::default();
    let greeted_until = Instant::now() + GREETING_TIMEOUT;
    let mut gone_by = None;
    loop {
        if wire.takes_requests(&worker) && !input.is_empty() {
            take_input(&wire, &worker, &mut input);
        }
        if wire.has_to_send() {
            worker.send_soon(&wire);
        }
        if (wire.closing.get() || wire.is_drained(&worker)) && wire.unsent() == 0 {
            // Else each connection would take the room for its farewell from the first byte on.
            return Box::pin(say_farewell(&wire.socket)).await;
        }
        if wire.closing.get() {
            gone_by.get_or_insert_with(|| Instant::now() + CLOSING_TIMEOUT);
        }
        let deadline = if wire.machine.borrow().is_greeting() { Some(greeted_until) } else { gone_by };
        let Some(ready) = next_readiness(&wire, &worker, deadline).await else { return };
        if ready && wire.takes_requests(&worker) && !receive(&wire, &worker, &mut input) {
            return;
        }
    }
}

/// Waits until the socket or the engine has something for us. True if there are bytes to read; `None` if the
/// deadline has passed, for a greeting or for reading the last bytes, or the socket is broken.
async fn next_readiness(wire: &Wire, worker: &Worker, deadline: Option<Instant>) -> Option<bool> {
    let (reads, writes) = (wire.takes_requests(worker), wire.has_to_send());
    let readiness = poll_fn(|context| {
        if wire.changed.poll(context) {
            return Poll::Ready(Some(false));
        }
        if reads && let Poll::Ready(ready) = wire.socket.poll_read_ready(context) {
            return Poll::Ready(ready.ok().map(|()| true));
        }
        if writes && let Poll::Ready(ready) = wire.socket.poll_write_ready(context) {
            return Poll::Ready(ready.ok().map(|()| false));
        }
        Poll::Pending
    });
    match deadline {
        None => readiness.await,
        // Few have one, and all tasks would have the room for it.
        Some(deadline) => Box::pin(timeout_at(deadline, readiness)).await.ok().flatten(),
    }
}

/// Reads what has come and takes the frames in it. False when the client is gone.
fn receive(wire: &Wire, worker: &Rc<Worker>, input: &mut Input) -> bool {
    let mut scratch = worker.scratch.borrow_mut();
    match socket::try_read(&wire.socket, &mut scratch) {
        Ok(0) => false,
        Ok(n) => {
            input.bytes.extend_from_slice(&scratch[..n]);
            drop(scratch);
            take_input(wire, worker, input);
            true
        }
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Ends a connection so that the client gets all that was sent: a socket closed with bytes unread would take them
/// back.
async fn say_farewell(socket: &TcpStream) {
    let _ = socket2::SockRef::from(socket).shutdown(std::net::Shutdown::Write);
    let drained = async {
        let mut rest = [0; 1024];
        loop {
            match socket.try_read(&mut rest) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if socket.readable().await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    };
    let _ = tokio::time::timeout(FAREWELL_TIMEOUT, drained).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nudge_is_taken_once_and_wakes_who_waits() {
        struct Woken(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Woken>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let woken = Arc::new(Woken(0.into()));
        let waker = Waker::from(woken.clone());
        let context = Context::from_waker(&waker);
        let nudge = Nudge::default();
        nudge.give();
        assert!(nudge.poll(&context), "it was given before anybody waited");
        assert!(!nudge.poll(&context));
        nudge.give();
        nudge.give();
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(nudge.poll(&context));
        assert!(!nudge.poll(&context));
    }

    fn size_of_task<F>(_: fn(Rc<Wire>, Rc<Worker>) -> F) -> usize {
        size_of::<F>()
    }

    /// Most connections are idle, and there may be very many: what each takes is a decision, not an accident.
    #[test]
    fn an_idle_connection_is_small() {
        let task = size_of_task(serve);
        assert!(task <= 200, "the task of a connection has {task} bytes");
        assert!(size_of::<Wire>() <= 320, "a wire has {} bytes", size_of::<Wire>());
        // With the two counters of an Arc it is as large as a size that allocators have.
        assert!(size_of::<ConnStats>() <= 112, "what is known of one has {} bytes", size_of::<ConnStats>());
    }
}
