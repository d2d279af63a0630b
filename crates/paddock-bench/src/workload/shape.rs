//! Settings of a built-in workload, and what the workloads make of them.

use super::tree::Znodes;
use super::{Lane, PreparedZnode};

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
    /// An equal seed makes the same requests.
    pub seed: u64,
}

/// Znodes to create before a run, parents first.
pub(super) type Setup<'a> = Box<dyn Iterator<Item = PreparedZnode> + 'a>;

impl Shape {
    pub(super) fn value(&self, default_bytes: usize) -> Vec<u8> {
        vec![b'x'; self.value_bytes.unwrap_or(default_bytes)]
    }

    /// A generator of its own for each session.
    pub(super) fn chance(&self, session: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ session as u64)
    }

    /// The root, and below it a znode for each session: `prefix` and the session's number.
    pub(super) fn session_znodes(&self, prefix: &'static str) -> Setup<'_> {
        let below = (0..self.sessions).map(move |session| self.znode(&format!("/{prefix}{session}")));
        Box::new(std::iter::once(self.znode("")).chain(below))
    }

    pub(super) fn znode(&self, below_root: &str) -> PreparedZnode {
        PreparedZnode { path: format!("{}{below_root}", self.root), data: Vec::new() }
    }

    /// One lane for each session, by its number.
    pub(super) fn lanes<L: Lane + 'static>(&self, lane: impl Fn(usize) -> L) -> Vec<Box<dyn Lane>> {
        (0..self.sessions).map(|session| Box::new(lane(session)) as Box<dyn Lane>).collect()
    }
}
