//! The numbers of the protocol, each with its own type so that none is taken for another.

use std::fmt;

/// The number of a transaction: one for each write, in the order in which all members apply them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zxid(pub i64);

impl Zxid {
    /// Zxid of a notification that no transaction caused (setWatches' catch-up events).
    pub const NONE: Zxid = Zxid(-1);

    /// The lowest bits of a stamp count the transactions of a millisecond.
    #[doc(hidden)]
    pub const STAMP_COUNTER_BITS: u32 = 21;
    /// The milliseconds of a stamp have 42 bits: they are enough until the year 2109.
    #[doc(hidden)]
    pub const STAMP_MS_MAX: i64 = (1 << 42) - 1;

    /// The first zxid of a millisecond since 1970, where zxids are stamps: of several groups, which have to be compared.
    #[doc(hidden)]
    pub fn stamp(time_ms: i64) -> Zxid {
        Zxid(time_ms.clamp(0, Zxid::STAMP_MS_MAX) << Zxid::STAMP_COUNTER_BITS)
    }

    /// The zxid of the transaction after this one.
    pub fn next(self) -> Zxid {
        Zxid(self.0.checked_add(1).expect("63 bits of zxid outlast the member"))
    }
}

/// The identity of a session. 0 in a connect request asks for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

impl SessionId {
    /// "No session": a client that asks for a new one, or a write the service itself makes.
    pub const NONE: SessionId = SessionId(0);
}

/// A request's number within its connection, chosen by the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub i32);

impl Xid {
    pub const NOTIFICATION: Xid = Xid(-1);
    pub const PING: Xid = Xid(-2);
    pub const AUTH: Xid = Xid(-4);
    pub const SET_WATCHES: Xid = Xid(-8);
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}
