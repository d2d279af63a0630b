//! A real etcd of one member or more, and front ends of Paddock's on it. `ETCD_BIN` names etcd's program.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ensemble::MemberPlace;
use crate::server::{Server, ServerKind, environment, free_port, program, signal};

const AGREED_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Ports of members in a network of their own.
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;

/// A cluster whose members keep their ports and their data.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
    directory: tempfile::TempDir,
}

#[derive(Debug)]
struct EtcdMember {
    name: String,
    /// Address that the test asks.
    clients: SocketAddr,
    /// Address that front ends connect to.
    fronts: SocketAddr,
    peers: SocketAddr,
    namespace: Option<String>,
    process: Option<Child>,
    is_paused: bool,
}

impl EtcdCluster {
    /// Starts `members` members, and returns when one leads.
    pub fn start(members: usize) -> EtcdCluster {
        let address = || SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let member = |number| {
            let (clients, peers) = (address(), address());
            EtcdMember::new(number, clients, clients, peers, None)
        };
        EtcdCluster::start_members((0..members).map(member).collect())
    }

    /// Starts a member in each of these places of a network. Front ends reach it where its peers do, so that both can be cut off.
    pub fn start_at(places: &[MemberPlace]) -> EtcdCluster {
        let member = |(number, place): (usize, &MemberPlace)| {
            let clients = SocketAddr::new(place.clients.ip(), CLIENT_PORT);
            let inner = SocketAddr::new(place.peer_address(), CLIENT_PORT);
            let peers = SocketAddr::new(place.peer_address(), PEER_PORT);
            EtcdMember::new(number, clients, inner, peers, place.namespace.clone())
        };
        EtcdCluster::start_members(places.iter().enumerate().map(member).collect())
    }

    fn start_members(members: Vec<EtcdMember>) -> EtcdCluster {
        let directory = tempfile::tempdir().expect("make a directory for etcd");
        let mut cluster = EtcdCluster { members, directory };
        (0..cluster.len()).for_each(|number| cluster.spawn(number));
        cluster.leader();
        cluster
    }

    /// Starts a member that does not run.
    pub fn spawn(&mut self, number: usize) {
        let peers = self.members.iter().map(|member| format!("{}=http://{}", member.name, member.peers));
        let peers = peers.collect::<Vec<_>>().join(",");
        let directory = self.directory.path();
        let member = &mut self.members[number];
        assert!(member.process.is_none(), "{} runs already", member.name);
        let log = directory.join(format!("{}.log", member.name));
        let log = OpenOptions::new().create(true).append(true).open(log).expect("open etcd's log");
        let own = format!("http://{}", member.peers);
        let mut clients = format!("http://{}", member.fronts);
        if member.clients != member.fronts {
            clients = format!("{clients},http://{}", member.clients);
        }
        let child = program(member.namespace.as_deref(), &environment("ETCD_BIN"))
            .args(["--name", &member.name, "--data-dir"])
            .arg(directory.join(&member.name))
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &own, "--initial-advertise-peer-urls", &own])
            .args(["--initial-cluster", &peers])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("share the log"))
            .stderr(log)
            .spawn();
        member.process = Some(child.expect("start etcd"));
    }

    pub fn kill(&mut self, number: usize) {
        let member = &mut self.members[number];
        let mut child = member.process.take().expect("the member runs");
        child.kill().and_then(|()| child.wait()).expect("kill etcd");
        member.is_paused = false;
    }

    /// Stops a member from running, as a machine that hangs does: its connections stay open.
    pub fn pause(&mut self, number: usize) {
        self.members[number].signal("-STOP");
        self.members[number].is_paused = true;
    }

    /// Lets a paused member go on.
    pub fn resume(&mut self, number: usize) {
        self.members[number].signal("-CONT");
        self.members[number].is_paused = false;
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Place of the member that leads now; waits until all that run know the same.
    pub fn leader(&self) -> usize {
        let deadline = Instant::now() + AGREED_WITHIN;
        loop {
            let awake = self.members.iter().filter(|member| member.process.is_some() && !member.is_paused);
            let told: Vec<Option<(String, String)>> = awake.map(EtcdMember::status).collect();
            let known = told.first().and_then(|first| first.as_ref()).map(|(_, leader)| leader);
            if let Some(leader) = known.filter(|leader| *leader != "0")
                && told.iter().all(|status| status.as_ref().is_some_and(|(_, of)| of == leader))
                && let Some(place) = self.place_of(leader)
            {
                return place;
            }
            assert!(Instant::now() < deadline, "etcd has no leader after {AGREED_WITHIN:?}: {told:?}");
            thread::sleep(POLL);
        }
    }

    fn place_of(&self, id: &str) -> Option<usize> {
        let is_it = |member: &EtcdMember| member.status().is_some_and(|(own, _)| own == id);
        self.members.iter().position(|member| member.process.is_some() && !member.is_paused && is_it(member))
    }

    /// A front end on this cluster that has not been started. It asks this member first.
    pub fn front_end(&self, first: usize) -> Server {
        self.front_end_with(first, &[], &[])
    }

    /// A front end with more lines in its `zoo.cfg`, and more arguments.
    pub fn front_end_with(&self, first: usize, settings: &[(&str, &str)], arguments: &[&str]) -> Server {
        let server = Server::prepare(ServerKind::Paddock, settings);
        self.put_on_etcd(server, first, arguments)
    }

    /// A front end in a place of the cluster's network that has not been started.
    pub fn front_end_at(&self, place: &MemberPlace, first: usize) -> Server {
        let namespace = place.namespace.clone();
        let server = Server::prepare_at(ServerKind::Paddock, place.clients, namespace, &[]);
        self.put_on_etcd(server, first, &[])
    }

    fn put_on_etcd(&self, mut server: Server, first: usize, arguments: &[&str]) -> Server {
        let endpoint = |place: usize| {
            let member = &self.members[(first + place) % self.members.len()];
            format!("http://{}", member.fronts)
        };
        let endpoints = (0..self.members.len()).map(endpoint).collect::<Vec<_>>().join(",");
        let engine = ["--engine", "etcd", "--etcd-endpoints", &endpoints];
        server.set_arguments(&[&engine, arguments].concat());
        server
    }

    /// Tells the leader to hand the lead over to another member; returns when it has.
    pub fn move_leader(&self) {
        let leader = self.leader();
        let next = &self.members[(leader + 1) % self.len()];
        let (id, _) = next.status().expect("the next leader tells its id");
        let request = format!("{{\"targetID\": \"{id}\"}}");
        let deadline = Instant::now() + AGREED_WITHIN;
        while self.leader() == leader {
            assert!(Instant::now() < deadline, "the lead was not handed over");
            // etcd refuses as long as the next leader has not caught up, after a partition for example.
            self.members[leader].post("maintenance/transfer-leadership", &request);
            thread::sleep(POLL);
        }
    }
}

impl EtcdMember {
    fn new(
        number: usize,
        clients: SocketAddr,
        fronts: SocketAddr,
        peers: SocketAddr,
        namespace: Option<String>,
    ) -> EtcdMember {
        let name = format!("etcd-{number}");
        EtcdMember { name, clients, fronts, peers, namespace, process: None, is_paused: false }
    }

    /// Its id and that of its leader.
    fn status(&self) -> Option<(String, String)> {
        let status = self.post("maintenance/status", "{}")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some((text(&status["header"]["member_id"])?, text(&status["leader"]).unwrap_or_else(|| "0".into())))
    }

    /// Answer of etcd's JSON gateway.
    fn post(&self, method: &str, request: &str) -> Option<Value> {
        let mut stream = TcpStream::connect_timeout(&self.clients, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let length = request.len();
        let head = format!("POST /v3/{method} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all((head + request).as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    fn signal(&self, name: &str) {
        signal(self.process.as_ref().expect("the member runs").id(), name);
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        let running: Vec<usize> =
            (0..self.len()).filter(|number| self.members[*number].process.is_some()).collect();
        running.into_iter().for_each(|number| self.kill(number));
    }
}
