//! Data that the links' thread shares with those who send.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use paddock_os::binding::BindError;
use paddock_proto::MemberNumber;
use paddock_tls::Tls;
use parking_lot::RwLock;

use super::inflow::Received;
use super::peer::Peer;
use super::settings::{PeerAddress, Timing};

/// Events of the links. For one peer `Up` and `Down` alternate, and its messages come between them.
#[derive(Debug)]
pub enum LinkEvent {
    /// A message has come.
    Message {
        /// Its sender.
        from: MemberNumber,
        /// Its bytes.
        bytes: Received,
        /// Nothing else has come with it that was not told yet.
        is_last: bool,
    },
    /// A link is there.
    Up {
        /// The other member.
        peer: MemberNumber,
    },
    /// A link is gone.
    Down {
        /// The other member.
        peer: MemberNumber,
    },
    /// Other members can connect at these addresses from now on.
    Listening(Vec<SocketAddr>),
    /// Nothing listens, and no more tries are made.
    NotListening(BindError),
}

/// An order to the links' thread.
#[derive(Debug)]
pub(super) enum Order {
    /// These are the other members from now on.
    Peers(Vec<PeerAddress>),
    /// The peer belongs to another ensemble, whose id this is.
    Refuse { peer: MemberNumber, cluster: u64 },
    /// This member has learned to which ensemble it belongs.
    JudgeAgain,
}

/// The member, its peers, and the receiver of events.
pub(super) struct PeersShared {
    pub(super) own: MemberNumber,
    pub(super) cluster: AtomicU64,
    pub(super) process: u64,
    pub(super) timing: Timing,
    pub(super) tls: Option<Tls>,
    pub(super) peers: RwLock<BTreeMap<MemberNumber, Arc<Peer>>>,
    pub(super) events: Box<dyn Fn(LinkEvent) + Send + Sync>,
}

impl fmt::Debug for PeersShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeersShared")
            .field("own", &self.own)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}
