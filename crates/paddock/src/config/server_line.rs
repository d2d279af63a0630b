//! The value of `server.N`: where a member is reached by its peers, and behind a semicolon by clients.
//!
//! The syntax is ZooKeeper's, lenient where ZooKeeper is: nothing may stand behind a last colon or semicolon.

use paddock_server::{ClientAddress, EnsembleMember, Role};

use super::value::{self, Text};
use super::zoo_values;

const FORM: &str = "HOST:PORT:PORT[:participant|observer][;[ADDRESS:]PORT]";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerLine {
    pub(super) member: EnsembleMember,
    /// Addresses behind the first one, which are not used.
    pub(super) more_addresses: usize,
}

pub(super) fn parse(id: u8, text: &str) -> Result<ServerLine, String> {
    let malformed = || value::wrong(FORM, &Text(text));
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
    let member = EnsembleMember { id, host, quorum_port, election_port, role, client };
    Ok(ServerLine { member, more_addresses })
}

/// The role that all addresses of a member give which give one.
fn common_role(peers: &[PeerAddress]) -> Result<Role, String> {
    let mut roles = peers.iter().filter_map(|peer| peer.role);
    let first = roles.next().unwrap_or(Role::Participant);
    if roles.all(|role| role == first) {
        return Ok(first);
    }
    Err("expected the same role at all addresses, found participant and observer".to_owned())
}

/// `HOST:PORT:PORT[:ROLE]`
struct PeerAddress {
    host: String,
    quorum_port: u16,
    election_port: u16,
    role: Option<Role>,
}

impl PeerAddress {
    /// `None` if the text is of another form.
    fn parse(text: &str) -> Result<Option<PeerAddress>, String> {
        let Some((host, rest)) = split_host(text) else { return Ok(None) };
        let mut parts = rest.trim_end_matches(':').split(':');
        let (Some(quorum), Some(election), role, None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let (quorum_port, election_port) = (peer_port(quorum)?, peer_port(election)?);
        let role = role.map(|role| self::role(&Text(role.trim()))).transpose()?;
        Ok(Some(PeerAddress { host: host.to_owned(), quorum_port, election_port, role }))
    }
}

/// Where clients connect; without a port they do not.
struct Client {
    address: Option<String>,
    port: Option<u16>,
}

impl Client {
    fn known(self) -> Option<ClientAddress> {
        Some(ClientAddress { address: self.address, port: self.port? })
    }
}

/// `[ADDRESS:]PORT`, or `None` if the text is of another form.
fn client_address(text: &str) -> Result<Option<Client>, String> {
    if !text.contains(':') {
        return Ok(Some(Client { address: None, port: zoo_values::port(&Text(text))? }));
    }
    match split_host(text) {
        Some((host, port)) if !port.contains(':') => {
            Ok(Some(Client { address: Some(host.to_owned()), port: zoo_values::port(&Text(port))? }))
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

pub(super) fn role(value: &Text<'_>) -> Result<Role, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "participant" => Ok(Role::Participant),
        "observer" => Ok(Role::Observer),
        _ => Err(value::wrong("participant or observer", value)),
    }
}

fn peer_port(text: &str) -> Result<u16, String> {
    value::number(&Text(text), value::PORT, value::A_PORT)
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
            role: Role::Participant,
            client: None,
        }
    }

    fn client(address: Option<&str>, port: u16) -> Option<ClientAddress> {
        Some(ClientAddress { address: address.map(str::to_owned), port })
    }

    #[track_caller]
    fn check(text: &str, expected: EnsembleMember) {
        assert_eq!(parse(1, text), Ok(ServerLine { member: expected, more_addresses: 0 }), "{text}");
    }

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        assert_eq!(parse(1, text), Err(format!("expected {expected}")), "{text}");
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
        check("a:2888:3888:Observer", EnsembleMember { role: Role::Observer, ..member() });
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
                EnsembleMember { role: Role::Observer, client: expected, ..member() },
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
        let line = parse(1, "a:2888:3888|b:2889:3889:observer|c:1:2;2181").unwrap();
        let expected = EnsembleMember { role: Role::Observer, client: client(None, 2181), ..member() };
        assert_eq!(line, ServerLine { member: expected, more_addresses: 2 });
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
}
