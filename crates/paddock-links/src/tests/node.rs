//! A member's links, with its events in a channel.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};
use paddock_os::LookUp;
use paddock_os::binding::ListenAt;
use paddock_proto::MemberNumber;
use paddock_tls::Tls;

use super::{LinkState, LinkStatus};
use crate::inflow::Received;
use crate::{LinkEvent, LinkOptions, Links, PeerAddress, Timing};

/// Time that anything may take before a test fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
pub(super) const CLUSTER: u64 = 77;
/// Numbers the nodes of all tests.
static PROCESSES: AtomicU64 = AtomicU64::new(1000);
/// Short pauses between attempts; no cut for silence, and no place given to another process, while a debugger or a busy machine is slow.
pub(super) const TIMING: Timing = Timing {
    heartbeat: Duration::from_millis(200),
    silence: Duration::from_secs(60),
    gives_way: Duration::from_secs(60),
    connect: Duration::from_secs(5),
    greeting: Duration::from_secs(5),
    pause_min: Duration::from_millis(10),
    pause_max: Duration::from_millis(100),
};

#[derive(Debug)]
pub(super) struct Node {
    id: MemberNumber,
    pub(super) links: Links,
    pub(super) events: Receiver<LinkEvent>,
}

impl Node {
    pub(super) fn start(id: MemberNumber) -> Node {
        Node::start_at(id, any_port(), TIMING)
    }

    pub(super) fn start_with(id: MemberNumber, timing: Timing) -> Node {
        Node::start_at(id, any_port(), timing)
    }

    pub(super) fn start_at(id: MemberNumber, listen: SocketAddr, timing: Timing) -> Node {
        Node::start_secured(id, listen, timing, None)
    }

    pub(super) fn start_secured(
        id: MemberNumber,
        listen: SocketAddr,
        timing: Timing,
        tls: Option<Tls>,
    ) -> Node {
        Node::start_of(CLUSTER, id, listen, timing, tls)
    }

    /// A member of another cluster, or of none that it knows: 0.
    pub(super) fn start_in(id: MemberNumber, cluster: u64) -> Node {
        Node::start_of(cluster, id, any_port(), TIMING, None)
    }

    fn start_of(
        cluster: u64,
        id: MemberNumber,
        listen: SocketAddr,
        timing: Timing,
        tls: Option<Tls>,
    ) -> Node {
        let (sender, events) = unbounded();
        let options = LinkOptions {
            own: id,
            listen: ListenAt::Name(listen.to_string()),
            look_up: LookUp::of_system(),
            bind_tries: 1,
            cluster,
            process: PROCESSES.fetch_add(1, Relaxed),
            peers: Vec::new(),
            seed: u64::from(id),
            timing,
            tls,
        };
        // A test that is over listens no more.
        let links = Links::start(options, move |event| {
            if !matches!(event, LinkEvent::Listening(_)) {
                drop(sender.send(event));
            }
        });
        let links = links.unwrap();
        Node { id, links, events }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.links.address()
    }

    pub(super) fn set_peers(&self, peers: &[(MemberNumber, SocketAddr)]) {
        let peer =
            |&(id, address): &(MemberNumber, SocketAddr)| PeerAddress { id, address: address.to_string() };
        self.links.set_peers(peers.iter().map(peer).collect());
    }

    pub(super) fn next_event(&self) -> LinkEvent {
        self.events.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing happens at member {}", self.id))
    }

    pub(super) fn expect_up(&self, expected: MemberNumber) {
        match self.next_event() {
            LinkEvent::Up { peer } => assert_eq!(peer, expected),
            event => panic!("member {}: {event:?}", self.id),
        }
    }

    pub(super) fn expect_down(&self, expected: MemberNumber) {
        match self.next_event() {
            LinkEvent::Down { peer } => assert_eq!(peer, expected),
            event => panic!("member {}: {event:?}", self.id),
        }
    }

    pub(super) fn expect_message(&self, expected_from: MemberNumber) -> Received {
        match self.next_event() {
            LinkEvent::Message { from, bytes, .. } if from == expected_from => bytes,
            event => panic!("member {}: {event:?}", self.id),
        }
    }

    pub(super) fn send(&self, to: MemberNumber, message: &[u8]) {
        assert!(self.links.send(to, message.to_vec()), "member {} has no link to {to}", self.id);
    }

    pub(super) fn status(&self, peer: MemberNumber) -> LinkStatus {
        self.links.status().into_iter().find(|status| status.peer == peer).unwrap()
    }

    pub(super) fn reason(&self, peer: MemberNumber) -> String {
        match self.status(peer).state {
            LinkState::Up => "up".to_owned(),
            LinkState::Down { reason } => reason,
        }
    }
}

pub(super) fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Members 1 and 2, linked.
pub(super) fn pair(timing: Timing) -> (Node, Node) {
    let (one, two) = (Node::start_with(1, timing), Node::start_with(2, timing));
    link(&one, &two, one.address());
    (one, two)
}

/// Links two members; the one with the higher number finds the other one at `address`.
pub(super) fn link(one: &Node, two: &Node, address: SocketAddr) {
    one.set_peers(&[(two.id, two.address())]);
    two.set_peers(&[(one.id, address)]);
    one.expect_up(two.id);
    two.expect_up(one.id);
}
