//! Send times of an open loop: even steps from the start of its phase, whatever the answers do.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    next: Instant,
    step: Duration,
}

impl Pacer {
    /// Thread `number` of `threads`, which together make the rate.
    pub(crate) fn new(start: Instant, requests_per_second: f64, number: usize, threads: usize) -> Pacer {
        let each = Duration::from_secs_f64(1.0 / requests_per_second);
        Pacer { next: start + each * number as u32, step: each * threads as u32 }
    }

    /// Time at which the next request should be sent, past or future.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    pub(crate) fn advance(&mut self) {
        self.next += self.step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_rate_evenly() {
        let start = Instant::now();
        let mut times: Vec<Duration> = Vec::new();
        for number in 0..2 {
            let mut pacer = Pacer::new(start, 1000.0, number, 2);
            for _ in 0..3 {
                times.push(pacer.next() - start);
                pacer.advance();
            }
        }
        times.sort();
        assert_eq!(times, [0, 1, 2, 3, 4, 5].map(Duration::from_millis));
    }
}
