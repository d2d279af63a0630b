//! Data that the threads of a member share: the state behind its lock, a mailbox for each worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use paddock_front::{AuditLog, ClientBuffers, Kerberos, LimitHits, Limits, MemoryLimit};
use paddock_replica::{Replicated, Role, Standing};
use paddock_state::{CONTACT_MAX_LEAST_MS, Outbox};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::Config;
use crate::clock::Clock;
use crate::cross_check::CrossCheck;
use crate::error::ServerError;
use crate::live::LiveConfig;
use crate::statistics::audit::Audit;
use crate::statistics::contacts::Contacts;
use crate::statistics::etcd_metrics::EtcdStats;
use crate::statistics::history::History;
use crate::statistics::hot::Hot;
use crate::statistics::request_times::RequestTimes;
use crate::statistics::server_metrics::ServerMetrics;
use crate::statistics::snapshot_board::SnapshotBoard;
use crate::statistics::spans::Spans;
use crate::statistics::stats::Stats;
use paddock_tls::ClientPort;

/// Parts of a member that are made before it recovers: files without which it must not start, and counters of its start.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) client_port: Option<ClientPort>,
    pub(crate) kerberos: Option<Kerberos>,
    pub(crate) audit: Option<Arc<Audit>>,
    /// Counters that ZooKeeper has and that begin before there is a state: times of syncs, of recovery, of elections.
    pub(crate) server_metrics: ServerMetrics,
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// Settings of the start. Those that change while the member runs are in `live`.
    pub(crate) config: Config,
    pub(crate) live: LiveConfig,
    /// TLS for clients; `None` if they speak plaintext only.
    pub(crate) client_port: Option<ClientPort>,
    /// The Kerberos library with this member's keys; `None` if clients cannot show tickets.
    kerberos: Option<Kerberos>,
    pub(crate) clock: Clock,
    pub(crate) state: RwLock<Replicated>,
    /// Memory of this member that its clients hold.
    pub(crate) client_buffers: Arc<ClientBuffers>,
    /// Memory of the process.
    pub(crate) memory: Arc<MemoryLimit>,
    /// Limits that clients have hit.
    pub(crate) hits: Arc<LimitHits>,
    /// Limits that the fronts of all workers share; the three above are part of them.
    pub(crate) limits: Limits,
    /// TLS handshakes under way.
    pub(crate) handshakes: AtomicU32,
    pub(crate) stats: Stats,
    pub(crate) server_metrics: ServerMetrics,
    /// The comparison with a reference server, if there is one.
    pub(crate) cross_check: Option<CrossCheck>,
    /// Statistics of a front end on etcd.
    pub(crate) etcd: Option<Arc<EtcdStats>>,
    pub(crate) snapshots: SnapshotBoard,
    /// The audit log, if there is one.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) times: RequestTimes,
    pub(crate) hot: Hot,
    /// The last minutes, with which the charts of the page begin.
    pub(crate) history: History,
    /// Other members that answer, and those that do not.
    pub(crate) contacts: Contacts,
    /// Spans of traced requests; `None` if none are exported.
    pub(crate) spans: Option<Spans>,
    mailboxes: Vec<Mailbox>,
    /// Set once, before anything else of a shutdown: clients had better go to other members.
    draining: AtomicBool,
    /// Set once: no new connection, no new request.
    stopping: AtomicBool,
    stop_listening: Notify,
    /// Reason for which the member has to end, if a thread has found one that is not its own end.
    failure: Mutex<Option<ServerError>>,
    /// This member's role, as the engine saw it last.
    role: Mutex<Role>,
    /// This member's standing in its ensemble, as the engine saw it at its last tick.
    standing: Mutex<Standing>,
    /// Monotonic time in milliseconds at which this member began to lead, if it leads.
    leads_since_ms: Mutex<Option<u64>>,
    /// The member's last contact with a leader that a quorum follows, as the engine saw it last.
    confirmed_ms: AtomicU64,
    /// Connections are being closed for want of contact.
    is_out_of_contact: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        Opened { client_port, kerberos, audit, server_metrics }: Opened,
        clock: Clock,
        mut state: Replicated,
    ) -> Shared {
        state.set_facts(config.facts());
        state.set_watch_limits(config.watch_limits());
        let mailboxes = (0..=config.worker_count()).map(|_| Mailbox::default()).collect();
        let limits = config.limits();
        let spans = config.tracing.as_ref().map(|tracing| Spans::start(tracing, config.member));
        Shared {
            audit,
            spans,
            state: RwLock::new(state),
            client_buffers: limits.buffers.clone(),
            memory: limits.memory.clone(),
            hits: limits.hits.clone(),
            limits,
            handshakes: AtomicU32::new(0),
            hot: Hot::default(),
            history: History::default(),
            contacts: Contacts::default(),
            times: RequestTimes::new(config.worker_count() + 1),
            stats: Stats::new(clock.monotonic_ms(), config.worker_count() + 1),
            server_metrics,
            cross_check: config.cross_check.as_deref().map(CrossCheck::start),
            etcd: config.etcd.as_ref().map(|_| Arc::default()),
            snapshots: SnapshotBoard::default(),
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            stop_listening: Notify::new(),
            failure: Mutex::default(),
            role: Mutex::new(Role::Looking),
            standing: Mutex::default(),
            leads_since_ms: Mutex::default(),
            confirmed_ms: AtomicU64::new(0),
            is_out_of_contact: AtomicBool::new(false),
            mailboxes,
            live: LiveConfig::new(config.clone()),
            config,
            client_port,
            kerberos,
            clock,
        }
    }

    pub(crate) fn mailbox(&self, worker: usize) -> &Mailbox {
        &self.mailboxes[worker]
    }

    /// Number of the mailbox behind those of the workers: that of the client inside the member.
    pub(crate) fn inner_worker(&self) -> usize {
        self.mailboxes.len() - 1
    }

    /// The settings as they are now.
    pub(crate) fn settings(&self) -> Arc<Config> {
        self.live.get()
    }

    /// The settings of a front, as they are now.
    pub(crate) fn of_front(&self) -> paddock_front::Settings {
        let audit = self.audit.clone().map(|audit| audit as Arc<dyn AuditLog>);
        self.settings().of_front(&self.limits, self.kerberos.clone(), audit)
    }

    /// Lets other settings count from now on, as far as they can change while the member runs.
    pub(crate) fn change_settings(&self, config: Config) {
        config.adjust(&self.limits);
        let mut state = self.state.write();
        state.set_facts(config.facts());
        state.set_watch_limits(config.watch_limits());
        drop(state);
        self.live.set(config);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    pub(crate) fn role(&self) -> Role {
        *self.role.lock()
    }

    pub(crate) fn set_role(&self, role: Role) {
        *self.role.lock() = role;
        self.server_metrics.elections.note_role(role, self.clock.monotonic_ms());
        let mut since_ms = self.leads_since_ms.lock();
        *since_ms = if role == Role::Leader { since_ms.or(Some(self.clock.monotonic_ms())) } else { None };
    }

    /// Time in milliseconds for which this member has led; `None` if it does not.
    pub(crate) fn leads_for_ms(&self) -> Option<u64> {
        self.leads_since_ms.lock().map(|since_ms| self.clock.monotonic_ms().saturating_sub(since_ms))
    }

    pub(crate) fn standing(&self) -> Standing {
        self.standing.lock().clone()
    }

    pub(crate) fn set_standing(&self, standing: Standing) {
        let mut last = self.standing.lock();
        self.server_metrics.entries.note_standing(&last, &standing);
        *last = standing;
    }

    /// Monotonic time of the member's last contact with a leader that a quorum follows, in milliseconds.
    pub(crate) fn confirmed_ms(&self) -> u64 {
        self.confirmed_ms.load(Ordering::Acquire)
    }

    pub(crate) fn set_confirmed(&self, confirmed_ms: u64) {
        self.confirmed_ms.store(confirmed_ms, Ordering::Release);
        let silence_ms = || self.clock.monotonic_ms().saturating_sub(confirmed_ms);
        if self.is_out_of_contact.load(Ordering::Relaxed) && silence_ms() <= CONTACT_MAX_LEAST_MS {
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

    /// The member cannot go on.
    pub(crate) fn fail(&self, error: ServerError) {
        self.failure.lock().get_or_insert(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    pub(crate) fn take_failure(&self) -> Option<ServerError> {
        self.failure.lock().take()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// True once the member is about to stop, while it serves its clients still.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn begin_draining(&self) {
        self.draining.store(true, Ordering::Release);
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

#[derive(Debug, Default)]
struct Mail {
    outbox: Outbox,
    /// The time at which some of it was posted, if that is timed.
    posted: Option<Instant>,
}

/// Mailbox in which the engine leaves what a worker has to send.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    has_mail: AtomicBool,
    wake: Notify,
}

impl Mailbox {
    /// Adds to the box. The engine does so before it lets go of the state, so that a worker that has read the state finds
    /// in its box all events that came before. `posted` is the time, if it is to be told how long the mail has waited.
    pub(crate) fn post(&self, mail: &mut Outbox, posted: Option<Instant>) {
        let mut waiting = self.mail.lock();
        waiting.outbox.append(mail);
        waiting.posted = waiting.posted.or(posted);
        drop(waiting);
        self.has_mail.store(true, Ordering::Release);
    }

    /// Nothing is put into the box or taken out as long as this is held.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.mail.lock()
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Empties the box into `mail`, which must be empty, and says when some of it was posted, if that is timed. `None` if there was
    /// nothing.
    pub(crate) fn take(&self, mail: &mut Outbox) -> Option<Option<Instant>> {
        assert!(mail.is_empty(), "mail that was not delivered");
        if !self.has_mail.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut waiting = self.mail.lock();
        std::mem::swap(&mut waiting.outbox, mail);
        let posted = waiting.posted.take();
        (!mail.is_empty()).then_some(posted)
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Waits for mail on a thread that the runtime lets functions block on. Returns false if none has come in time.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let runtime = tokio::runtime::Handle::current();
        runtime.block_on(async { tokio::time::timeout(timeout, self.woken()).await.is_ok() })
    }
}
