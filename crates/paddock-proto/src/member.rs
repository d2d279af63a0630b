//! A member of an ensemble as ZooKeeper's `server.N` lines and `/zookeeper/config` write it: where its peers reach it, and
//! behind a semicolon where clients do.
//!
//! Reading is lenient where ZooKeeper is: nothing may stand behind a last colon or semicolon.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

const FORM: &str = "HOST:PORT:PORT[:participant|observer][;[ADDRESS:]PORT]";
const A_PORT: &str = "a port from 1 to 65535";

/// Number of a member in its ensemble: N of `server.N`, from 0 to `MEMBER_NUMBER_MAX`. The Raft library has ids of its own, which
/// `paddock-replica` makes of it; ids of sessions begin with its low byte.
pub type MemberNumber = u32;

/// The largest number: ClickHouse Keeper has an `int32`, ZooKeeper a `long`.
pub const MEMBER_NUMBER_MAX: MemberNumber = i32::MAX as MemberNumber;

/// The byte that stands for a number in records of a fixed form: the number itself from 1 to 255, and 0 for every other, which follows
/// elsewhere in four bytes. Earlier builds knew no others.
pub fn narrow_member_number(member: MemberNumber) -> u8 {
    u8::try_from(member).unwrap_or(0)
}

/// One member as all members know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsembleMember {
    /// Number of the member, of which an ensemble has one.
    pub id: MemberNumber,
    /// A name or an address, one of IPv6 without brackets. It is never resolved for good: names move.
    pub host: String,
    /// Address where peers connect.
    pub quorum_port: u16,
    /// ZooKeeper's second port for peers. It is that of `quorum_port` for a member as ClickHouse Keeper writes it, which has one.
    pub election_port: u16,
    /// Its part in the ensemble.
    pub role: MemberRole,
    /// Address where clients connect, as far as the ensemble is told.
    pub client: Option<ClientAddress>,
}

/// Role of a member in the ensemble's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRole {
    /// The member has a vote, and can lead.
    Participant,
    /// The member only listens.
    Observer,
}

/// Address of a member at which clients connect, as the list of members has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// A name or an address, one of IPv6 without brackets. `None` is all addresses.
    pub address: Option<String>,
    /// Port of TCP.
    pub port: u16,
}

/// Machines from which a host can be reached, by rising number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// An address to listen at, which is no member's.
    Nobody,
    ItsOwn,
    Others,
}

impl Reach {
    /// The reach of a name or an address, one of IPv6 without brackets.
    pub fn of(host: &str) -> Reach {
        match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => Reach::Nobody,
            Ok(ip) if ip.is_loopback() => Reach::ItsOwn,
            Err(_) if host.eq_ignore_ascii_case("localhost") => Reach::ItsOwn,
            _ => Reach::Others,
        }
    }
}

/// Errors of a text that names no member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMember {
    #[error("expected {expected}, found {found:?}")]
    Form { expected: &'static str, found: String },
    #[error("expected the same role at all addresses, found participant and observer")]
    Roles,
}

fn wrong(expected: &'static str, found: &str) -> InvalidMember {
    InvalidMember::Form { expected, found: found.to_owned() }
}

impl EnsembleMember {
    /// Reads the value of `server.ID`. Returns too how many addresses stand behind the first one, which is the one used.
    pub fn parse(id: MemberNumber, text: &str) -> Result<(EnsembleMember, usize), InvalidMember> {
        let malformed = || wrong(FORM, text);
        let mut halves = text.trim_end_matches(';').split(';');
        let (peers, client, None) = (halves.next().unwrap_or(""), halves.next(), halves.next()) else {
            return Err(malformed());
        };
        let peers = peers
            .split('|')
            .map(|peer| PeerAddress::parse(peer).and_then(|peer| peer.ok_or_else(malformed)))
            .collect::<Result<Vec<_>, _>>()?;
        let client = match client {
            None => None,
            Some(client) => client_address(client)?.ok_or_else(malformed)?.known(),
        };
        let role = common_role(&peers)?;
        let more_addresses = peers.len() - 1;
        let PeerAddress { host, quorum_port, election_port, .. } =
            peers.into_iter().next().expect("a split gives at least one part");
        Ok((EnsembleMember { id, host, quorum_port, election_port, role, client }, more_addresses))
    }

    /// Reads the value of `server.ID` as ClickHouse Keeper's `/keeper/config` writes it: `HOST:PORT[;participant|learner][;PRIORITY]`.
    pub fn parse_of_keeper(id: MemberNumber, text: &str) -> Option<EnsembleMember> {
        let mut parts = text.split(';');
        let (host, port) = split_host(parts.next()?)?;
        let port = peer_port(port).ok()?;
        let role = match parts.next() {
            None | Some("participant") => MemberRole::Participant,
            Some("learner") => MemberRole::Observer,
            Some(_) => return None,
        };
        // Every participant may lead, so the priority is read for its form only.
        if parts.next().is_some_and(|priority| priority.parse::<i32>().is_err()) || parts.next().is_some() {
            return None;
        }
        let host = host.to_owned();
        Some(EnsembleMember { id, host, quorum_port: port, election_port: port, role, client: None })
    }
}

impl MemberRole {
    /// The role that is named `participant` or `observer`, in any case.
    pub fn parse(text: &str) -> Result<MemberRole, InvalidMember> {
        match text.to_ascii_lowercase().as_str() {
            "participant" => Ok(MemberRole::Participant),
            "observer" => Ok(MemberRole::Observer),
            _ => Err(wrong("participant or observer", text)),
        }
    }
}

/// As in `/zookeeper/config`: `server.ID=HOST:PORT:PORT:ROLE[;ADDRESS:PORT]`.
impl fmt::Display for EnsembleMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EnsembleMember { id, host, quorum_port, election_port, role, client } = self;
        write!(f, "server.{id}={}:{quorum_port}:{election_port}:{role}", Bracketed(host))?;
        match client {
            None => Ok(()),
            Some(ClientAddress { address, port }) => {
                write!(f, ";{}:{port}", Bracketed(address.as_deref().unwrap_or("0.0.0.0")))
            }
        }
    }
}

impl fmt::Display for MemberRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemberRole::Participant => "participant",
            MemberRole::Observer => "observer",
        })
    }
}

/// A host in front of a port: an address of IPv6 stands in brackets.
#[derive(Clone, Copy, Debug)]
pub struct Bracketed<'a>(pub &'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]"),
            Err(_) => f.write_str(self.0),
        }
    }
}

/// The role that all addresses of a member give which give one.
fn common_role(peers: &[PeerAddress]) -> Result<MemberRole, InvalidMember> {
    let mut roles = peers.iter().filter_map(|peer| peer.role);
    let first = roles.next().unwrap_or(MemberRole::Participant);
    if roles.all(|role| role == first) {
        return Ok(first);
    }
    Err(InvalidMember::Roles)
}

/// `HOST:PORT:PORT[:ROLE]`
struct PeerAddress {
    host: String,
    quorum_port: u16,
    election_port: u16,
    role: Option<MemberRole>,
}

impl PeerAddress {
    /// `None` if the text is of another form.
    fn parse(text: &str) -> Result<Option<PeerAddress>, InvalidMember> {
        let Some((host, rest)) = split_host(text) else { return Ok(None) };
        let mut parts = rest.trim_end_matches(':').split(':');
        let (Some(quorum), Some(election), role, None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let (quorum_port, election_port) = (peer_port(quorum)?, peer_port(election)?);
        let role = role.map(|role| MemberRole::parse(role.trim())).transpose()?;
        Ok(Some(PeerAddress { host: host.to_owned(), quorum_port, election_port, role }))
    }
}

/// The address where clients connect; without a port they do not.
struct ClientPlace {
    address: Option<String>,
    port: Option<u16>,
}

impl ClientPlace {
    fn known(self) -> Option<ClientAddress> {
        Some(ClientAddress { address: self.address, port: self.port? })
    }
}

/// `[ADDRESS:]PORT`, or `None` if the text is of another form.
fn client_address(text: &str) -> Result<Option<ClientPlace>, InvalidMember> {
    if !text.contains(':') {
        return Ok(Some(ClientPlace { address: None, port: client_port(text)? }));
    }
    match split_host(text) {
        Some((host, port)) if !port.contains(':') => {
            Ok(Some(ClientPlace { address: Some(host.to_owned()), port: client_port(port)? }))
        }
        _ => Ok(None),
    }
}

/// The host, an address of IPv6 without its brackets, and what stands behind its colon.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once("]:")?,
        None => text.split_once(':')?,
    };
    let is_host = !host.is_empty() && !host.contains(char::is_whitespace);
    is_host.then_some((host, rest))
}

fn peer_port(text: &str) -> Result<u16, InvalidMember> {
    client_port(text)?.ok_or_else(|| wrong(A_PORT, text))
}

/// 0 stands for no port.
fn client_port(text: &str) -> Result<Option<u16>, InvalidMember> {
    let port: u16 = text.parse().map_err(|_| wrong(A_PORT, text))?;
    Ok(Some(port).filter(|port| *port != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> EnsembleMember {
        EnsembleMember {
            id: 1,
            host: "a".into(),
            quorum_port: 2888,
            election_port: 3888,
            role: MemberRole::Participant,
            client: None,
        }
    }

    fn client(address: Option<&str>, port: u16) -> Option<ClientAddress> {
        Some(ClientAddress { address: address.map(str::to_owned), port })
    }

    #[track_caller]
    fn check(text: &str, expected: EnsembleMember) {
        assert_eq!(EnsembleMember::parse(1, text), Ok((expected, 0)), "{text}");
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let error = EnsembleMember::parse(1, text).unwrap_err();
        assert_eq!(error.to_string(), format!("expected {expected}"), "{text}");
    }

    #[test]
    fn a_member_has_a_host_and_two_ports() {
        for text in ["a:2888:3888", "a:2888:3888:", "a:2888:3888;", "a:2888:3888:;;", "a:+2888:03888"] {
            check(text, member());
        }
    }

    #[test]
    fn a_role_may_follow() {
        for role in ["participant", "PARTICIPANT", " participant "] {
            check(&format!("a:2888:3888:{role}"), member());
        }
        check("a:2888:3888:Observer", EnsembleMember { role: MemberRole::Observer, ..member() });
        check_refused("a:2888:3888:learner", "participant or observer, found \"learner\"");
    }

    #[test]
    fn a_port_for_clients_may_follow_with_or_without_an_address() {
        for (text, expected) in [
            ("2181", client(None, 2181)),
            ("2181;", client(None, 2181)),
            ("127.0.0.1:2181", client(Some("127.0.0.1"), 2181)),
            ("zoo1:2181", client(Some("zoo1"), 2181)),
            ("[::]:2181", client(Some("::"), 2181)),
            ("0", None),
            ("a:0", None),
        ] {
            check(&format!("a:2888:3888;{text}"), EnsembleMember { client: expected.clone(), ..member() });
            check(
                &format!("a:2888:3888:observer;{text}"),
                EnsembleMember { role: MemberRole::Observer, client: expected, ..member() },
            );
        }
    }

    #[test]
    fn an_address_of_ipv6_stands_in_brackets() {
        check("[2001:db8::1]:2888:3888", EnsembleMember { host: "2001:db8::1".into(), ..member() });
        check(
            "[::1]:2888:3888:participant;[::1]:2181",
            EnsembleMember { host: "::1".into(), client: client(Some("::1"), 2181), ..member() },
        );
    }

    #[test]
    fn of_several_addresses_the_first_one_is_taken() {
        let line = EnsembleMember::parse(1, "a:2888:3888|b:2889:3889:observer|c:1:2;2181").unwrap();
        let expected = EnsembleMember { role: MemberRole::Observer, client: client(None, 2181), ..member() };
        assert_eq!(line, (expected, 2));
        check_refused(
            "a:2888:3888:participant|b:2888:3888:observer",
            "the same role at all addresses, found participant and observer",
        );
    }

    #[test]
    fn another_form_is_shown_as_it_is() {
        for text in [
            "",
            "a",
            "a:2888",
            ":2888:3888",
            "a:1:2:observer:x",
            "::1:2888:3888",
            "[::1]2888:3888",
            "[::1:2888:3888",
            "a b:2888:3888",
            "a:2888:3888|",
            "a:2888:3888;2181;2182",
            "a:2888:3888;;2182",
            "a:2888:3888;::1:2181",
            "a:2888:3888;:2181",
        ] {
            check_refused(text, &format!("{FORM}, found {text:?}"));
        }
    }

    #[test]
    fn a_wrong_port_is_named() {
        for (text, port) in [
            ("a:x:3888", "x"),
            ("a:2888:0", "0"),
            ("a:2888:65536", "65536"),
            ("a:2888: 3888", " 3888"),
            ("a:2888:3888;port", "port"),
            ("a:2888:3888;a:-1", "-1"),
        ] {
            check_refused(text, &format!("a port from 1 to 65535, found {port:?}"));
        }
    }

    #[test]
    fn a_member_of_clickhouse_keeper_has_one_port() {
        let member = EnsembleMember { quorum_port: 9234, election_port: 9234, ..member() };
        let observer = EnsembleMember { role: MemberRole::Observer, ..member.clone() };
        let ipv6 = EnsembleMember { host: "::1".into(), ..member.clone() };
        for (text, expected) in [
            ("a:9234", Some(member.clone())),
            ("a:9234;participant", Some(member.clone())),
            ("a:9234;participant;1", Some(member)),
            ("a:9234;learner;0", Some(observer)),
            ("[::1]:9234;participant;1", Some(ipv6)),
            ("::1:9234", None),
            ("a:9234:9234", None),
            ("a:9234;2181", None),
            ("a:9234;learner;x", None),
            ("a:9234;learner;1;1", None),
            ("a:0", None),
            ("a", None),
        ] {
            assert_eq!(EnsembleMember::parse_of_keeper(1, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_what_zookeeper_shows() {
        for (text, shown) in [
            ("a:2888:3888", "server.1=a:2888:3888:participant"),
            ("a:2888:3888:observer;2181", "server.1=a:2888:3888:observer;0.0.0.0:2181"),
            ("[::1]:2888:3888;[::1]:2181", "server.1=[::1]:2888:3888:participant;[::1]:2181"),
        ] {
            let (member, _) = EnsembleMember::parse(1, text).unwrap();
            assert_eq!(member.to_string(), shown);
            let written = shown.strip_prefix("server.1=").unwrap();
            let (again, _) = EnsembleMember::parse(1, written).unwrap();
            assert_eq!(again.to_string(), shown);
        }
    }
}
