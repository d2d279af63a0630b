//! The workloads that come with the tool, named after what they reproduce.

use super::clickhouse::ClickHouse;
use super::create::CreateOnly;
use super::mixed::Mixed;
use super::same::Same;
use super::sessions::Sessions;
use super::smoketest::SmokeTest;
use super::suite::SuiteMix;
use super::tree::Znodes;
use super::watches::Watches;
use super::zkboom::ZkBoom;
use super::{Workload, Znode};
use crate::plan::Pace;

/// Settings of a built-in workload.
#[derive(Clone, Debug)]
pub struct Shape {
    /// All znodes are at or below this one.
    pub root: String,
    pub sessions: usize,
    /// Size of the values that it writes, in bytes, if not that of those it reproduces.
    pub value_bytes: Option<usize>,
    /// Number of znodes that each session makes in each phase, for workloads that count them.
    pub znodes: Option<u64>,
    /// From how many znodes `get` and `set` choose, if not from as many as they always do.
    pub among: Option<usize>,
    /// Znodes that `get` and `set` act on, if they are there already and stay.
    pub tree: Option<Znodes>,
    /// The same seed makes the same requests.
    pub seed: u64,
}

impl Shape {
    pub(super) fn value(&self, default_bytes: usize) -> Vec<u8> {
        vec![b'x'; self.value_bytes.unwrap_or(default_bytes)]
    }

    /// A generator of its own for each session.
    pub(super) fn chance(&self, session: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ session as u64)
    }

    /// The root, and below it a znode for each session: `prefix` and the session's number.
    pub(super) fn session_znodes(&self, prefix: &str) -> impl Iterator<Item = Znode> + use<'_> {
        let below: Vec<Znode> =
            (0..self.sessions).map(|session| self.znode(&format!("/{prefix}{session}"))).collect();
        std::iter::once(self.znode("")).chain(below)
    }

    pub(super) fn znode(&self, below_root: &str) -> Znode {
        Znode { path: format!("{}{below_root}", self.root), data: Vec::new() }
    }
}

/// A workload and how it is run unless the user says otherwise.
#[derive(Clone, Copy)]
pub struct Builtin {
    pub name: &'static str,
    pub about: &'static str,
    pub sessions: usize,
    pub pace: Pace,
    /// True if it ends by itself.
    pub is_finite: bool,
    build: fn(Shape) -> Box<dyn Workload>,
}

const ONE_BY_ONE: Pace = Pace::Closed { window: 1 };

pub const ALL: [Builtin; 10] = [
    Builtin {
        name: "create",
        about: "creates of 100-byte values (raftkeeper-bench)",
        sessions: 10,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(CreateOnly::new(shape)),
    },
    Builtin {
        name: "get",
        about: "reads of 100-byte values, any of 10000 znodes or --znodes",
        sessions: 10,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(Same::get(shape)),
    },
    Builtin {
        name: "set",
        about: "sets of 100-byte values, any of 10000 znodes or --znodes",
        sessions: 10,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(Same::set(shape)),
    },
    Builtin {
        name: "mixed",
        about: "create 1, set 8, get 45, list 45, delete 1 of 100, on 100 children with 50-byte names (raftkeeper-bench)",
        sessions: 10,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(Mixed::new(shape)),
    },
    Builtin {
        name: "clickhouse",
        about: "70% inserts into a replicated ClickHouse table (multi of check, create, create sequential, set); reads and watches",
        sessions: 10,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(ClickHouse::new(shape)),
    },
    Builtin {
        name: "suite",
        about: "1/3 create and delete, 2/3 reads (keeper-bench-suite)",
        sessions: 10,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(SuiteMix::new(shape)),
    },
    Builtin {
        name: "smoketest",
        about: "create, set, get, delete, create ephemeral, watch, delete with notification, one phase after the other (zk-smoketest)",
        sessions: 1,
        pace: Pace::Closed { window: 100 },
        is_finite: true,
        build: |shape| Box::new(SmokeTest::new(shape)),
    },
    Builtin {
        name: "zkboom",
        about: "creates and gets of 128 bytes at a fixed rate, 1000/s (zkboom)",
        sessions: 1,
        pace: Pace::Open { requests_per_second: 1000.0 },
        is_finite: false,
        build: |shape| Box::new(ZkBoom::new(shape)),
    },
    Builtin {
        name: "watches",
        about: "fan-out: one session sets a znode that all the others watch",
        sessions: 50,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(Watches::new(shape)),
    },
    Builtin {
        name: "sessions",
        about: "sessions that are closed and opened again, nothing else",
        sessions: 50,
        pace: ONE_BY_ONE,
        is_finite: false,
        build: |shape| Box::new(Sessions::new(shape)),
    },
];

impl Builtin {
    pub fn find(name: &str) -> Option<&'static Builtin> {
        ALL.iter().find(|builtin| builtin.name == name)
    }

    pub fn build(&self, shape: Shape) -> Box<dyn Workload> {
        (self.build)(shape)
    }
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builtin").field("name", &self.name).finish_non_exhaustive()
    }
}
