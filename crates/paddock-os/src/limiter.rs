//! Keeps what strangers do, or a system that is short of something, from filling the log.

use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);

/// Lets one of a kind through in each second, and counts the others.
#[derive(Debug, Default)]
pub struct Limiter {
    passed_at: Option<Instant>,
    held_back: u64,
}

impl Limiter {
    /// Number of events held back since the last that passed, if this one passes.
    pub fn pass(&mut self, now: Instant) -> Option<u64> {
        if self.passed_at.is_some_and(|at| now.duration_since(at) < INTERVAL) {
            self.held_back += 1;
            return None;
        }
        self.passed_at = Some(now);
        Some(std::mem::take(&mut self.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_passes_in_each_second() {
        let mut limiter = Limiter::default();
        let start = Instant::now();
        let mut check = |ms, expected| assert_eq!(limiter.pass(start + Duration::from_millis(ms)), expected);
        check(0, Some(0));
        check(1, None);
        check(999, None);
        check(1000, Some(2));
        check(5000, Some(0));
    }
}
