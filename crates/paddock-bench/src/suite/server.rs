//! One server as a suite measures it: its members, each in a directory of its own, started from a template.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_relay::{LinkQuality, Relay};

use super::links::{self, MemberLinks, PeerPorts};
use super::process::SuiteProcess;
use super::template::Values;
use super::{Network, ServerTemplate, ports};
use crate::BenchError;
use crate::driver::probe;

/// Time for one attempt to open a session; between attempts the process is looked at.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Pause before a server that does not serve yet is asked again, at least. More questions would be a load of their own.
const PAUSE: Duration = Duration::from_millis(2);
/// Questions asked while a start lasts, about: the time of a start is exact to one part in this number.
const QUESTIONS: u32 = 100;

/// Pause between two looks at the command that prepares a server.
const PREPARED: Duration = Duration::from_millis(20);

/// A number of writes that no run reaches: snapshots are not taken where they are not measured.
pub(super) const NEVER: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct SuiteServer<'a> {
    template: &'a ServerTemplate,
    directory: PathBuf,
    members: Vec<MemberProcess>,
    /// Present if the members are linked through relays.
    links: Option<MemberLinks>,
    /// From its start until all members served.
    ready_after: Duration,
}

#[derive(Debug)]
struct MemberProcess {
    values: Values,
    process: SuiteProcess,
}

/// The way of a cell's clients to the members.
pub(super) struct ClientWay {
    pub(super) hosts: Vec<String>,
    /// Kept as long as the clients are there.
    _relays: Vec<Relay>,
}

/// Reasons for which a server does not serve.
#[derive(Debug)]
pub(super) enum NotServing {
    /// The user wants no more.
    Stopped,
    Failed(BenchError),
}

impl From<BenchError> for NotServing {
    fn from(error: BenchError) -> NotServing {
        NotServing::Failed(error)
    }
}

impl<'a> SuiteServer<'a> {
    /// Starts every member on an empty directory below `directory` and waits until all of them serve.
    pub(super) fn start(
        template: &'a ServerTemplate,
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<SuiteServer<'a>, NotServing> {
        wipe(directory)?;
        let mut server = SuiteServer {
            template,
            directory: directory.to_owned(),
            members: Vec::new(),
            links: None,
            ready_after: Duration::ZERO,
        };
        let (values, links) = values(template, directory)?;
        server.links = links;
        server.start_members(values, stop)?;
        server.prepare(stop)?;
        Ok(server)
    }

    /// Runs the command with which the server is prepared, to its end.
    fn prepare(&self, stop: &AtomicBool) -> Result<(), NotServing> {
        let (Some(first), false) = (self.members.first(), self.template.prepare.is_empty()) else {
            return Ok(());
        };
        let command: Vec<String> = self.template.prepare.iter().map(|word| first.values.fill(word)).collect();
        let mut process = SuiteProcess::start(&command, &self.directory, self.directory.join("prepare.log"))?;
        let status = loop {
            match process.ended()? {
                Some(status) => break status,
                None if stop.load(Ordering::Relaxed) => return Err(NotServing::Stopped),
                None => thread::sleep(PREPARED),
            }
        };
        if status.success() {
            return Ok(());
        }
        let what = format!("is not prepared: {} ended with {status}", command[0]);
        Err(BenchError::Server { server: self.template.name.clone(), what, log: process.log_tail() }.into())
    }

    /// Ends all members in good order and starts them again on what they wrote, to take snapshots after `snapshot_writes` writes.
    pub(super) fn restart(&mut self, snapshot_writes: u64, stop: &AtomicBool) -> Result<(), NotServing> {
        let mut all = self.stop_members()?;
        all.iter_mut().for_each(|values| values.snapshot_writes = snapshot_writes.to_string());
        self.start_members(all, stop)
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.members.iter().map(MemberProcess::host).collect()
    }

    /// Puts the members, and the way of clients to them, into a network; without one they are as on loopback.
    pub(super) fn enter(&self, network: Option<&Network>) -> Result<ClientWay, BenchError> {
        let Some(links) = &self.links else { return Ok(ClientWay::direct(self.hosts())) };
        let members = self.members.len();
        let Some(network) = network else {
            links.set(&vec![LinkQuality::default(); members]);
            return Ok(ClientWay::direct(self.hosts()));
        };
        let qualities = network.qualities(members, links::leader(&self.hosts())?);
        links.set(&qualities);
        let is_served = |at: &usize| !network.clients_elsewhere || qualities[*at] == LinkQuality::default();
        let served = (0..members).filter(is_served).map(|at| &self.members[at]);
        if network.clients == LinkQuality::default() {
            return Ok(ClientWay::direct(served.map(MemberProcess::host).collect()));
        }
        let relays: Vec<Relay> = served.map(MemberProcess::relay).collect::<Result<_, _>>()?;
        relays.iter().for_each(|relay| relay.set_quality(network.clients, network.clients));
        let hosts = relays.iter().map(|relay| relay.address().to_string()).collect();
        Ok(ClientWay { hosts, _relays: relays })
    }

    /// The processes of all members.
    pub(super) fn pids(&self) -> Result<Vec<u32>, BenchError> {
        let of_each: Result<Vec<_>, _> = self.members.iter().map(|member| member.process.pids()).collect();
        Ok(of_each?.concat())
    }

    /// The directory in which its members write.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Ends all members and removes what they wrote.
    pub(super) fn stop(mut self) -> Result<(), BenchError> {
        self.stop_members()?;
        wipe(&self.directory)
    }

    fn start_members(&mut self, all: Vec<Values>, stop: &AtomicBool) -> Result<(), NotServing> {
        let started = Instant::now();
        for values in all {
            let process = start_member(self.template, &values)?;
            self.members.push(MemberProcess { values, process });
        }
        self.wait_until_ready(started, stop)?;
        self.ready_after = started.elapsed();
        Ok(())
    }

    fn stop_members(&mut self) -> Result<Vec<Values>, BenchError> {
        self.members.iter().for_each(|member| member.process.terminate());
        let mut all = Vec::new();
        for member in self.members.drain(..) {
            member.process.stop()?;
            all.push(member.values);
        }
        Ok(all)
    }

    fn wait_until_ready(&mut self, started: Instant, stop: &AtomicBool) -> Result<(), NotServing> {
        let within = self.template.ready_within;
        let deadline = started + within;
        let tls = self.template.tls()?;
        for member in &mut self.members {
            let host = member.host();
            // A session is the one sign that a server serves which every server gives.
            while let Err(error) = probe(&host, tls.as_ref(), ATTEMPT) {
                if stop.load(Ordering::Relaxed) {
                    return Err(NotServing::Stopped);
                }
                let what = match member.process.ended()? {
                    Some(status) => format!("ended with {status} before it served"),
                    None if Instant::now() >= deadline => {
                        let why = paddock_tls::with_causes(&error);
                        format!("does not serve on {host} after {within:?}: {why}")
                    }
                    None => {
                        thread::sleep(PAUSE.max(started.elapsed() / QUESTIONS));
                        continue;
                    }
                };
                let log = member.process.log_tail();
                return Err(BenchError::Server { server: self.template.name.clone(), what, log }.into());
            }
        }
        Ok(())
    }
}

impl ClientWay {
    fn direct(hosts: Vec<String>) -> ClientWay {
        ClientWay { hosts, _relays: Vec::new() }
    }
}

impl MemberProcess {
    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.values.port)
    }

    /// A relay in front of its port for clients.
    fn relay(&self) -> Result<Relay, BenchError> {
        links::relay(self.values.port.parse().expect("the port was a number"))
    }
}

fn start_member(template: &ServerTemplate, values: &Values) -> Result<SuiteProcess, BenchError> {
    let directory = Path::new(&values.dir);
    fs::create_dir_all(directory).map_err(BenchError::file("create", directory))?;
    for (path, text) in &template.files {
        let path = directory.join(path);
        let parent = path.parent().expect("a file of a member stands in its directory");
        fs::create_dir_all(parent).map_err(BenchError::file("create", parent))?;
        fs::write(&path, values.fill(text)).map_err(BenchError::file("write", &path))?;
    }
    let command: Vec<String> = template.command.iter().map(|word| values.fill(word)).collect();
    SuiteProcess::start(&command, directory, directory.join("server.log"))
}

/// The placeholders of every member, and the relays between members if there are any.
fn values(
    template: &ServerTemplate,
    directory: &Path,
) -> Result<(Vec<Values>, Option<MemberLinks>), BenchError> {
    let directory = std::path::absolute(directory).map_err(BenchError::file("find", directory))?;
    let peer_ports = || Ok(PeerPorts { quorum: ports::free()?, election: ports::free()? });
    let own: Vec<PeerPorts> =
        (0..template.members).map(|_| peer_ports()).collect::<Result<_, BenchError>>()?;
    let links = template.through_relays.then(|| MemberLinks::start(&own)).transpose()?;
    // Each member listens at its own ports, and calls the others through relays.
    let line = |from: usize, to: usize| {
        let ports = links.as_ref().and_then(|links| links.ports(from, to)).unwrap_or(own[to]);
        format!("server.{}=127.0.0.1:{}:{}", to + 1, ports.quorum, ports.election)
    };
    let mut all = Vec::new();
    for (at, ports) in own.iter().enumerate() {
        let lines = (0..own.len()).map(|to| line(at, to)).collect::<Vec<_>>();
        all.push(Values {
            dir: directory.join((at + 1).to_string()).display().to_string(),
            port: ports::free()?.to_string(),
            quorum_port: ports.quorum.to_string(),
            election_port: ports.election.to_string(),
            admin_port: ports::free()?.to_string(),
            id: (at + 1).to_string(),
            servers: if own.len() > 1 { lines.join("\n") } else { String::new() },
            snapshot_writes: NEVER.to_string(),
        });
    }
    Ok((all, links))
}

pub(super) fn wipe(directory: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BenchError::file("remove", directory)(error))
        }
        _ => Ok(()),
    }
}
