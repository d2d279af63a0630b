//! Long multis of one front's connections.
//!
//! A multi is one step of the state, and one with thousands of operations takes milliseconds. Few are under way at a time: what another
//! client writes waits behind those, and not behind all that are asked for.

use std::collections::VecDeque;

use paddock_state::ConnId;

use crate::Limits;

#[derive(Debug, Default)]
pub(crate) struct LongMultis {
    /// Bytes of those that the engine has.
    bytes: usize,
    /// Connections whose next request is one for which there is no room.
    waiting: VecDeque<ConnId>,
}

impl LongMultis {
    /// True if one of `bytes` bytes may be handed to the engine. One alone always may, however long.
    pub(crate) fn may_add(&self, bytes: usize, limits: &Limits) -> bool {
        self.bytes == 0 || self.bytes + bytes <= limits.long_multis_max
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Multis of `bytes` bytes have been answered, or their connection is gone.
    pub(crate) fn end(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    pub(crate) fn wait(&mut self, conn: ConnId) {
        self.waiting.push_back(conn);
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The connection that has waited longest, if there is room now.
    pub(crate) fn next_waiting(&mut self, limits: &Limits) -> Option<ConnId> {
        if self.waiting.is_empty() || self.bytes >= limits.long_multis_max {
            return None;
        }
        self.waiting.pop_front()
    }
}
