//! Limits of what clients may take of a member, beside those of single connections.

use std::path::Path;

use paddock_front::ConnectRate;
use paddock_os::memory::available_bytes;

/// Limits of all clients together, and of sessions. 0 is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections that are taken in a second. More wait in the operating system.
    pub accepts_per_second_max: u32,
    /// TLS handshakes under way. More connections are closed.
    pub handshakes_max: u32,
    /// The rate at which clients may connect.
    pub connect_rate: ConnectRate,
    /// Sessions in the ensemble. This member makes no more.
    pub sessions_max: u32,
    /// Watches of one session at this member, and of all.
    pub watches_per_session_max: u32,
    pub watches_max: u32,
    /// Requests that the engine has to answer. A client that waits for one already adds none beyond that.
    pub outstanding_max: u32,
}

/// The limit of a member's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMax {
    /// Percent of what the process may use: its control group, or the machine.
    Percent(u8),
    Bytes(u64),
    /// No limit.
    None,
}

impl MemoryMax {
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
