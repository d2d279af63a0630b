//! Telling of long work while it goes on.

use crate::clock::Clock;

/// Says once a second how much has been done, and how fast. Short work is not spoken of.
#[derive(Debug)]
pub(crate) struct Report {
    what: &'static str,
    unit: &'static str,
    started_ms: u64,
    told_ms: u64,
    done: u64,
    /// Since the clock was last looked at.
    unlooked: u64,
}

impl Report {
    const INTERVAL_MS: u64 = 1000;
    /// Looking at the clock costs more than a small step.
    const UNITS_PER_LOOK: u64 = 4096;

    /// `what` is being done, in steps; `unit` is what is counted.
    pub(crate) fn start(what: &'static str, unit: &'static str, clock: &impl Clock) -> Report {
        let now_ms = clock.now().monotonic_ms;
        clock.note_progress(what, 0, unit);
        Report { what, unit, started_ms: now_ms, told_ms: now_ms, done: 0, unlooked: 0 }
    }

    pub(crate) fn advance(&mut self, by: u64, clock: &impl Clock) {
        self.done += by;
        self.unlooked += by;
        if self.unlooked < Report::UNITS_PER_LOOK {
            return;
        }
        self.unlooked = 0;
        clock.note_progress(self.what, self.done, self.unit);
        let now_ms = clock.now().monotonic_ms;
        if now_ms - self.told_ms >= Report::INTERVAL_MS {
            self.told_ms = now_ms;
            let per_second = self.per_second(clock);
            tracing::info!(done = self.done, per_second, "{} ({})", self.what, self.unit);
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    pub(crate) fn seconds(&self, clock: &impl Clock) -> f64 {
        (clock.now().monotonic_ms - self.started_ms) as f64 / 1000.0
    }

    pub(crate) fn per_second(&self, clock: &impl Clock) -> u64 {
        (self.done as f64 / self.seconds(clock).max(0.001)) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use paddock_state::Now;

    use super::*;

    #[derive(Default)]
    struct Noted(RefCell<Vec<String>>);

    impl Clock for Noted {
        fn now(&self) -> Now {
            Now::default()
        }

        fn note_progress(&self, work: &'static str, done: u64, unit: &'static str) {
            self.0.borrow_mut().push(format!("{work}: {done} {unit}"));
        }
    }

    #[test]
    fn progress_is_noted_at_the_start_and_now_and_then() {
        let clock = Noted::default();
        let mut report = Report::start("reading log", "entries", &clock);
        (0..5000).for_each(|_| report.advance(1, &clock));
        assert_eq!(*clock.0.borrow(), ["reading log: 0 entries", "reading log: 4096 entries"]);
    }
}
