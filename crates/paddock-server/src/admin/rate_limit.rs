//! A limit on costly commands: one in each interval.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug)]
pub(super) struct RateLimit {
    interval: Duration,
    last: Mutex<Option<Instant>>,
}

impl RateLimit {
    pub(super) fn new(interval: Duration) -> RateLimit {
        RateLimit { interval, last: Mutex::default() }
    }

    /// True if another command may be carried out now.
    pub(super) fn admit(&self) -> bool {
        let mut last = self.last.lock();
        let is_free = last.is_none_or(|last| last.elapsed() >= self.interval);
        if is_free {
            *last = Some(Instant::now());
        }
        is_free
    }
}
