//! Links to the other members of the ensemble: their addresses, and the way of their messages to the engine.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use paddock_links::{LinkEvent, LinkOptions, Links, MESSAGE_BYTES_MAX, PeerAddress, Timing};
use paddock_member::{is_of_log, open_of_copies};
use paddock_os::LookUp;
use paddock_os::binding::ListenAt;
use paddock_proto::{MemberNumber, Reach};
use paddock_replica::{Cluster, Input, LogEntry};
use paddock_replica::{SoughtMembers, raft_id};
use paddock_tls::Tls;

use crate::Config;
use crate::clock::wall_ms;
use crate::config::{Ensemble, EnsembleMember, TlsMode};
use crate::error::ServerError;
use crate::shared::Shared;

// A command is a part of a batch, which is a part of an entry: both add little.
const _: () = assert!(Config::COMMAND_BYTES_MAX + (1 << 20) <= LogEntry::PAYLOAD_BYTES_MAX);
// Raft says something with an entry.
const _: () = assert!(LogEntry::PAYLOAD_BYTES_MAX + (1 << 20) <= MESSAGE_BYTES_MAX);

/// Place of an input among those that came over a link together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Another one follows at once.
    Followed,
    /// The last one: the engine may work on the links' thread, if they are small.
    Last,
    /// One for which the engine is to be woken.
    Slow,
}

/// Links to all other members; `None` for a member alone. Inputs of the engine go to `deliver`, each with the bytes of its message, and messages about
/// copies of groups to `take_of_copies`.
pub(super) fn start(
    shared: &Arc<Shared>,
    (cluster, process): (Cluster, u64),
    deliver: impl Fn(Input, usize, Delivery) + Send + Sync + 'static,
    take_of_copies: impl Fn(MemberNumber, &[u8]) + Send + Sync + 'static,
) -> Result<Option<Links>, ServerError> {
    let config = &shared.config;
    let Some(ensemble) = &config.ensemble else { return Ok(None) };
    let own = ensemble.members.iter().find(|member| member.id == config.member);
    let own = own.expect("the configuration names this member among the ensemble's");
    let tls = load_tls(ensemble, own)?;
    if let Some(tls) = &tls {
        // Links begin once in the life of a member.
        let _ = shared.statistics.link_certificate_end.set(tls.certificate_end());
    }
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
        tls,
    };
    let tls_mode = ensemble.tls.as_ref().map(|tls| tls.mode);
    let of_links = shared.clone();
    let links = Links::start(options, move |event| match event {
        LinkEvent::Message { from, bytes, is_last } => {
            if let Some(message) = open_of_copies(&bytes) {
                return take_of_copies(from, message);
            }
            let delivery = match is_of_log(&bytes) {
                true if is_last => Delivery::Last,
                true => Delivery::Followed,
                false => Delivery::Slow,
            };
            deliver(Input::Peer { from: raft_id(from), bytes: bytes.to_vec() }, bytes.len(), delivery);
        }
        LinkEvent::Down { peer } => {
            of_links.statistics.contacts.note(peer, false, wall_ms());
            deliver(Input::LinkLost { peer: raft_id(peer) }, 0, Delivery::Slow);
        }
        LinkEvent::Listening(addresses) => {
            if let Some(open) = addresses.into_iter().find(|address| !address.ip().is_loopback()) {
                warn_of_open_port(open, tls_mode);
            }
        }
        LinkEvent::NotListening(error) => of_links.life.fail(ServerError::Links(error)),
        LinkEvent::Up { peer } => {
            of_links.statistics.contacts.note(peer, true, wall_ms());
            tracing::debug!(peer, "link to a peer is up");
        }
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
    own: MemberNumber,
    /// False if the configuration's addresses count more than the ensemble's own: without reconfig, a member moves by new configurations.
    may_reconfig: bool,
    /// Hosts and addresses of the configuration.
    configured: BTreeMap<MemberNumber, (String, String)>,
    known: BTreeMap<MemberNumber, String>,
    /// Members that count beside those that the state names.
    sought: SoughtMembers,
}

impl Addresses {
    pub(crate) fn new(config: &Config) -> Addresses {
        let configured = hosts_and_addresses(config);
        let known = configured.iter().map(|(id, (_, address))| (*id, address.clone())).collect();
        Addresses {
            own: config.member,
            may_reconfig: config.may_reconfig(),
            configured,
            known,
            sought: SoughtMembers::default(),
        }
    }

    /// Address at which to call a member of the ensemble. Images write 0.0.0.0 as a member's own host, and the first leader's file is
    /// what the ensemble begins with: there another member's file knows better.
    fn of(&self, member: &EnsembleMember) -> String {
        match self.configured.get(&member.id) {
            Some((host, address)) if !self.may_reconfig || Reach::of(host) > Reach::of(&member.host) => {
                address.clone()
            }
            _ => host_and_port(member),
        }
    }

    /// These count from now on beside those that the state names.
    pub(crate) fn seek(&mut self, sought: SoughtMembers) {
        self.sought = sought;
    }

    /// Links this member to those that the state names, and to those that are sought.
    pub(crate) fn follow(&mut self, shared: &Shared, links: &Links) {
        // The file may have been read again since.
        self.configured = hosts_and_addresses(&shared.settings());
        let state = shared.state.read();
        let ensemble = state.tree().ensemble();
        for member in ensemble.iter().flat_map(|ensemble| ensemble.all_members()).chain(&self.sought.told) {
            let address = self.of(member);
            self.known.insert(member.id, address);
        }
        let mut members = state.linked_members(self.configured.keys().copied(), &self.sought);
        members.remove(&self.own);
        let peer = |id: MemberNumber| Some(PeerAddress { id, address: self.known.get(&id)?.clone() });
        if let Some(ensemble) = ensemble {
            links.set_cluster(ensemble.cluster);
        }
        links.set_peers(members.into_iter().filter_map(peer).collect());
    }
}

/// Hosts and addresses of the configuration.
fn hosts_and_addresses(config: &Config) -> BTreeMap<MemberNumber, (String, String)> {
    let members = config.ensemble.iter().flat_map(|ensemble| &ensemble.members);
    members.map(|member| (member.id, (member.host.clone(), host_and_port(member)))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: MemberNumber, host: &str, quorum_port: u16) -> EnsembleMember {
        let text = format!("{host}:{quorum_port}:{}", quorum_port + 1);
        EnsembleMember::parse(id, &text).unwrap().0
    }

    /// Address at which member 1 calls member 2, which the ensemble has at `committed` and the file at `configured`.
    #[track_caller]
    fn check(committed: &str, configured: &str, reconfig_enabled: bool, expected: &str) {
        let members = vec![member(1, "a", 10), member(2, configured, 20)];
        let ensemble = Ensemble { members, reconfig_enabled, ..Ensemble::default() };
        let config = Config { member: 1, ensemble: Some(ensemble), ..Config::new("data") };
        assert_eq!(Addresses::new(&config).of(&member(2, committed, 30)), expected);
    }

    #[test]
    fn a_host_that_leads_nowhere_is_that_of_the_file() {
        check("0.0.0.0", "zoo2", true, "zoo2:20");
        check("[::]", "zoo2", true, "zoo2:20");
        check("127.0.0.1", "zoo2", true, "zoo2:20");
        check("localhost", "10.0.0.2", true, "10.0.0.2:20");
        check("0.0.0.0", "127.0.0.1", true, "127.0.0.1:20");
    }

    #[test]
    fn with_reconfig_the_ensemble_knows_where_its_members_are() {
        check("b", "zoo2", true, "b:30");
        check("127.0.0.1", "127.0.0.2", true, "127.0.0.1:30");
        check("0.0.0.0", "0.0.0.0", true, "0.0.0.0:30");
        check("b", "zoo2", false, "zoo2:20");
    }
}
