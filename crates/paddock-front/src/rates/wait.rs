//! The wait of a connection whose tenant asks for too much.

use std::num::NonZeroU32;

/// End of a wait, as the low bits of the monotonic time in milliseconds: most connections never wait, and there may be very many. The end
/// is never weeks away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateWait(NonZeroU32);

impl RateWait {
    /// A wait until a monotonic time in milliseconds.
    pub(crate) fn until(end_ms: u64) -> RateWait {
        RateWait(NonZeroU32::new(end_ms as u32).unwrap_or(NonZeroU32::MIN))
    }

    /// Time that is left, in milliseconds.
    pub(crate) fn left_ms(self, now_ms: u64) -> u32 {
        let left_ms = self.0.get().wrapping_sub(now_ms as u32) as i32;
        u32::try_from(left_ms).unwrap_or(0)
    }

    pub(crate) fn is_over(self, now_ms: u64) -> bool {
        self.left_ms(now_ms) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_time_also_where_the_low_bits_begin_anew() {
        for end_ms in [10, (1 << 32) + 5, (5 << 32) - 1] {
            let wait = RateWait::until(end_ms);
            assert_eq!(
                (wait.is_over(end_ms - 10), wait.is_over(end_ms), wait.is_over(end_ms + 90_000)),
                (false, true, true)
            );
            assert_eq!((wait.left_ms(end_ms - 7), wait.left_ms(end_ms + 7)), (7, 0));
        }
    }
}
