//! Data that the threads of a member share: the state behind its lock, a mailbox for each worker, and what is counted.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use paddock_cross_check::CrossCheck;
use paddock_front::{AuditLog, Kerberos, Limits};
use paddock_proto::SessionId;
use paddock_replica::Replicated;
use paddock_tls::ClientPort;
use parking_lot::{Mutex, RwLock};

use crate::Config;
use crate::audit::Audit;
use crate::change_signal::ChangeSignal;
use crate::clock::Clock;
use crate::copy_exchange::CopyExchange;
use crate::engine_report::{EngineBoard, EngineReport};
use crate::lifecycle::Lifecycle;
use crate::live::LiveConfig;
use crate::mailboxes::Mailboxes;
use crate::quiet_pace::QuietPace;
use crate::server_limit::ServerLimit;
use crate::statistics::Statistics;

/// Parts of a server that are made before there is a state: what it must not start without, and who goes along.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// TLS for clients; `None` if they speak plaintext only.
    pub(crate) client_port: Option<ClientPort>,
    /// Keys and certificates of the port for administrators, if it speaks TLS.
    pub(crate) admin_keys: Option<Arc<ClientPort>>,
    /// The Kerberos library with this member's keys; `None` if clients cannot show tickets.
    pub(crate) kerberos: Option<Kerberos>,
    /// The audit log, if there is one.
    pub(crate) audit: Option<Arc<Audit>>,
    /// The comparison with a reference server, if there is one.
    pub(crate) cross_check: Option<CrossCheck>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// Settings of the start. Those that change while the member runs are in `live`.
    pub(crate) config: Config,
    pub(crate) live: LiveConfig,
    pub(crate) opened: Opened,
    pub(crate) clock: Clock,
    pub(crate) state: RwLock<Replicated>,
    /// Limits that the fronts of all workers share, and what clients hold of them.
    pub(crate) limits: Limits,
    pub(crate) statistics: Statistics,
    pub(crate) mailboxes: Mailboxes,
    /// The engine, as it has told of itself last.
    pub(crate) engine: EngineBoard,
    pub(crate) life: Lifecycle,
    /// Wakes those who follow the changes of the state.
    pub(crate) change_signal: ChangeSignal,
    /// Pace of the thread that looks at memory.
    pub(crate) memory_pace: QuietPace,
    /// Held by the thread that takes a snapshot of all groups together.
    pub(crate) whole_snapshots: Mutex<()>,
    /// Held by a thread that reads a single group for another member.
    pub(crate) group_copies: Mutex<()>,
    /// Copies of single groups that members ask each other for.
    pub(crate) copy_exchange: CopyExchange,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        opened: Opened,
        statistics: Statistics,
        clock: Clock,
        mut state: Replicated,
    ) -> Shared {
        state.set_facts(config.facts());
        state.state().watches().set_limits(config.watch_limits());
        Shared {
            opened,
            statistics,
            clock,
            state: RwLock::new(state),
            limits: config.limits(),
            mailboxes: Mailboxes::new(config.worker_count()),
            engine: EngineBoard::default(),
            life: Lifecycle::default(),
            change_signal: ChangeSignal::default(),
            whole_snapshots: Mutex::default(),
            group_copies: Mutex::default(),
            copy_exchange: CopyExchange::default(),
            memory_pace: QuietPace::default(),
            live: LiveConfig::new(config.clone()),
            config,
        }
    }

    /// The settings as they are now.
    pub(crate) fn settings(&self) -> Arc<Config> {
        self.live.get()
    }

    /// The settings of a front, as they are now.
    pub(crate) fn of_front(&self) -> paddock_front::Settings {
        let audit = self.opened.audit.clone().map(|audit| audit as Arc<dyn AuditLog>);
        self.settings().of_front(&self.limits, self.opened.kerberos.clone(), audit)
    }

    /// Lets other settings count from now on, as far as they can change while the member runs.
    pub(crate) fn change_settings(&self, config: Config) {
        config.adjust(&self.limits);
        let mut state = self.state.write();
        state.set_facts(config.facts());
        state.state().watches().set_limits(config.watch_limits());
        drop(state);
        self.live.set(config);
        self.mailboxes.wake_all();
    }

    /// Takes the engine's report, and counts what has changed since the last one.
    pub(crate) fn publish(&self, report: EngineReport) {
        let now_ms = self.clock.monotonic_ms();
        let metrics = &self.statistics.server_metrics;
        metrics.elections.note_role(report.role, now_ms);
        let standing = report.standing.clone();
        let last = self.engine.publish(report, now_ms);
        metrics.entries.note_standing(&last, &standing);
    }

    /// A client that has no session has hit a limit.
    pub(crate) fn hit(&self, limit: ServerLimit, client: SocketAddr, detail: &dyn Display) {
        let now_ms = self.clock.monotonic_ms();
        self.statistics.limit_hits.hit(limit, Some(client), SessionId::NONE, now_ms, detail);
    }

    /// The engine has had contact, between two reports.
    pub(crate) fn note_contact(&self, confirmed_ms: u64) {
        self.engine.note_contact(confirmed_ms, self.clock.monotonic_ms());
    }

    /// Time in milliseconds for which this member has led; `None` if it does not.
    pub(crate) fn leads_for_ms(&self) -> Option<u64> {
        self.engine.leads_since_ms().map(|since_ms| self.clock.monotonic_ms().saturating_sub(since_ms))
    }

    /// No new connection, no new request.
    pub(crate) fn stop(&self) {
        self.life.stop();
        self.mailboxes.wake_all();
        self.change_signal.notify();
    }
}
