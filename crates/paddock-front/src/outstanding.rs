//! Requests that the engine has to answer, of all connections of a member, and their limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of requests under way. It is counted only if there is a limit.
#[derive(Debug)]
pub struct OutstandingLimit {
    max: usize,
    now: AtomicUsize,
}

impl Default for OutstandingLimit {
    fn default() -> OutstandingLimit {
        OutstandingLimit::new(usize::MAX)
    }
}

impl OutstandingLimit {
    /// A limit of so many requests; `usize::MAX` is none.
    pub fn new(max: usize) -> OutstandingLimit {
        OutstandingLimit { max, now: AtomicUsize::new(0) }
    }

    /// True if there are so many that only connections without a request under way may add one.
    #[inline]
    pub(crate) fn is_reached(&self) -> bool {
        self.max != usize::MAX && self.now.load(Relaxed) >= self.max
    }

    #[inline]
    pub(crate) fn add(&self, requests: usize) {
        if self.max != usize::MAX {
            self.now.fetch_add(requests, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn subtract(&self, requests: usize) {
        if self.max != usize::MAX {
            self.now.fetch_sub(requests, Relaxed);
        }
    }
}
