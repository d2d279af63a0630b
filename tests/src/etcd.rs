//! A real etcd of one member or more, and front ends of Paddock's on it. `ETCD_BIN` names etcd's program.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{Server, ServerKind, environment, free_port, signal};

const AGREED_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A cluster whose members keep their ports and their data.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<Member>,
    directory: tempfile::TempDir,
}

#[derive(Debug)]
struct Member {
    name: String,
    clients: SocketAddr,
    peers: SocketAddr,
    process: Option<Child>,
    is_paused: bool,
}

impl EtcdCluster {
    /// Starts so many members, and returns when one leads.
    pub fn start(members: usize) -> EtcdCluster {
        let address = || SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let member = |number| Member {
            name: format!("etcd-{number}"),
            clients: address(),
            peers: address(),
            process: None,
            is_paused: false,
        };
        let directory = tempfile::tempdir().expect("make a directory for etcd");
        let mut cluster = EtcdCluster { members: (0..members).map(member).collect(), directory };
        (0..members).for_each(|number| cluster.spawn(number));
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
        let (clients, own) = (format!("http://{}", member.clients), format!("http://{}", member.peers));
        let child = Command::new(environment("ETCD_BIN"))
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
            let told: Vec<Option<(String, String)>> = awake.map(Member::status).collect();
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
        let is_it = |member: &Member| member.status().is_some_and(|(own, _)| own == id);
        self.members.iter().position(|member| member.process.is_some() && !member.is_paused && is_it(member))
    }

    /// A front end on this cluster that has not been started. It asks this member first.
    pub fn front_end(&self, first: usize) -> Server {
        self.front_end_with(first, &[], &[])
    }

    /// The same with more lines in its `zoo.cfg`, and more arguments.
    pub fn front_end_with(&self, first: usize, settings: &[(&str, &str)], arguments: &[&str]) -> Server {
        let endpoint = |place: usize| {
            let member = &self.members[(first + place) % self.members.len()];
            format!("http://{}", member.clients)
        };
        let endpoints = (0..self.members.len()).map(endpoint).collect::<Vec<_>>().join(",");
        let mut server = Server::prepare(ServerKind::Paddock, settings);
        let engine = ["--engine", "etcd", "--etcd-endpoints", &endpoints];
        server.set_arguments(&[&engine, arguments].concat());
        server
    }
}

impl Member {
    /// Its id and that of its leader.
    fn status(&self) -> Option<(String, String)> {
        let mut stream = TcpStream::connect_timeout(&self.clients, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let request = "POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let status: Value = serde_json::from_str(body).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some((text(&status["header"]["member_id"])?, text(&status["leader"]).unwrap_or_else(|| "0".into())))
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
