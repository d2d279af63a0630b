//! Lines of the log that this process has lost. The writer of the log counts them; the metrics tell of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static LOST: AtomicU64 = AtomicU64::new(0);

/// Counts lines of the log that were dropped, because they were not read, or that could not be written.
pub fn count_lost_log_lines(lines: u64) {
    LOST.fetch_add(lines, Relaxed);
}

/// Number of lines of the log that were lost.
pub fn lost() -> u64 {
    LOST.load(Relaxed)
}
