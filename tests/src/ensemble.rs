//! An ensemble of processes, all started on one `zoo.cfg` but for the client's port: of Paddock's, or of Apache ZooKeeper's
//! to measure beside it. Its members stand on loopback or wherever their places are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use crate::administered::admin_settings_at;
use crate::server::{MemberSettings, Server, ServerKind, free_port};

/// Three JVMs beside other load take more than a minute.
const AGREED_WITHIN: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(5);

/// Settings that ZooKeeper insists on, as in its sample configuration. Paddock takes no notice.
const LIMITS: [(&str, &str); 2] = [("initLimit", "10"), ("syncLimit", "5")];

/// Addresses, namespace and disk of a member.
#[derive(Clone, Debug)]
pub struct MemberPlace {
    /// Address where its clients connect.
    pub clients: SocketAddr,
    /// `host:port:port` for its peers.
    pub peers: String,
    pub namespace: Option<String>,
    /// The size of the disk that its data are on; none for the disk of the test.
    pub disk_bytes: Option<usize>,
    /// Address of its interface for administrators, if it has one.
    pub admin: Option<SocketAddr>,
}

impl MemberPlace {
    /// Address where its peers reach it.
    pub fn peer_address(&self) -> IpAddr {
        let host = self.peers.split(':').next().unwrap_or_default();
        host.parse().unwrap_or_else(|_| panic!("{} begins with no address", self.peers))
    }

    /// A place whose line says where clients connect, too, as a change of members has it.
    pub fn on_loopback_with_clients() -> MemberPlace {
        let place = MemberPlace::on_loopback();
        MemberPlace { peers: format!("{}:participant;{}", place.peers, place.clients), ..place }
    }

    pub fn on_loopback() -> MemberPlace {
        MemberPlace {
            clients: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())),
            peers: format!("127.0.0.1:{}:{}", free_port(), free_port()),
            namespace: None,
            disk_bytes: None,
            admin: None,
        }
    }

    /// Lines of `zoo.cfg` that the other members do not have.
    fn own_lines(&self) -> Vec<(String, String)> {
        self.admin.map(admin_settings_at).into_iter().flatten().collect()
    }
}

#[derive(Debug)]
pub struct Ensemble {
    members: Vec<Server>,
}

impl Ensemble {
    /// Starts `members` members and waits until one leads.
    pub fn start(members: usize) -> Ensemble {
        Ensemble::start_with(members, &[])
    }

    /// An ensemble with more lines in every `zoo.cfg`.
    pub fn start_with(members: usize, settings: &[(&str, &str)]) -> Ensemble {
        Ensemble::start_kind(ServerKind::Paddock, members, settings)
    }

    pub fn start_kind(kind: ServerKind, members: usize, settings: &[(&str, &str)]) -> Ensemble {
        let places: Vec<MemberPlace> = (0..members).map(|_| MemberPlace::on_loopback()).collect();
        Ensemble::start_at(kind, &places, settings)
    }

    /// Starts a member in each place and waits until one leads.
    pub fn start_at(kind: ServerKind, places: &[MemberPlace], settings: &[(&str, &str)]) -> Ensemble {
        let mut ensemble = Ensemble::spawn_at(kind, places, settings);
        ensemble.leader();
        ensemble
    }

    /// Starts a member in each place; `leader` waits until one leads.
    pub fn spawn_at(kind: ServerKind, places: &[MemberPlace], settings: &[(&str, &str)]) -> Ensemble {
        let lines: Vec<(String, &str)> =
            (1..).zip(places).map(|(id, place)| (format!("server.{id}"), &*place.peers)).collect();
        let lines = lines.iter().map(|(key, value)| (&**key, *value));
        let settings: Vec<(&str, &str)> = lines.chain(LIMITS).chain(settings.iter().copied()).collect();
        let member = |(id, place): (usize, &MemberPlace)| {
            let MemberPlace { clients: address, namespace, disk_bytes, .. } = place.clone();
            let own = place.own_lines();
            let own = own.iter().map(|(key, value)| (&**key, &**value));
            let settings: Vec<(&str, &str)> = settings.iter().copied().chain(own).collect();
            Server::start_as(&MemberSettings {
                kind,
                id,
                address,
                namespace,
                disk_bytes,
                settings: &settings,
            })
        };
        Ensemble { members: (1..).zip(places).map(member).collect() }
    }

    /// An ensemble with lines that differ from member to member, which are numbered from 1.
    pub fn start_each(
        members: usize,
        servers: &[(String, String)],
        settings: impl Fn(usize) -> Vec<(String, String)>,
    ) -> Ensemble {
        Ensemble::start_each_of(ServerKind::Paddock, members, servers, settings)
    }

    /// An ensemble with members of either kind.
    pub fn start_each_of(
        kind: ServerKind,
        members: usize,
        servers: &[(String, String)],
        settings: impl Fn(usize) -> Vec<(String, String)>,
    ) -> Ensemble {
        let start = |id| {
            let own = settings(id);
            let own = own.iter().map(|(key, value)| (&**key, &**value));
            let all: Vec<(&str, &str)> =
                servers.iter().map(|(key, value)| (&**key, &**value)).chain(own).chain(LIMITS).collect();
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            let (namespace, disk_bytes) = (None, None);
            Server::start_as(&MemberSettings { kind, id, address, namespace, disk_bytes, settings: &all })
        };
        let mut ensemble = Ensemble { members: (1..=members).map(start).collect() };
        ensemble.leader();
        ensemble
    }

    /// `host:port` of every member, for a client.
    pub fn hosts(&self) -> String {
        let addresses: Vec<String> = self.members.iter().map(|member| member.address().to_string()).collect();
        addresses.join(",")
    }

    /// Addresses where the clients of all other members connect.
    pub fn addresses_beside(&self, left_out: usize) -> Vec<SocketAddr> {
        let others = self.members.iter().enumerate().filter(|(place, _)| *place != left_out);
        others.map(|(_, member)| member.address()).collect()
    }

    /// By its place from 0.
    pub fn member(&mut self, number: usize) -> &mut Server {
        &mut self.members[number]
    }

    /// A member by its place from 0, to look at.
    pub fn at(&self, place: usize) -> &Server {
        &self.members[place]
    }

    pub fn into_members(self) -> Vec<Server> {
        self.members
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The place of the member that leads now; waits until one does and all that run follow.
    pub fn leader(&mut self) -> usize {
        let deadline = Instant::now() + AGREED_WITHIN;
        loop {
            self.check_running();
            let modes: Vec<Option<String>> = self.members.iter().map(mode).collect();
            let awake = self.members.iter().filter(|member| member.is_awake()).count();
            let count = |wanted: &str| modes.iter().filter(|mode| mode.as_deref() == Some(wanted)).count();
            if count("leader") == 1 && count("leader") + count("follower") == awake {
                return modes
                    .iter()
                    .position(|mode| mode.as_deref() == Some("leader"))
                    .expect("it was counted");
            }
            assert!(
                Instant::now() < deadline,
                "no leader that all follow after {AGREED_WITHIN:?}: {modes:?}"
            );
            thread::sleep(POLL);
        }
    }

    /// The place of a member that says now that it leads. Others may not know of it, or no more.
    pub fn self_declared_leader(&self) -> Option<usize> {
        self.members.iter().position(|member| mode(member).as_deref() == Some("leader"))
    }

    /// Waits until all members have applied as much as the one that has applied most.
    pub fn settle(&mut self) {
        let deadline = Instant::now() + AGREED_WITHIN;
        loop {
            self.check_running();
            let zxids: Vec<Option<String>> =
                self.members.iter().map(|member| word(member, "Zxid: ")).collect();
            if zxids.iter().all(|zxid| zxid.is_some() && *zxid == zxids[0]) {
                return;
            }
            assert!(Instant::now() < deadline, "members differ after {AGREED_WITHIN:?}: {zxids:?}");
            thread::sleep(POLL);
        }
    }

    /// Panics if a member has ended: waiting for it would be in vain.
    fn check_running(&mut self) {
        for (id, member) in (1..).zip(&mut self.members) {
            if let Some(status) = member.ended_by_itself() {
                panic!("member {id} ended by itself, with {status}");
            }
        }
    }
}

/// The lines that name `members` members, each on ports of its own.
pub fn server_lines(members: usize) -> Vec<(String, String)> {
    let line = |id| (format!("server.{id}"), format!("127.0.0.1:{}:{}", free_port(), free_port()));
    (1..=members).map(line).collect()
}

fn mode(member: &Server) -> Option<String> {
    word(member, "Mode: ")
}

fn word(member: &Server, name: &str) -> Option<String> {
    if !member.is_awake() {
        return None;
    }
    let srvr = member.four_letter_word("srvr").ok()?;
    srvr.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}
