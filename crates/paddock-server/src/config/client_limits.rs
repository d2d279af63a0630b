//! Limits of what clients may take of a member, beside those of single connections.

use paddock_front::ConnectRate;

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
}
