//! Settings of the links: this member, the others, and how long each may be silent.

use std::time::Duration;

use paddock_os::LookUp;
use paddock_os::binding::ListenAt;
use paddock_proto::MemberNumber;
use paddock_tls::Tls;

/// The largest message between members, in bytes: a record of a log as large as one may be, and what is said with it. Whatever stands in a
/// log, of whatever origin, can be sent.
pub const MESSAGE_BYTES_MAX: usize = (1 << 30) + (1 << 20);

/// Address at which another member listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// Number of the member.
    pub id: MemberNumber,
    /// `host:port`; the host is resolved anew at every attempt.
    pub address: String,
}

/// Settings of a member's links.
#[derive(Debug)]
pub struct LinkOptions {
    /// This member's number.
    pub own: MemberNumber,
    /// Address at which the other members connect.
    pub listen: ListenAt,
    /// The way to look names up.
    pub look_up: LookUp,
    /// Tries to listen that are made, a second apart, while the address is not there; 0 is no limit.
    pub bind_tries: u32,
    /// The cluster's id; 0 while it is not known yet.
    pub cluster: u64,
    /// Tells this process from all others, those with the same member number included.
    pub process: u64,
    /// The other members. If this member stands among them, it is left out.
    pub peers: Vec<PeerAddress>,
    /// Seed for pauses and for the numbers that tell connections apart; another one at every start.
    pub seed: u64,
    /// Times of the links.
    pub timing: Timing,
    /// Links without TLS if there is none.
    pub tls: Option<Tls>,
}

/// Times of the links.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A link that has sent nothing for this time sends a heartbeat.
    pub heartbeat: Duration,
    /// A link that has heard nothing for this time is cut.
    pub silence: Duration,
    /// A link that is not heard for this time gives way to another process of its member, which may be the same member started again.
    pub gives_way: Duration,
    /// Time that finding an address, and connecting to one, may each take.
    pub connect: Duration,
    /// Time that the other side may take to say who it is.
    pub greeting: Duration,
    /// The pause after a first failed attempt; it doubles until it reaches `pause_max`.
    pub pause_min: Duration,
    /// The longest pause after a failed attempt.
    pub pause_max: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            gives_way: Duration::from_secs(2),
            connect: Duration::from_secs(5),
            greeting: Duration::from_secs(5),
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(5),
        }
    }
}
