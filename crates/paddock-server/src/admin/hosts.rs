//! Names by which a member may be asked for.
//!
//! A page of a stranger can have its own name lead to the member's address, and then ask in the browser of a user who reaches the member.
//! The browser says the stranger's name in `Host`. An address as `Host` cannot lead elsewhere, so every address passes.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap};
use paddock_http::Response;

use crate::Config;

/// Lets a request pass if it asks for the member by an address or a name of its own, or by no name.
pub(super) fn admit(config: &Config, headers: &HeaderMap) -> Result<(), Response> {
    for host in headers.get_all(HOST) {
        let host = String::from_utf8_lossy(host.as_bytes()).to_ascii_lowercase();
        let name = without_port(&host);
        if !is_address(name) && !is_own(name, config) {
            let text = format!(
                "This member is not called {name:?}. Ask for it by its address, or add the name to its setting admin.hosts.\n"
            );
            return Err(Response::text(StatusCode::MISDIRECTED_REQUEST, text));
        }
    }
    Ok(())
}

/// The host of an authority such as `zk1:8080`.
pub(super) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    let of_v6 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.parse::<IpAddr>().is_ok() || of_v6.is_some_and(|name| name.parse::<Ipv6Addr>().is_ok())
}

/// True for the names of this machine, of the ensemble's members, and of the settings.
fn is_own(name: &str, config: &Config) -> bool {
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let members = config.ensemble.iter().flat_map(|ensemble| &ensemble.members);
    let of_members = members.flat_map(|member| {
        let of_clients = member.client.as_ref().and_then(|client| client.address.as_deref());
        std::iter::once(member.host.as_str()).chain(of_clients)
    });
    let own = ["localhost", machine.trim()].into_iter().chain(of_members);
    let known = own.chain(config.admin.hosts.iter().map(String::as_str));
    let name = name.trim_end_matches('.');
    known.into_iter().any(|known| known == "*" || !known.is_empty() && known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdminSettings;
    use crate::config::{ClientAddress, Ensemble, EnsembleMember, Role};

    fn is_admitted(host: &str, config: &Config) -> bool {
        let name = without_port(host);
        is_address(name) || is_own(name, config)
    }

    #[test]
    fn a_member_is_asked_by_its_addresses_and_names() {
        let member = EnsembleMember {
            id: 1,
            host: "zk1.internal".into(),
            quorum_port: 2888,
            election_port: 3888,
            role: Role::Participant,
            client: Some(ClientAddress { address: Some("zk1.example.org".into()), port: 2181 }),
        };
        let ensemble = Ensemble { members: vec![member], ..Ensemble::default() };
        let admin = AdminSettings { hosts: vec!["ops.example.org".into()], ..AdminSettings::default() };
        let mut config = Config { ensemble: Some(ensemble), admin, ..Config::new("data") };
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:8080",
            "10.1.2.3",
            "[::1]:8080",
            "zk1.internal:8080",
            "ZK1.example.org.",
            "ops.example.org",
        ] {
            assert!(is_admitted(host, &config), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "",
            "zk2.internal",
            "127.0.0.1.evil",
        ] {
            assert!(!is_admitted(host, &config), "{host}");
        }
        config.admin.hosts = vec!["*".into()];
        assert!(is_admitted("evil.example", &config));
    }
}
