//! What the threads of a member share: the state behind its lock, the way to the engine, a mailbox for each worker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::Sender;
use paddock_replica::{Input, Replicated, Role};
use paddock_state::{CONTACT_MAX_LEAST_MS, Outbox};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::Config;
use crate::clock::Clock;
use crate::engine::EngineRoom;
use crate::spans::{Ending, Span, Spans};
use crate::stats::Stats;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) state: RwLock<Replicated>,
    pub(crate) stats: Stats,
    /// `None` if nobody wants any.
    pub(crate) spans: Option<Spans>,
    mailboxes: Vec<Mailbox>,
    /// Closed once the workers have ended: that ends the engine.
    pub(crate) engine: EngineRoom,
    /// Set once: no new connection, no new request.
    stopping: AtomicBool,
    stop_listening: Notify,
    /// What this member is to the others, as the engine saw it last.
    role: Mutex<Role>,
    /// The member's last contact with a leader that a quorum follows, as the engine saw it last.
    confirmed_ms: AtomicU64,
    /// Connections are being closed for want of contact.
    is_out_of_contact: AtomicBool,
}

impl Shared {
    pub(crate) fn new(config: Config, clock: Clock, state: Replicated, engine: Sender<Vec<Input>>) -> Shared {
        let mailboxes = (0..config.worker_count()).map(|_| Mailbox::default()).collect();
        let spans = config.tracing.as_ref().map(|tracing| Spans::start(tracing, config.member));
        Shared {
            spans,
            state: RwLock::new(state),
            stats: Stats::new(clock.monotonic_ms()),
            stopping: AtomicBool::new(false),
            stop_listening: Notify::new(),
            role: Mutex::new(Role::Looking),
            confirmed_ms: AtomicU64::new(0),
            is_out_of_contact: AtomicBool::new(false),
            mailboxes,
            engine: EngineRoom::new(engine),
            config,
            clock,
        }
    }

    /// A request has come to its end. Few are traced.
    pub(crate) fn end_span(&self, span: Option<Box<Span>>, ending: impl FnOnce() -> Ending) {
        if let Some(span) = span {
            self.spans.as_ref().expect("who began a span wants spans").end(span, ending());
        }
    }

    pub(crate) fn mailbox(&self, worker: usize) -> &Mailbox {
        &self.mailboxes[worker]
    }

    pub(crate) fn role(&self) -> Role {
        *self.role.lock()
    }

    pub(crate) fn set_role(&self, role: Role) {
        *self.role.lock() = role;
    }

    /// Milliseconds since the member's last contact with a leader that a quorum follows, or since `least_ms` if that is later.
    pub(crate) fn silence_ms(&self, now_ms: u64, least_ms: u64) -> u64 {
        now_ms.saturating_sub(self.confirmed_ms.load(Ordering::Acquire).max(least_ms))
    }

    pub(crate) fn set_confirmed(&self, confirmed_ms: u64) {
        self.confirmed_ms.store(confirmed_ms, Ordering::Release);
        let has_contact = || self.silence_ms(self.clock.monotonic_ms(), 0) <= CONTACT_MAX_LEAST_MS;
        if self.is_out_of_contact.load(Ordering::Relaxed) && has_contact() {
            self.is_out_of_contact.store(false, Ordering::Relaxed);
            tracing::info!("regained contact to a quorum: keeping client connections");
        }
    }

    /// A connection is closed because the member has had no contact to a quorum for too long.
    pub(crate) fn note_lost_contact(&self, silence_ms: u64, session_timeout_ms: i32) {
        if !self.is_out_of_contact.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                silence_ms,
                session_timeout_ms,
                "lost contact to a quorum: closing client connections"
            );
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop_listening.notify_one();
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    /// Returns when the listener has to stop.
    pub(crate) async fn stopped(&self) {
        self.stop_listening.notified().await;
    }
}

/// Where the engine leaves what a worker has to send.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    outbox: Mutex<Outbox>,
    has_mail: AtomicBool,
    wake: Notify,
}

impl Mailbox {
    /// Adds to the box. The engine does so before it lets go of the state, so that whoever has read the state finds
    /// in its box all events that came before.
    pub(crate) fn post(&self, mail: &mut Outbox) {
        self.outbox.lock().append(mail);
        self.has_mail.store(true, Ordering::Release);
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Empties the box into `mail`, which must be empty. False if there was nothing.
    pub(crate) fn take(&self, mail: &mut Outbox) -> bool {
        assert!(mail.is_empty(), "mail that was not delivered");
        if !self.has_mail.swap(false, Ordering::AcqRel) {
            return false;
        }
        std::mem::swap(&mut *self.outbox.lock(), mail);
        !mail.is_empty()
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}
