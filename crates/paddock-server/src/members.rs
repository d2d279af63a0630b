//! The other members of the ensemble: where they are, and how what they say gets to the engine.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use paddock_replica::Input;

use crate::Config;
use crate::config::EnsembleMember;
use crate::peers::{LinkEvent, LinkOptions, Links, MESSAGE_BYTES_MAX, PeerAddress, Timing};
use crate::server::ServerError;
use crate::shared::Shared;

/// What one message between members has to carry besides a client's request: Raft's fields, other entries.
const MESSAGE_RESERVE: usize = 16 << 20;

/// The largest request that can travel between members.
pub(crate) fn frame_bytes_max(config: &Config) -> i32 {
    let most = (MESSAGE_BYTES_MAX - MESSAGE_RESERVE) as i32;
    match config.ensemble {
        Some(_) => config.frame_bytes_max.min(most),
        None => config.frame_bytes_max,
    }
}

/// Links to all other members; `None` for a member alone.
pub(crate) fn link(shared: &Arc<Shared>) -> Result<Option<Links>, ServerError> {
    let config = &shared.config;
    let Some(ensemble) = &config.ensemble else { return Ok(None) };
    let own = ensemble.members.iter().find(|member| member.id == config.member);
    let own = own.expect("the configuration names this member among the ensemble's");
    let options = LinkOptions {
        own: own.id,
        listen: listen_address(own, ensemble.listen_on_all_addresses)?,
        cluster: Arc::new(AtomicU64::new(0)),
        peers: ensemble.members.iter().filter(|member| member.id != own.id).map(peer_address).collect(),
        seed: RandomState::new().hash_one(own.id),
        timing: Timing::default(),
    };
    if !options.listen.ip().is_loopback() {
        tracing::warn!(
            address = %options.listen,
            "what members say to each other is neither encrypted nor authenticated: keep this port in a private network"
        );
    }
    let engine = Arc::clone(shared);
    let links = Links::start(options, move |event| {
        if let LinkEvent::Message { from, bytes } = event {
            engine.hand_over(&mut vec![Input::Peer { from: from.into(), bytes: bytes.to_vec() }]);
        }
    })?;
    Ok(Some(links))
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

fn listen_address(own: &EnsembleMember, on_all: bool) -> Result<SocketAddr, ServerError> {
    if on_all {
        return Ok(SocketAddr::from(([0, 0, 0, 0], own.quorum_port)));
    }
    let address = host_and_port(own);
    let first = address.to_socket_addrs().ok().and_then(|mut all| all.next());
    first.ok_or(ServerError::PeerAddress(address))
}
