//! The two clocks of a machine: one never goes back and one is set by people. Neither keeps the world's time.

use paddock_state::Now;

use crate::time::{SimDuration, Time};

/// Parts per million that are one.
const MILLION: i64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineClock {
    /// Times of the clocks when they were last disturbed.
    since: Time,
    monotonic_us: u64,
    wall_us: i64,
    /// Drift against the world's clock, in parts per million.
    drift: i64,
}

impl MachineClock {
    pub(crate) fn new(now: Time, monotonic: SimDuration, wall_ms: i64, drift: i64) -> MachineClock {
        MachineClock { since: now, monotonic_us: monotonic.0, wall_us: wall_ms * 1000, drift }
    }

    pub(crate) fn now(&self, now: Time) -> Now {
        let (monotonic_us, wall_us) = self.micros(now);
        Now { monotonic_ms: monotonic_us / 1000, wall_ms: wall_us.div_euclid(1000) }
    }

    /// Time in the world until this machine thinks that `span` has passed.
    pub(crate) fn world_span(&self, span: SimDuration) -> SimDuration {
        SimDuration((span.0 as i64 * MILLION / (MILLION + self.drift)) as u64)
    }

    pub(crate) fn set_drift(&mut self, now: Time, drift: i64) {
        self.settle(now);
        self.drift = drift;
    }

    pub(crate) fn jump_wall(&mut self, now: Time, by_ms: i64) {
        self.settle(now);
        self.wall_us += by_ms * 1000;
    }

    pub(crate) fn jump_monotonic(&mut self, now: Time, by: SimDuration) {
        self.settle(now);
        self.monotonic_us += by.0;
    }

    /// The machine was switched on: the clock that cannot be set begins anew, and the other one if no battery kept it.
    pub(crate) fn boot(&mut self, now: Time, wall_ms: Option<i64>) {
        self.settle(now);
        self.monotonic_us = 1_000_000;
        self.wall_us = wall_ms.map_or(self.wall_us, |wall_ms| wall_ms * 1000);
    }

    fn settle(&mut self, now: Time) {
        (self.monotonic_us, self.wall_us) = self.micros(now);
        self.since = now;
    }

    fn micros(&self, now: Time) -> (u64, i64) {
        let passed = (now - self.since).0 as i64;
        let shown = passed + passed * self.drift / MILLION;
        (self.monotonic_us + shown as u64, self.wall_us + shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_drift_and_jump() {
        let mut clock = MachineClock::new(Time(0), SimDuration::seconds(1), 5000, 100_000);
        let shown = |clock: &MachineClock, second: u64| {
            let now = clock.now(Time(second * 1_000_000));
            (now.monotonic_ms, now.wall_ms)
        };
        assert_eq!(shown(&clock, 10), (12_000, 16_000));
        assert_eq!(clock.world_span(SimDuration::millis(1100)), SimDuration::millis(1000));
        clock.jump_wall(Time(10_000_000), -20_000);
        assert_eq!(shown(&clock, 10), (12_000, -4000));
        clock.set_drift(Time(10_000_000), 0);
        clock.jump_monotonic(Time(10_000_000), SimDuration::seconds(1));
        assert_eq!(shown(&clock, 11), (14_000, -3000));
        clock.boot(Time(11_000_000), Some(7));
        assert_eq!(shown(&clock, 11), (1000, 7));
    }
}
