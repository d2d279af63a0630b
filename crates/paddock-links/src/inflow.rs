//! Messages that were received and not let go yet. When they are too many, their link is not read until there are
//! fewer; the other side then queues, and drops when its queue is full.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A link whose messages of this many bytes are still held is not read,
const HELD_BYTES_MAX: usize = 64 << 20;
/// until this many are left.
const HELD_BYTES_AGAIN: usize = HELD_BYTES_MAX / 2;
/// Bytes that a message costs beside its own.
const MESSAGE_OVERHEAD: usize = 64;

/// The messages of one link that are held somewhere.
#[derive(Debug, Default)]
pub(super) struct Inflow {
    held: AtomicUsize,
    resumed: Notify,
}

impl Inflow {
    pub(super) fn is_full(&self) -> bool {
        self.held.load(Ordering::Acquire) >= HELD_BYTES_MAX
    }

    /// True if a full one may take messages again.
    pub(super) fn has_drained(&self) -> bool {
        self.held.load(Ordering::Acquire) < HELD_BYTES_AGAIN
    }

    /// Returns when a full one may have drained.
    pub(super) async fn resumed(&self) {
        self.resumed.notified().await;
    }
}

/// The bytes of a message. They count against what its link may receive until they are dropped.
pub struct Received {
    bytes: Vec<u8>,
    inflow: Arc<Inflow>,
}

impl Received {
    pub(super) fn new(bytes: Vec<u8>, inflow: Arc<Inflow>) -> Received {
        inflow.held.fetch_add(bytes.len() + MESSAGE_OVERHEAD, Ordering::AcqRel);
        Received { bytes, inflow }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let cost = self.bytes.len() + MESSAGE_OVERHEAD;
        let held_before = self.inflow.held.fetch_sub(cost, Ordering::AcqRel);
        if held_before >= HELD_BYTES_AGAIN && held_before - cost < HELD_BYTES_AGAIN {
            self.inflow.resumed.notify_one();
        }
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}
