//! The links of a member, for the engine: it sends messages and learns of events.

#[cfg(test)]
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use paddock_proto::MemberNumber;
use parking_lot::RwLock;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::hub;
use super::quorum_port::QuorumPort;
use super::settings::{LinkOptions, PeerAddress};
use super::shared::{LinkEvent, Order, PeersShared};
#[cfg(test)]
use paddock_os::binding;
use paddock_os::binding::{BindError, Tries};
use paddock_os::threads::spawn;

/// The links of a member. Dropping it ends them too, without waiting for their thread.
#[derive(Debug)]
pub struct Links {
    #[cfg(test)]
    addresses: Vec<SocketAddr>,
    shared: Arc<PeersShared>,
    /// For the thread. The channel's end is the thread's end.
    orders: UnboundedSender<Order>,
    thread: JoinHandle<()>,
}

impl Links {
    /// Listens, now or when its address is there, and begins to dial. `events` runs on the links' thread: while it does, no link makes progress.
    pub fn start(
        options: LinkOptions,
        events: impl Fn(LinkEvent) + Send + Sync + 'static,
    ) -> Result<Links, BindError> {
        let LinkOptions { own, listen, look_up, bind_tries, cluster, process, peers, seed, timing, tls } =
            options;
        let mut port = QuorumPort { at: listen, look_up, tries: Tries::new(bind_tries) };
        let listeners = port.tries.first(port.listen(), " for members")?;
        #[cfg(test)]
        let addresses = binding::addresses(listeners.as_deref().unwrap_or_default());
        let (cluster, peers_known, events) = (AtomicU64::new(cluster), RwLock::default(), Box::new(events));
        let shared = Arc::new(PeersShared { own, cluster, process, timing, tls, peers: peers_known, events });
        let (orders, receiver) = unbounded_channel();
        let thread = {
            let shared = shared.clone();
            spawn("links", move || hub::run(shared, (port, listeners), receiver, seed))
        };
        let links = Links {
            #[cfg(test)]
            addresses,
            shared,
            orders,
            thread,
        };
        links.set_peers(peers);
        Ok(links)
    }

    /// Address at which other members connect.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Queues a message, of at least one byte. False if there is no link, or no room in its queue, or if the message is
    /// larger than `MESSAGE_BYTES_MAX`: then it is dropped, as the network could have dropped it. Never waits.
    pub fn send(&self, to: MemberNumber, message: Vec<u8>) -> bool {
        self.send_all(to, [message]) == 0
    }

    /// Queues messages as [`Links::send`] does, which leave together. Returns the number of those that were dropped.
    pub fn send_all(&self, to: MemberNumber, messages: impl IntoIterator<Item = Vec<u8>>) -> u64 {
        let messages = messages.into_iter().inspect(|message| {
            assert!(!message.is_empty(), "an empty message for member {to}");
        });
        match self.shared.peers.read().get(&to) {
            Some(peer) => peer.send(messages),
            None => messages.count() as u64,
        }
    }

    /// From now on these are the other members. Links to those that are gone or have moved are cut, a moment later.
    pub fn set_peers(&self, peers: Vec<PeerAddress>) {
        self.order(Order::Peers(peers));
    }

    /// From now on members of other clusters are refused, and links to such are cut.
    pub fn set_cluster(&self, cluster: u64) {
        if self.shared.cluster.swap(cluster, Ordering::AcqRel) != cluster {
            self.order(Order::JudgeAgain);
        }
    }

    /// Cuts the link to a peer that belongs to another cluster.
    pub fn refuse(&self, peer: MemberNumber, cluster: u64) {
        self.order(Order::Refuse { peer, cluster });
    }

    fn order(&self, order: Order) {
        // The thread is gone only if it panicked, which `shutdown` tells.
        let _ = self.orders.send(order);
    }

    /// Address of the other side of the link to a peer.
    #[cfg(test)]
    pub(crate) fn link_address(&self, peer: MemberNumber) -> Option<SocketAddr> {
        Some(self.shared.peers.read().get(&peer)?.link()?.address())
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> Vec<super::tests::LinkStatus> {
        self.shared.peers.read().values().map(|peer| peer.status()).collect()
    }

    /// Cuts all links. No event comes after this has returned.
    pub fn shutdown(self) {
        drop(self.orders);
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
