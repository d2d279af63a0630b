//! A line a minute on standard error, for ranges of seeds that take long.

use std::sync::Mutex;
use std::time::{Duration, Instant};

const LINE_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct SeedProgress {
    seeds: u64,
    begun: Instant,
    told: Mutex<Instant>,
}

impl SeedProgress {
    pub(crate) fn new(seeds: u64) -> SeedProgress {
        let begun = Instant::now();
        SeedProgress { seeds, begun, told: Mutex::new(begun) }
    }

    /// Prints a line if the last one is a minute old.
    pub(crate) fn tell(&self, passed: u64, failed: u64) {
        let mut told = self.told.lock().expect("printing does not panic");
        if told.elapsed() >= LINE_EVERY {
            *told = Instant::now();
            eprintln!("{}", line(self.seeds, passed, failed, self.begun.elapsed()));
        }
    }
}

fn line(seeds: u64, passed: u64, failed: u64, elapsed: Duration) -> String {
    let done = passed + failed;
    let left = elapsed.as_secs_f64() / done.max(1) as f64 * (seeds - done) as f64;
    let minutes = (left / 60.0).ceil();
    format!("{done} of {seeds} seeds are done, {failed} failed; about {minutes} min left")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::line;

    #[test]
    fn the_time_that_is_left_follows_from_the_seeds_that_are_done() {
        let told = line(5_000, 999, 1, Duration::from_secs(1200));
        assert_eq!(told, "1000 of 5000 seeds are done, 1 failed; about 80 min left");
        assert_eq!(
            line(5, 5, 0, Duration::from_secs(61)),
            "5 of 5 seeds are done, 0 failed; about 0 min left"
        );
    }
}
