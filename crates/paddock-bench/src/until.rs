//! The end of a run.

use std::time::Duration;

/// The end of the run; whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Until {
    pub time: Option<Duration>,
    pub requests: Option<u64>,
}
