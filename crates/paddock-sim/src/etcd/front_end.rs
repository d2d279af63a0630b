//! A front end: the engine and the state of one process, and what is between it and etcd.

use paddock_etcd::{Call, CallId, Effects, Engine, EngineOptions, Input, Keys, Limits, WatchOrder};
use paddock_state::{Now, Outboxes, State};

/// Operations of a transaction, at most: few, so that sessions end in several.
const OPERATIONS_MAX: usize = 24;

#[derive(Debug)]
pub(crate) struct FrontEnd {
    pub(crate) engine: Engine,
    pub(crate) state: State,
    pub(crate) out: Outboxes,
    /// Calls that etcd has not got yet.
    pub(crate) calls: Vec<(CallId, Call)>,
    pub(crate) watch: Option<WatchOrder>,
    /// Steps for which it does nothing.
    pub(crate) asleep: u64,
    /// Steps for which nothing comes to etcd and back.
    pub(crate) cut_off: u64,
}

impl FrontEnd {
    /// `number`: that of its start, among all front ends.
    pub(crate) fn start(number: u64, keys: &Keys, now: Now) -> FrontEnd {
        let options = EngineOptions {
            keys: keys.clone(),
            front: number << 32,
            limits: Limits { operations_max: OPERATIONS_MAX, ..Limits::default() },
            tick_ms: 2000,
            write_timeout_ms: 8000,
            stale_reads: false,
            garbage_interval_ms: 60_000,
            garbage_max: 10,
        };
        FrontEnd {
            engine: Engine::new(options, now),
            state: State::default(),
            out: Outboxes::new(1),
            calls: Vec::new(),
            watch: None,
            asleep: 0,
            cut_off: 0,
        }
    }

    /// Takes an input. Returns the leases that are to be renewed.
    pub(crate) fn take(&mut self, now: Now, input: Input) -> Vec<i64> {
        let mut effects = Effects::default();
        self.engine.step(now, input, &mut self.state, &mut self.out, &mut effects);
        self.engine.work(now, &mut self.state, &mut self.out, &mut effects);
        self.calls.append(&mut effects.calls);
        self.watch = effects.watch.or(self.watch.take());
        effects.keep_alive
    }
}
