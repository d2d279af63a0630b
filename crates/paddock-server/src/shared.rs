//! What the threads of a member share: the state behind its lock, the way to the engine, a mailbox for each worker.

use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Sender;
use paddock_replica::{Input, Outbox, Role, State};
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
    pub(crate) state: RwLock<State>,
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
}

impl Shared {
    pub(crate) fn new(config: Config, clock: Clock, state: State, engine: Sender<Vec<Input>>) -> Shared {
        let mailboxes = (0..config.worker_count()).map(|_| Mailbox::default()).collect();
        let spans = config.tracing.as_ref().map(|tracing| Spans::start(tracing, config.member));
        Shared {
            spans,
            state: RwLock::new(state),
            stats: Stats::new(clock.monotonic_ms()),
            stopping: AtomicBool::new(false),
            stop_listening: Notify::new(),
            role: Mutex::new(Role::Looking),
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
