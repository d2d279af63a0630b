//! Requests that the engine has to answer, of all connections of a member, and their limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of requests under way. It is counted only while there is a limit.
#[derive(Debug)]
pub struct OutstandingLimit {
    max: AtomicUsize,
    now: AtomicUsize,
}

impl Default for OutstandingLimit {
    fn default() -> OutstandingLimit {
        OutstandingLimit::new(OutstandingLimit::NONE)
    }
}

impl OutstandingLimit {
    const NONE: usize = usize::MAX;

    /// A limit of `max` requests; `usize::MAX` is none.
    pub fn new(max: usize) -> OutstandingLimit {
        OutstandingLimit { max: AtomicUsize::new(max), now: AtomicUsize::new(0) }
    }

    /// Sets the limit from now on. Fronts have to take their settings again, to begin or end to count.
    pub fn set_max(&self, max: usize) {
        self.max.store(max, Relaxed);
    }

    /// True if there are so many that only connections without a request under way may add one.
    #[inline]
    pub(crate) fn is_reached(&self) -> bool {
        let max = self.max.load(Relaxed);
        max != OutstandingLimit::NONE && self.now.load(Relaxed) >= max
    }

    fn is_set(&self) -> bool {
        self.max.load(Relaxed) != OutstandingLimit::NONE
    }
}

/// Requests of one front that the engine has to answer.
#[derive(Debug, Default)]
pub(crate) struct FrontOutstanding {
    now: usize,
    /// They are part of the number of all fronts.
    is_shared: bool,
}

impl FrontOutstanding {
    pub(crate) fn new(limit: &OutstandingLimit) -> FrontOutstanding {
        FrontOutstanding { now: 0, is_shared: limit.is_set() }
    }

    #[inline]
    pub(crate) fn now(&self) -> usize {
        self.now
    }

    #[inline]
    pub(crate) fn add(&mut self, requests: usize, limit: &OutstandingLimit) {
        self.now += requests;
        if self.is_shared {
            limit.now.fetch_add(requests, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn subtract(&mut self, requests: usize, limit: &OutstandingLimit) {
        self.now -= requests;
        if self.is_shared {
            limit.now.fetch_sub(requests, Relaxed);
        }
    }

    /// Begins or ends to count in the number of all fronts, if there is a limit now and was none, or the other way round.
    pub(crate) fn follow(&mut self, limit: &OutstandingLimit) {
        let is_set = limit.is_set();
        if is_set == std::mem::replace(&mut self.is_shared, is_set) {
            return;
        }
        if is_set {
            limit.now.fetch_add(self.now, Relaxed);
        } else {
            limit.now.fetch_sub(self.now, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_comes_and_goes_counts_what_is_under_way() {
        let limit = OutstandingLimit::default();
        let (mut one, mut other) = (FrontOutstanding::new(&limit), FrontOutstanding::new(&limit));
        one.add(3, &limit);
        assert!(!limit.is_reached());
        limit.set_max(4);
        one.follow(&limit);
        other.follow(&limit);
        other.add(1, &limit);
        assert!(limit.is_reached(), "requests from before count too");
        one.subtract(3, &limit);
        assert!(!limit.is_reached());
        limit.set_max(usize::MAX);
        one.follow(&limit);
        other.follow(&limit);
        other.subtract(1, &limit);
        limit.set_max(1);
        one.follow(&limit);
        other.follow(&limit);
        assert!(!limit.is_reached(), "nothing is left of earlier ones");
        assert_eq!((one.now(), other.now()), (0, 0));
    }
}
