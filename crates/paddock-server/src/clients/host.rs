//! The process, as the front of one worker finds it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_front::{Answered, FrontEvent, Host, Received, Served, TracedRequest, WordAnswer};
use paddock_proto::jute::Reader;
use paddock_proto::{OpCode, SessionId};
use paddock_replica::{Replicated, Role};
use paddock_spans::{Ending, Span, TraceContext};
use paddock_state::{Now, Outbox, State};
use paddock_statistics::hot::{self, SlowRequest};
use paddock_statistics::request_times::{Recorder, Stage, TurnOperations};
use paddock_statistics::stats::{ConnStats, Traffic};
use paddock_tls::random_bytes;
use parking_lot::{MappedRwLockReadGuard, RwLockReadGuard};

use crate::clock::wall_ms;
use crate::reports::four_letter_words;
use crate::shared::Shared;

/// Bytes of a frame that say how long it is. They are no part of a reply's size, as in ZooKeeper.
const FRAME_LENGTH_BYTES: usize = 4;

#[derive(Debug)]
pub(super) struct WorkerHost {
    pub(super) shared: Arc<Shared>,
    /// Number of the worker, whose mailbox this is.
    pub(super) worker: usize,
    /// Reads of the turn that is under way.
    turn: TurnOperations,
    /// Requests that have come since the worker looked after its connections last.
    seen: Cell<u32>,
    /// Time at which the turn under way began, and the time that was last told, both in microseconds of the monotonic clock.
    turn_us: Cell<u64>,
    now_us: Cell<u64>,
}

impl WorkerHost {
    pub(super) fn new(shared: Arc<Shared>, worker: usize) -> WorkerHost {
        let (turn, seen, turn_us, now_us) = Default::default();
        WorkerHost { shared, worker, turn, seen, turn_us, now_us }
    }

    /// Begins the turn of a connection, and returns the time in milliseconds of the monotonic clock.
    pub(super) fn begin_turn(&self) -> u64 {
        let turn_us = self.shared.clock.monotonic_us();
        self.turn_us.set(turn_us);
        turn_us / 1000
    }

    /// From now on some requests are all looked at again. Returns the number of those that have come since this was called last.
    pub(super) fn begin_samples(&self) -> u32 {
        self.seen.replace(0)
    }

    /// Looks at a request for what is asked for most, unless there are so many that one of them stands for others.
    fn sample(&self, conn: &ConnStats, request: &Received<'_>) {
        let seen = self.seen.get() + 1;
        self.seen.set(seen);
        let times = match seen {
            ..=hot::ALL_UP_TO => 1,
            _ if seen.is_multiple_of(hot::SAMPLED) => hot::SAMPLED,
            _ => return,
        };
        let session = SessionId(conn.session.load(Relaxed));
        let path = (request.op > 0).then(|| Reader::new(request.body).string().ok()).flatten();
        let path = path.filter(|path| path.starts_with('/'));
        let now_ms = self.monotonic_ms();
        self.shared.statistics.hot.count(now_ms, path, session, request.body.len(), times);
    }

    /// Keeps a request that took long.
    #[cold]
    fn keep_slow(&self, conn: &ConnStats, reply: Answered, path: &[u8], took_ms: u64, now: Now) {
        let request = SlowRequest {
            at_ms: now.wall_ms,
            op: reply.op,
            path: (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned()),
            session: SessionId(conn.session.load(Relaxed)),
            client: conn.address(),
            took_ms,
            reply_bytes: reply.bytes,
            zxid: reply.zxid.0,
            stages_us: self.shared.statistics.times.last_us(self.worker),
        };
        self.shared.statistics.hot.keep(request, now.monotonic_ms);
    }

    fn traffic(&self) -> &Traffic {
        self.shared.statistics.clients.traffic(self.worker)
    }

    pub(super) fn times(&self) -> &Recorder {
        self.shared.statistics.times.worker(self.worker)
    }
}

impl Host for WorkerHost {
    type StateGuard<'a> = MappedRwLockReadGuard<'a, State>;
    type Stats = Arc<ConnStats>;
    type Span = Box<Span>;

    fn now(&self) -> Now {
        let now_us = self.shared.clock.monotonic_us();
        self.now_us.set(now_us);
        Now { monotonic_ms: now_us / 1000, wall_ms: wall_ms() }
    }

    fn turn_began_us(&self, since_ms: u64) -> u64 {
        let turn_us = self.turn_us.get();
        if turn_us / 1000 == since_ms { turn_us } else { since_ms * 1000 }
    }

    fn monotonic_ms(&self) -> u64 {
        self.shared.clock.monotonic_ms()
    }

    fn lock_state(&self) -> MappedRwLockReadGuard<'_, State> {
        RwLockReadGuard::map(self.shared.state.read(), Replicated::state)
    }

    fn take_mail(&self, mail: &mut Outbox) -> bool {
        let Some(posted) = self.shared.mailboxes.of(self.worker).take(mail) else { return false };
        if let Some(posted) = posted {
            self.times().passed(Stage::Reply, posted);
        }
        true
    }

    fn confirmed_ms(&self) -> u64 {
        self.shared.engine.confirmed_ms()
    }

    fn is_looking(&self) -> bool {
        self.shared.engine.role() == Role::Looking
    }

    fn is_stopping(&self) -> bool {
        self.shared.life.is_stopping()
    }

    fn nonce(&self) -> u128 {
        u128::from_be_bytes(random_bytes())
    }

    fn answer_word(&self, word: [u8; 4], behind: &[u8]) -> Option<WordAnswer> {
        four_letter_words::answer(word, behind, &self.shared)
    }

    fn begin_span(&self, request: &TracedRequest<'_>) -> Option<Box<Span>> {
        self.shared.statistics.spans.as_ref()?;
        let context = TraceContext::decode(request.context)?;
        Span::begin(context, request.frame, request.has_wide_xid, request.session, request.client.ip())
    }

    fn end_span(&self, span: Box<Span>, reply: Option<&[u8]>) {
        let ending = reply.map_or(Ending::Unanswered, Ending::of_reply);
        self.shared.statistics.spans.as_ref().expect("who began a span wants spans").end(span, ending);
    }

    // Each caller says which event it is: nothing of the choice is left there.
    #[inline(always)]
    fn note(&self, event: FrontEvent<'_, Arc<ConnStats>>) {
        match event {
            FrontEvent::Received { conn, request } => self.on_received(conn, request),
            FrontEvent::Session { conn, session, timeout_ms } => conn.set_session(session, timeout_ms),
            FrontEvent::Waiting { conn, requests } => conn.waiting.store(requests as u32, Relaxed),
            FrontEvent::Answered { conn, reply, path, since_us, now } => {
                self.on_answered(conn, reply, path, since_us, now);
            }
            FrontEvent::Read { op, reply_bytes } => self.on_read(op, reply_bytes),
            FrontEvent::Served { conn, served, since_ms } => self.on_served(conn, served, since_ms),
            FrontEvent::Resumption => {
                self.shared.statistics.server_metrics.resumptions.fetch_add(1, Relaxed);
            }
            FrontEvent::WatchFired { conn, bytes } => self.on_watch_fired(conn, bytes),
            FrontEvent::AuthFailed => {
                self.shared.statistics.clients.auth_failed.fetch_add(1, Relaxed);
            }
            FrontEvent::LostContact { silence_ms, session_timeout_ms } => {
                self.shared.statistics.server_metrics.out_of_contact.fetch_add(1, Relaxed);
                self.shared.engine.note_lost_contact(silence_ms, session_timeout_ms);
            }
        }
    }
}

impl WorkerHost {
    #[inline]
    fn on_received(&self, conn: &Arc<ConnStats>, request: Option<Received<'_>>) {
        conn.received();
        self.traffic().received();
        if let Some(request) = request {
            conn.last_xid.store(request.xid.0, Relaxed);
            conn.last_op.store(request.op, Relaxed);
            self.sample(conn, &request);
        } else {
            self.shared.statistics.server_metrics.greetings.fetch_add(1, Relaxed);
        }
    }

    fn on_answered(&self, conn: &Arc<ConnStats>, reply: Answered, path: &[u8], since_us: u64, now: Now) {
        let latency_us = self.now_us.get().saturating_sub(since_us);
        let latency_ms = latency_us / 1000;
        conn.answered(reply.zxid, now.wall_ms, latency_ms, 1);
        self.traffic().answered(latency_ms, 1);
        // The answer to a greeting is no reply.
        if reply.bytes > 0 {
            let bytes = reply.bytes.saturating_sub(FRAME_LENGTH_BYTES);
            self.shared.statistics.clients.replies.record(bytes);
            self.times().replied(bytes);
        }
        self.times().answered(reply.op, latency_us);
        if self.shared.statistics.hot.is_slow(latency_ms) {
            self.keep_slow(conn, reply, path, latency_ms, now);
        }
    }

    #[inline]
    fn on_read(&self, op: OpCode, reply_bytes: usize) {
        self.turn.count(op.code());
        let bytes = reply_bytes.saturating_sub(FRAME_LENGTH_BYTES);
        self.shared.statistics.clients.replies.record(bytes);
        self.times().replied(bytes);
    }

    fn on_served(&self, conn: &Arc<ConnStats>, served: Served, since_ms: u64) {
        let now = self.now();
        let latency_us = self.now_us.get().saturating_sub(self.turn_began_us(since_ms));
        let latency_ms = latency_us / 1000;
        conn.answered(served.zxid, now.wall_ms, latency_ms, served.replies);
        self.traffic().answered(latency_ms, served.replies);
        self.times().turned(&self.turn, latency_us);
    }

    fn on_watch_fired(&self, conn: &Arc<ConnStats>, bytes: usize) {
        self.times().told_event(bytes.saturating_sub(FRAME_LENGTH_BYTES));
        conn.told_event();
        self.traffic().told_event();
    }
}
