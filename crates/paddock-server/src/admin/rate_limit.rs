//! A limit on costly commands: one in each interval.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(super) struct RateLimit {
    last: Mutex<Option<Instant>>,
}

impl RateLimit {
    /// True if another command may be carried out now, with this interval between two.
    pub(super) fn admit(&self, interval: Duration) -> bool {
        let mut last = self.last.lock();
        let is_free = last.is_none_or(|last| last.elapsed() >= interval);
        if is_free {
            *last = Some(Instant::now());
        }
        is_free
    }
}
