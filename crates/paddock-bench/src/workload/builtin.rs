//! The workloads that come with the tool, named after what they reproduce.

use super::shape::{Setup, Shape};
use super::{
    Lane, PreparedZnode, Workload, clickhouse, create, mix, same, session_storm, smoketest, watches,
};
use crate::report::Pace;

/// A workload and how it is run unless the user says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    pub name: &'static str,
    pub about: &'static str,
    pub sessions: usize,
    pub pace: Pace,
    /// True if it ends by itself.
    pub is_finite: bool,
    is_one_thread: bool,
    /// The operations that are reported apart.
    operations: &'static [&'static str],
    /// Sentences about its phases; without one, the workload is a phase.
    phases: &'static [&'static str],
    setup: fn(&Shape) -> Setup<'_>,
    lanes: fn(&Shape) -> Vec<Box<dyn Lane>>,
}

const ONE_BY_ONE: Pace = Pace::Closed { window: 1 };

/// A workload as most are; each row of the table names what is its own.
const USUAL: Builtin = Builtin {
    name: "",
    about: "",
    sessions: 10,
    pace: ONE_BY_ONE,
    is_finite: false,
    is_one_thread: false,
    operations: &[],
    phases: &[],
    setup: |_| Box::new(std::iter::empty()),
    lanes: |_| Vec::new(),
};

pub const ALL: [Builtin; 10] = [
    Builtin {
        name: "create",
        about: "creates of 100-byte values (raftkeeper-bench)",
        operations: &["create"],
        setup: |shape| shape.session_znodes(""),
        lanes: create::creates,
        ..USUAL
    },
    Builtin {
        name: "get",
        about: "reads of 100-byte values, any of 10000 znodes or --znodes",
        operations: &["get"],
        setup: same::setup,
        lanes: same::gets,
        ..USUAL
    },
    Builtin {
        name: "set",
        about: "sets of 100-byte values, any of 10000 znodes or --znodes",
        operations: &["set"],
        setup: same::setup,
        lanes: same::sets,
        ..USUAL
    },
    Builtin {
        name: "mixed",
        about: "create 1, set 8, get 45, list 45, delete 1 of 100, on 100 children with 50-byte names (raftkeeper-bench)",
        operations: &mix::OPERATIONS,
        setup: mix::mixed_setup,
        lanes: mix::mixed,
        ..USUAL
    },
    Builtin {
        name: "clickhouse",
        about: "70% inserts into a replicated ClickHouse table (multi of check, create, create sequential, set); reads and watches",
        operations: &clickhouse::OPERATIONS,
        setup: clickhouse::setup,
        lanes: clickhouse::lanes,
        ..USUAL
    },
    Builtin {
        name: "suite",
        about: "1/3 create and delete, 2/3 reads (keeper-bench-suite)",
        operations: mix::OPERATIONS.split_at(mix::OPERATIONS_OF_SUITE).0,
        setup: mix::suite_setup,
        lanes: mix::suite,
        ..USUAL
    },
    Builtin {
        name: "smoketest",
        about: "create, set, get, delete, create ephemeral, watch, delete with notification, one phase after the other (zk-smoketest)",
        sessions: 1,
        pace: Pace::Closed { window: 100 },
        is_finite: true,
        operations: &smoketest::OPERATIONS,
        phases: &smoketest::PHASES,
        setup: |shape| shape.session_znodes("session_"),
        lanes: smoketest::lanes,
        ..USUAL
    },
    Builtin {
        name: "zkboom",
        about: "creates and gets of 128 bytes at a fixed rate, 1000/s (zkboom)",
        sessions: 1,
        pace: Pace::Open { requests_per_second: 1000.0 },
        operations: &["create", "get"],
        setup: |shape| shape.session_znodes(""),
        lanes: create::creates_and_gets,
        ..USUAL
    },
    Builtin {
        name: "watches",
        about: "fan-out: one session sets a znode that all the others watch",
        sessions: 50,
        is_one_thread: true,
        operations: &watches::OPERATIONS,
        setup: |shape| Box::new(std::iter::once(shape.znode(""))),
        lanes: watches::lanes,
        ..USUAL
    },
    Builtin {
        name: "sessions",
        about: "sessions that are closed and opened again, nothing else",
        sessions: 50,
        operations: &session_storm::OPERATIONS,
        lanes: session_storm::lanes,
        ..USUAL
    },
];

impl Builtin {
    pub fn find(name: &str) -> Option<&'static Builtin> {
        ALL.iter().find(|builtin| builtin.name == name)
    }

    pub fn build(&'static self, shape: Shape) -> Box<dyn Workload> {
        Box::new(BuiltinWorkload { builtin: self, shape })
    }
}

/// Names what can be run in the place of a workload that there is not.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = ALL.iter().map(|builtin| builtin.name).collect();
    format!("there is no workload {name:?}; there are {}, and files in .yaml or .csv", names.join(", "))
}

#[derive(Debug)]
struct BuiltinWorkload {
    builtin: &'static Builtin,
    shape: Shape,
}

impl Workload for BuiltinWorkload {
    fn name(&self) -> String {
        self.builtin.name.to_owned()
    }

    fn operations(&self) -> Vec<String> {
        self.builtin.operations.iter().copied().map(String::from).collect()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = PreparedZnode> + '_> {
        (self.builtin.setup)(&self.shape)
    }

    /// The workload's own root, unless it makes nothing.
    fn roots(&self) -> Vec<String> {
        let makes_any = self.setup().next().is_some();
        if makes_any { vec![self.shape.root.clone()] } else { Vec::new() }
    }

    fn phases(&self) -> Vec<String> {
        match self.builtin.phases {
            [] => vec![self.name()],
            phases => phases.iter().copied().map(String::from).collect(),
        }
    }

    fn is_one_thread(&self) -> bool {
        self.builtin.is_one_thread
    }

    fn lanes(&self, sessions: usize) -> Vec<Box<dyn Lane>> {
        assert!(sessions == self.shape.sessions, "a built-in workload is built for its sessions");
        (self.builtin.lanes)(&self.shape)
    }
}
