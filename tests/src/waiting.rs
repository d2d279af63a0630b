//! Waiting for things that come soon, and not at once.

use std::thread;
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Looks again and again until it is so.
///
/// # Panics
/// If it is not within a minute.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {WITHIN:?}: {what}");
        thread::sleep(POLL);
    }
}
