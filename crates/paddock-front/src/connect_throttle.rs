//! The rate at which clients may connect, as ZooKeeper limits it: a bucket of tokens that fills with time.
//!
//! A client that finds too few tokens is closed before anything is done for it. It tries another member, or comes back later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use paddock_settings::{COUNT_MAX, MILLISECONDS_MAX, settings};

settings! {
    /// Settings of the bucket.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConnectRate {
        /// Tokens that the bucket holds of which each client that connects takes some; a client that finds too few is closed. 0 is no
        /// limit.
        tokens_max ["connect_tokens_max"]: u32 = 0, number("tokens", 0..=COUNT_MAX), while_running;
        /// Interval at which tokens are added.
        fill_interval_ms ["connect_token_fill_ms"]: u32 = 1, number("milliseconds", 1..=MILLISECONDS_MAX), while_running;
        /// Tokens that are added each time.
        fill_tokens ["connect_token_fill_count"]: u32 = 1, number("tokens", 0..=COUNT_MAX), while_running;
        /// Tokens that a client takes which wants a new session; the weights of a `zoo.cfg` count with
        /// `connection_throttle_weight_enabled` only.
        new_session_tokens ["connect_tokens_of_new_session"]: u32 = 1, number("tokens", 0..=COUNT_MAX), while_running;
        /// Tokens that a client takes which comes back to its session.
        resumed_session_tokens ["connect_tokens_of_resumed_session"]: u32 = 1, number("tokens", 0..=COUNT_MAX), while_running;
    }
}

#[derive(Debug)]
struct Bucket {
    tokens: u64,
    /// Monotonic time in milliseconds up to which tokens were added.
    filled_ms: u64,
}

/// The bucket of all connections of a member.
#[derive(Debug)]
pub struct ConnectThrottle(Mutex<Throttle>);

#[derive(Debug)]
struct Throttle {
    rate: ConnectRate,
    /// `None` until a client has come: the bucket is full then.
    bucket: Option<Bucket>,
}

impl Default for ConnectThrottle {
    fn default() -> ConnectThrottle {
        ConnectThrottle::new(ConnectRate::default())
    }
}

impl ConnectThrottle {
    pub fn new(rate: ConnectRate) -> ConnectThrottle {
        ConnectThrottle(Mutex::new(Throttle { rate, bucket: None }))
    }

    /// Sets the rate from now on. Tokens that are in the bucket stay, as far as it holds them.
    pub fn set_rate(&self, rate: ConnectRate) {
        self.lock().rate = rate;
    }

    fn lock(&self) -> MutexGuard<'_, Throttle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the tokens of a client that connects. False if there are too few.
    pub(crate) fn admit(&self, is_new_session: bool, now_ms: u64) -> bool {
        let Throttle { rate, bucket } = &mut *self.lock();
        if rate.tokens_max == 0 {
            return true;
        }
        let wanted = if is_new_session { rate.new_session_tokens } else { rate.resumed_session_tokens };
        let full = Bucket { tokens: rate.tokens_max.into(), filled_ms: now_ms };
        let bucket = bucket.get_or_insert(full);
        let interval_ms = u64::from(rate.fill_interval_ms.max(1));
        let intervals = now_ms.saturating_sub(bucket.filled_ms) / interval_ms;
        let filled = bucket.tokens.saturating_add(intervals.saturating_mul(rate.fill_tokens.into()));
        bucket.tokens = filled.min(rate.tokens_max.into());
        bucket.filled_ms += intervals * interval_ms;
        let left = bucket.tokens.checked_sub(wanted.into());
        bucket.tokens = left.unwrap_or(bucket.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_with_time_and_never_more_than_the_bucket_holds() {
        let rate = ConnectRate {
            tokens_max: 4,
            fill_interval_ms: 100,
            fill_tokens: 1,
            new_session_tokens: 3,
            resumed_session_tokens: 2,
        };
        let throttle = ConnectThrottle::new(rate);
        assert!(throttle.admit(true, 1000));
        assert!(!throttle.admit(false, 1099), "one is left, and two are wanted");
        assert!(throttle.admit(false, 1100));
        assert!(!throttle.admit(false, 1200));
        assert!(throttle.admit(true, 9000));
        assert!(!throttle.admit(false, 9000), "it holds four, however long nobody came");
    }

    #[test]
    fn a_smaller_bucket_keeps_no_more_than_it_holds() {
        let rate = |tokens_max| ConnectRate { tokens_max, fill_tokens: 0, ..ConnectRate::default() };
        let throttle = ConnectThrottle::new(rate(10));
        assert!(throttle.admit(true, 0));
        throttle.set_rate(rate(2));
        assert_eq!([true; 3].map(|is_new| throttle.admit(is_new, 1)), [true, true, false]);
        throttle.set_rate(rate(0));
        assert!(throttle.admit(true, 2));
    }

    #[test]
    fn without_a_bucket_everybody_is_admitted() {
        let throttle = ConnectThrottle::default();
        assert!((0..1000).all(|_| throttle.admit(true, 0)));
    }
}
