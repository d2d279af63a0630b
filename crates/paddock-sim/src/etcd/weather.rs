//! Faults of a run, and how often each strikes.

use paddock_chance::Chance;

/// Odds of what does not happen in a run.
const NEVER: u64 = u64::MAX;

/// Each of these happens in one case of the number given, but for the last.
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
    /// In a step, another program writes another key of etcd.
    pub(crate) foreign: u64,
    /// Time that passes from tick to tick, in milliseconds.
    pub(crate) tick_ms: u64,
    /// In a step, a front end is cut off from etcd for longer than a lease lives, and both are in half of these.
    pub(crate) outage: u64,
    /// In a step, etcd begins to refuse calls, each by one error or another.
    pub(crate) denial: u64,
    /// An answer takes its time on the way back.
    pub(crate) slow_answer: u64,
    /// In a step, a watch stream says nothing more and does not end.
    pub(crate) stall: u64,
    /// A create that would make a znode which stays makes an ephemeral.
    pub(crate) hoarding: u64,
    /// Instead of a client that would do something, a stranger comes to a session of one, or goes.
    pub(crate) stranger: u64,
    /// Operations of a transaction, at most: few, so that sessions end in several.
    pub(crate) operations_max: usize,
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
            outage: *chance.pick(&[NEVER, 4000, 1000]),
            denial: *chance.pick(&[NEVER, 4000, 1000]),
            slow_answer: *chance.pick(&[NEVER, 40, 6]),
            stall: *chance.pick(&[NEVER, 2000, 600]),
            hoarding: *chance.pick(&[NEVER, 4, 1]),
            operations_max: *chance.pick(&[24, 24, 12, 7]),
            stranger: *chance.pick(&[NEVER, 60, 15]),
        }
    }
}
