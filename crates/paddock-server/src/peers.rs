//! The links between the members of an ensemble: one TCP connection for each pair, which carries messages of bytes both
//! ways. What a message means is not known here.
//!
//! Owned here: dialling and accepting, the greeting that tells members from strangers, frames with checksums,
//! heartbeats, queues and their bounds. Left to the engine: what to send, and what to do about a message that was lost.
//! A message arrives whole and unchanged, after those sent before it on the same link, or not at all; what was queued
//! or under way when a link ends is lost.
//!
//! The member with the higher number dials. A fixed side leaves one connection for a pair without an agreement about
//! which of two to keep, and each side can say who has to act when there is none. The other side knocks: it dials too,
//! says who it is and hangs up, so that a member that has just come back is called at once and not when the caller's
//! pause ends.
//!
//! All links live on one thread. A lone message does not wait for it: its sender writes to the socket. In a burst the
//! thread writes what has gathered.

mod accept;
mod backoff;
mod chunks;
mod dial;
mod frame;
mod greeting;
mod hub;
mod inflow;
mod limiter;
mod link;
mod outbox;
mod peer;
mod session;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::socket;
use crate::threads::spawn;
use crate::tls::Tls;

pub(crate) use inflow::Received;
use peer::Peer;

/// The largest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Where another member listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerAddress {
    pub(crate) id: u8,
    /// `host:port`; the host is resolved anew at every attempt.
    pub(crate) address: String,
}

#[derive(Debug)]
pub(crate) struct LinkOptions {
    /// This member's number.
    pub(crate) own: u8,
    pub(crate) listen: SocketAddr,
    /// The cluster's id; 0 while it is not known yet.
    pub(crate) cluster: u64,
    /// Tells this process from all others, those with the same member number included.
    pub(crate) process: u64,
    /// The other members. If this member stands among them, it is left out.
    pub(crate) peers: Vec<PeerAddress>,
    /// Seed for pauses and for the numbers that tell connections apart; another one at every start.
    pub(crate) seed: u64,
    pub(crate) timing: Timing,
    /// Links without TLS if there is none.
    pub(crate) tls: Option<Tls>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// A link that has sent nothing for so long sends a heartbeat.
    pub(crate) heartbeat: Duration,
    /// A link that has heard nothing for so long is cut.
    pub(crate) silence: Duration,
    /// Time that finding an address, and connecting to one, may each take.
    pub(crate) connect: Duration,
    /// Time that the other side may take to say who it is.
    pub(crate) greeting: Duration,
    /// The pause after a first failed attempt; it doubles until it reaches the maximum.
    pub(crate) pause_min: Duration,
    pub(crate) pause_max: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            connect: Duration::from_secs(5),
            greeting: Duration::from_secs(5),
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(5),
        }
    }
}

/// Events of the links. For one peer `Up` and `Down` alternate, and its messages come between them.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    Message {
        from: u8,
        bytes: Received,
        /// Nothing else has come with it that was not told yet.
        is_last: bool,
    },
    Up {
        peer: u8,
    },
    Down {
        peer: u8,
    },
}

/// State of the link to one peer.
#[derive(Clone, Debug)]
pub(crate) struct LinkStatus {
    pub(crate) peer: u8,
    pub(crate) address: String,
    pub(crate) state: LinkState,
    pub(crate) since: Instant,
    /// Waiting to be taken by the socket.
    pub(crate) queued_bytes: usize,
    /// Messages for which there was no link or no room, since the peer is known.
    pub(crate) dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Up,
    Down { reason: String },
}

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("listen for members on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

/// The links of a member. Dropping it ends them too, without waiting for their thread.
#[derive(Debug)]
pub(crate) struct Links {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// For the thread. The channel's end is the thread's end.
    orders: UnboundedSender<Order>,
    thread: JoinHandle<()>,
}

/// An order to the links' thread.
#[derive(Debug)]
enum Order {
    /// These are the other members from now on.
    Peers(Vec<PeerAddress>),
    /// The peer belongs to another ensemble, whose id this is.
    Refuse { peer: u8, cluster: u64 },
    /// This member has learned to which ensemble it belongs.
    JudgeAgain,
}

/// Data that the links' thread shares with those who send.
struct Shared {
    own: u8,
    cluster: AtomicU64,
    process: u64,
    timing: Timing,
    tls: Option<Tls>,
    peers: RwLock<BTreeMap<u8, Arc<Peer>>>,
    events: Box<dyn Fn(LinkEvent) + Send + Sync>,
}

impl Links {
    /// Listens, and begins to dial. `events` runs on the links' thread: while it does, no link makes progress.
    pub(crate) fn start(
        options: LinkOptions,
        events: impl Fn(LinkEvent) + Send + Sync + 'static,
    ) -> Result<Links, LinkError> {
        let LinkOptions { own, listen, cluster, process, peers, seed, timing, tls } = options;
        let failed = |source| LinkError::Listen { address: listen, source };
        let listener = socket::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (cluster, peers_known, events) = (AtomicU64::new(cluster), RwLock::default(), Box::new(events));
        let shared = Arc::new(Shared { own, cluster, process, timing, tls, peers: peers_known, events });
        let (orders, receiver) = unbounded_channel();
        let thread = {
            let shared = shared.clone();
            spawn("links", move || hub::run(shared, listener, receiver, seed))
        };
        let links = Links { address, shared, orders, thread };
        links.set_peers(peers);
        Ok(links)
    }

    /// Where other members connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Queues a message, of at least one byte. False if there is no link, or no room in its queue, or if the message is
    /// larger than [`MESSAGE_BYTES_MAX`]: then it is dropped, as the network could have dropped it. Never waits.
    pub(crate) fn send(&self, to: u8, message: Vec<u8>) -> bool {
        assert!(!message.is_empty(), "an empty message for member {to}");
        self.shared.peers.read().get(&to).is_some_and(|peer| peer.send(message))
    }

    /// From now on these are the other members. Links to those that are gone or have moved are cut, a moment later.
    pub(crate) fn set_peers(&self, peers: Vec<PeerAddress>) {
        self.order(Order::Peers(peers));
    }

    /// From now on members of other clusters are refused, and links to such are cut.
    pub(crate) fn set_cluster(&self, cluster: u64) {
        if self.shared.cluster.swap(cluster, Ordering::AcqRel) != cluster {
            self.order(Order::JudgeAgain);
        }
    }

    /// Cuts the link to a peer that belongs to another cluster.
    pub(crate) fn refuse(&self, peer: u8, cluster: u64) {
        self.order(Order::Refuse { peer, cluster });
    }

    fn order(&self, order: Order) {
        // The thread is gone only if it panicked, which `shutdown` tells.
        let _ = self.orders.send(order);
    }

    /// Where the other side of the link to a peer is.
    #[cfg(test)]
    pub(crate) fn link_address(&self, peer: u8) -> Option<SocketAddr> {
        Some(self.shared.peers.read().get(&peer)?.link()?.address())
    }

    pub(crate) fn status(&self) -> Vec<LinkStatus> {
        self.shared.peers.read().values().map(|peer| peer.status()).collect()
    }

    /// Cuts all links. No event comes after this has returned.
    pub(crate) fn shutdown(self) {
        drop(self.orders);
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("own", &self.own).field("peers", &self.peers).finish_non_exhaustive()
    }
}
