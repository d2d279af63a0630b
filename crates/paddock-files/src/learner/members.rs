//! The members of the followed ensemble, as its leader lists them since ZooKeeper 3.5.

/// One member of the followed ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMember {
    /// `host:port` where it listens while it leads.
    pub quorum: String,
    /// `host:port` where it listens as long as it runs, unless it is an observer.
    pub election: String,
    /// True if it votes.
    pub votes: bool,
}

/// Reads the text of a configuration: lines such as `server.1=host:2888:3888:participant;0.0.0.0:2181`.
pub(super) fn parse(config: &[u8]) -> Vec<SourceMember> {
    let text = String::from_utf8_lossy(config);
    let servers = text.lines().filter_map(|line| line.strip_prefix("server.")?.split_once('='));
    servers.flat_map(|(_, value)| addresses_of(value)).collect()
}

/// Since 3.6 a member may have several addresses, with `|` between them.
fn addresses_of(value: &str) -> Vec<SourceMember> {
    let peers = value.split(';').next().unwrap_or_default();
    let votes = !peers.ends_with(":observer");
    peers.split('|').filter_map(|address| parse_member(address, votes)).collect()
}

fn parse_member(address: &str, votes: bool) -> Option<SourceMember> {
    let address =
        [":participant", ":observer"].iter().find_map(|role| address.strip_suffix(role)).unwrap_or(address);
    let (rest, election_port) = address.rsplit_once(':')?;
    let (host, quorum_port) = rest.rsplit_once(':')?;
    let member = |port: &str| port.parse::<u16>().ok().map(|port| format!("{host}:{port}"));
    Some(SourceMember { quorum: member(quorum_port)?, election: member(election_port)?, votes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_a_configuration() {
        let text = "server.1=zk1:2888:3888:participant;0.0.0.0:2181\n\
                    server.2=[::1]:2888:3888:observer;2181\n\
                    server.3=a:1:2|b:3:4\nversion=100000000\nserver.x=nonsense\n";
        let members = parse(text.as_bytes());
        let found: Vec<_> = members.iter().map(|m| (&m.quorum[..], &m.election[..], m.votes)).collect();
        assert_eq!(
            found,
            [
                ("zk1:2888", "zk1:3888", true),
                ("[::1]:2888", "[::1]:3888", false),
                ("a:1", "a:2", true),
                ("b:3", "b:4", true)
            ]
        );
    }
}
