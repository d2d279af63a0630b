//! Faults of a run, and how often each strikes.

use paddock_chance::Chance;

/// Each of these happens in one of so many cases.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    /// A call is lost on its way to etcd, or its answer on the way back.
    pub(crate) call_lost: u64,
    /// A lost call is carried out by etcd later, when its sender has given it up.
    pub(crate) call_late: u64,
    /// In a step, a late call arrives.
    pub(crate) late_arrival: u64,
    /// The watch stream breaks when something is to be told.
    pub(crate) stream_lost: u64,
    /// In a step, etcd compacts.
    pub(crate) compaction: u64,
    /// In a step, a front end is killed.
    pub(crate) kill: u64,
    /// In a step, a front end sleeps.
    pub(crate) sleep: u64,
    /// In a step, a front end is cut off from etcd.
    pub(crate) cut: u64,
    /// In a step, etcd runs out of space.
    pub(crate) alarm: u64,
    /// A client that could ask for something leaves its connection.
    pub(crate) disconnect: u64,
    /// A client without a connection connects.
    pub(crate) connect: u64,
    /// In a step, somebody writes another key of etcd.
    pub(crate) foreign: u64,
    /// Time that passes from tick to tick, in milliseconds.
    pub(crate) tick_ms: u64,
}

impl Weather {
    pub(crate) fn throw(seed: u64) -> Weather {
        let chance = &mut Chance::of(seed, "weather");
        Weather {
            call_lost: *chance.pick(&[5, 12, 12, 60]),
            call_late: *chance.pick(&[1, 2, 4]),
            late_arrival: *chance.pick(&[20, 100, 400]),
            stream_lost: *chance.pick(&[20, 60, 200]),
            compaction: *chance.pick(&[150, 400, 2000]),
            kill: *chance.pick(&[600, 2000, 100_000]),
            sleep: *chance.pick(&[1000, 4000]),
            cut: *chance.pick(&[1000, 4000]),
            alarm: *chance.pick(&[800, 2500, 100_000]),
            disconnect: *chance.pick(&[15, 80, 400]),
            connect: *chance.pick(&[1, 1, 8, 60]),
            foreign: *chance.pick(&[30, 300]),
            tick_ms: *chance.pick(&[10, 30, 60]),
        }
    }
}
