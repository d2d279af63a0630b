//! The links' thread: what is dialled, what is up, and what is told of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use paddock_os::binding;
use paddock_os::threads::runtime_with_helpers;
use paddock_proto::MemberNumber;
use paddock_tls::Tls;
use tokio::runtime::Builder;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, LocalSet, spawn_local};

use super::accept::{self, Strangers};
use super::dial;
use super::greeting::{Hello, same_cluster};
use super::link::{Greeted, Link, LinkEnd, LinkThread};
use super::peer::Peer;
use super::quorum_port::{self, QuorumPort};
use super::settings::{PeerAddress, Timing};
use super::shared::{LinkEvent, Order, PeersShared};

const SCRATCH_BYTES: usize = 256 << 10;

/// Data that the tasks of the thread share.
#[derive(Debug)]
pub(super) struct Hub {
    shared: Arc<PeersShared>,
    random: RefCell<fastrand::Rng>,
    /// All links read into this.
    scratch: RefCell<Box<[u8]>>,
    /// The tasks that dial the peers.
    dialling: RefCell<BTreeMap<MemberNumber, AbortHandle>>,
    pub(super) strangers: RefCell<Strangers>,
}

/// Runs the links until the channel of orders ends.
pub(super) fn run(
    shared: Arc<PeersShared>,
    (port, listeners): (QuorumPort, Option<Vec<TcpListener>>),
    mut orders: UnboundedReceiver<Order>,
    seed: u64,
) {
    let runtime = runtime_with_helpers(&mut Builder::new_current_thread());
    let hub = Rc::new(Hub {
        shared,
        random: RefCell::new(fastrand::Rng::with_seed(seed)),
        scratch: RefCell::new(vec![0; SCRATCH_BYTES].into()),
        dialling: RefCell::default(),
        strangers: RefCell::default(),
    });
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        spawn_local(accept_members(hub.clone(), port, listeners));
        while let Some(order) = orders.recv().await {
            match order {
                Order::Peers(list) => hub.set_peers(list),
                Order::Refuse { peer, cluster } => hub.refuse(peer, cluster),
                Order::JudgeAgain => hub.judge_again(),
            }
        }
        hub.end();
    });
    drop(tasks);
    // A name that is being looked up is not waited for.
    runtime.shutdown_background();
}

/// Accepts other members at the listeners, or at those that can be had later.
async fn accept_members(hub: Rc<Hub>, port: QuorumPort, listeners: Option<Vec<TcpListener>>) {
    let listeners = match listeners {
        Some(listeners) => Ok(listeners),
        None => quorum_port::listen_later(port).await,
    };
    match listeners {
        Ok(listeners) => {
            (hub.shared.events)(LinkEvent::Listening(binding::addresses(&listeners)));
            for listener in listeners {
                spawn_local(accept::accept(hub.clone(), listener));
            }
        }
        Err(error) => (hub.shared.events)(LinkEvent::NotListening(error)),
    }
}

impl Hub {
    pub(super) fn own(&self) -> MemberNumber {
        self.shared.own
    }

    pub(super) fn cluster(&self) -> u64 {
        self.shared.cluster.load(Ordering::Acquire)
    }

    pub(super) fn timing(&self) -> Timing {
        self.shared.timing
    }

    pub(super) fn tls(&self) -> Option<&Tls> {
        self.shared.tls.as_ref()
    }

    /// The hello to a peer that this member calls.
    pub(super) fn hello(&self, to: MemberNumber) -> Hello {
        let (cluster, nonce, process) = (self.cluster(), self.nonce(), self.process());
        Hello { from: self.own(), to, cluster, nonce, process }
    }

    pub(super) fn process(&self) -> u64 {
        self.shared.process
    }

    /// The address that another process of a member calls from that calls now, if there is one: a link to it, on which it is still
    /// heard. One that is not heard for a while may be what is left of a process that has ended.
    pub(super) async fn other_process(&self, member: MemberNumber, process: u64) -> Option<SocketAddr> {
        let link = self.peer(member)?.link().filter(|link| link.process() != process)?;
        let lives = link.is_heard_within(self.timing().gives_way).await;
        lives.then(|| link.address())
    }

    /// A number for a new connection.
    pub(super) fn nonce(&self) -> u64 {
        self.random.borrow_mut().u64(..)
    }

    pub(super) fn with_random<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.random.borrow_mut())
    }

    pub(super) fn peer(&self, id: MemberNumber) -> Option<Arc<Peer>> {
        self.shared.peers.read().get(&id).cloned()
    }

    fn set_peers(self: &Rc<Hub>, list: Vec<PeerAddress>) {
        let mut wanted: BTreeMap<MemberNumber, String> =
            list.into_iter().map(|peer| (peer.id, peer.address)).collect();
        wanted.remove(&self.own());
        let present: Vec<Arc<Peer>> = self.shared.peers.read().values().cloned().collect();
        for peer in present {
            let Some(address) = wanted.remove(&peer.id) else {
                self.remove(&peer, &LinkEnd::Removed);
                continue;
            };
            if address != peer.address() {
                self.move_to(&peer, address);
            }
        }
        wanted.into_iter().for_each(|(id, address)| self.add(Peer::new(id, address)));
    }

    fn move_to(self: &Rc<Hub>, peer: &Peer, address: String) {
        if self.own() > peer.id {
            self.remove(peer, &LinkEnd::Moved);
            self.add(Peer::new(peer.id, address));
        } else {
            // The other side dials: the link, if there is one, is as good as before.
            peer.set_address(address);
        }
    }

    fn add(self: &Rc<Hub>, peer: Peer) {
        let peer = Arc::new(peer);
        self.shared.peers.write().insert(peer.id, peer.clone());
        let task = spawn_local(dial::keep_linked(self.clone(), peer.clone()));
        self.dialling.borrow_mut().insert(peer.id, task.abort_handle());
    }

    fn remove(&self, peer: &Peer, end: &LinkEnd) {
        let dialling = self.dialling.borrow_mut().remove(&peer.id);
        dialling.expect("each peer has a task").abort();
        self.shared.peers.write().remove(&peer.id);
        self.cut(peer, end);
    }

    /// Begins to use a connection whose two sides know each other. One that is there already may be a half of one that
    /// the other side has long given up.
    pub(super) fn link_up(self: &Rc<Hub>, peer: &Arc<Peer>, greeted: Greeted) {
        self.cut(peer, &LinkEnd::Replaced);
        let tls = greeted.stream.tls_version();
        let (link, receiving) = Link::new(greeted);
        let link = Arc::new(link);
        peer.set_up(link.clone());
        tracing::info!(peer = peer.id, address = peer.address(), tls, "link up");
        (self.shared.events)(LinkEvent::Up { peer: peer.id });
        let server = LinkThread::new(link, receiving, self.timing());
        spawn_local(self.clone().serve(peer.clone(), server));
    }

    async fn serve(self: Rc<Hub>, peer: Arc<Peer>, server: LinkThread) {
        let deliver = |bytes, is_last| {
            (self.shared.events)(LinkEvent::Message { from: peer.id, bytes, is_last });
        };
        if let Some(end) = server.run(&self.scratch, deliver).await {
            self.cut(&peer, &end);
        }
    }

    /// Cuts the link to a peer of another ensemble. When one side calls again, both say where they belong.
    fn refuse(&self, peer: MemberNumber, cluster: u64) {
        if let Some(peer) = self.peer(peer) {
            self.cut(&peer, &LinkEnd::OtherCluster { own: self.cluster(), theirs: cluster });
        }
    }

    /// This member has learned to which ensemble it belongs: links that began before that may be to members of another.
    fn judge_again(&self) {
        let peers: Vec<Arc<Peer>> = self.shared.peers.read().values().cloned().collect();
        for peer in peers {
            let theirs = peer.link().map_or(0, |link| link.cluster());
            if !same_cluster(self.cluster(), theirs) {
                self.refuse(peer.id, theirs);
            }
        }
    }

    /// Ends the peer's link, if it has one.
    fn cut(&self, peer: &Peer, end: &LinkEnd) {
        let Some(link) = peer.set_down(&end.to_string()) else { return };
        link.close();
        match end {
            LinkEnd::OtherCluster { .. } => {
                tracing::error!(peer = peer.id, address = %link.address(), reason = %end, "link down");
            }
            _ => tracing::warn!(peer = peer.id, address = peer.address(), reason = %end, "link down"),
        }
        (self.shared.events)(LinkEvent::Down { peer: peer.id });
    }

    /// The links' end: no member is told any more.
    fn end(&self) {
        for peer in self.shared.peers.read().values() {
            if let Some(link) = peer.set_down("this member stops") {
                link.close();
            }
        }
    }
}
