//! Log lines about writes that went above a limit of a quota.

use std::time::{Duration, Instant};

use crate::shared::Shared;

/// Time between two reports: a client that writes above a limit does it many times.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct QuotaReport {
    next: Instant,
}

impl QuotaReport {
    pub(crate) fn new(now: Instant) -> QuotaReport {
        QuotaReport { next: now }
    }

    /// Tells of the newest write above each limit, if it is time.
    pub(crate) fn tell(&mut self, shared: &Shared) {
        let now = Instant::now();
        if now < self.next || !shared.state.read().tree().quota_overruns().is_news() {
            return;
        }
        self.next = now + PAUSE;
        let overruns = shared.state.write().tree_mut().take_quota_overruns();
        for overrun in overruns {
            let kind = if overrun.is_hard { "hard" } else { "soft" };
            tracing::warn!(
                path = overrun.path,
                limit = ?overrun.limit,
                kind,
                value = overrun.value,
                max = overrun.max,
                "quota exceeded"
            );
        }
    }
}
