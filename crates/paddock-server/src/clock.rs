//! The member's clocks: the one place where time enters.
//!
//! A clock for sessions and leases counts the time in which the machine sleeps. [`std::time::Instant`] does not: a leader that
//! woke from a sleep would hold its lease for current, though others have elected a leader meanwhile. Timers of this process
//! go by `Instant` all the same: nothing happens here in a sleep.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use paddock_state::Now;
use rustix::time::{ClockId, clock_gettime};

/// Never goes back, cannot be set, and goes on while the machine sleeps.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
/// On macOS this one goes on, too.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { started: elapsed() }
    }

    pub(crate) fn monotonic_ms(&self) -> u64 {
        self.monotonic_us() / 1000
    }

    pub(crate) fn monotonic_us(&self) -> u64 {
        (elapsed() - self.started).as_micros() as u64
    }
}

impl paddock_member::Clock for Clock {
    fn now(&self) -> Now {
        Now { monotonic_ms: self.monotonic_ms(), wall_ms: wall_ms() }
    }
}

/// Since the machine has started, as a rule.
fn elapsed() -> Duration {
    let time = clock_gettime(CLOCK);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Milliseconds since 1970. A clock set before that counts as 1970.
pub(crate) fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SLEEP: Duration = Duration::from_secs(86_400);

    /// In a time namespace of its own a process sees what is seen after the machine has slept for a day: CLOCK_BOOTTIME has gone
    /// on, CLOCK_MONOTONIC has not. Where namespaces cannot be had, only the kind of clock is checked.
    #[cfg(target_os = "linux")]
    #[test]
    fn time_that_the_machine_sleeps_is_counted() {
        assert!(matches!(CLOCK, ClockId::Boottime));
        let own = std::env::current_exe().expect("the test has a file");
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "--time", "--fork", "--boottime"])
            .arg(SLEEP.as_secs().to_string())
            .arg(own)
            .args(["--exact", "clock::tests::reading", "--nocapture"])
            .output();
        let before = elapsed();
        match output {
            Ok(output) if output.status.success() => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let reading = text.lines().find_map(|line| line.split_once("reading: ")?.1.parse().ok());
                let reading = Duration::from_secs_f64(reading.expect("it prints a reading"));
                let ahead = reading.saturating_sub(before).as_secs().abs_diff(SLEEP.as_secs());
                assert!(ahead < 60, "{reading:?} after a sleep, {before:?} without");
            }
            other => println!("no time namespace here: {other:?}"),
        }
    }

    /// Body of the test above, run in another namespace.
    #[test]
    fn reading() {
        println!("\nreading: {}", elapsed().as_secs_f64());
    }

    #[test]
    fn it_counts_from_its_start_and_never_goes_back() {
        let clock = Clock::start();
        let mut last = clock.monotonic_ms();
        assert!(last < 60_000, "{last} ms at the start");
        for _ in 0..1000 {
            let now = clock.monotonic_ms();
            assert!(now >= last);
            last = now;
        }
    }
}
