//! The process, as the front of one worker finds it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_front::{Answered, Host, Served, TracedRequest, WordAnswer};
use paddock_member::Clock as _;
use paddock_proto::{SessionId, Xid};
use paddock_replica::{Replicated, Role};
use paddock_state::{Now, Outbox, State};
use parking_lot::{MappedRwLockReadGuard, RwLockReadGuard};

use crate::observability::four_letter_words;
use crate::observability::spans::{Ending, Span, TraceContext};
use crate::observability::stats::ConnStats;
use crate::shared::Shared;

#[derive(Debug)]
pub(super) struct WorkerHost {
    pub(super) shared: Arc<Shared>,
    /// Number of the worker, whose mailbox this is.
    pub(super) worker: usize,
}

impl Host for WorkerHost {
    type StateGuard<'a> = MappedRwLockReadGuard<'a, State>;
    type Stats = Arc<ConnStats>;
    type Span = Box<Span>;

    fn now(&self) -> Now {
        self.shared.clock.now()
    }

    fn monotonic_ms(&self) -> u64 {
        self.shared.clock.monotonic_ms()
    }

    fn lock_state(&self) -> MappedRwLockReadGuard<'_, State> {
        RwLockReadGuard::map(self.shared.state.read(), Replicated::state)
    }

    fn take_mail(&self, mail: &mut Outbox) -> bool {
        self.shared.mailbox(self.worker).take(mail)
    }

    fn confirmed_ms(&self) -> u64 {
        self.shared.confirmed_ms()
    }

    fn is_looking(&self) -> bool {
        self.shared.role() == Role::Looking
    }

    fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    fn nonce(&self) -> u128 {
        let mut bytes = [0; 16];
        rustls::crypto::aws_lc_rs::default_provider()
            .secure_random
            .fill(&mut bytes)
            .expect("the system has random numbers");
        u128::from_be_bytes(bytes)
    }

    fn answer_word(&self, word: [u8; 4], behind: &[u8]) -> Option<WordAnswer> {
        four_letter_words::answer(word, behind, &self.shared)
    }

    fn begin_span(&self, request: &TracedRequest<'_>) -> Option<Box<Span>> {
        self.shared.spans.as_ref()?;
        let context = TraceContext::decode(request.context)?;
        Span::begin(context, request.frame, request.has_wide_xid, request.session, request.client.ip())
    }

    fn end_span(&self, span: Box<Span>, reply: Option<&[u8]>) {
        let ending = reply.map_or(Ending::Unanswered, Ending::of_reply);
        self.shared.spans.as_ref().expect("who began a span wants spans").end(span, ending);
    }

    fn on_received(&self, conn: &Arc<ConnStats>, request: Option<(Xid, i32)>) {
        conn.received.fetch_add(1, Relaxed);
        self.shared.stats.received.fetch_add(1, Relaxed);
        if let Some((xid, op)) = request {
            conn.last_xid.store(xid.0, Relaxed);
            conn.last_op.store(op, Relaxed);
        }
    }

    fn on_session(&self, conn: &Arc<ConnStats>, session: SessionId, timeout_ms: i32) {
        conn.set_session(session, timeout_ms);
    }

    fn on_waiting(&self, conn: &Arc<ConnStats>, requests: usize) {
        conn.waiting.store(requests as u32, Relaxed);
    }

    fn on_answered(&self, conn: &Arc<ConnStats>, reply: Answered, since_ms: u64, now: Now) {
        let latency_ms = now.monotonic_ms.saturating_sub(since_ms);
        conn.answered(reply.zxid, now.wall_ms, latency_ms, 1);
        let stats = &self.shared.stats;
        stats.latency.record(latency_ms, 1);
        stats.replies.record(reply.bytes);
        stats.sent.fetch_add(1, Relaxed);
    }

    fn on_read(&self, reply_bytes: usize) {
        self.shared.stats.replies.record(reply_bytes);
    }

    fn on_served(&self, conn: &Arc<ConnStats>, served: Served, since_ms: u64) {
        let now = self.now();
        let latency_ms = now.monotonic_ms - since_ms;
        conn.answered(served.zxid, now.wall_ms, latency_ms, served.replies);
        self.shared.stats.latency.record(latency_ms, served.replies);
        self.shared.stats.sent.fetch_add(served.replies, Relaxed);
    }

    fn on_event(&self, conn: &Arc<ConnStats>) {
        conn.sent.fetch_add(1, Relaxed);
        self.shared.stats.sent.fetch_add(1, Relaxed);
    }

    fn on_auth_failed(&self) {
        self.shared.stats.auth_failed.fetch_add(1, Relaxed);
    }

    fn on_lost_contact(&self, silence_ms: u64, session_timeout_ms: i32) {
        self.shared.note_lost_contact(silence_ms, session_timeout_ms);
    }
}
