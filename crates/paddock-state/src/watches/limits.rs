//! Limits of the watch table: watches of one connection and of all, and none that are new while the member has no memory.

use crate::ConnId;

/// Watches that there may be at most; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchLimits {
    pub per_connection_max: usize,
    pub max: usize,
}

/// Watches that were refused.
#[derive(Debug)]
pub struct RefusedWatches {
    pub count: u64,
    /// The connection that asked last.
    pub last: ConnId,
    /// Connections that are to be closed, because they brought more watches than there may be.
    pub to_close: Vec<ConnId>,
}

#[derive(Debug, Default)]
pub(super) struct Limited {
    limits: WatchLimits,
    is_refusing_all: bool,
    refused: Option<RefusedWatches>,
}

impl Limited {
    pub(super) fn set_limits(&mut self, limits: WatchLimits) {
        self.limits = limits;
    }

    pub(super) fn refuse_all(&mut self, is_refusing: bool) {
        self.is_refusing_all = is_refusing;
    }

    pub(super) fn is_refusing_all(&self) -> bool {
        self.is_refusing_all
    }

    /// True if there may be one more beside `all`, of which `own` are of the connection that asks.
    pub(super) fn may_add(&self, all: usize, own: impl FnOnce() -> usize) -> bool {
        let WatchLimits { per_connection_max, max } = self.limits;
        (max == 0 || all < max) && (per_connection_max == 0 || own() < per_connection_max)
    }

    pub(super) fn refused(&mut self, conn: ConnId) {
        let refused =
            self.refused.get_or_insert(RefusedWatches { count: 0, last: conn, to_close: Vec::new() });
        (refused.count, refused.last) = (refused.count + 1, conn);
    }

    /// A connection has brought more watches than there may be.
    pub(super) fn close(&mut self, conn: ConnId) {
        self.refused(conn);
        self.refused.as_mut().expect("one was just refused").to_close.push(conn);
    }

    pub(super) fn take_refused(&mut self) -> Option<RefusedWatches> {
        self.refused.take()
    }
}
