//! A front end: the engine and the state of one process, and what is between it and etcd.

use paddock_etcd::{
    Answer, Call, CallError, CallId, Effects, Engine, EngineOptions, Input, Keys, Limits, WatchOrder,
};
use paddock_proto::SessionSecret;
use paddock_state::{Now, Outboxes, State};

#[derive(Debug)]
pub(crate) struct FrontEnd {
    pub(crate) engine: Engine,
    pub(crate) state: State,
    pub(crate) out: Outboxes,
    /// Calls that etcd has not got yet.
    pub(crate) calls: Vec<(CallId, Call)>,
    pub(crate) answers: Vec<SlowAnswer>,
    pub(crate) watch: Option<WatchOrder>,
    /// Steps for which it does nothing.
    pub(crate) asleep: u64,
    /// Steps for which nothing comes to etcd and back.
    pub(crate) cut_off: u64,
    /// Nothing comes to etcd and back before this time, in milliseconds.
    pub(crate) cut_off_until_ms: u64,
    /// Steps for which its watch stream says nothing.
    pub(crate) stalled: u64,
    /// Times that it was told that revisions which it has not seen are compacted.
    pub(crate) compactions: u64,
}

/// An answer of etcd on its way back.
#[derive(Debug)]
pub(crate) struct SlowAnswer {
    pub(crate) id: CallId,
    pub(crate) result: Result<Answer, CallError>,
    /// Time when etcd gave it, in milliseconds.
    pub(crate) since_ms: u64,
}

impl FrontEnd {
    /// `number`: that of its start, among all front ends.
    pub(crate) fn start(number: u64, keys: &Keys, operations_max: usize, now: Now) -> FrontEnd {
        let options = EngineOptions {
            keys: keys.clone(),
            front: number << 32,
            limits: Limits { operations_max, ..Limits::default() },
            secret: SessionSecret([number as u8; SessionSecret::BYTES]),
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
            answers: Vec::new(),
            watch: None,
            asleep: 0,
            cut_off: 0,
            cut_off_until_ms: 0,
            stalled: 0,
            compactions: 0,
        }
    }

    pub(crate) fn is_cut_off(&self, now_ms: u64) -> bool {
        self.cut_off > 0 || now_ms < self.cut_off_until_ms
    }

    /// Takes an input. Returns the leases that are to be renewed.
    pub(crate) fn take(&mut self, now: Now, input: Input) -> Vec<i64> {
        let mut effects = Effects::default();
        self.engine.step(now, input, &mut self.state, &mut self.out, &mut effects);
        self.engine.work(now, &mut self.state, &mut self.out, &mut effects);
        self.calls.append(&mut effects.calls);
        if effects.watch.is_some() {
            (self.watch, self.stalled) = (effects.watch, 0);
        }
        effects.keep_alive
    }
}
