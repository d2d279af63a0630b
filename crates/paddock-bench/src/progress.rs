//! The progress that a run reports while it goes on.

use std::time::Duration;

/// Hears how a run gets on; a program shows it as it likes.
pub trait RunProgress {
    /// Something that is not the measurement itself begins.
    fn stage(&mut self, what: &str);
    /// A second of the measurement is over.
    fn tick(&mut self, tick: &Tick);
}

/// One second of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Since the run began.
    pub at: Duration,
    pub requests_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// In the whole run so far.
    pub errors: u64,
    /// Until the run is over, as far as that can be told.
    pub left: Option<Duration>,
}

/// For callers who do not want to hear.
#[derive(Debug)]
pub struct Silence;

impl RunProgress for Silence {
    fn stage(&mut self, _: &str) {}
    fn tick(&mut self, _: &Tick) {}
}
