//! Telling of long work while it goes on.

use std::time::{Duration, Instant};

/// Says once a second how much has been done, and how fast. Short work is not spoken of.
#[derive(Debug)]
pub(crate) struct Report {
    what: &'static str,
    unit: &'static str,
    started: Instant,
    told: Instant,
    done: u64,
    /// Since the clock was last looked at.
    unlooked: u64,
}

impl Report {
    const INTERVAL: Duration = Duration::from_secs(1);
    /// Looking at the clock costs more than a small step.
    const UNITS_PER_LOOK: u64 = 4096;

    /// `what` is being done, in steps; `unit` is what is counted.
    pub(crate) fn start(what: &'static str, unit: &'static str) -> Report {
        let now = Instant::now();
        Report { what, unit, started: now, told: now, done: 0, unlooked: 0 }
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.done += by;
        self.unlooked += by;
        if self.unlooked < Report::UNITS_PER_LOOK {
            return;
        }
        self.unlooked = 0;
        if self.told.elapsed() >= Report::INTERVAL {
            self.told = Instant::now();
            tracing::info!(done = self.done, per_second = self.per_second(), "{} ({})", self.what, self.unit);
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub(crate) fn per_second(&self) -> u64 {
        (self.done as f64 / self.seconds().max(0.001)) as u64
    }
}
