//! Lines of a server's log, which is written by a thread of its own, behind what the server does.

use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// Waits until a log says this.
pub(crate) fn wait_for_line(log: impl Fn() -> String, text: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !log().contains(text) {
        assert!(Instant::now() < deadline, "no {text:?} in {}", log());
        thread::sleep(POLL);
    }
}
