//! Virtual time. It passes only from one event to the next.

use std::fmt;
use std::ops::{Add, Sub};

/// A moment, in microseconds since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) u64);

/// Length of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SimDuration(pub(crate) u64);

impl SimDuration {
    pub(crate) const ZERO: SimDuration = SimDuration(0);

    pub(crate) const fn micros(micros: u64) -> SimDuration {
        SimDuration(micros)
    }

    pub(crate) const fn millis(millis: u64) -> SimDuration {
        SimDuration(millis * 1000)
    }

    pub(crate) const fn seconds(seconds: u64) -> SimDuration {
        SimDuration(seconds * 1_000_000)
    }
}

impl Add<SimDuration> for Time {
    type Output = Time;
    fn add(self, span: SimDuration) -> Time {
        Time(self.0 + span.0)
    }
}

impl Add for SimDuration {
    type Output = SimDuration;
    fn add(self, other: SimDuration) -> SimDuration {
        SimDuration(self.0 + other.0)
    }
}

impl Sub for Time {
    type Output = SimDuration;
    fn sub(self, earlier: Time) -> SimDuration {
        SimDuration(self.0.checked_sub(earlier.0).expect("the earlier moment comes second"))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Display for SimDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000_000, self.0 / 1000 % 1000)
    }
}
