//! The thread of the engine: what waits is stepped under one lock of the state, then the effects are carried out.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use paddock_etcd::{Effects, Engine, EngineOptions, Input, Keys, Limits};
use paddock_member::Clock as _;
use paddock_proto::SessionSecret;
use paddock_replica::Role;
use paddock_state::{ClientInput, Outboxes};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::MissedTickBehavior;

use super::calls;
use super::connection::Connection;
use crate::config::EtcdSettings;
use crate::host::{QuotaReport, audit_deaths, post};
use crate::shared::Shared;
use crate::statistics::etcd_metrics::{EtcdReport, EtcdStats};
use crate::threads::runtime_with_helpers;
use paddock_tls::random_bytes;

/// Inputs that are stepped under one lock, at most.
const INPUTS_PER_ROUND: usize = 1024;
/// Bytes of a request to etcd beside its keys and values.
const REQUEST_RESERVE: usize = 16 << 10;

#[derive(Debug)]
pub(super) enum Message {
    /// Inputs from the front of one worker.
    Clients(Vec<ClientInput>),
    Close,
}

struct Runner {
    shared: Arc<Shared>,
    engine: Engine,
    outboxes: Outboxes,
    connection: Rc<Connection>,
    inbox: UnboundedSender<Input>,
    watch: Option<JoinHandle<()>>,
    stats: Arc<EtcdStats>,
    quota_report: QuotaReport,
    /// Dropped when the state has been read for the first time.
    is_loading: Option<Sender<()>>,
}

pub(super) fn run(
    shared: Arc<Shared>,
    settings: EtcdSettings,
    messages: UnboundedReceiver<Message>,
    is_loading: Sender<()>,
) {
    let runtime = runtime_with_helpers(&mut tokio::runtime::Builder::new_current_thread());
    let (inbox, answers) = unbounded_channel();
    let runner = Runner::new(shared, &settings, inbox, is_loading);
    LocalSet::new().block_on(&runtime, async {
        let keeping = spawn_local(runner.connection.clone().keep(settings));
        runner.run(messages, answers).await;
        keeping.abort();
    });
}

fn options(shared: &Shared, settings: &EtcdSettings) -> EngineOptions {
    let config = &shared.config;
    EngineOptions {
        keys: Keys::new(&settings.prefix),
        // The standard library's hash tables are seeded by the system's chance.
        front: RandomState::new().hash_one(shared.clock.now().wall_ms),
        limits: Limits {
            operations_max: settings.txn_operations_max,
            bytes_max: settings.request_bytes_max.saturating_sub(REQUEST_RESERVE),
            writes_max: if settings.separate_writes { 1 } else { Limits::WRITES_MAX },
        },
        secret: SessionSecret(random_bytes()),
        tick_ms: u64::from(config.tick_ms),
        write_timeout_ms: settings.write_timeout_ms,
        stale_reads: settings.stale_reads,
        garbage_interval_ms: config.garbage_interval_ms,
        garbage_max: config.garbage_max,
    }
}

impl Runner {
    fn new(
        shared: Arc<Shared>,
        settings: &EtcdSettings,
        inbox: UnboundedSender<Input>,
        is_loading: Sender<()>,
    ) -> Runner {
        let stats = shared.etcd.clone().expect("a front end has statistics of etcd");
        if shared.audit.is_some() {
            shared.state.write().record_deaths();
        }
        Runner {
            engine: Engine::new(options(&shared, settings), shared.clock.now()),
            outboxes: Outboxes::new(shared.inner_worker() + 1),
            connection: Rc::new(Connection::new(stats.clone())),
            inbox,
            watch: None,
            stats,
            quota_report: QuotaReport::new(Instant::now()),
            is_loading: Some(is_loading),
            shared,
        }
    }

    async fn run(mut self, mut messages: UnboundedReceiver<Message>, mut answers: UnboundedReceiver<Input>) {
        let mut tick = tokio::time::interval(Duration::from_millis(Engine::TICK_MS));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut inputs = Vec::new();
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(Message::Clients(clients)) => inputs.extend(clients.into_iter().map(Input::Client)),
                    Some(Message::Close) | None => return,
                },
                answer = answers.recv() => inputs.extend(answer),
                _ = tick.tick() => inputs.push(Input::Tick),
            }
            while inputs.len() < INPUTS_PER_ROUND
                && let Ok(answer) = answers.try_recv()
            {
                inputs.push(answer);
            }
            while inputs.len() < INPUTS_PER_ROUND
                && let Ok(message) = messages.try_recv()
            {
                match message {
                    Message::Clients(clients) => inputs.extend(clients.into_iter().map(Input::Client)),
                    Message::Close => return,
                }
            }
            self.round(&mut inputs);
        }
    }

    fn round(&mut self, inputs: &mut Vec<Input>) {
        let has_ticked = inputs.iter().any(|input| matches!(input, Input::Tick));
        let effects = self.work_locked(inputs);
        self.shared.set_confirmed(self.engine.confirmed_ms());
        if has_ticked {
            self.tell();
        }
        self.carry_out(effects);
    }

    /// Steps the inputs with the state locked. Mail is in the mailboxes before the lock is let go.
    fn work_locked(&mut self, inputs: &mut Vec<Input>) -> Effects {
        let now = self.shared.clock.now();
        let mut effects = Effects::default();
        let mut replicated = self.shared.state.write();
        let state = replicated.state_mut();
        self.outboxes.begin_round();
        for input in inputs.drain(..) {
            self.engine.step(now, input, state, &mut self.outboxes, &mut effects);
        }
        self.engine.work(now, state, &mut self.outboxes, &mut effects);
        let woken = post(&self.shared, &mut self.outboxes, None);
        let deaths = state.take_deaths();
        drop(replicated);
        woken.into_iter().for_each(|worker| self.shared.mailbox(worker).wake());
        audit_deaths(&self.shared, &deaths);
        effects
    }

    /// Tells the other threads whether clients can be served.
    fn tell(&mut self) {
        let now = self.shared.clock.now();
        let is_serving = self.engine.is_serving(now);
        self.shared.set_role(if is_serving { Role::Alone } else { Role::Looking });
        if self.engine.is_following() {
            self.is_loading = None;
        }
        self.shared.state.read().state().sweep_watches();
        self.quota_report.tell(&self.shared);
        self.stats.set_report(EtcdReport {
            counts: self.engine.counts(now),
            under_way: self.engine.transactions_under_way(),
            state_age_ms: self.engine.state_age_ms(now),
        });
    }

    fn carry_out(&mut self, effects: Effects) {
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
}

#[cfg(test)]
mod tests;
