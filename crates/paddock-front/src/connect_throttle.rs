//! The rate at which clients may connect, as ZooKeeper limits it: a bucket of tokens that fills with time.
//!
//! A client that finds too few tokens is closed before anything is done for it. It tries another member, or comes back later.

use std::sync::{Mutex, PoisonError};

/// Settings of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRate {
    /// Tokens that the bucket holds; 0 is no limit.
    pub tokens_max: u32,
    /// Interval in milliseconds at which tokens are added,
    pub fill_interval_ms: u32,
    /// and how many are added each time.
    pub fill_tokens: u32,
    /// Tokens that a client takes which wants a new session.
    pub new_session_tokens: u32,
    /// Tokens that a client takes which comes back to its session.
    pub resumed_session_tokens: u32,
}

impl Default for ConnectRate {
    fn default() -> ConnectRate {
        ConnectRate {
            tokens_max: 0,
            fill_interval_ms: 1,
            fill_tokens: 1,
            new_session_tokens: 1,
            resumed_session_tokens: 1,
        }
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
pub struct ConnectThrottle {
    rate: ConnectRate,
    /// `None` until a client has come: the bucket is full then.
    bucket: Mutex<Option<Bucket>>,
}

impl Default for ConnectThrottle {
    fn default() -> ConnectThrottle {
        ConnectThrottle::new(ConnectRate::default())
    }
}

impl ConnectThrottle {
    pub fn new(rate: ConnectRate) -> ConnectThrottle {
        ConnectThrottle { rate, bucket: Mutex::new(None) }
    }

    /// Takes the tokens of a client that connects. False if there are too few.
    pub(crate) fn admit(&self, is_new_session: bool, now_ms: u64) -> bool {
        let rate = &self.rate;
        if rate.tokens_max == 0 {
            return true;
        }
        let wanted = if is_new_session { rate.new_session_tokens } else { rate.resumed_session_tokens };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn without_a_bucket_everybody_is_admitted() {
        let throttle = ConnectThrottle::default();
        assert!((0..1000).all(|_| throttle.admit(true, 0)));
    }
}
