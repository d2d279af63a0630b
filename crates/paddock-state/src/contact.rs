//! Time that a member may be without contact to a quorum before it closes its clients' connections.

/// Time in milliseconds within which a front reports a session that it has heard, by [`crate::ClientInput::Touch`].
pub const TOUCH_DELAY_MS: u64 = 200;

/// Time in milliseconds after the last contact of a member at which it closes connections of sessions with this timeout.
///
/// Let the last contact be at 0, and the session's timeout T. The client sends something each T/3, so it was heard at
/// -T/3 or later, and the worker's delay of 100 ms before: the leader knows that. The leader ends the session T + 500 ms
/// after that, at 2T/3 + 400 ms. The member stops to answer at T/3 + 300 ms and closes the connection within 100 ms
/// more, as its workers look each 100 ms. Between T/3 + 400 ms and 2T/3 + 400 ms there is T/3 for the way to the client, for
/// its lateness, and for clocks: the leader's may run faster than the member's by almost a half. From 15 s on there is more.
///
/// The 300 ms are for short timeouts: contact is 100 to 200 ms old when all is well, and an election after a leader's death
/// takes as long. The new leader gives all sessions their whole timeout, so the client of a member that finds it late only
/// loses its connection.
pub fn contact_max_ms(timeout_ms: i32) -> u64 {
    let third_ms = u64::try_from(timeout_ms).unwrap_or(0) / 3;
    third_ms.min(CONTACT_THIRD_MAX_MS) + CONTACT_MAX_LEAST_MS
}

/// The least that [`contact_max_ms`] returns.
pub const CONTACT_MAX_LEAST_MS: u64 = 300;
const CONTACT_THIRD_MAX_MS: u64 = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_ends_before_a_leader_can_end_its_session() {
        for timeout_ms in [0, 200, 1000, 4000, 15_000, 40_000, i32::MAX] {
            let (max_ms, timeout_ms) = (contact_max_ms(timeout_ms), timeout_ms as u64);
            let session_ends_ms = timeout_ms - timeout_ms / 3 + 400;
            assert!(max_ms >= CONTACT_MAX_LEAST_MS);
            assert!(max_ms + 100 + timeout_ms / 3 <= session_ends_ms, "timeout {timeout_ms}");
        }
        assert_eq!(contact_max_ms(-1), CONTACT_MAX_LEAST_MS);
        assert_eq!(contact_max_ms(40_000), 5300);
    }
}
