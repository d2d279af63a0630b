//! Pauses between attempts to reach a peer.

use std::time::Duration;

use super::settings::Timing;

#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next attempt is made at once.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(super) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Doubles with every failure. The generator takes off up to half of it, so that members that lost the same peer
    /// at the same moment do not come back at the same moment.
    pub(super) fn pause(&self, timing: &Timing, random: &mut fastrand::Rng) -> Option<Duration> {
        let doublings = self.failures.checked_sub(1)?;
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let longest = timing.pause_min.saturating_mul(factor).min(timing.pause_max);
        Some(longest.mul_f64(1.0 - random.f64() / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_maximum_and_differ() {
        let (timing, mut random) = (Timing::default(), fastrand::Rng::with_seed(1));
        let mut backoff = Backoff::default();
        assert_eq!(backoff.pause(&timing, &mut random), None);
        for longest in [100, 200, 400, 800, 1600, 3200, 5000, 5000].map(Duration::from_millis) {
            backoff.failed();
            let pauses = [(); 20].map(|()| backoff.pause(&timing, &mut random).unwrap());
            assert!(pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)), "{pauses:?}");
            assert!(pauses.windows(2).any(|pair| pair[0] != pair[1]));
        }
        (0..100).for_each(|_| backoff.failed());
        assert!(backoff.pause(&timing, &mut random).unwrap() <= timing.pause_max);
        backoff.reset();
        assert_eq!(backoff.pause(&timing, &mut random), None);
    }
}
