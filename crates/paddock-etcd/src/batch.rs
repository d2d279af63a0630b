//! Writes that become one transaction.
//!
//! Two writes about one znode are not combined: each is a revision of its own then, with events of its own. Creates and
//! deletes below one parent are.

use std::collections::BTreeSet;

use paddock_proto::{SessionId, Write};
use paddock_state::ConnId;
use paddock_tree::Command;

use crate::lanes::QueuedRequest;
use crate::plan::{Dependencies, Limits};

const BYTES_MAX: usize = 512 << 10;

#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<(ConnId, QueuedRequest)>,
    named: BTreeSet<String>,
    parents: BTreeSet<String>,
    sessions: BTreeSet<SessionId>,
    bytes: usize,
    writes_max: usize,
    /// Keys that one transaction compares, at most.
    keys_max: usize,
    /// Its write has to be alone.
    is_closed: bool,
}

impl Batch {
    /// An empty one.
    pub(crate) fn new(limits: &Limits) -> Batch {
        Batch { writes_max: limits.writes_max, keys_max: limits.operations_max, ..Batch::default() }
    }

    /// Keys that the transaction will compare if these are added. Statistics of quotas come on top.
    fn keys_with(&self, depends: &Dependencies) -> usize {
        let parents = depends.parents.iter().filter(|path| !self.parents.contains(*path)).count();
        let sessions = depends.sessions.iter().filter(|id| !self.sessions.contains(id)).count();
        let before = self.named.len() + self.parents.len() + self.sessions.len();
        before + depends.named.len() + parents + sessions
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_closed || self.entries.len() >= self.writes_max || self.bytes >= BYTES_MAX
    }

    /// True if a write can be part of this batch.
    pub(crate) fn admits(&self, command: &Command<'_>, depends: &Dependencies, is_alone: bool) -> bool {
        if self.is_full() || (is_alone || reaches_far(command)) && !self.is_empty() {
            return false;
        }
        if !self.is_empty() && self.keys_with(depends) > self.keys_max {
            return false;
        }
        let is_known = |path: &String| self.named.contains(path);
        let meets = depends.named.iter().any(|path| is_known(path) || self.parents.contains(path));
        !meets && !depends.parents.iter().any(is_known)
    }

    pub(crate) fn note(
        &mut self,
        command: &Command<'_>,
        depends: Dependencies,
        bytes: usize,
        is_alone: bool,
    ) {
        self.named.extend(depends.named);
        self.parents.extend(depends.parents);
        self.sessions.extend(depends.sessions);
        self.bytes += bytes;
        self.is_closed |= is_alone || reaches_far(command);
    }
}

/// True for a write about znodes that it does not name.
fn reaches_far(command: &Command<'_>) -> bool {
    matches!(
        command.write,
        Ok(Write::CloseSession
            | Write::ExpireSession { .. }
            | Write::TryRemove { .. }
            | Write::RemoveRecursive { .. })
    )
}
