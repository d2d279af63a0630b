//! Writes that become one transaction.
//!
//! Two writes about one znode are not combined: each is a revision of its own then, with events of its own. Creates and
//! deletes below one parent are.

use std::collections::BTreeSet;

use paddock_proto::Write;
use paddock_state::ConnId;
use paddock_tree::Command;

use crate::lanes::Waiting;
use crate::plan::Dependencies;

const BYTES_MAX: usize = 512 << 10;

#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<(ConnId, Waiting)>,
    named: BTreeSet<String>,
    parents: BTreeSet<String>,
    bytes: usize,
    writes_max: usize,
    /// Its write has to be alone.
    is_closed: bool,
}

impl Batch {
    /// An empty one, for so many writes.
    pub(crate) fn new(writes_max: usize) -> Batch {
        Batch { writes_max, ..Batch::default() }
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
