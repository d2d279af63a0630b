//! Links to the other members of the ensemble: their addresses, and the way of their messages to the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use paddock_replica::{Cluster, Input, LogEntry, is_of_log};

use crate::Config;
use crate::binding::ListenAt;
use crate::config::{Ensemble, EnsembleMember, TlsMode};
use crate::error::ServerError;
use crate::peers::{LinkEvent, LinkOptions, Links, LookUp, MESSAGE_BYTES_MAX, PeerAddress, Timing};
use crate::shared::Shared;
use crate::tls::Tls;

/// The work for a larger message, in bytes, takes so long that the links' thread is needed for others meanwhile.
const QUICK_BYTES_MAX: usize = 4 << 10;

// A command is a part of a batch, which is a part of an entry: both add little.
const _: () = assert!(Config::COMMAND_BYTES_MAX + (1 << 20) <= LogEntry::PAYLOAD_BYTES_MAX);
const _: () = assert!(Config::COMMAND_BYTES_MAX + (1 << 20) <= MESSAGE_BYTES_MAX);

/// Links to all other members; `None` for a member alone. Inputs of the engine go to `deliver`, each with true if the engine
/// may work on the links' thread for it.
pub(super) fn start(
    shared: &Arc<Shared>,
    cluster: Cluster,
    process: u64,
    deliver: impl Fn(Input, bool) + Send + Sync + 'static,
) -> Result<Option<Links>, ServerError> {
    let config = &shared.config;
    let Some(ensemble) = &config.ensemble else { return Ok(None) };
    let own = ensemble.members.iter().find(|member| member.id == config.member);
    let own = own.expect("the configuration names this member among the ensemble's");
    let options = LinkOptions {
        own: own.id,
        listen: listen_at(own, ensemble.listen_on_all_addresses),
        look_up: LookUp::of_system(),
        bind_tries: config.bind_tries,
        cluster: cluster.known().unwrap_or_default(),
        process,
        peers: ensemble.members.iter().filter(|member| member.id != own.id).map(peer_address).collect(),
        seed: RandomState::new().hash_one(own.id),
        timing: Timing::default(),
        tls: load_tls(ensemble, own)?,
    };
    let tls_mode = ensemble.tls.as_ref().map(|tls| tls.mode);
    let of_links = shared.clone();
    let links = Links::start(options, move |event| match event {
        LinkEvent::Message { from, bytes, is_last } => {
            let is_quick = is_last && bytes.len() <= QUICK_BYTES_MAX && is_of_log(&bytes);
            deliver(Input::Peer { from: from.into(), bytes: bytes.to_vec() }, is_quick);
        }
        LinkEvent::Down { peer } => deliver(Input::LinkLost { peer: peer.into() }, false),
        LinkEvent::Listening(addresses) => {
            if let Some(open) = addresses.into_iter().find(|address| !address.ip().is_loopback()) {
                warn_of_open_port(open, tls_mode);
            }
        }
        LinkEvent::NotListening(error) => of_links.fail(ServerError::Links(error)),
        LinkEvent::Up { peer } => tracing::debug!(peer, "link to a peer is up"),
    })
    .map_err(ServerError::Links)?;
    Ok(Some(links))
}

fn load_tls(ensemble: &Ensemble, own: &EnsembleMember) -> Result<Option<Tls>, ServerError> {
    let loaded = ensemble.tls.clone().map(|tls| Tls::load(tls, own.host.clone()));
    loaded.transpose().map_err(ServerError::PeerTls)
}

fn warn_of_open_port(address: SocketAddr, tls: Option<TlsMode>) {
    match tls {
        None => tracing::warn!(
            %address,
            "links between members are neither encrypted nor authenticated: keep the quorum port in a private network"
        ),
        Some(TlsMode::Accepted | TlsMode::Preferred) => tracing::warn!(
            %address,
            "members that connect without TLS are not authenticated: require TLS as soon as all members connect with it"
        ),
        Some(TlsMode::Required) => {}
    }
}

/// Addresses of the other members, as far as they were ever heard of: one that has left is told so before it is let go.
#[derive(Debug)]
pub(crate) struct Addresses {
    own: u8,
    /// Addresses of the configuration, where that counts more than the ensemble's own: without reconfig, a member moves by new
    /// configurations.
    fixed: BTreeMap<u8, String>,
    known: BTreeMap<u8, String>,
}

impl Addresses {
    pub(crate) fn new(config: &Config) -> Addresses {
        let of = |member: &EnsembleMember| (member.id, host_and_port(member));
        let configured = config.ensemble.iter().flat_map(|ensemble| &ensemble.members).map(of);
        let configured: BTreeMap<u8, String> = configured.collect();
        let fixed = if config.may_reconfig() { BTreeMap::new() } else { configured.clone() };
        Addresses { own: config.member, fixed, known: configured }
    }

    /// Links this member to those that the state names.
    pub(crate) fn follow(&mut self, shared: &Shared, links: &Links) {
        let state = shared.state.read();
        let Some(ensemble) = state.tree().ensemble() else { return };
        for member in ensemble.all_members() {
            let address = self.fixed.get(&member.id).cloned().unwrap_or_else(|| host_and_port(member));
            self.known.insert(member.id, address);
        }
        let mut members: BTreeSet<u8> = ensemble.all_members().map(|member| member.id).collect();
        members.extend(state.membership().all().filter_map(|id| u8::try_from(id).ok()));
        members.remove(&self.own);
        let peer = |id: u8| Some(PeerAddress { id, address: self.known.get(&id)?.clone() });
        links.set_cluster(ensemble.cluster);
        links.set_peers(members.into_iter().filter_map(peer).collect());
    }
}

fn peer_address(member: &EnsembleMember) -> PeerAddress {
    PeerAddress { id: member.id, address: host_and_port(member) }
}

fn host_and_port(member: &EnsembleMember) -> String {
    match member.host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{}", member.quorum_port),
        Err(_) => format!("{}:{}", member.host, member.quorum_port),
    }
}

fn listen_at(own: &EnsembleMember, on_all: bool) -> ListenAt {
    if on_all { ListenAt::All { port: own.quorum_port } } else { ListenAt::Name(host_and_port(own)) }
}
