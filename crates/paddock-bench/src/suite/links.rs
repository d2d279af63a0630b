//! Links between the members of a server, each through relays, so that a cell's network can be worse than loopback.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use paddock_relay::{LinkQuality, Relay};

use crate::BenchError;

/// Time for an answer to a four-letter word.
const ANSWER: Duration = Duration::from_secs(5);
/// Time for an ensemble that has just begun to say who leads.
const ELECTED: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Relays in front of each member's ports for members, of its own for each other member that calls it.
#[derive(Debug)]
pub(super) struct MemberLinks(Vec<MemberLink>);

/// The way from one member to another. Members are numbered from 0.
#[derive(Debug)]
struct MemberLink {
    from: usize,
    to: usize,
    quorum: Relay,
    election: Relay,
}

/// Ports of a member for other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerPorts {
    pub(super) quorum: u16,
    pub(super) election: u16,
}

impl MemberLinks {
    pub(super) fn start(members: &[PeerPorts]) -> Result<MemberLinks, BenchError> {
        let mut links = Vec::new();
        for from in 0..members.len() {
            for (to, ports) in members.iter().enumerate().filter(|(to, _)| *to != from) {
                let (quorum, election) = (relay(ports.quorum)?, relay(ports.election)?);
                links.push(MemberLink { from, to, quorum, election });
            }
        }
        Ok(MemberLinks(links))
    }

    /// The ports at which the member `from` reaches the member `to`; none for itself.
    pub(super) fn ports(&self, from: usize, to: usize) -> Option<PeerPorts> {
        let link = self.0.iter().find(|link| (link.from, link.to) == (from, to))?;
        Some(PeerPorts { quorum: link.quorum.address().port(), election: link.election.address().port() })
    }

    /// Gives each member the quality of what it sends to the others.
    pub(super) fn set(&self, qualities: &[LinkQuality]) {
        for MemberLink { from, to, quorum, election } in &self.0 {
            for relay in [quorum, election] {
                relay.set_quality(qualities[*from], qualities[*to]);
            }
        }
    }
}

/// A relay to a port of this machine.
pub(super) fn relay(port: u16) -> Result<Relay, BenchError> {
    Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .map_err(|source| BenchError::System { action: "start a relay", source })
}

/// The place of the member that says of itself that it leads, by the word `srvr`.
pub(super) fn leader(hosts: &[String]) -> Result<usize, BenchError> {
    let deadline = Instant::now() + ELECTED;
    loop {
        let leads = |host: &String| srvr(host).is_ok_and(|answer| answer.contains("Mode: leader"));
        if let Some(leader) = hosts.iter().position(leads) {
            return Ok(leader);
        }
        if Instant::now() >= deadline {
            let reason =
                format!("no member has said that it leads for {ELECTED:?}: does it answer the word srvr?");
            return Err(BenchError::Protocol { host: hosts.join(","), reason });
        }
        thread::sleep(POLL);
    }
}

fn srvr(host: &str) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(host)?;
    socket.set_read_timeout(Some(ANSWER))?;
    socket.write_all(b"srvr")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}
