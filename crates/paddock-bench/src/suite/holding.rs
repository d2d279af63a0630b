//! Plans of what it costs to hold much: idle sessions, snapshots, and load beside few and many of a thing.

use std::fmt;

use serde::Serialize;

use crate::workload::production::Production;
use crate::workload::tree::{Filling, Values, Znodes};

/// Sessions that are opened to see what they take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Idle {
    /// The two numbers of sessions. Memory that the server needs anyway is in that of the smaller one too, so it does not count.
    pub sessions: [usize; 2],
    /// Watches of each session.
    pub watches: usize,
    /// True if all sessions watch the same znodes; otherwise each watch is on a znode of its own.
    pub same_znodes: bool,
    /// Seconds for which processor time is counted, 0 if it is not.
    pub time_s: f64,
}

/// The contents of the snapshot, and how the server is written to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotPlan {
    pub tree: Filling,
    /// A snapshot is taken after this many writes.
    pub writes: u64,
    /// Seconds of writing, without snapshots and with them.
    pub time_s: f64,
    /// Seconds of writing before that, which are not measured.
    pub warm_up_s: f64,
}

/// The thing that a server gets more and more of, and how the server is loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    pub of: Grown,
    pub few: usize,
    pub many: usize,
    /// Seconds for which each workload is measured each time, on each of the two.
    pub time_s: f64,
    pub warm_up_s: f64,
}

/// The thing that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grown {
    /// Znodes that are read and set, any of them.
    Znodes,
    /// Sessions that idle.
    Sessions,
    /// Watches of ten sessions together, on znodes that are not written to.
    Watches,
}

/// Each is played this number of times on both servers in turns, and the medians count.
pub(super) const ROUNDS: usize = 3;
/// Workloads in the order of their runs; znodes that a create has made are removed before the next one.
pub(super) const WORKLOADS: [&str; 3] = ["get", "set", "create"];

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [few, many] = self.sessions;
        write!(f, "{few} to {many} idle sessions")?;
        match self.watches {
            0 => write!(f, " without a watch"),
            1 => write!(f, " with a watch each"),
            watches => write!(f, " with {watches} watches each"),
        }?;
        f.write_str(if self.same_znodes { ", of the same znodes" } else { "" })
    }
}

impl SnapshotPlan {
    pub(super) fn estimated_s(&self, requests_per_second: f64) -> f64 {
        // Four starts, of which three load all, and the snapshots before the last two.
        let load_s = self.tree.count() as f64 / requests_per_second;
        10.0 + load_s * 1.5 + 2.0 * (self.time_s + self.warm_up_s)
    }
}

impl fmt::Display for SnapshotPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Znodes { znodes, value_bytes, .. }, values) = match &self.tree {
            Filling::Alike { znodes, values } => (znodes, values),
            Filling::Production(Production { znodes }) => {
                return write!(f, "snapshots of {znodes} znodes of a production");
            }
        };
        let values = match values {
            Values::Same => "",
            Values::Text => " of text",
            Values::Random => " of noise",
        };
        write!(f, "snapshots of {znodes} znodes of {value_bytes} bytes{values}")
    }
}

impl Growth {
    pub(super) fn estimated_s(&self, requests_per_second: f64) -> f64 {
        let runs = 2 * ROUNDS * WORKLOADS.len();
        self.many as f64 / requests_per_second + runs as f64 * (self.time_s + self.warm_up_s)
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.of {
            Grown::Znodes => "znodes",
            Grown::Sessions => "idle sessions",
            Grown::Watches => "watches",
        };
        write!(f, "{} and {} {what}", self.few, self.many)
    }
}
