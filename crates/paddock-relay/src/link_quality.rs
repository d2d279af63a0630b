//! Qualities of a way: how long it is, how regular, and what gets lost on it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

/// Time after which Linux sends again what nothing that came later has shown to be lost, at least.
pub const RETRANSMISSION: Duration = Duration::from_millis(200);

/// One direction of a way. The default takes no time and loses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkQuality {
    /// Time that each portion is under way.
    pub delay: Duration,
    /// Up to this time more or less, evenly; a portion is never earlier than those in front of it.
    pub jitter: Duration,
    /// Number of portions of which one is lost, and sent again after [`RETRANSMISSION`]; none is lost if it is 0.
    pub lost_one_in: u64,
}

/// The direction of a relay, which is told other qualities while connections go on.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    quality: Mutex<LinkQuality>,
    portions: AtomicU64,
}

impl Direction {
    pub(crate) fn set(&self, quality: LinkQuality) {
        *self.quality.lock().expect("nobody panics with it") = quality;
    }

    /// Time that the next portion is under way.
    pub(crate) fn delay(&self) -> Duration {
        let LinkQuality { delay, jitter, lost_one_in } = *self.quality.lock().expect("nobody panics with it");
        let is_lost =
            lost_one_in > 0 && self.portions.fetch_add(1, Ordering::Relaxed).is_multiple_of(lost_one_in);
        let jittered = if jitter.is_zero() {
            delay
        } else {
            (delay + jitter.mul_f64(2.0 * fastrand::f64())).saturating_sub(jitter)
        };
        if is_lost { jittered + RETRANSMISSION } else { jittered }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Direction, LinkQuality, RETRANSMISSION};

    const DELAY: Duration = Duration::from_millis(40);
    const JITTER: Duration = Duration::from_millis(10);

    fn delays(quality: LinkQuality) -> Vec<Duration> {
        let direction = Direction::default();
        direction.set(quality);
        (0..1000).map(|_| direction.delay()).collect()
    }

    #[test]
    fn a_way_without_qualities_takes_no_time() {
        assert!(delays(LinkQuality::default()).iter().all(Duration::is_zero));
    }

    #[test]
    fn jitter_goes_both_ways() {
        let delays = delays(LinkQuality { delay: DELAY, jitter: JITTER, lost_one_in: 0 });
        assert!(delays.iter().all(|delay| (DELAY - JITTER..=DELAY + JITTER).contains(delay)));
        let is_shorter = |delay: &&Duration| **delay < DELAY;
        assert!((400..600).contains(&delays.iter().filter(is_shorter).count()));
    }

    #[test]
    fn one_of_so_many_is_sent_again() {
        let delays = delays(LinkQuality { lost_one_in: 100, ..LinkQuality::default() });
        assert_eq!(delays.iter().filter(|delay| **delay == RETRANSMISSION).count(), 10);
        assert_eq!(delays.iter().filter(|delay| delay.is_zero()).count(), 990);
    }
}
