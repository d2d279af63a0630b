//! Limits of what clients may take of a member, beside those of single connections.

use std::path::Path;

use paddock_front::{ConnectRate, RateRules};
use paddock_os::memory::available_bytes;
use paddock_settings::{COUNT_MAX, settings};

settings! {
    /// Limits of all clients together, and of sessions. 0 is no limit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ClientLimits {
        /// Connections that are taken in a second at each port; more wait in the operating system. 0 is no limit, here and for the limits
        /// below.
        accepts_per_second_max: u32 = 0, number("connections", 0..=COUNT_MAX), while_running;
        /// TLS handshakes that may be under way; with more, a connection is closed.
        handshakes_max: u32 = 0, number("handshakes", 0..=COUNT_MAX), while_running;
        /// The rate at which clients may connect.
        connect_rate: ConnectRate = ConnectRate::default(), part, elsewhere;
        /// Sessions in the ensemble; with more, this member closes clients that want a new one.
        sessions_max: u32 = 0, number("sessions", 0..=COUNT_MAX), while_running;
        /// Watches that a client may have at this member; with more, a request that sets one is refused.
        watches_per_session_max: u32 = 0, number("watches", 0..=COUNT_MAX), while_running;
        /// Watches that all clients of this member may have.
        watches_max: u32 = 0, number("watches", 0..=COUNT_MAX), while_running;
        /// Requests that may be under way to the log; with more, a client that waits for an answer is not read from. Of ZooKeeper's keys
        /// the lower number counts, and its default of 1000 is not taken over.
        outstanding_max: u32 = 0, number("requests", 0..=COUNT_MAX), while_running;
        /// Requests and bytes in a second that [tenants may ask for](#rates-of-tenants): top-level paths, users or addresses.
        rate_limits: RateRules = RateRules::default(), form("list of rules", "`[]`"), while_running;
        /// Longest time that a request waits because of `rate_limits`; one that would have to wait longer is refused. It has to be shorter
        /// than a third of the clients' session timeouts, since pings wait behind it.
        rate_wait_ms_max: u32 = 1000, number("milliseconds", 0..=10_000), while_running;
    }
}

/// The limit of a member's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMax {
    /// Percent of what the process may use: its control group, or the machine.
    Percent(u8),
    /// Bytes of resident memory.
    Bytes(u64),
    /// No limit.
    None,
}

impl MemoryMax {
    /// 90 percent.
    pub const BY_DEFAULT: MemoryMax = MemoryMax::Percent(90);

    /// The limit in bytes; `u64::MAX` for none.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            MemoryMax::None => u64::MAX,
            MemoryMax::Bytes(bytes) => bytes,
            MemoryMax::Percent(percent) => {
                available_bytes(Path::new("/")).map_or(u64::MAX, |bytes| bytes / 100 * u64::from(percent))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_share_or_a_number() {
        assert_eq!(MemoryMax::Bytes(5).bytes(), 5);
        assert_eq!(MemoryMax::None.bytes(), u64::MAX);
        let machine = available_bytes(Path::new("/")).expect("this machine tells");
        assert_eq!(MemoryMax::Percent(50).bytes(), machine / 100 * 50);
    }
}
