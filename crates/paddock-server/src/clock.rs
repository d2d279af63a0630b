//! The member's clocks: the one place where time enters.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use paddock_replica::Now;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { started: Instant::now() }
    }

    pub(crate) fn monotonic_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

impl paddock_member::Clock for Clock {
    fn now(&self) -> Now {
        Now { monotonic_ms: self.monotonic_ms(), wall_ms: wall_ms() }
    }
}

/// Milliseconds since 1970. A clock set before that counts as 1970.
pub(crate) fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
