//! The end of a measurement, which decides the exit code.

/// The end of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchOutcome {
    Good,
    /// Requests failed, or the server went away.
    Bad,
    /// The user ended it.
    Interrupted,
}
