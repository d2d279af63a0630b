//! A connection's turn: the frames that came together, taken one by one.
//!
//! Their reads share one lock of the state, their writes one message to the engine.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_proto::{ConnectResponse, ErrorCode, OpCode, ReplyHeader, Xid, Zxid, blocks, frame};
use paddock_replica::{Input, Replicated, Role};
use paddock_state::{ClientInput, QueuedRead, State};
use paddock_tree::{Guess, Guesses};
use parking_lot::RwLockReadGuard;

use crate::clickhouse::Packet;
use crate::connection::{Context, Refusal, Step};
use crate::spans::{Ending, Span, TraceContext};
use crate::wire::{BUFFER_BYTES_KEPT, Input as Received, Wire};
use crate::worker::Worker;
use crate::{ahead, clock, words};

/// So many requests are answered from the state before a writer gets its turn.
const READS_PER_LOCK: usize = 256;

/// Takes the whole frames at the front of what came, as far as the connection takes any.
pub(crate) fn take_input(wire: &Wire, worker: &Rc<Worker>, input: &mut Received) {
    if wire.close_without_contact(worker, worker.now_ms()) {
        return;
    }
    if !wire.machine.borrow().is_compressed() {
        return take_frames(wire, worker, &mut input.bytes);
    }
    let mut taken = 0;
    loop {
        take_frames(wire, worker, &mut input.unpacked);
        if !wire.takes_requests(worker) {
            break;
        }
        match blocks::unpack(&input.bytes[taken..], &mut input.unpacked) {
            Ok(Some(len)) => taken += len,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(client = %wire.stats.address(), %error, "connection closed");
                wire.close();
                break;
            }
        }
    }
    input.bytes.drain(..taken);
    if input.bytes.is_empty() {
        input.bytes.shrink_to(BUFFER_BYTES_KEPT);
    }
}

fn take_frames(wire: &Wire, worker: &Rc<Worker>, input: &mut Vec<u8>) {
    let mut taken = 0;
    if wire.machine.borrow().is_greeting()
        && input.len() >= 4
        && let Some(text) = words::answer(&input[..4], &worker.shared)
    {
        wire.out.borrow_mut().extend_from_slice(text.as_bytes());
        input.clear();
        return wire.close();
    }
    let mut turn = Turn {
        wire,
        worker,
        state: None,
        span: None,
        reads: 0,
        guesses: Guesses::default(),
        replies: 0,
        since_ms: worker.now_ms(),
    };
    while wire.takes_requests(worker) {
        turn.look_ahead(&input[taken..]);
        let split = wire.machine.borrow().split(&input[taken..], &worker.shared.config);
        match split {
            Ok(None) => break,
            Ok(Some(front)) => {
                turn.take(front.frame, front.trace);
                taken += front.len;
            }
            Err(error) => {
                tracing::warn!(client = %wire.stats.address(), %error, "connection closed");
                wire.close();
            }
        }
    }
    turn.end();
    input.drain(..taken);
    if input.is_empty() {
        input.shrink_to(BUFFER_BYTES_KEPT);
    }
}

/// The frames that came together: their reads share one lock of the state, their writes one message to the engine.
struct Turn<'a> {
    wire: &'a Wire,
    worker: &'a Rc<Worker>,
    state: Option<RwLockReadGuard<'a, Replicated>>,
    /// Of the request that is taken just now, if it is traced.
    span: Option<Box<Span>>,
    reads: usize,
    /// Where the znodes may be that the reads to come are about, as far as the state has been told of them.
    guesses: Guesses,
    replies: u64,
    since_ms: u64,
}

impl Turn<'_> {
    /// Tells the state what is to be read next, once it is locked: to be called for all that has come.
    fn look_ahead(&mut self, input: &[u8]) {
        let Some(state) = self.state.as_ref().filter(|_| self.guesses.len() == 0) else { return };
        if state.tree().is_worth_looking_ahead() {
            let paths = ahead::paths(input, self.wire.machine.borrow().xid_bytes_ahead());
            self.guesses = state.tree().look_ahead(&paths);
        }
    }

    fn take(&mut self, frame: &[u8], trace: &[u8]) {
        let shared = &self.worker.shared;
        if shared.spans.is_some() && !trace.is_empty() {
            self.span = self.begin_span(frame, trace);
        }
        let greeting = self.wire.machine.borrow().is_greeting();
        let zxid = if greeting { shared.state.read().tree().zxid() } else { Zxid(0) };
        let is_looking = greeting && shared.role() == Role::Looking;
        let context = Context { config: &shared.config, zxid, is_looking };
        let step = self.wire.machine.borrow_mut().on_frame(frame, &context);
        self.note(frame, greeting);
        match step {
            Step::Hand(input) => self.hand(input),
            Step::Ask { xid, op, body } => self.ask(xid, op, body),
            Step::Ping => self.answer(Xid::PING, OpCode::Ping, &[]),
            Step::Identify { xid } => {
                let client = self.wire.client();
                self.state().identify(&client);
                self.reply(ReplyHeader { xid, zxid: Zxid(0), error: None });
            }
            Step::Refuse(refusal) => self.refuse(refusal),
        }
        // Unless it has ended already, or the request went on to the engine.
        shared.end_span(self.span.take(), || Ending::Unanswered);
    }

    fn begin_span(&self, frame: &[u8], trace: &[u8]) -> Option<Box<Span>> {
        let context = TraceContext::decode(trace)?;
        let machine = self.wire.machine.borrow();
        let wide_xids = machine.xid_bytes_ahead() > 0;
        Span::begin(context, frame, wide_xids, machine.client().session, self.wire.stats.address().ip())
    }

    fn note(&mut self, frame: &[u8], greeting: bool) {
        let stats = &self.wire.stats;
        stats.received.fetch_add(1, Relaxed);
        self.worker.shared.stats.received.fetch_add(1, Relaxed);
        let header = frame.get(self.wire.machine.borrow().xid_bytes_ahead()..).unwrap_or_default();
        if let (false, Some((head, _))) = (greeting, header.split_first_chunk::<8>()) {
            let number = u64::from_be_bytes(*head);
            stats.last_xid.store((number >> 32) as i32, Relaxed);
            stats.last_op.store(number as i32, Relaxed);
        }
        if !self.wire.touched.replace(true) {
            self.worker.touch(self.wire.conn);
        }
    }

    /// To the engine, which will answer.
    fn hand(&mut self, input: Input) {
        self.wire.wait_for_engine(self.since_ms, self.span.take());
        self.worker.gathering.asked();
        self.worker.inputs.borrow_mut().push(input);
    }

    /// From the state, if nothing of this connection waits; else behind what waits.
    fn ask(&mut self, xid: Xid, op: OpCode, body: &[u8]) {
        // A sync is answered behind all that the engine has under way, of other connections too, and what every read has to
        // see the engine asks of the quorum.
        let asks_quorum = op == OpCode::Sync || self.worker.shared.config.has_linearizable_reads();
        if asks_quorum || !self.wire.is_idle() {
            let read = QueuedRead { client: self.wire.client(), xid, op, body: body.to_vec() };
            return self.hand(Input::Client(ClientInput::Read(read)));
        }
        self.answer(xid, op, body);
    }

    fn answer(&mut self, xid: Xid, op: OpCode, body: &[u8]) {
        self.reads += 1;
        let guess = if ahead::is_read_of_one(op) { self.guesses.next() } else { None };
        if self.reads.is_multiple_of(READS_PER_LOCK) {
            self.state = None;
        }
        self.state();
        let state = self.state.as_ref().expect("it was just locked").state();
        let (mut machine, mut out) = (self.wire.machine.borrow_mut(), self.wire.out.borrow_mut());
        let before = out.len();
        state.answer(machine.client(), xid, op, body, guess.unwrap_or(Guess::NONE), &mut out);
        self.worker.shared.end_span(self.span.take(), || Ending::of_reply(&out[before..]));
        machine.translate(if op == OpCode::Ping { Packet::Unasked } else { Packet::Reply }, &mut out, before);
        self.worker.shared.stats.replies.record(out.len() - before);
        self.replies += 1;
    }

    /// The state, locked for reading. Events of what it shows are in front of what is read from it.
    fn state(&mut self) -> &State {
        if self.state.is_none() {
            self.state = Some(self.worker.lock_state());
        }
        self.state.as_ref().expect("it was just locked").state()
    }

    fn reply(&mut self, header: ReplyHeader) {
        let mut out = self.wire.out.borrow_mut();
        let before = out.len();
        frame::write(&mut out, |out| header.encode(out));
        let ReplyHeader { zxid, error, .. } = header;
        self.worker.shared.end_span(self.span.take(), || Ending::Replied { zxid, error });
        self.wire.machine.borrow_mut().translate(Packet::Reply, &mut out, before);
        self.replies += 1;
    }

    fn refuse(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Silently { why } => {
                tracing::warn!(client = %self.wire.stats.address(), "connection closed: {why}");
            }
            Refusal::Reply(header) => {
                if header.error == Some(ErrorCode::AuthFailed) {
                    self.worker.shared.stats.auth_failed.fetch_add(1, Relaxed);
                }
                self.reply(header);
            }
            Refusal::Expired { read_only } => {
                self.wire.send_greeting(&ConnectResponse::expired(read_only.map(|_| false)));
            }
            Refusal::NoLeader => self.wire.send_greeting(&ConnectResponse::no_leader()),
        }
        self.wire.close();
    }

    fn end(self) {
        if self.replies > 0 {
            let zxid = self.state.as_ref().map_or(Zxid(0), |state| state.tree().zxid());
            let latency_ms = self.worker.now_ms() - self.since_ms;
            self.wire.stats.answered(zxid, clock::wall_ms(), latency_ms, self.replies);
            self.worker.shared.stats.latency.record(latency_ms, self.replies);
            self.worker.shared.stats.sent.fetch_add(self.replies, Relaxed);
        }
        drop(self.state);
        self.worker.end_turn(self.wire.conn, self.since_ms, self.replies > 0);
    }
}
