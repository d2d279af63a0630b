//! The engine of a front end in its host: effects are carried out as calls of etcd, whose answers come back as inputs.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use paddock_etcd::{Effects, Engine, EngineOptions, Input, Keys, Limits};
use paddock_proto::SessionSecret;
use paddock_replica::{Role, Standing};
use paddock_state::{Now, Outboxes, State};
use paddock_tls::random_bytes;
use tokio::task::{JoinHandle, spawn_local};

use super::calls;
use super::connection::Connection;
use crate::config::EtcdSettings;
use crate::engine_report::EngineReport;
use crate::etcd_metrics::{EtcdReport, EtcdStats};
use crate::host::{self, EngineHost, Inbox};
use crate::shared::Shared;

/// Bytes of a request to etcd beside its keys and values.
const REQUEST_RESERVE: usize = 16 << 10;

pub(super) struct HostedEtcd {
    engine: Engine,
    effects: Effects,
    connection: Rc<Connection>,
    inbox: Inbox<Input>,
    watch: Option<JoinHandle<()>>,
    stats: Arc<EtcdStats>,
    /// Dropped when the state has been read for the first time.
    is_loading: Option<Sender<()>>,
}

fn options(shared: &Shared, settings: &EtcdSettings) -> EngineOptions {
    let config = &shared.config;
    EngineOptions {
        keys: Keys::new(&settings.prefix),
        // The standard library's hash tables are seeded by the system's chance.
        front: RandomState::new().hash_one(std::process::id()),
        limits: Limits {
            operations_max: settings.txn_operations_max,
            bytes_max: settings.request_bytes_max.saturating_sub(REQUEST_RESERVE),
            writes_max: if settings.separate_writes { 1 } else { Limits::WRITES_MAX },
        },
        secret: SessionSecret(random_bytes()),
        tick_ms: u64::from(config.tick_ms),
        write_timeout_ms: settings.write_timeout_ms,
        stale_reads: settings.stale_reads,
        garbage_interval_ms: config.member_settings.garbage_interval_ms,
        garbage_max: config.member_settings.garbage_max,
    }
}

impl HostedEtcd {
    pub(super) fn new(
        host: &EngineHost,
        settings: &EtcdSettings,
        inbox: Inbox<Input>,
        is_loading: Sender<()>,
    ) -> HostedEtcd {
        let shared = host.shared();
        let stats = shared.statistics.etcd.clone().expect("a front end has statistics of etcd");
        host.record_deaths();
        HostedEtcd {
            engine: Engine::new(options(shared, settings), host.now()),
            effects: Effects::default(),
            connection: Rc::new(Connection::new(stats.clone())),
            inbox,
            watch: None,
            stats,
            is_loading: Some(is_loading),
        }
    }

    /// The connection to the cluster, which has to be kept.
    pub(super) fn connection(&self) -> Rc<Connection> {
        self.connection.clone()
    }
}

impl host::Engine for HostedEtcd {
    type Input = Input;

    const TICK: Duration = Duration::from_millis(Engine::TICK_MS);

    fn take(&mut self, now: Now, inputs: &mut Vec<Input>, state: &mut State, out: &mut Outboxes) {
        for input in inputs.drain(..) {
            self.engine.step(now, input, state, out, &mut self.effects);
        }
        self.engine.work(now, state, out, &mut self.effects);
    }

    fn carry_out(&mut self) {
        let effects = std::mem::take(&mut self.effects);
        for (id, call) in effects.calls {
            spawn_local(calls::call(self.connection.clone(), id, call, self.inbox.clone()));
        }
        if let Some(order) = effects.watch {
            let watch = calls::watch(self.connection.clone(), order, self.inbox.clone());
            if let Some(former) = self.watch.replace(spawn_local(watch)) {
                former.abort();
            }
        }
        if !effects.keep_alive.is_empty() {
            spawn_local(calls::keep_alive(self.connection.clone(), effects.keep_alive));
        }
    }

    fn tick(&mut self, now: Now) -> Option<Input> {
        if self.engine.is_following() {
            self.is_loading = None;
        }
        self.stats.set_report(EtcdReport {
            counts: self.engine.counts(now),
            under_way: self.engine.transactions_under_way(),
            state_age_ms: self.engine.state_age_ms(now),
        });
        Some(Input::Tick)
    }

    fn report(&self, now: Now) -> EngineReport {
        EngineReport {
            role: if self.engine.is_serving(now) { Role::Alone } else { Role::Looking },
            standing: Standing::default(),
            confirmed_ms: self.engine.confirmed_ms(),
        }
    }
}

#[cfg(test)]
mod tests;
