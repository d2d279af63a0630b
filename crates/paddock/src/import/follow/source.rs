//! The followed ensemble by its addresses: where its leader is, and which of its members run.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use paddock_files::SourceMember;
use paddock_sasl::{Login, LoginExchange, Service};
use paddock_server::QuorumTls;

const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// A leader pings twice in a tick, once it is followed; before that it may have to wait for its own followers.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// `host:port` of a quorum port, and that of the election port of the same member if it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    quorum: String,
    election: Option<String>,
}

pub(super) fn parse_address(text: &str) -> Result<Address, String> {
    let wrong = || "expected HOST:PORT or HOST:PORT:ELECTION_PORT".to_owned();
    let (rest, last) = text.rsplit_once(':').ok_or_else(wrong)?;
    let last: u16 = last.parse().map_err(|_| wrong())?;
    let is_bracketed = rest.ends_with(']');
    let inner = rest.rsplit_once(':').filter(|_| !is_bracketed);
    match inner.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?))) {
        Some((host, quorum)) if !host.is_empty() => {
            Ok(Address { quorum: format!("{host}:{quorum}"), election: Some(format!("{host}:{last}")) })
        }
        _ if rest.is_empty() => Err(wrong()),
        _ => Ok(Address { quorum: text.to_owned(), election: None }),
    }
}

/// Members that run, as far as that can be seen.
pub(super) struct Running {
    pub(super) voters: usize,
    pub(super) all: usize,
}

/// A connection to a leader that has not been greeted.
pub(super) struct Dialed {
    pub(super) socket: TcpStream,
    /// TLS, and the name that the certificate has to have.
    pub(super) tls: Option<(QuorumTls, String)>,
    pub(super) login: Option<LoginExchange>,
}

pub(super) struct SourceEnsemble {
    addresses: Vec<Address>,
    tls: Option<QuorumTls>,
    login: Option<Login>,
    /// As the leader lists them; from the command line for one that does not.
    members: Vec<SourceMember>,
}

impl SourceEnsemble {
    pub(super) fn new(addresses: &[Address], tls: Option<QuorumTls>, login: Option<Login>) -> SourceEnsemble {
        let member = |address: &Address| {
            let (quorum, election) = (address.quorum.clone(), address.election.clone()?);
            Some(SourceMember { quorum, election, votes: true })
        };
        let members: Option<Vec<SourceMember>> = addresses.iter().map(member).collect();
        SourceEnsemble { addresses: addresses.to_vec(), tls, login, members: members.unwrap_or_default() }
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.addresses.iter().map(|address| &address.quorum[..]).collect();
        names.join(", ")
    }

    /// Takes the members as the leader lists them, if it does.
    pub(super) fn set_members(&mut self, members: Vec<SourceMember>) {
        if !members.is_empty() {
            self.members = members;
        }
    }

    /// True if it can be seen which members run.
    pub(super) fn knows_elections(&self) -> bool {
        !self.members.is_empty()
    }

    pub(super) fn voters(&self) -> usize {
        self.members.iter().filter(|member| member.votes).count()
    }

    /// Connects to the leader: no other member listens on its quorum port.
    pub(super) fn connect(&self) -> Option<(String, Dialed)> {
        let named = self.addresses.iter().map(|address| &address.quorum);
        let listed = self.members.iter().map(|member| &member.quorum);
        let mut tried: Vec<&String> = Vec::new();
        for address in named.chain(listed) {
            if tried.contains(&address) {
                continue;
            }
            tried.push(address);
            if let Ok(socket) = open(address) {
                let tls = self.tls.clone().map(|tls| (tls, host_of(address).to_owned()));
                let begin = |login| LoginExchange::new(login, Service::Quorum, paddock_client::fresh_nonce());
                let login = self.login.clone().map(begin);
                return Some((address.clone(), Dialed { socket, tls, login }));
            }
        }
        None
    }

    /// Asks every member whether it runs. One that cannot be reached may: only a refusal is sure.
    pub(super) fn running(&self) -> Running {
        let mut running = Running { voters: 0, all: 0 };
        for member in &self.members {
            if may_run(&member.election) || may_run(&member.quorum) {
                running.all += 1;
                running.voters += usize::from(member.votes);
            }
        }
        running
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn open(address: &str) -> io::Result<TcpStream> {
    let socket = connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    socket.set_write_timeout(Some(SILENCE_MAX))?;
    Ok(socket)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, CONNECT_WITHIN) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn may_run(address: &str) -> bool {
    !matches!(connect(address), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_the_election_port() {
        let parsed = |text| parse_address(text).map(|address| (address.quorum, address.election));
        assert_eq!(parsed("zk1:2888"), Ok(("zk1:2888".to_owned(), None)));
        assert_eq!(parsed("zk1:2888:3888"), Ok(("zk1:2888".to_owned(), Some("zk1:3888".to_owned()))));
        assert_eq!(parsed("[::1]:2888"), Ok(("[::1]:2888".to_owned(), None)));
        assert_eq!(parsed("[::1]:2888:3888"), Ok(("[::1]:2888".to_owned(), Some("[::1]:3888".to_owned()))));
        for wrong in ["zk1", ":2888", "zk1:port", "zk1:99999"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
