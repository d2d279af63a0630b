//! Metrics of the cross-check with a reference server.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use paddock_statistics::metric::{Metric, counter, gauge};

/// Counters of the cross-check.
#[derive(Debug, Default)]
pub struct CrossCheckStats {
    pairs: AtomicUsize,
    compared: AtomicU64,
    differences: AtomicU64,
    given_up: AtomicU64,
}

impl CrossCheckStats {
    pub(crate) fn set_pairs(&self, pairs: usize) {
        self.pairs.store(pairs, Relaxed);
    }

    pub(crate) fn compared(&self, answers: u64) {
        self.compared.fetch_add(answers, Relaxed);
    }

    pub(crate) fn differed(&self) {
        self.differences.fetch_add(1, Relaxed);
    }

    pub(crate) fn gave_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
    }

    /// Answers that were compared, those that differed, and connections that were given up.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        (self.compared.load(Relaxed), self.differences.load(Relaxed), self.given_up.load(Relaxed))
    }

    /// Metrics for `mntr` and for Prometheus.
    pub fn metrics(&self) -> [Metric; 4] {
        [
            gauge("cross_check_connections", "Connections that are checked", self.pairs.load(Relaxed)),
            counter(
                "cross_check_compared",
                "Answers and events that were compared with those of the reference",
                self.compared.load(Relaxed),
            ),
            counter(
                "cross_check_differences",
                "Answers and events that differed from those of the reference",
                self.differences.load(Relaxed),
            ),
            counter(
                "cross_check_given_up",
                "Connections that are not checked any more: the reference was gone or too slow, or it cannot be checked",
                self.given_up.load(Relaxed),
            ),
        ]
    }
}
